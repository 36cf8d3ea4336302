"""The browser's own thread. Playwright's objects belong to one event loop; the callers of tools have many."""

import asyncio
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from skillshelf_skills.browser._chromium import run_chromium
from skillshelf_skills.browser._limits import BrowserLimits
from skillshelf_skills.browser._results import BrowserError
from skillshelf_skills.browser._tab import Tab
from skillshelf_skills.net import NetworkRules

T = TypeVar("T")

_SECONDS_TO_END = 15.0
_SECONDS_TO_NOTICE = 2.0
_SECONDS_BETWEEN_LOOKS = 1.0


class SharedBrowser:
    """The browser of a skill. It starts when it is first used, and again if it has ended.

    It ends when it is not used for a while, with the last copy of the skill, and with the program.
    """

    def __init__(
        self, rules: NetworkRules | None, limits: BrowserLimits, program: str | None, sandbox: bool | None
    ) -> None:
        self._create_thread: Callable[[], BrowserThread] = partial(
            BrowserThread, rules or NetworkRules(), limits, program, sandbox
        )
        self._lock = threading.Lock()
        self._threads: list[BrowserThread] = []
        """The running one, if there is one."""
        weakref.finalize(self, _end_all, self._threads)

    async def run(self, action: Callable[[Tab], Awaitable[T]]) -> T:
        """Return the result of an action on the browser's tab. Actions run one after the other. Raises BrowserError."""
        with self._lock:
            future = self._threads[0].submit(action) if self._threads else None
            if future is None:
                thread = self._create_thread()
                self._threads[:] = [thread]
                future = thread.submit(action)
                thread.start()
        assert future is not None, "a thread takes calls until it has been started"
        return await asyncio.wrap_future(future)

    async def close(self) -> bool:
        """End the browser. Return False if there was none."""
        with self._lock:
            threads = list(self._threads)
            self._threads.clear()
        was_open = [await asyncio.to_thread(thread.end) for thread in threads]
        return any(was_open)


def _end_all(threads: "list[BrowserThread]") -> None:
    for thread in threads:
        thread.end()


class BrowserThread:
    """A thread in which one browser lives, from its start to its end."""

    def __init__(self, rules: NetworkRules, limits: BrowserLimits, program: str | None, sandbox: bool | None) -> None:
        self._rules = rules
        self._limits = limits
        self._program = program
        self._sandbox = sandbox
        self._lock = threading.RLock()
        """Held while the next two change: a loop that has ended runs nothing any more."""
        self._is_ending = False
        self._unfinished = 0
        """Calls that were submitted and have not ended."""
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._tab: asyncio.Future[Tab] = self._loop.create_future()
        self._calls: set[asyncio.Task[object]] = set()
        self._turn = asyncio.Lock()
        self._stop = asyncio.Event()
        self._last_use = time.monotonic()
        self._thread = threading.Thread(target=self._work, name="skillshelf-browser", daemon=True)

    def start(self) -> None:
        """Start the browser. Calls may be submitted before."""
        self._thread.start()

    def submit(self, action: Callable[[Tab], Awaitable[T]]) -> "Future[T] | None":
        """Have an action run in the browser's loop. Return None if the browser is about to end."""
        with self._lock:
            if self._is_ending:
                return None
            self._unfinished += 1
            future = asyncio.run_coroutine_threadsafe(self._perform(action), self._loop)
            future.add_done_callback(self._count_finished)
        return future

    def end(self) -> bool:
        """End the browser, and wait until it has ended. Return False if it had ended before."""
        with self._lock:
            was_open = not self._is_ending
            if was_open:
                self._loop.call_soon_threadsafe(self._stop.set)
        if self._thread is not threading.current_thread():  # the garbage collector may run in this one
            self._thread.join(_SECONDS_TO_END)
        return was_open

    def _count_finished(self, future: "Future[T]") -> None:
        with self._lock:
            self._unfinished -= 1

    def _work(self) -> None:
        try:
            self._runner.run(self._live())
        finally:
            self._stop_taking_calls()
            self._runner.close()

    async def _live(self) -> None:
        try:
            async with run_chromium(self._rules, self._limits, self._program, self._sandbox) as chromium:
                chromium.browser.on("disconnected", lambda browser: self._stop.set())
                self._tab.set_result(Tab(chromium, self._limits))
                await self._wait_for_end()
                self._stop_taking_calls()
        except Exception as error:
            if not self._tab.done():
                self._tab.set_exception(error)
                self._tab.exception()  # it may be that no caller waits for it any more
        finally:
            self._stop_taking_calls()
            await self._end_calls()

    def _stop_taking_calls(self) -> None:
        with self._lock:
            self._is_ending = True

    async def _end_calls(self) -> None:
        """Let the calls that are still there find out that the browser has gone."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=_SECONDS_TO_NOTICE)
        for call in self._calls:
            call.cancel()
        if self._calls:
            await asyncio.wait(self._calls)

    async def _wait_for_end(self) -> None:
        """Wait until the browser is closed, or has not been used for too long."""
        while True:
            left = self._last_use + self._limits.idle_seconds - time.monotonic()
            with self._lock:
                if left <= 0 and not self._unfinished:
                    self._is_ending = True
                    return
            try:
                async with asyncio.timeout(max(left, _SECONDS_BETWEEN_LOOKS)):
                    await self._stop.wait()
                return
            except TimeoutError:
                continue

    async def _perform(self, action: Callable[[Tab], Awaitable[T]]) -> T:
        call = asyncio.current_task()
        assert call is not None
        self._calls.add(call)
        try:
            tab = await asyncio.shield(self._tab)
            async with self._turn:
                return await self._use(tab, action)
        except asyncio.CancelledError:
            if not self._is_ending:
                raise
            raise BrowserError("The browser was closed meanwhile.") from None
        finally:
            self._calls.discard(call)

    async def _use(self, tab: Tab, action: Callable[[Tab], Awaitable[T]]) -> T:
        failure: Exception
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await action(tab)
        except Exception as error:
            failure = await tab.translate(error)
        finally:
            self._last_use = time.monotonic()
        raise failure from None
