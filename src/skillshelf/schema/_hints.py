"""From a type hint to the shape of the values it admits."""

import dataclasses
import enum
import json
import types
import typing
from collections import abc
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from skillshelf.errors import InvalidSkillError
from skillshelf.schema import _shapes as shapes
from skillshelf.schema._shapes import Shape

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


@dataclasses.dataclass(frozen=True, slots=True)
class Place:
    """Where a hint stands, for messages, and the classes it stands inside of."""

    text: str
    inside: tuple[type, ...] = ()
    is_result: bool = False
    """Whether values come from the method, as JSON, and are checked instead of converted."""

    def enter(self, cls: type) -> "Place":
        return dataclasses.replace(self, inside=(*self.inside, cls))

    def at_field(self, name: str) -> "Place":
        return dataclasses.replace(self, text=f"{self.text}, field {name!r}")

    def wrong(self, problem: str, right: str) -> InvalidSkillError:
        return InvalidSkillError(f"{self.text}: {problem}. {right}")


def shape_of(hint: Any, place: Place) -> Shape:
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Annotated:
        description = next((note for note in args[1:] if isinstance(note, str)), None)
        shape = shape_of(args[0], place)
        return shape.annotated(description=description) if description else shape
    if origin in (typing.Required, typing.NotRequired):
        return shape_of(args[0], place)
    if origin in (typing.Union, types.UnionType):
        return shapes.union([shape_of(each, place) for each in args])
    if origin is typing.Literal:
        return shapes.choice([(_written(value, place), value) for value in args])
    if not isinstance(origin, abc.Hashable):
        return _unsupported(hint, place)
    if origin in _SCALARS:
        return _SCALARS[origin]
    return _class_shape(origin, place) or _container_shape(origin, args, place) or _unsupported(hint, place)


def default_of(value: Any) -> dict[str, Any]:
    """`{"default": …}` for the schema, or nothing where JSON cannot write the value."""
    plain = value.value if isinstance(value, enum.Enum) else value
    try:
        return {"default": json.loads(json.dumps(plain, allow_nan=False))}
    except (TypeError, ValueError):
        return {}


def _unsupported(hint: Any, place: Place) -> Shape:
    shown = hint.__name__ if isinstance(hint, type) else repr(hint)
    raise place.wrong(f"the hint {shown} has no JSON form", f"Use {_SUPPORTED}")


def _written(value: Any, place: Place) -> Any:
    if type(value) not in (str, int, float, bool, type(None)):
        raise place.wrong(f"the value {value!r} has no JSON form", "Use values that are str, int, float, bool or None")
    return value


def _container_shape(origin: Any, args: tuple[Any, ...], place: Place) -> Shape | None:
    if origin is tuple and args and args[-1] is not Ellipsis:
        return shapes.fixed_array([shape_of(each, place) for each in args])
    if origin is tuple or origin in _LISTS:
        item = shape_of(args[0], place) if args else shapes.ANYTHING
        return shapes.array(item, tuple if origin is tuple else list)
    if origin in _SETS:
        return shapes.array(shape_of(args[0], place) if args else shapes.ANYTHING, _SETS[origin], unique=True)
    if origin in _MAPPINGS:
        key, value = args or (str, Any)
        if key is not str:
            raise place.wrong("a JSON object has only strings as keys", "Write dict[str, …]")
        return shapes.mapping(shape_of(value, place))
    return None


def _class_shape(cls: Any, place: Place) -> Shape | None:
    if not isinstance(cls, type):
        return None
    if cls in place.inside:
        raise place.wrong(f"{cls.__name__} holds itself, which has no finite schema", "Use dict[str, Any] there")
    inside = place.enter(cls)
    if issubclass(cls, enum.Enum):
        return shapes.choice([(_written(member.value, place), member) for member in cls])
    if typing.is_typeddict(cls):
        return _typed_dict_shape(cls, inside)
    if dataclasses.is_dataclass(cls):
        return _dataclass_shape(cls, inside)
    return None


def _typed_dict_shape(cls: type, place: Place) -> Shape:
    fields, required = {}, []
    for name, hint in resolved_hints(cls, place).items():
        # Under postponed annotations __required_keys__ does not see the qualifier: the resolved hint comes first.
        qualifier, listed = typing.get_origin(hint), name in vars(cls)["__required_keys__"]
        if qualifier is typing.Required or (listed and qualifier is not typing.NotRequired):
            required.append(name)
        fields[name] = shape_of(hint, place.at_field(name))
    return shapes.record(fields, required, dict)


def _dataclass_shape(cls: Any, place: Place) -> Shape:
    if place.is_result:
        return _dataclass_result_shape(cls, place)
    hints, fields, required = resolved_hints(cls, place), {}, []
    for field in dataclasses.fields(cls):
        if not field.init:
            continue
        inner = shape_of(hints[field.name], place.at_field(field.name))
        if field.default is not dataclasses.MISSING:
            inner = inner.annotated(**default_of(field.default))
        elif field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        fields[field.name] = inner
    shape = shapes.record(fields, required, cls)
    # A caller in Python may already hold the object.
    return dataclasses.replace(
        shape, convert=lambda value, where: value if isinstance(value, cls) else shape.convert(value, where)
    )


def _dataclass_result_shape(cls: Any, place: Place) -> Shape:
    """As `dataclasses.asdict` writes it: with every field, whether the constructor takes it or not."""
    hints = resolved_hints(cls, place)
    names = [field.name for field in dataclasses.fields(cls)]
    fields = {name: shape_of(hints[name], place.at_field(name)) for name in names}
    return shapes.record(fields, names, dict)


def resolved_hints(holder: Any, place: Place, **namespaces: Any) -> dict[str, Any]:
    """Hints as objects, also where the annotations are postponed."""
    try:
        return typing.get_type_hints(holder, include_extras=True, **namespaces)
    except Exception as error:  # A postponed hint is any expression the author wrote: it can fail in any way.
        right = "Use names that the module's top level holds when the program runs, not only for a type checker"
        raise place.wrong(f"its hints cannot be resolved ({type(error).__name__}: {error})", right) from error
