"""A check: a function of the trace, with a name for reports.

Each built-in check is made by a function of its arguments, such as `skill_loaded("pdf")`, which returns a Check around
a closure. `built_in` registers these functions together with the facts that case files need to call them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from skillshelf.errors import EvalError
from skillshelf.evals._text import clip_quote
from skillshelf.evals._trace import Trace
from skillshelf.text import clip


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a check held, and why, in words for the author of the case."""

    passed: bool
    reason: str = ""
    error: str = ""
    """Why the check could not be made, such as a judge that did not answer. It is then neither a pass nor a miss."""
    unrecorded: bool = False
    """True if the error is that a replay has no answer of the judge."""


@dataclass(frozen=True, slots=True)
class About:
    """The subject of a built-in check, for reports: which kind of check it is, and of which skill."""

    kind: str
    """The name of the built-in check."""
    skill: str = ""
    reference: str = ""
    negated: bool = False


CheckFunction = Callable[[Trace], Verdict | bool | Awaitable[Verdict | bool]]
"""The work of a check. It returns a Verdict, or whether the check held."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its name, as reports show it."""

    name: str
    look: CheckFunction
    moot: Callable[[Trace], str] | None = None
    """Return why the opposite of this check proves nothing about a trace, or an empty text if it does.

    That a model did not load a reference proves nothing if the skill has no such reference."""
    about: About | None = None
    """None for a check that a user wrote."""

    def __invert__(self) -> Check:
        """Return the opposite check, which passes if this one does not hold."""

        async def look(trace: Trace) -> Verdict:
            verdict = await to_verdict(self.look(trace))
            if verdict.error:
                return verdict
            if not verdict.passed and self.moot:
                reason = self.moot(trace)
                if reason:
                    return Verdict(False, error=reason)
            return Verdict(not verdict.passed, f"not: {verdict.reason}")

        return Check(f"not {self.name}", look, about=negate(self.about))


def negate(about: About | None) -> About | None:
    """Return the subject of the opposite check."""
    if about is None:
        return None
    return replace(about, negated=not about.negated)


def custom(function: Callable[[Trace], Any], name: str = "") -> Check:
    """Turn a function of the trace into a check. The function returns a Verdict, or whether the check held."""

    async def look(trace: Trace) -> Verdict:
        return await to_verdict(function(trace))

    own_name = getattr(function, "__name__", type(function).__name__)
    return Check(name or own_name.strip("<>"), look)


async def look(check: Check, trace: Trace) -> Verdict:
    """Make a check. If it raises, the verdict is an error: the fault of a check says nothing about the skill."""
    try:
        return await to_verdict(check.look(trace))
    except Exception as error:  # a check is the user's own code
        return Verdict(False, error=f"The check {check.name} failed: {type(error).__name__}: {clip_quote(str(error))}")


async def to_verdict(result: Any) -> Verdict:
    """Turn the result of a check function, awaitable or not, into a Verdict. Raises EvalError."""
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, Verdict):
        return result
    if isinstance(result, bool):
        return Verdict(result, "held" if result else "did not hold")
    raise EvalError(f"a check returned {clip(repr(result), 60)}", "Return a Verdict, or True or False")


@dataclass(frozen=True, slots=True)
class CheckMaker:
    """A function that makes a check from its arguments, and how case files may write these arguments."""

    function: Callable[..., Check | CheckFunction]
    bare_argument: str = ""
    """The parameter that gets the value in `name: value`; empty for the first one."""
    skill_argument: str = ""
    """The parameter that gets the skill under test if a case file leaves it out; empty if there is none."""


BUILT_IN: dict[str, CheckMaker] = {}
Function = TypeVar("Function", bound=Callable[..., Check])


def built_in(*, bare_argument: str = "", skill_argument: str = "") -> Callable[[Function], Function]:
    """Register a function as a built-in check under its own name."""

    def register(function: Function) -> Function:
        BUILT_IN[function.__name__] = CheckMaker(function, bare_argument, skill_argument)
        return function

    return register


def refuse_empty(check: str, **arguments: str) -> None:
    """Raise EvalError for an empty argument: every text contains the empty text, and no skill has an empty name."""
    for name, value in arguments.items():
        if not value:
            raise EvalError(f"{check}: {name} is empty", "Say what to look for")
