"""Threads for what would hold up an event loop, apart for each purpose: one that waits takes none from the others."""

from collections.abc import Callable
from typing import Literal, TypeAlias, TypeVar

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

Purpose: TypeAlias = Literal["files", "tools"]
"""Reads files and looks at every skill, or takes as long as it likes."""

_MOST: dict[Purpose, int] = {"files": 16, "tools": 40}
# Apart from anyio's own threads, of which a reader of standard input takes one, and for each event loop.
_LIMITS: RunVar[dict[Purpose, anyio.CapacityLimiter]] = RunVar("skillshelf_threads")

T = TypeVar("T")


async def in_thread(job: Callable[[], T], purpose: Purpose) -> T:
    """The job's result. Whoever is cancelled does not wait for it."""
    limits = _LIMITS.get({})
    if purpose not in limits:
        limits = {**limits, purpose: anyio.CapacityLimiter(_MOST[purpose])}
        _LIMITS.set(limits)
    return await to_thread.run_sync(job, limiter=limits[purpose], abandon_on_cancel=True)
