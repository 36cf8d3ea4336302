"""What a check is: a function of the trace. A configured one is a closure that a function of its arguments returns."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._words import clip


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it held, and why or why not, in words for the author."""

    passed: bool
    reason: str = ""
    error: str = ""
    """What kept the check from being made, such as a judge that could not be asked: neither a pass nor a miss."""


Look = Callable[[Trace], Verdict | bool | Awaitable[Verdict | bool]]
"""What a check does: it returns a Verdict, or whether it held."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its name, as a report shows it."""

    name: str
    look: Look
    moot: Callable[[Trace], str] | None = None
    """Why the opposite would say nothing of a trace, such as a reference that the skill has not got; empty where it
    says something."""

    def __invert__(self) -> Check:
        """The opposite: it must not hold."""

        async def look(trace: Trace) -> Verdict:
            verdict = await verdict_of(self.look(trace))
            if verdict.error:
                return verdict
            if not verdict.passed and self.moot and (why := self.moot(trace)):
                return Verdict(False, error=why)
            return Verdict(not verdict.passed, f"not: {verdict.reason}")

        return Check(f"not {self.name}", look)


async def verdict_of(found: Any) -> Verdict:
    """From what a check returned, now or later: a check is anybody's code. Raises EvalError."""
    if inspect.isawaitable(found):
        found = await found
    if isinstance(found, Verdict):
        return found
    if isinstance(found, bool):
        return Verdict(found, "held" if found else "did not hold")
    raise EvalError(f"a check returned {clip(repr(found), 60)}", "It returns a Verdict, or True or False")
