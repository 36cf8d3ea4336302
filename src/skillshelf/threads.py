"""Threads for what would hold up an event loop, apart for each purpose: one that waits takes none from the others."""

import asyncio
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

import anyio
from anyio import to_thread
from anyio.lowlevel import RunVar

Purpose: TypeAlias = Literal["files", "tools"]
"""Reads files and looks at every skill, or takes as long as it likes."""

_MOST: dict[Purpose, int] = {"files": 16, "tools": 40}


class _Limits(NamedTuple):
    at_work: dict[Purpose, anyio.CapacityLimiter]
    none: anyio.CapacityLimiter
    """For anyio, whose own threads are apart: of those a reader of standard input may take one."""


_LIMITS: RunVar[_Limits] = RunVar("skillshelf_threads")  # for each event loop

T = TypeVar("T")


async def in_thread(job: Callable[[], T], purpose: Purpose) -> T:
    """The job's result. Whoever is cancelled does not wait for it.

    The job keeps its place among so many until it has ended, though nobody may wait for it any more: anyio would give
    the place away with the cancellation, and clients that ask and leave would have any number of threads at work.
    """
    limits = _limits()
    limiter, place, loop = limits.at_work[purpose], object(), asyncio.get_running_loop()
    first = threading.Lock()
    """Whoever takes it gives the place back: the thread, or a caller who is cancelled before the thread began."""

    def run() -> T | None:
        if not first.acquire(blocking=False):
            return None
        try:
            return job()
        finally:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(limiter.release_on_behalf_of, place)

    await limiter.acquire_on_behalf_of(place)
    try:
        # None only for a caller who has been cancelled.
        return cast(T, await to_thread.run_sync(run, limiter=limits.none, abandon_on_cancel=True))
    finally:
        if first.acquire(blocking=False):
            limiter.release_on_behalf_of(place)


def _limits() -> _Limits:
    try:
        return _LIMITS.get()
    except LookupError:
        at_work = {purpose: anyio.CapacityLimiter(most) for purpose, most in _MOST.items()}
        _LIMITS.set(_Limits(at_work, anyio.CapacityLimiter(math.inf)))
        return _LIMITS.get()


class OwnThread:
    """A thread for one end of a pipe. It may be blocked there for good, so neither a caller who is cancelled nor the
    end of the process waits for it; anyio's threads hold up both."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, daemon=True).start()

    async def run(self, job: Callable[[], T]) -> T:
        """The job's result, after the jobs before it."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put((job, done))
        return await done

    def _work(self) -> None:
        while True:
            job, done = self._jobs.get()
            result, fault = None, None
            try:
                result = job()
            except Exception as error:  # theirs who wait for it
                fault = error
            try:
                self._loop.call_soon_threadsafe(_settle, done, result, fault)
            except RuntimeError:  # the loop is closed: nobody will ask for anything more
                return


def _settle(done: "asyncio.Future[Any]", result: Any, fault: Exception | None) -> None:
    if done.cancelled():
        return
    if fault is None:
        done.set_result(result)
    else:
        done.set_exception(fault)
