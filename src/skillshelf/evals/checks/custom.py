"""Any function as a check, and how a check is made to look: a fault in it is no verdict on the skill."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals.checks.base import Check, Verdict
from skillshelf.evals.checks.words import clip
from skillshelf.evals.trace import Trace


def custom(function: Callable[[Trace], Any], name: str = "") -> Check:
    """A function of the trace as a check; it returns a Verdict, or whether it held."""

    def look(trace: Trace) -> Verdict | Awaitable[Verdict]:
        found = function(trace)
        return _later(found) if inspect.isawaitable(found) else _verdict(found)

    return Check(name or getattr(function, "__name__", type(function).__name__).strip("<>"), look)


async def look(check: Check, trace: Trace) -> Verdict:
    """What a check says of a trace. One that raises was not made: that is an error, neither a pass nor a miss."""
    try:
        found = check.look(trace)
        return _verdict(found if isinstance(found, Verdict) else await found)
    except Exception as error:  # a check is anybody's code
        return Verdict(False, error=f"The check {check.name} failed: {type(error).__name__}: {clip(str(error))}")


async def _later(found: Awaitable[Any]) -> Verdict:
    return _verdict(await found)


def _verdict(found: Any) -> Verdict:
    if isinstance(found, Verdict):
        return found
    if isinstance(found, bool):
        return Verdict(found, "held" if found else "did not hold")
    raise EvalError(f"a check returned {clip(repr(found), 60)}", "It returns a Verdict, or True or False")
