"""Checks by name: the built-in ones and those that users add, and how a case file configures them."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals.check._answers import response_contains, response_matches
from skillshelf.evals.check._base import Check, Look
from skillshelf.evals.check._custom import custom
from skillshelf.evals.check._golden import Golden, golden
from skillshelf.evals.check._judge import judge
from skillshelf.evals.check._loads import (
    listing_contains,
    reference_denied,
    reference_loaded,
    skill_invoked,
    skill_loaded,
    skill_reloaded,
)
from skillshelf.evals.check._words import clip
from skillshelf.evals.check._work import file_contains, file_unchanged, max_cost, max_tokens, tool_called
from skillshelf.text import closest_names

Maker = Callable[..., Check | Look]
"""Takes the arguments of a check, and returns the check or the function that looks."""

BUILT_IN = (
    skill_invoked,
    skill_loaded,
    skill_reloaded,
    reference_loaded,
    reference_denied,
    listing_contains,
    tool_called,
    file_contains,
    file_unchanged,
    response_contains,
    response_matches,
    max_tokens,
    max_cost,
    golden,
    judge,
)
_makers: dict[str, Maker] = {maker.__name__: maker for maker in BUILT_IN}
_OWN = frozenset(_makers)
# What a bare argument is, where that is not the first one; and what the case's own skill is.
_BARE = {"reference_loaded": "reference", "reference_denied": "reference"}
_SKILL = {
    **dict.fromkeys(("skill_invoked", "skill_loaded", "skill_reloaded"), "name"),
    **dict.fromkeys(("reference_loaded", "reference_denied"), "skill"),
}
# By the words of the annotation, which is a text where a module puts off its annotations.
_TYPES = {"str": (str, "text: put it in quotes"), "int": (int, "a whole number")}


@dataclass(frozen=True, slots=True)
class Context:
    """Where a check is written."""

    skill: str = ""
    """The skill under test, for checks that name none."""
    folder: str = ""
    """What a golden path is relative to; empty: the current folder."""
    root: str = ""
    """What it may not leave."""


def maker(name: str) -> Maker:
    """The check of this name, to be configured. Raises EvalError."""
    if name in _makers:
        return _makers[name]
    near = closest_names(name, _makers)
    hint = f"Did you mean {' or '.join(near)}?" if near else f"Checks: {', '.join(_makers)}"
    raise EvalError(f"there is no check {clip(name, 60)!r}", hint)


def register(name: str, function: Maker) -> None:
    """Add a check: a function of its arguments that returns a Check, or a function Trace -> Verdict."""
    if not name.isidentifier() or name in _OWN or name == "not":
        raise EvalError(f"a check cannot be named {name!r}", "It is a word of its own that no built-in check has")
    other = _makers.get(name)
    if other and _origin(other) != _origin(function):  # the same module, read again, may say it again
        raise EvalError(f"there is a check {name!r} already, from {_origin(other)}", "Choose another name")
    _makers[name] = function


def from_config(name: str, argument: Any = None, context: Context | None = None) -> Check:
    """The check that `name: argument` means: a mapping holds its arguments by name, anything else is the one."""
    where = context or Context()
    if name == "not":
        return ~_negated(argument, where)
    make = maker(name)
    signature = inspect.signature(make)
    given = _arguments(name, signature, argument)
    if (own := _SKILL.get(name)) and own not in given and where.skill:
        given[own] = where.skill
    _fit(name, signature, given)
    made = _made(name, make, given)
    if isinstance(made, Golden) and where.folder:
        return made.below(where.folder, where.root or where.folder)
    return made if isinstance(made, Check) else custom(made, f"{name} {clip(str(argument), 60)}" if given else name)


def _made(name: str, make: Maker, given: Mapping[str, Any]) -> Check | Look:
    try:
        made = make(**given)
    except EvalError:
        raise
    except Exception as error:  # a registered check is anybody's code
        raise EvalError(f"{name} refuses its arguments: {type(error).__name__}: {clip(str(error))}") from error
    if not isinstance(made, Check) and not callable(made):
        raise EvalError(f"{name} makes {clip(repr(made), 60)}", "It returns a Check, or a function of the trace")
    return made


def _negated(argument: Any, where: Context) -> Check:
    if isinstance(argument, str):
        return from_config(argument, None, where)
    if isinstance(argument, Mapping) and len(argument) == 1:
        [(name, inner)] = argument.items()
        return from_config(str(name), inner, where)
    raise EvalError(f"`not` is given {clip(str(argument), 60)!r}", "It takes one check: `not: {skill_loaded: pdf}`")


def _arguments(name: str, signature: inspect.Signature, argument: Any) -> dict[str, Any]:
    if argument is None:
        return {}
    if isinstance(argument, Mapping):
        return {str(key): value for key, value in argument.items()}
    if not signature.parameters:
        raise EvalError(f"{name} takes no argument", f"Write `- {name}`")
    return {_BARE.get(name) or next(iter(signature.parameters)): argument}


def _fit(name: str, signature: inspect.Signature, given: Mapping[str, Any]) -> None:
    """Whether the function takes these, and plain values are what it says they are."""
    known = ", ".join(signature.parameters)
    try:
        signature.bind(**given)
    except TypeError as error:
        raise EvalError(f"{name}: {error}", f"Its arguments: {known or 'none'}") from None
    for key, value in given.items():
        parameter = signature.parameters.get(key)
        kind, words = _TYPES.get(_type(parameter), (None, ""))
        if kind and type(value) is not kind:
            raise EvalError(f"{name}: {key} is {clip(repr(value), 60)}", f"It must be {words}")
        if key == "arguments" and name == "tool_called" and not isinstance(value, Mapping):
            raise EvalError(f"{name}: arguments is {clip(repr(value), 60)}", "It is a mapping: {path: README.md}")


def _type(parameter: inspect.Parameter | None) -> str:
    annotation = parameter.annotation if parameter else ""
    words = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return words.removesuffix(" | None")


def _origin(function: Maker) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"


def get_registered(name: str) -> Maker:
    """Return the check that a user registered under this name, as an attribute of `check`."""
    try:
        return maker(name)
    except EvalError as error:
        raise AttributeError(str(error)) from None
