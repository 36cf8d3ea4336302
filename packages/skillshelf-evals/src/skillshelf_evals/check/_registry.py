"""Checks by name: the built-in ones, those that users register, and how a case file writes their arguments."""

from collections.abc import Callable, Mapping
from typing import Any, Concatenate

from skillshelf.errors import EvalError
from skillshelf.text import closest_names, truncate
from skillshelf_evals._trace import Trace
from skillshelf_evals.check import _behavior, _files, _judge, _loading, _run  # noqa: F401  # they fill BUILT_IN
from skillshelf_evals.check._check import BUILT_IN, Check, CheckKind, CheckResultValue, P, make_maker

_registered: dict[str, CheckKind] = {}


def register(function: Callable[Concatenate[Trace, P], CheckResultValue]) -> Callable[P, Check]:
    """Declare a check of your own under the name of its function, which gets the trace and the check's arguments.

    @check.register
    def ends_with(trace: Trace, word: str) -> bool:
        return trace.answer.endswith(word)
    """
    name = getattr(function, "__name__", "")
    if not name.isidentifier() or name in BUILT_IN or name == "not":
        raise EvalError(f"a check cannot be named {name!r}", "Give the function a name that no built-in check has")
    other = _registered.get(name)
    if other and _origin(other.function) != _origin(function):  # a module that is read again may register it again
        raise EvalError(f"there is a check {name!r} already, from {_origin(other.function)}", "Choose another name")
    kind = CheckKind(name, function)
    for parameter in kind.signature.parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise EvalError(f"{name} takes {parameter}", "Give each argument of a check a name")
    _registered[name] = kind
    return make_maker(kind)


def get_registered(name: str) -> Callable[..., Check]:
    """Return the function that makes checks of this name, as an attribute of `check`."""
    try:
        return make_maker(_find_kind(name))
    except EvalError as error:
        raise AttributeError(str(error)) from None


def from_config(name: str, argument: Any = None, *, skill: str = "", folder: str = "", root: str = "") -> Check:
    """Make the check that `name: argument` in a case file stands for. Raises EvalError.

    A mapping holds the check's arguments by name; any other value is its only argument. `skill` is the skill under
    test, for checks that name none. Paths of stored files are relative to `folder`, by default the current one, and may
    not leave `root`.
    """
    if name == "not":
        inner, inner_argument = _read_negated(argument)
        return ~from_config(inner, inner_argument, skill=skill, folder=folder, root=root)

    kind = _find_kind(name)
    arguments = _read_arguments(kind, argument)
    skill_parameter = kind.parameters_by_role.get("skill")
    if skill_parameter and skill:
        arguments.setdefault(skill_parameter, skill)
    elif skill_parameter and kind.lacks_only(skill_parameter, arguments):
        raise EvalError(
            f"{name}: it is not known which skill is meant, because the case has several skills or none",
            f"Write `skill: NAME` in the case or for all cases of the file, or `{skill_parameter}:` in the check",
        )
    made = kind.make(**arguments)
    if folder:
        return made.below(folder, root or folder)
    return made


def _find_kind(name: str) -> CheckKind:
    kinds = {**BUILT_IN, **_registered}
    if name in kinds:
        return kinds[name]
    suggestions = closest_names(name, kinds)
    if suggestions:
        fix = f"Did you mean {' or '.join(suggestions)}?"
    else:
        fix = f"Checks: {', '.join(sorted(kinds))}"
    raise EvalError(f"there is no check {truncate(name, 60)!r}", fix)


def _read_negated(argument: Any) -> tuple[str, Any]:
    """Return the name and the argument of the check below `not`."""
    if isinstance(argument, str):
        return argument, None
    if isinstance(argument, Mapping) and len(argument) == 1:
        [(name, inner)] = argument.items()
        return str(name), inner
    raise EvalError(f"`not` is given {truncate(str(argument), 60)!r}", "Give it one check: `not: {skill_loaded: pdf}`")


def _read_arguments(kind: CheckKind, argument: Any) -> dict[str, Any]:
    if argument is None:
        return {}
    if isinstance(argument, Mapping):
        return {str(key): value for key, value in argument.items()}
    if not kind.bare_parameter:
        raise EvalError(f"{kind.name} takes no argument", f"Write `- {kind.name}`")
    return {kind.bare_parameter: argument}


def _origin(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', type(function).__name__)}"
