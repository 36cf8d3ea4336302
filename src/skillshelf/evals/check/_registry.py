"""Checks by name: the built-in ones, those that users register, and how a case file writes their arguments."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from skillshelf.errors import EvalError
from skillshelf.evals._text import clip_quote
from skillshelf.evals.check import _behavior, _judge, _loading  # noqa: F401  # they fill BUILT_IN
from skillshelf.evals.check._check import BUILT_IN, Check, CheckFunction, CheckMaker, custom
from skillshelf.evals.check._golden import Golden
from skillshelf.text import clip, closest_names

_makers: dict[str, CheckMaker] = dict(BUILT_IN)


@dataclass(frozen=True, slots=True)
class CaseContext:
    """The facts about a case that its checks may leave out."""

    skill: str = ""
    """The skill under test, for checks that name none."""
    folder: str = ""
    """The folder that golden paths are relative to; empty for the current folder."""
    root: str = ""
    """The folder that golden paths may not leave."""


def register(name: str, function: Callable[..., Check | CheckFunction]) -> None:
    """Add a check: a function of its arguments that returns a Check, or a function Trace -> Verdict."""
    if not name.isidentifier() or name in BUILT_IN or name == "not":
        raise EvalError(f"a check cannot be named {name!r}", "Choose a single word that no built-in check has")
    other = _makers.get(name)
    if other and _origin(other.function) != _origin(function):  # a module that is read again may register it again
        raise EvalError(f"there is a check {name!r} already, from {_origin(other.function)}", "Choose another name")
    _makers[name] = CheckMaker(function)


def get_registered(name: str) -> Callable[..., Check | CheckFunction]:
    """Return the function that a user registered under this name, as an attribute of `check`."""
    try:
        return _find_maker(name).function
    except EvalError as error:
        raise AttributeError(str(error)) from None


def from_config(name: str, argument: Any = None, context: CaseContext | None = None) -> Check:
    """Make the check that `name: argument` in a case file stands for. Raises EvalError.

    A mapping holds the check's arguments by name; any other value is its only argument.
    """
    context = context or CaseContext()
    if name == "not":
        return ~_make_negated(argument, context)

    maker = _find_maker(name)
    arguments = _read_arguments(name, maker, argument)
    if maker.skill_argument and maker.skill_argument not in arguments and context.skill:
        arguments[maker.skill_argument] = context.skill
    _check_arguments(name, maker, arguments)

    made = _make(name, maker, arguments)
    if isinstance(made, Golden) and context.folder:
        return made.below(context.folder, context.root or context.folder)
    if isinstance(made, Check):
        return made
    return custom(made, f"{name} {clip(str(argument), 60)}" if arguments else name)


def _find_maker(name: str) -> CheckMaker:
    if name in _makers:
        return _makers[name]
    suggestions = closest_names(name, _makers)
    if suggestions:
        fix = f"Did you mean {' or '.join(suggestions)}?"
    else:
        fix = f"Checks: {', '.join(sorted(_makers))}"
    raise EvalError(f"there is no check {clip(name, 60)!r}", fix)


def _make_negated(argument: Any, context: CaseContext) -> Check:
    if isinstance(argument, str):
        return from_config(argument, None, context)
    if isinstance(argument, Mapping) and len(argument) == 1:
        [(name, inner)] = argument.items()
        return from_config(str(name), inner, context)
    raise EvalError(f"`not` is given {clip(str(argument), 60)!r}", "Give it one check: `not: {skill_loaded: pdf}`")


def _read_arguments(name: str, maker: CheckMaker, argument: Any) -> dict[str, Any]:
    if argument is None:
        return {}
    if isinstance(argument, Mapping):
        return {str(key): value for key, value in argument.items()}
    parameters = list(inspect.signature(maker.function).parameters)
    if not parameters:
        raise EvalError(f"{name} takes no argument", f"Write `- {name}`")
    return {maker.bare_argument or parameters[0]: argument}


def _check_arguments(name: str, maker: CheckMaker, arguments: Mapping[str, Any]) -> None:
    """Raise EvalError if the function does not take these arguments, or a plain value has the wrong type."""
    signature = inspect.signature(maker.function)
    try:
        signature.bind(**arguments)
    except TypeError as error:
        known = ", ".join(signature.parameters) or "none"
        raise EvalError(f"{name}: {error}", f"Its arguments: {known}") from None

    hints = _parameter_types(maker.function)
    for key, value in arguments.items():
        expected = _wrong_type(value, hints.get(key))
        if expected:
            raise EvalError(f"{name}: {key} is {clip(repr(value), 60)}", f"It must be {expected}")


def _parameter_types(function: Callable[..., Any]) -> Mapping[str, Any]:
    try:
        return get_type_hints(function)
    except Exception:  # a user's annotation may be anything, and some names exist for type checkers only
        parameters = inspect.signature(function).parameters
        return {name: parameter.annotation for name, parameter in parameters.items()}


def _wrong_type(value: Any, hint: Any) -> str:
    """Return the type that a value should have, in words; empty if it fits or its type is not checked."""
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        hint = kinds[0] if len(kinds) == 1 else None
    if hint is str and type(value) is not str:
        return "text: put it in quotes"
    if hint is int and type(value) is not int:  # not isinstance: True is an int
        return "a whole number"
    if get_origin(hint) is Mapping and not isinstance(value, Mapping):
        return "a mapping: {path: README.md}"
    return ""


def _make(name: str, maker: CheckMaker, arguments: Mapping[str, Any]) -> Check | CheckFunction:
    try:
        made = maker.function(**arguments)
    except EvalError:
        raise
    except Exception as error:  # a registered check is the user's own code
        raise EvalError(f"{name} refuses its arguments: {type(error).__name__}: {clip_quote(str(error))}") from error
    if not isinstance(made, Check) and not callable(made):
        raise EvalError(f"{name} makes {clip(repr(made), 60)}", "Return a Check, or a function of the trace")
    return made


def _origin(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"
