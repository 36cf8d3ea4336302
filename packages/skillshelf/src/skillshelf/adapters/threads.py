"""Run blocking work in threads, with a limit for each purpose so that one cannot starve another."""

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
"""`files` reads skills and takes milliseconds. `tools` runs a user's tools, which take as long as they like."""

_MAX_THREADS: dict[Purpose, int] = {"files": 16, "tools": 40}

T = TypeVar("T")


class _Capacities(NamedTuple):
    by_purpose: dict[Purpose, anyio.CapacityLimiter]
    unlimited: anyio.CapacityLimiter
    """Passed to anyio, so that our threads do not count against its own limit: standard input needs one of those."""


_LIMITS: RunVar[_Capacities] = RunVar("skillshelf_threads")  # one for each event loop


async def in_thread(job: Callable[[], T], purpose: Purpose) -> T:
    """Return the job's result. A caller who is cancelled does not wait for it.

    The job keeps its slot until it has ended, even if no caller waits for it any more. anyio would free the slot upon
    cancellation, and clients that ask and leave could start any number of threads.
    """
    limits = _get_limits()
    limiter = limits.by_purpose[purpose]
    slot = object()
    loop = asyncio.get_running_loop()
    claim = threading.Lock()
    """Whoever acquires it frees the slot: the thread, or a caller who is cancelled before the thread began."""

    def run() -> T | None:
        if not claim.acquire(blocking=False):
            return None
        try:
            return job()
        finally:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(limiter.release_on_behalf_of, slot)

    await limiter.acquire_on_behalf_of(slot)
    try:
        # None only for a caller who has been cancelled.
        return cast(T, await to_thread.run_sync(run, limiter=limits.unlimited, abandon_on_cancel=True))
    finally:
        if claim.acquire(blocking=False):
            limiter.release_on_behalf_of(slot)


def _get_limits() -> _Capacities:
    try:
        return _LIMITS.get()
    except LookupError:
        by_purpose = {purpose: anyio.CapacityLimiter(most) for purpose, most in _MAX_THREADS.items()}
        limits = _Capacities(by_purpose, anyio.CapacityLimiter(math.inf))
        _LIMITS.set(limits)
        return limits


class OwnThread:
    """A thread for one end of a pipe.

    It may block there for good, so neither a cancelled caller nor the end of the process waits for it. anyio's threads
    hold up both.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._work, daemon=True).start()

    async def run(self, job: Callable[[], T]) -> T:
        """Return the job's result. Jobs run one after the other."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put((job, done))
        return await done

    def _work(self) -> None:
        while True:
            job, done = self._jobs.get()
            result = None
            failure = None
            try:
                result = job()
            except Exception as error:  # raised where the result is awaited
                failure = error
            try:
                self._loop.call_soon_threadsafe(_settle, done, result, failure)
            except RuntimeError:  # the loop is closed, so no more jobs will come
                return


def _settle(done: "asyncio.Future[Any]", result: Any, failure: Exception | None) -> None:
    if done.cancelled():
        return
    if failure is None:
        done.set_result(result)
    else:
        done.set_exception(failure)
