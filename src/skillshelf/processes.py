"""Programs that were started in a process group of their own, and how they end with everything they started."""

import asyncio
import os
import signal
from contextlib import suppress

_SECONDS_TO_END = 5.0
"""How long a killed program may hold on to its output."""


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it is still there. It is, too, if its first process has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


async def end_group(process: asyncio.subprocess.Process) -> None:
    """Kill a program and its process group, also what a program that has ended left behind, and wait for its end."""
    signal_group(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await process.wait()
