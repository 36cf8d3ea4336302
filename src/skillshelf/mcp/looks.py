"""Looking at files without holding anybody up: threads for what reads, and sweeps of the shelf, as few as will do."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec, TypeVar

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

from skillshelf.errors import SkillError
from skillshelf.shelf import Shelf

LOOK_SECONDS = 1.0
"""A tool call that comes later than this after the last look at the folders looks again."""
# Apart from anyio's own threads, of which the reader of standard input takes one, and for each event loop.
_LIMITS: RunVar[dict[str, anyio.CapacityLimiter]] = RunVar("skillshelf_mcp_threads")

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(job: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
    """For what reads files, or looks at every skill: meanwhile the others are answered."""
    limiter = threads("files", 16)
    return await to_thread.run_sync(lambda: job(*args, **keywords), limiter=limiter, abandon_on_cancel=True)


def threads(what_for: str, most: int) -> anyio.CapacityLimiter:
    """So many threads at once for this, and no more."""
    limits = _LIMITS.get({})
    if what_for not in limits:
        _LIMITS.set({**limits, what_for: anyio.CapacityLimiter(most)})
    return _LIMITS.get()[what_for]


class Looks:
    """Sweeps of the shelf: whoever asks while one is under way shares the next."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._began = float("-inf")
        """When the last sweep that ended had begun."""
        self._lock = anyio.Lock()

    async def look(self, within: float = 0.0) -> None:
        """After this the shelf is as the disk was so many seconds ago, or later."""
        wanted = time.monotonic() - within
        if self._began >= wanted:
            return
        async with self._lock:
            if self._began >= wanted:
                return
            began = time.monotonic()
            with suppress(SkillError, OSError):  # a root that is gone, say: what was there last serves on
                await in_thread(self._shelf.reload)
            self._began = began
