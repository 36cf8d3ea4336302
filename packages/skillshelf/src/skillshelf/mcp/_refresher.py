"""Keep the served shelf, and the count of skills that wait for approval, current without a sweep on every request."""

import logging
import shlex
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import anyio
from mcp.server import ServerRequestContext

from skillshelf.adapters import threads
from skillshelf.errors import SkillError, SkillNotFoundError
from skillshelf.shelf import Shelf
from skillshelf.text import clean_line, count_noun

logger = logging.getLogger(__name__)

RequestContext: TypeAlias = ServerRequestContext[Any, Any]
P = ParamSpec("P")
T = TypeVar("T")


async def run_in_thread(function: Callable[P, T], *args: P.args, **keywords: P.kwargs) -> T:
    """Run a function that reads files or walks the catalog. Other requests are answered meanwhile."""
    return await threads.in_thread(lambda: function(*args, **keywords), "files")


class PendingSkills:
    """The number of skills that wait for the user's approval, and the command that reviews them.

    A client hears the number and the command, and nothing else: names and texts of pending skills are still untrusted.
    """

    def __init__(self, count: Callable[[], int], folder: str = "") -> None:
        """Count with `count`, which may read files. `folder` is named in the command unless it is empty."""
        self._count = count
        self._command = review_command(folder)
        self._known = count()

    def refresh(self) -> None:
        """Count again. This may wait for a sweep of the workspace, so an event loop calls it in a thread."""
        self._known = self._count()

    @property
    def notice(self) -> str:
        """Sentences for the model and its user, as of the last count. Empty if no skill is pending."""
        count = self._known
        if count == 0:
            return ""
        from skillshelf.explain import describe_waiting  # loads the approvals, which a server without them never reads

        what = f"{count_noun(count, 'new or changed skill')} of this workspace"
        waiting = describe_waiting(what, count, whose="the user's")
        return f"{waiting}. The user can review them in a terminal with: {self._command}"


def add_pending_notice(error: SkillError, pending: PendingSkills | None) -> str:
    """Return an error's message. If a skill was not found and others are pending, it says so: it may be one of them."""
    if pending and pending.notice and isinstance(error, SkillNotFoundError) and not error.reason:
        return f"{error} {pending.notice}"
    return str(error)


def review_command(folder: str) -> str:
    """Return the command that reviews a workspace's skills.

    A folder whose name holds control or hidden characters is left out: it may have been chosen to be read as text.
    """
    if not folder or clean_line(folder) != folder:
        return "skillshelf trust"
    return f"skillshelf trust -C {shlex.quote(folder)}"


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
