"""Looking at files without holding anybody up: a thread for what reads, and sweeps of the shelf, as few as will do."""

import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import anyio

from skillshelf import threads
from skillshelf.mcp._pending import PendingSkills
from skillshelf.shelf import Shelf

LOOK_SECONDS = 1.0
"""A tool call, or a read, that comes later than this after the last look at the folders looks again."""

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(job: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
    """For what reads files, or looks at every skill: meanwhile the others are answered."""
    return await threads.in_thread(lambda: job(*args, **keywords), "files")


class Looks:
    """Sweeps of the shelf: whoever asks while one is under way shares the next."""

    def __init__(self, shelf: Shelf, pending: PendingSkills | None = None) -> None:
        self._shelf = shelf
        self._pending = pending
        self._began = float("-inf")
        """When the last sweep that ended had begun."""
        self._failing = False
        self._lock = anyio.Lock()

    async def look(self, within: float = 0.0) -> None:
        """After this the shelf is as the disk was so many seconds ago, or later: of sources that fail, as it was."""
        wanted = time.monotonic() - within
        if self._began >= wanted:
            return
        async with self._lock:
            if self._began >= wanted:
                return
            began = time.monotonic()
            try:
                await in_thread(self._sweep)
                self._failing = False
            except Exception:  # a source of somebody's own may raise anything: what was there last serves on
                if not self._failing:  # told once, not at every call until it is well again
                    log.exception("looking for changes failed: what was there last serves on")
                self._failing = True
            self._began = began

    def _sweep(self) -> None:
        self._shelf.reload()
        if self._pending:
            self._pending.refresh()
