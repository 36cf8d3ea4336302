"""Shapes of values: each knows its JSON Schema and how a value from a model becomes one for the method.

Both sides are made in one place, so that what the schema promises and what a call accepts cannot drift apart.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from skillshelf.text import truncate

_MAX_SHOWN_VALUE = 80

Convert = Callable[[Any, str], Any]


class Mismatch(Exception):
    """A value does not fit its shape. The message names the argument and what would be right."""


class Shape(NamedTuple):
    """The values that a type hint admits."""

    schema: dict[str, Any]
    noun: str
    """For messages: `an integer`."""
    convert: Convert
    """Takes a value and the name of its argument, and returns the value as the method wants it. Raises Mismatch."""

    def refuse(self, value: Any, where: str) -> Mismatch:
        return Mismatch(f"{where!r} must be {self.noun}, not {_show(value)}")

    def annotated(self, **keywords: Any) -> "Shape":
        """Return the same shape with more in its schema: a description, a default."""
        return self._replace(schema={**self.schema, **keywords})


# --- scalars ---


def _scalar(json_type: str, noun: str, accept: Callable[[Any], Any]) -> Shape:
    """Make a shape of one type. `accept` returns the value to use, or NotImplemented if it has another type."""

    def convert(value: Any, where: str) -> Any:
        accepted = accept(value)
        if accepted is NotImplemented:
            raise shape.refuse(value, where)
        return accepted

    shape = Shape({"type": json_type}, noun, convert)
    return shape


def _accept_integer(value: Any) -> Any:
    # JSON knows one kind of number: some models write 3.0 for 3. True is an int in Python only.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return NotImplemented


def _accept_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NotImplemented
    try:
        return float(value)
    except OverflowError:
        return NotImplemented


STRING = _scalar("string", "a string", lambda value: value if isinstance(value, str) else NotImplemented)
INTEGER = _scalar("integer", "an integer", _accept_integer)
NUMBER = _scalar("number", "a number", _accept_number)
BOOLEAN = _scalar("boolean", "true or false", lambda value: value if isinstance(value, bool) else NotImplemented)
NULL = _scalar("null", "null", lambda value: None if value is None else NotImplemented)
ANYTHING = Shape({}, "anything", lambda value, where: value)

_JSON_TYPES = {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null"}


def choice(options: Sequence[tuple[Any, Any]]) -> Shape:
    """Make the shape of one of a few values, given as pairs: as JSON writes it, as the method wants it."""
    in_json = [written for written, _ in options]
    schema: dict[str, Any] = {"enum": in_json}
    json_types = {_JSON_TYPES[type(written)] for written in in_json}
    if len(json_types) == 1:
        schema = {"type": json_types.pop(), "enum": in_json}

    def convert(value: Any, where: str) -> Any:
        for written, wanted in options:
            if value is wanted or (type(value) is type(written) and value == written):
                return wanted
        raise shape.refuse(value, where)

    shape = Shape(schema, "one of " + ", ".join(map(repr, in_json)), convert)
    return shape


# --- arrays ---


def array(item: Shape, build: Callable[[Iterable[Any]], Any], *, unique: bool = False) -> Shape:
    """Make the shape of an array. `build` makes the method's collection of the converted items."""
    schema: dict[str, Any] = {"type": "array", "items": item.schema}
    if unique:
        schema["uniqueItems"] = True

    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple | set | frozenset):
            raise shape.refuse(value, where)
        items = [item.convert(each, f"{where}[{index}]") for index, each in enumerate(value)]
        return _build(build, where, items)

    shape = Shape(schema, "an array", convert)
    return shape


def fixed_array(items: Sequence[Shape]) -> Shape:
    """Make the shape of a tuple with a type for each position."""
    count = len(items)
    schema = {"type": "array", "prefixItems": [item.schema for item in items], "minItems": count, "maxItems": count}

    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, list | tuple) or len(value) != count:
            raise shape.refuse(value, where)
        return tuple(item.convert(value[index], f"{where}[{index}]") for index, item in enumerate(items))

    shape = Shape(schema, f"an array of {count}", convert)
    return shape


# --- objects ---


def mapping(item: Shape) -> Shape:
    """Make the shape of an object with any keys."""

    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise shape.refuse(value, where)
        return {key: item.convert(each, f"{where}.{key}") for key, each in value.items()}

    shape = Shape({"type": "object", "additionalProperties": item.schema}, "an object", convert)
    return shape


def record(fields: Mapping[str, Shape], required: Sequence[str], build: Callable[..., Any]) -> Shape:
    """Make the shape of an object with named fields, which `build` gets as keywords.

    For the arguments of a call, `where` is empty when they are converted.
    """
    schema: dict[str, Any] = {"type": "object", "properties": {name: field.schema for name, field in fields.items()}}
    if required:
        schema["required"] = list(required)
    schema["additionalProperties"] = False

    def convert(value: Any, where: str) -> Any:
        if not isinstance(value, Mapping):
            raise shape.refuse(value, where or "the arguments")

        owner = repr(where) if where else "the tool"
        kind = "field" if where else "argument"
        for name in value:
            if name not in fields:
                raise Mismatch(f"{owner} has no {kind} {_show(name)}; it takes {_list_fields(fields, required)}")
        for name in required:
            if name not in value:
                raise Mismatch(f"{owner} needs the {kind} {name!r}; it takes {_list_fields(fields, required)}")

        prefix = f"{where}." if where else ""
        converted = {name: fields[name].convert(each, prefix + name) for name, each in value.items()}
        return _build(build, where, **converted)

    shape = Shape(schema, "an object", convert)
    return shape


# --- unions ---


def union(options: Sequence[Shape]) -> Shape:
    """Make the shape of a value that fits any of these shapes. The first that it fits converts it."""
    others = [option for option in options if option is not NULL]

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

    noun = " or ".join(option.noun for option in options)
    shape = Shape({"anyOf": [option.schema for option in options]}, noun, convert)
    return shape


# --- messages ---


def _show(value: Any) -> str:
    return truncate(repr(value), _MAX_SHOWN_VALUE)


def _list_fields(fields: Mapping[str, Shape], required: Sequence[str]) -> str:
    shown = [f"{name!r} (required)" if name in required else repr(name) for name in fields]
    return ", ".join(shown) or "nothing"


def _build(build: Callable[..., Any], where: str, /, *values: Any, **named: Any) -> Any:
    """Build the method's value. A dataclass or a set that refuses is a mismatch like any other."""
    try:
        return build(*values, **named)
    except (TypeError, ValueError) as error:
        raise Mismatch(f"{where!r} was refused: {error}") from error
