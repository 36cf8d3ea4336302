"""Keep the served shelf current without sweeping the disk on every request."""

import logging
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import anyio
from mcp.server import ServerRequestContext

from skillshelf import threads
from skillshelf.mcp._pending import PendingSkills
from skillshelf.shelf import Shelf

MAX_AGE = 1.0
"""Seconds by which a tool call or a read may be behind the disk."""

logger = logging.getLogger(__name__)

RequestContext: TypeAlias = ServerRequestContext[Any, Any]
P = ParamSpec("P")
T = TypeVar("T")


async def run_in_thread(function: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
    """Run a function that reads files or walks the catalog. Other requests are answered meanwhile."""
    return await threads.in_thread(lambda: function(*args, **keywords), "files")


class ShelfRefresher:
    """Reloads a shelf for a server, and counts the skills that wait for approval.

    Callers that arrive while a sweep is running wait for it and share the next one.
    """

    def __init__(self, shelf: Shelf, pending: PendingSkills | None = None) -> None:
        self._shelf = shelf
        self._pending = pending
        self._lock = anyio.Lock()
        self._last_sweep_started = float("-inf")
        self._last_sweep_failed = False

    async def refresh(self, max_age: float = 0.0) -> None:
        """Reload the shelf unless a sweep started within the last `max_age` seconds."""
        oldest_allowed = time.monotonic() - max_age
        if self._last_sweep_started >= oldest_allowed:
            return

        async with self._lock:
            if self._last_sweep_started >= oldest_allowed:
                return  # another caller swept while this one waited

            started = time.monotonic()
            await self._sweep()
            self._last_sweep_started = started

    async def _sweep(self) -> None:
        try:
            await run_in_thread(self._reload)
        except Exception:
            # A user's own source may raise anything. Serve the last known state, and log only the first failure.
            if not self._last_sweep_failed:
                logger.exception("Reloading skills failed; serving the last known state")
            self._last_sweep_failed = True
        else:
            self._last_sweep_failed = False

    def _reload(self) -> None:
        self._shelf.reload()
        if self._pending:
            self._pending.refresh()
