"""From a method to the shape of the arguments a call may give, and of the result."""

import inspect
from collections.abc import Callable, Iterable
from types import FunctionType, SimpleNamespace
from typing import Any, cast

from skillshelf.errors import InvalidSkillError
from skillshelf.schema import _shapes as shapes
from skillshelf.schema._docstring import Docstring
from skillshelf.schema._hints import Place, default_of, resolved_hints, shape_of
from skillshelf.schema._shapes import Shape

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def parameters_of(method: FunctionType, owner: type, docstring: Docstring) -> Shape:
    """The arguments of a method without `self`: `.schema` for the model, `.convert(arguments, "")` for a call.

    `owner` is the class whose nested types the hints may name.
    """
    place = Place(f"{owner.__qualname__}.{method.__name__}()")
    parameters = list(inspect.signature(method).parameters.values())
    if not parameters or parameters[0].kind not in (inspect.Parameter.POSITIONAL_ONLY, *_NAMED[:1]):
        raise place.wrong("a tool is a method, but it has no first parameter", "Write `self` as the first one")
    hints = _parameter_hints(method, owner, place)
    fields, required = {}, []
    for parameter in parameters[1:]:
        inner = Place(f"{place.text}, parameter {parameter.name!r}")
        fields[parameter.name] = _parameter_shape(parameter, hints, docstring, inner)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
    return shapes.record(fields, required, dict)


def return_hint(method: Callable[..., Any]) -> Any:
    """Return the return annotation of a bound method as an object, or None if it has none that can be resolved."""
    function: Any = getattr(method, "__func__", method)
    owner = type(getattr(method, "__self__", None))
    try:
        return _hints(function, owner, ["return"], Place(function.__name__)).get("return")
    except InvalidSkillError:  # it is often a name that only a type checker imports
        return None


def shape_of_result(hint: Any) -> Shape | None:
    """Return the shape of a result with this annotation, or None if it has no JSON form."""
    try:
        return shape_of(hint, Place("the result", is_result=True))
    except InvalidSkillError:
        return None


def _parameter_hints(method: FunctionType, owner: type, place: Place) -> dict[str, Any]:
    """Without the result's hint: it is not part of the schema, and is often a name that only a type checker imports."""
    return _hints(method, owner, [name for name in method.__annotations__ if name != "return"], place)


def _hints(method: FunctionType, owner: type, names: Iterable[str], place: Place) -> dict[str, Any]:
    wanted = {name: method.__annotations__[name] for name in names if name in method.__annotations__}
    attributes = (item for base in reversed(owner.__mro__) for item in vars(base).items())
    nested = {name: value for name, value in attributes if isinstance(value, type)}
    module = cast(FunctionType, inspect.unwrap(method)).__globals__
    return resolved_hints(SimpleNamespace(__annotations__=wanted), place, globalns=module, localns=nested)


def _parameter_shape(parameter: inspect.Parameter, hints: dict[str, Any], docstring: Docstring, place: Place) -> Shape:
    if parameter.kind not in _NAMED:
        raise place.wrong("a model gives arguments by name", "Write one named parameter for each, without *, ** or /")
    if parameter.name not in hints:
        raise place.wrong("it has no type hint", f"Write `{parameter.name}: str`, or whatever it takes")
    shape = shape_of(hints[parameter.name], place)
    if "description" not in shape.schema and parameter.name in docstring.parameters:
        shape = shape.annotated(description=docstring.parameters[parameter.name])
    return shape if parameter.default is parameter.empty else shape.annotated(**default_of(parameter.default))
