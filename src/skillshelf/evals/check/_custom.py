"""Any function as a check, and how a check is made to look: a fault in it is no verdict on the skill."""

from collections.abc import Callable
from typing import Any

from skillshelf.evals._trace import Trace
from skillshelf.evals.check._base import Check, Verdict, verdict_of
from skillshelf.evals.check._words import clip


def custom(function: Callable[[Trace], Any], name: str = "") -> Check:
    """A function of the trace as a check; it returns a Verdict, or whether it held."""

    async def look(trace: Trace) -> Verdict:
        return await verdict_of(function(trace))

    return Check(name or getattr(function, "__name__", type(function).__name__).strip("<>"), look)


async def look(check: Check, trace: Trace) -> Verdict:
    """What a check says of a trace. One that raises was not made: that is an error, neither a pass nor a miss."""
    try:
        return await verdict_of(check.look(trace))
    except Exception as error:  # a check is anybody's code
        return Verdict(False, error=f"The check {check.name} failed: {type(error).__name__}: {clip(str(error))}")
