"""Find the shapes of a method's arguments and of its result, from its type hints."""

import dataclasses
import enum
import inspect
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, SimpleNamespace
from typing import Any, NamedTuple, cast

from skillshelf.errors import InvalidSkillError
from skillshelf.skills.schema import _shapes as shapes
from skillshelf.skills.schema._docstring import Docstring
from skillshelf.skills.schema._shapes import Shape

_SCALARS: Mapping[Any, Shape] = {
    str: shapes.STRING,
    int: shapes.INTEGER,
    float: shapes.NUMBER,
    bool: shapes.BOOLEAN,
    None: shapes.NULL,
    type(None): shapes.NULL,
    Any: shapes.ANYTHING,
    object: shapes.ANYTHING,
}
_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable)
_SETS: Mapping[Any, Callable[[Iterable[Any]], Any]] = {
    set: set,
    frozenset: frozenset,
    abc.Set: frozenset,
    abc.MutableSet: set,
}
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_SUPPORTED = (
    "str, int, float, bool, None, Any, Literal, an Enum, list, tuple, set, dict with str keys, a TypedDict, a "
    "dataclass, a union of these, or Annotated[one of these, 'description']"
)
_SELF_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class HintLocation(NamedTuple):
    """Where a hint is written, for messages, and the classes around it."""

    text: str
    inside: tuple[type, ...] = ()
    is_result: bool = False
    """True if values come from the method, as JSON, and are checked instead of converted."""

    def enter(self, cls: type) -> "HintLocation":
        return self._replace(inside=(*self.inside, cls))

    def at_field(self, name: str) -> "HintLocation":
        return self._replace(text=f"{self.text}, field {name!r}")

    def wrong(self, problem: str, right: str) -> InvalidSkillError:
        return InvalidSkillError(f"{self.text}: {problem}. {right}")


# --- methods ---


def parameters_of(method: FunctionType, owner: type, docstring: Docstring) -> Shape:
    """Return the shape of a method's arguments, without `self`.

    Its `schema` is for the model, its `convert(arguments, "")` for a call. `owner` is the class whose nested types the
    hints may name. Raises InvalidSkillError.
    """
    location = HintLocation(f"{owner.__qualname__}.{method.__name__}()")
    parameters = list(inspect.signature(method).parameters.values())
    if not parameters or parameters[0].kind not in _SELF_KINDS:
        raise location.wrong("a tool is a method, but it has no first parameter", "Write `self` as the first one")

    # The result's hint is left out: it is often a name that only a type checker imports.
    names = [name for name in method.__annotations__ if name != "return"]
    hints = _resolve_method_hints(method, owner, names, location)
    fields: dict[str, Shape] = {}
    required: list[str] = []
    faults: list[str] = []
    for parameter in parameters[1:]:
        inner = HintLocation(f"{location.text}, parameter {parameter.name!r}")
        try:
            fields[parameter.name] = _shape_of_parameter(parameter, hints, docstring, inner)
        except InvalidSkillError as error:
            faults.append(str(error))
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    if faults:
        raise InvalidSkillError(". ".join(faults))
    return shapes.record(fields, required, dict)


def return_hint(function: FunctionType, owner: type) -> Any:
    """Return the return annotation of a method as an object, or None if it has none that can be resolved."""
    try:
        hints = _resolve_method_hints(function, owner, ["return"], HintLocation(function.__name__))
    except InvalidSkillError:  # it is often a name that only a type checker imports
        return None
    return hints.get("return")


def shape_of_result(hint: Any) -> Shape | None:
    """Return the shape of a result with this annotation, or None if it has no JSON form."""
    try:
        return _shape_of(hint, HintLocation("the result", is_result=True))
    except InvalidSkillError:
        return None


def _shape_of_parameter(
    parameter: inspect.Parameter, hints: Mapping[str, Any], docstring: Docstring, location: HintLocation
) -> Shape:
    if parameter.kind not in _NAMED_KINDS:
        right = "Write one named parameter for each, without *, ** or /"
        raise location.wrong("a model gives arguments by name", right)
    if parameter.name not in hints:
        raise location.wrong("it has no type hint", f"Write `{parameter.name}: str`, or whatever it takes")

    shape = _shape_of(hints[parameter.name], location)
    if "description" not in shape.schema and parameter.name in docstring.parameters:
        shape = shape.annotated(description=docstring.parameters[parameter.name])
    if parameter.default is not parameter.empty:
        shape = shape.annotated(**_default_of(parameter.default))
    return shape


def _resolve_method_hints(
    method: FunctionType, owner: type, names: Iterable[str], location: HintLocation
) -> dict[str, Any]:
    """Return these hints of a method as objects. They may name types that are nested in `owner`."""
    written = {name: method.__annotations__[name] for name in names if name in method.__annotations__}
    nested: dict[str, type] = {}
    for base in reversed(owner.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, type):
                nested[name] = value
    module = cast(FunctionType, inspect.unwrap(method)).__globals__
    return _resolve_hints(SimpleNamespace(__annotations__=written), location, globalns=module, localns=nested)


def _resolve_hints(holder: Any, location: HintLocation, **namespaces: Any) -> dict[str, Any]:
    """Return hints as objects, even if the annotations are postponed."""
    try:
        return typing.get_type_hints(holder, include_extras=True, **namespaces)
    except Exception as error:  # a postponed hint is any expression the author wrote, and can fail in any way
        right = "Use names that the module's top level holds when the program runs, not only for a type checker"
        raise location.wrong(f"its hints cannot be resolved ({type(error).__name__}: {error})", right) from error


# --- hints ---


def _shape_of(hint: Any, location: HintLocation) -> Shape:
    origin = typing.get_origin(hint) or hint
    args = typing.get_args(hint)

    if origin is typing.Annotated:
        shape = _shape_of(args[0], location)
        descriptions = [note for note in args[1:] if isinstance(note, str)]
        if descriptions and descriptions[0]:
            return shape.annotated(description=descriptions[0])
        return shape
    if origin in (typing.Required, typing.NotRequired):
        return _shape_of(args[0], location)
    if origin in (typing.Union, types.UnionType):
        return shapes.union([_shape_of(each, location) for each in args])
    if origin is typing.Literal:
        return shapes.choice([(_check_json(value, location), value) for value in args])

    shape_of_origin: Shape | None = None
    if isinstance(origin, abc.Hashable):
        shape_of_origin = (
            _SCALARS.get(origin) or _shape_of_class(origin, location) or _shape_of_container(origin, args, location)
        )
    if shape_of_origin is None:
        shown = hint.__name__ if isinstance(hint, type) else repr(hint)
        raise location.wrong(f"the hint {shown} has no JSON form", f"Use {_SUPPORTED}")
    return shape_of_origin


def _check_json(value: Any, location: HintLocation) -> Any:
    """Return a value of a Literal or an Enum, if JSON can write it."""
    if type(value) not in (str, int, float, bool, type(None)):
        right = "Use values that are str, int, float, bool or None"
        raise location.wrong(f"the value {value!r} has no JSON form", right)
    return value


def _default_of(value: Any) -> dict[str, Any]:
    """Return `{"default": …}` for the schema, or nothing if JSON cannot write the value."""
    import json  # takes 3 ms, which only tools with default values pay

    plain = value.value if isinstance(value, enum.Enum) else value
    try:
        return {"default": json.loads(json.dumps(plain, allow_nan=False))}
    except (TypeError, ValueError):
        return {}


def _shape_of_container(origin: Any, args: tuple[Any, ...], location: HintLocation) -> Shape | None:
    if origin in _MAPPINGS:
        key, value = args or (str, Any)
        if key is not str:
            raise location.wrong("a JSON object has only strings as keys", "Write dict[str, …]")
        return shapes.mapping(_shape_of(value, location))

    if origin is tuple and args and args[-1] is not Ellipsis:
        return shapes.fixed_array([_shape_of(each, location) for each in args])

    if origin is not tuple and origin not in _LISTS and origin not in _SETS:
        return None
    item = _shape_of(args[0], location) if args else shapes.ANYTHING
    if origin in _SETS:
        return shapes.array(item, _SETS[origin], unique=True)
    return shapes.array(item, tuple if origin is tuple else list)


def _shape_of_class(cls: Any, location: HintLocation) -> Shape | None:
    if not isinstance(cls, type):
        return None
    if cls in location.inside:
        raise location.wrong(f"{cls.__name__} holds itself, which has no finite schema", "Use dict[str, Any] there")

    inside = location.enter(cls)
    if issubclass(cls, enum.Enum):
        return shapes.choice([(_check_json(member.value, location), member) for member in cls])
    if typing.is_typeddict(cls):
        return _shape_of_typed_dict(cls, inside)
    if dataclasses.is_dataclass(cls):
        if location.is_result:
            return _shape_of_dataclass_result(cls, inside)
        return _shape_of_dataclass(cls, inside)
    return None


def _shape_of_typed_dict(cls: type, location: HintLocation) -> Shape:
    fields: dict[str, Shape] = {}
    required: list[str] = []
    for name, hint in _resolve_hints(cls, location).items():
        # Under postponed annotations __required_keys__ does not see the qualifier: the resolved hint comes first.
        qualifier = typing.get_origin(hint)
        is_listed = name in vars(cls)["__required_keys__"]
        if qualifier is typing.Required or (is_listed and qualifier is not typing.NotRequired):
            required.append(name)
        fields[name] = _shape_of(hint, location.at_field(name))
    return shapes.record(fields, required, dict)


def _shape_of_dataclass(cls: Any, location: HintLocation) -> Shape:
    hints = _resolve_hints(cls, location)
    fields: dict[str, Shape] = {}
    required: list[str] = []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        shape = _shape_of(hints[field.name], location.at_field(field.name))
        if field.default is not dataclasses.MISSING:
            shape = shape.annotated(**_default_of(field.default))
        elif field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        fields[field.name] = shape
    record = shapes.record(fields, required, cls)

    def convert(value: Any, where: str) -> Any:
        if isinstance(value, cls):  # a caller in Python may already hold the object
            return value
        return record.convert(value, where)

    return record._replace(convert=convert)


def _shape_of_dataclass_result(cls: Any, location: HintLocation) -> Shape:
    """Return the shape that `dataclasses.asdict` writes: every field, whether the constructor takes it or not."""
    hints = _resolve_hints(cls, location)
    names = [field.name for field in dataclasses.fields(cls)]
    fields = {name: _shape_of(hints[name], location.at_field(name)) for name in names}
    return shapes.record(fields, names, dict)
