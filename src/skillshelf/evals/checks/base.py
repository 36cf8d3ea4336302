"""What a check is: a function of the trace. A configured one is a closure that a function of its arguments returns."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from skillshelf.evals.trace import Trace


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether it held, and why or why not, in words for the author."""

    passed: bool
    reason: str = ""
    error: str = ""
    """What kept the check from being made, such as a judge that could not be asked: neither a pass nor a miss."""


@dataclass(frozen=True, slots=True)
class Check:
    """A check and its name, as a report shows it."""

    name: str
    look: Callable[[Trace], Verdict | Awaitable[Verdict]]

    def __invert__(self) -> "Check":
        """The opposite: it must not hold."""

        async def look(trace: Trace) -> Verdict:
            found = self.look(trace)
            verdict = found if isinstance(found, Verdict) else await found
            if verdict.error:
                return verdict
            return Verdict(not verdict.passed, f"not: {verdict.reason}")

        return Check(f"not {self.name}", look)
