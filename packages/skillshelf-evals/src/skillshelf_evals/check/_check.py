"""A check: a function of the trace and its own arguments, declared once with everything that files and reports need.

    @built_in()
    def file_contains(trace: Trace, path: NonEmpty, text: NonEmpty) -> Verdict:
        ...

makes `file_contains("a.txt", "Hello")` in Python, and `- file_contains: {path: a.txt, text: Hello}` in case files. The
types of the arguments say what a case file may write, and which of them name a skill, a reference or a stored file.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeAlias, get_args, get_type_hints

from pydantic import Field, PydanticUserError, TypeAdapter, ValidationError

from skillshelf.errors import EvalError
from skillshelf.text import truncate
from skillshelf_evals._folders import resolve_inside
from skillshelf_evals._text import MAX_QUOTED, explain_expected, show_value
from skillshelf_evals._trace import Trace


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a check held, and why, in words for the author of the case."""

    passed: bool
    reason: str = ""
    error: str = ""
    """Why the check could not be completed: a judge did not answer, say. It is then neither a pass nor a miss."""
    unrecorded: bool = False
    """True if the error is that a replay has no answer of the judge."""


@dataclass(frozen=True, slots=True)
class About:
    """The subject of a check, for reports: which kind of check it is, and of which skill."""

    kind: str
    """The name that case files use; empty for a function in a Python case."""
    skill: str = ""
    reference: str = ""
    is_negated: bool = False
    is_of_loading: bool = False
    """True if the result is known beforehand when the skill is not on the shelf."""
    sentence: str = ""
    """The sentence that a judge decides on."""

    def is_known_without(self, skill: str) -> bool:
        """True if the result of the check is known beforehand because this skill is not on the shelf."""
        return self.is_of_loading and self.skill in ("", skill)

    def means_reference(self, path: str) -> bool:
        """True if the check names this reference, by its whole path or the end of it."""
        return is_reference_named(path, self.reference)


def is_reference_named(path: str, name: str) -> bool:
    """True if a name means this reference: it may be the whole path, or its end."""
    return path == name or path.endswith(f"/{name}")


Role = Literal["skill", "reference", "stored", "given", "sentence"]


@dataclass(frozen=True, slots=True)
class NameMark:
    """Marks an argument that names something."""

    role: Role


NonEmpty = Annotated[str, Field(min_length=1)]
"""A text. The empty text is refused: every text contains it, and no skill or file has it as its name."""
SkillName = Annotated[NonEmpty, NameMark("skill")]
"""The skill that a check is about. A case file may leave it out: then it is the skill under test."""
ReferenceName = Annotated[NonEmpty, NameMark("reference")]
"""A reference that the skill must have."""
StoredPath = Annotated[NonEmpty, NameMark("stored")]
"""A file that is beside the case file, in the folder of its skill or suite."""
GivenPath = Annotated[NonEmpty, NameMark("given")]
"""The same, if the file must be there before a run."""

CheckResultValue: TypeAlias = Verdict | bool | Awaitable[Verdict] | Awaitable[bool]
P = ParamSpec("P")


@dataclass(frozen=True)
class CheckKind:
    """A declared check, without arguments."""

    name: str
    function: Callable[..., CheckResultValue]
    bare: str = ""
    """The parameter that gets the value in `name: value`; empty for the first one."""
    describe: Callable[..., str] | None = None
    """Returns the arguments as reports show them; None for all of them in their order."""
    moot: Callable[..., str] | None = None
    """Returns why the opposite of this check proves nothing about a trace, or an empty text if it does.

    That a model did not load a reference proves nothing if the skill has no such reference."""
    is_of_loading: bool = False
    """True if the result is known beforehand when the skill that the check names is not on the shelf."""

    @cached_property
    def signature(self) -> inspect.Signature:
        """The signature of the arguments, without the trace."""
        signature = inspect.signature(self.function)
        return signature.replace(parameters=list(signature.parameters.values())[1:], return_annotation=Check)

    @cached_property
    def parameters_by_role(self) -> dict[Role, str]:
        roles: dict[Role, str] = {}
        for name, hint in self._hints.items():
            for mark in _find_marks(hint):
                roles[mark.role] = name
        return roles

    def lacks_only(self, parameter: str, arguments: Mapping[str, Any]) -> bool:
        """True if the check needs this argument, and it is not among these, which are otherwise right."""
        parameters = self.signature.parameters
        is_needed = parameters[parameter].default is inspect.Parameter.empty
        return is_needed and parameter not in arguments and arguments.keys() <= parameters.keys()

    @property
    def bare_parameter(self) -> str:
        """The parameter that gets a bare value; empty if the check takes no arguments."""
        return self.bare or next(iter(self.signature.parameters), "")

    @cached_property
    def _hints(self) -> Mapping[str, Any]:
        try:
            return get_type_hints(self.function, include_extras=True)
        except Exception:  # a user's annotation may be anything, and some names exist for type checkers only
            return {}

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {name: _make_adapter(self._hints.get(name, Any)) for name in self.signature.parameters}

    def make(self, *args: Any, **kwargs: Any) -> Check:
        """Return the check with these arguments. Raises EvalError if it does not take them."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            known = ", ".join(self.signature.parameters) or "none"
            raise EvalError(f"{self.name}: {error}", f"Its arguments: {known}") from None
        bound.apply_defaults()
        arguments = {name: self._validate(name, value) for name, value in bound.arguments.items()}
        return Check(self, arguments, self._describe(arguments))

    def _validate(self, parameter: str, value: Any) -> Any:
        try:
            return self._adapters[parameter].validate_python(value, strict=True)
        except ValidationError as fault:
            [first, *_] = fault.errors()
            if first["type"] in ("string_too_short", "too_short"):
                raise EvalError(f"{self.name}: {parameter} is empty", "Say what to look for") from None
            raise EvalError(f"{self.name}: {parameter} is {show_value(value)}", explain_expected(first)) from None

    def _describe(self, arguments: Mapping[str, Any]) -> str:
        if self.describe:
            return f"{self.name} {self.describe(**arguments)}"
        shown = [truncate(str(value), 60) for value in arguments.values() if value is not None]
        return " ".join([self.name, *shown])


def _make_adapter(hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(hint)
    except PydanticUserError:  # a user's annotation may be of a type that pydantic does not know
        return TypeAdapter(Any)


def _find_marks(hint: Any) -> list[NameMark]:
    """Return the marks of a type, even if it may be None."""
    marks = [mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, NameMark)]
    for part in get_args(hint):
        if hasattr(part, "__metadata__"):
            marks += _find_marks(part)
    return marks


@dataclass(frozen=True, slots=True)
class Check:
    """A check with its arguments. `~check` is its opposite."""

    kind: CheckKind
    arguments: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""
    """The check with its arguments as they are written."""
    is_negated: bool = False

    @property
    def name(self) -> str:
        """The check as reports show it."""
        return f"not {self.description}" if self.is_negated else self.description

    @property
    def is_judge(self) -> bool:
        """True if the check asks a model."""
        return self.kind.name == "judge"

    @property
    def about(self) -> About:
        return About(
            self.kind.name,
            self._argument_for("skill"),
            self._argument_for("reference"),
            self.is_negated,
            self.kind.is_of_loading,
            self._argument_for("sentence"),
        )

    def _argument_for(self, role: Role) -> str:
        parameter = self.kind.parameters_by_role.get(role)
        return (self.arguments[parameter] if parameter else None) or ""

    def __invert__(self) -> Check:
        """Return the opposite check, which passes if this one does not hold."""
        return replace(self, is_negated=not self.is_negated)

    def below(self, folder: str, root: str) -> Check:
        """Return the check with the path of its stored or given file relative to `folder`.

        Raises EvalError if the file is outside `root`, or is given and not there.
        """
        roles = self.kind.parameters_by_role
        parameter = roles.get("stored") or roles.get("given")
        if parameter is None:
            return self
        written = self.arguments[parameter]
        path = resolve_inside(root, folder, written)
        if "given" in roles and not os.path.isfile(path):
            raise EvalError(f"{self.kind.name}: there is no file {written!r:.80}", f"Paths are relative to {folder}")
        return replace(self, arguments={**self.arguments, parameter: path})

    async def look(self, trace: Trace) -> Verdict:
        """Make the check. Raises whatever its function raises."""
        return self.conclude(await to_verdict(self.kind.function(trace, **self.arguments)), trace)

    def conclude(self, verdict: Verdict, trace: Trace) -> Verdict:
        """Turn the verdict of the check without `not` into that of this check."""
        if not self.is_negated or verdict.error:
            return verdict
        if not verdict.passed and self.kind.moot:
            reason = self.kind.moot(trace, **self.arguments)
            if reason:
                return Verdict(False, error=reason)
        return Verdict(not verdict.passed, f"not: {verdict.reason}")


async def look(check: Check, trace: Trace) -> Verdict:
    """Make a check. If it raises, the verdict is an error: the fault of a check says nothing about the skill."""
    try:
        return await check.look(trace)
    except Exception as error:  # a check is the user's own code
        return Verdict(
            False, error=f"The check {check.name} failed: {type(error).__name__}: {truncate(str(error), MAX_QUOTED)}"
        )


async def to_verdict(result: Any) -> Verdict:
    """Turn the result of a check function, awaitable or not, into a Verdict. Raises EvalError."""
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, Verdict):
        return result
    if isinstance(result, bool):
        return Verdict(result, "held" if result else "did not hold")
    raise EvalError(f"a check returned {truncate(repr(result), 60)}", "Return a Verdict, or True or False")


def custom(function: Callable[[Trace], Any], name: str = "") -> Check:
    """Turn a function of the trace into a check. The function returns a Verdict, or whether the check held."""
    own_name = name or getattr(function, "__name__", type(function).__name__).strip("<>")
    return Check(CheckKind("", function), description=own_name)


BUILT_IN: dict[str, CheckKind] = {}


def built_in(
    *,
    bare: str = "",
    describe: Callable[..., str] | None = None,
    moot: Callable[..., str] | None = None,
    is_of_loading: bool = False,
) -> Callable[[Callable[Concatenate[Trace, P], CheckResultValue]], Callable[P, Check]]:
    """Declare a built-in check under the name of its function. The fields of CheckKind explain the options."""

    def declare(function: Callable[Concatenate[Trace, P], CheckResultValue]) -> Callable[P, Check]:
        kind = CheckKind(function.__name__, function, bare, describe, moot, is_of_loading)
        BUILT_IN[kind.name] = kind
        return make_maker(kind)

    return declare


def make_maker(kind: CheckKind) -> Callable[..., Check]:
    """Return the function that users call to make checks of a kind."""

    @functools.wraps(kind.function)
    def make(*args: Any, **kwargs: Any) -> Check:
        return kind.make(*args, **kwargs)

    make.__signature__ = kind.signature  # type: ignore[attr-defined]
    return make
