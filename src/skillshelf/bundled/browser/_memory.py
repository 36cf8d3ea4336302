"""Ends pages that take more memory than they may."""

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from playwright.async_api import Browser, Error

_SECONDS_BETWEEN = 0.25
_MEGABYTE = 1_000_000
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class _Process:
    id: int
    shows_pages: bool
    memory: int


async def end_greedy_pages(browser: Browser, max_megabytes: int) -> None:
    """Watch the browser's memory until this is cancelled; while there is too much, kill the largest process with pages.

    A page whose process was killed counts as crashed. Without /proc, as on macOS, nothing is measured: there, a page
    is limited by the bounds that Chromium sets.
    """
    with suppress(Error):  # the browser has ended
        session = await browser.new_browser_cdp_session()
        while True:
            answer = await session.send("SystemInfo.getProcessInfo")
            processes = [
                _Process(int(info["id"]), info["type"] == "renderer", _measure(int(info["id"])))
                for info in answer["processInfo"]
            ]
            victim = _find_victim(processes, max_megabytes * _MEGABYTE)
            if victim is not None:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(victim, signal.SIGKILL)
            await asyncio.sleep(_SECONDS_BETWEEN)


def _find_victim(processes: Iterable[_Process], limit: int) -> int | None:
    """Return the process to end, or None if all together are within the limit."""
    listed = list(processes)
    if sum(process.memory for process in listed) <= limit:
        return None
    largest = max(listed, key=lambda process: (process.shows_pages, process.memory))
    return largest.id


def _measure(process: int) -> int:
    """Return the memory that a process shares with no other, in bytes; 0 if it is gone or there is no /proc."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            _, resident, shared, *_ = map(int, file.read().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * _PAGE_SIZE
