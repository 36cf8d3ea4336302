"""Shapes of values: each knows its JSON Schema and how a value from a model becomes one for the method.

Both sides are made in one place, so that what the schema promises and what a call accepts cannot drift apart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Convert = Callable[[Any, str], Any]


class Mismatch(Exception):
    """A value that its shape does not admit; the message names the argument and what would be right."""


@dataclass(frozen=True, slots=True)
class Shape:
    schema: dict[str, Any]
    noun: str
    """For messages: `an integer`."""
    convert: Convert
    """(value, where) -> the value as the method wants it. Raises Mismatch."""

    def refuse(self, value: Any, where: str) -> Mismatch:
        return Mismatch(f"{where!r} must be {self.noun}, not {_clipped(value)}")

    def annotated(self, **keywords: Any) -> "Shape":
        """The same shape with more said in the schema: a description, a default."""
        return replace(self, schema={**self.schema, **keywords})


def _scalar(json_type: str, noun: str, accept: Callable[[Any], Any]) -> Shape:
    """`accept` returns the value to use, or NotImplemented where the type is wrong."""

    def convert(value: Any, where: str) -> Any:
        accepted = accept(value)
        if accepted is NotImplemented:
            raise shape.refuse(value, where)
        return accepted

    shape = Shape({"type": json_type}, noun, convert)
    return shape


def _integer(value: Any) -> Any:
    # JSON knows one kind of number: some models write 3.0 for 3. True is an int in Python only.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else NotImplemented


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NotImplemented
    try:
        return float(value)
    except OverflowError:
        return NotImplemented


STRING = _scalar("string", "a string", lambda value: value if isinstance(value, str) else NotImplemented)
INTEGER = _scalar("integer", "an integer", _integer)
NUMBER = _scalar("number", "a number", _number)
BOOLEAN = _scalar("boolean", "true or false", lambda value: value if isinstance(value, bool) else NotImplemented)
NULL = _scalar("null", "null", lambda value: None if value is None else NotImplemented)
ANYTHING = Shape({}, "anything", lambda value, where: value)

_JSON_TYPES = {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null"}


def choice(options: Sequence[tuple[Any, Any]]) -> Shape:
    """One of a few values, given as pairs: as JSON writes it, as the method wants it."""
    written = [json for json, _ in options]
    kinds = {_JSON_TYPES[type(json)] for json in written}
    schema = {"type": kinds.pop(), "enum": written} if len(kinds) == 1 else {"enum": written}

    def convert(value: Any, where: str) -> Any:
        for json, wanted in options:
            if value is wanted or (type(value) is type(json) and value == json):
                return wanted
        raise shape.refuse(value, where)

    shape = Shape(schema, "one of " + ", ".join(map(repr, written)), convert)
    return shape


def array(item: Shape, build: Callable[[Iterable[Any]], Any], *, unique: bool = False) -> Shape:
    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple | set | frozenset):
            raise shape.refuse(value, where)
        return _built(build, where, [item.convert(each, f"{where}[{index}]") for index, each in enumerate(value)])

    schema: dict[str, Any] = {"type": "array", "items": item.schema}
    shape = Shape({**schema, "uniqueItems": True} if unique else schema, "an array", convert)
    return shape


def fixed_array(items: Sequence[Shape]) -> Shape:
    """A tuple with a type for each place."""
    count = len(items)

    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple) or len(value) != count:
            raise shape.refuse(value, where)
        return tuple(item.convert(value[index], f"{where}[{index}]") for index, item in enumerate(items))

    schema = {"type": "array", "prefixItems": [item.schema for item in items], "minItems": count, "maxItems": count}
    shape = Shape(schema, f"an array of {count}", convert)
    return shape


def mapping(item: Shape) -> Shape:
    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise shape.refuse(value, where)
        return {key: item.convert(each, f"{where}.{key}") for key, each in value.items()}

    shape = Shape({"type": "object", "additionalProperties": item.schema}, "an object", convert)
    return shape


def record(fields: Mapping[str, Shape], required: Sequence[str], build: Callable[..., Any]) -> Shape:
    """An object with named fields; `build` gets them as keywords. `where` is empty for the arguments of a call."""

    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, Mapping):
            raise shape.refuse(value, where or "the arguments")
        inside, owner, kind = (f"{where}.", repr(where), "field") if where else ("", "the tool", "argument")
        for name in value:
            if name not in fields:
                raise Mismatch(f"{owner} has no {kind} {_clipped(name)}; it takes {_listed(fields, required)}")
        for name in required:
            if name not in value:
                raise Mismatch(f"{owner} needs the {kind} {name!r}; it takes {_listed(fields, required)}")
        return _built(build, where, **{name: fields[name].convert(each, inside + name) for name, each in value.items()})

    schema: dict[str, Any] = {"type": "object", "properties": {name: field.schema for name, field in fields.items()}}
    if required:
        schema["required"] = list(required)
    shape = Shape({**schema, "additionalProperties": False}, "an object", convert)
    return shape


def union(options: Sequence[Shape]) -> Shape:
    def convert(value: Any, where: str) -> Any:
        if value is not None and len(others) == 1:
            # For `X | None` the fault is in X: its own message says more than "X or null".
            return others[0].convert(value, where)
        for option in options:
            try:
                return option.convert(value, where)
            except Mismatch:
                continue
        raise shape.refuse(value, where)

    others = [option for option in options if option is not NULL]
    noun = " or ".join(option.noun for option in options)
    shape = Shape({"anyOf": [option.schema for option in options]}, noun, convert)
    return shape


def _clipped(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else shown[:80] + "…"


def _listed(fields: Mapping[str, Shape], required: Sequence[str]) -> str:
    return ", ".join(f"{name!r} (required)" if name in required else repr(name) for name in fields) or "nothing"


def _built(build: Callable[..., Any], where: str, /, *values: Any, **named: Any) -> Any:
    """A dataclass may refuse its values, a set may not take them: the caller hears of it as of any other fault."""
    try:
        return build(*values, **named)
    except (TypeError, ValueError) as error:
        raise Mismatch(f"{where!r} was refused: {error}") from error
