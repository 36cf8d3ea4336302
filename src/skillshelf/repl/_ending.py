"""A chat that is told to end: by a closed window, or by `kill`."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def on_end(close: Callable[[int], None]) -> None:
    """Have this called, in the running loop, with the exit code that tells the signal."""
    loop = asyncio.get_running_loop()
    for one in _SIGNALS:
        if signal.getsignal(one) is signal.SIG_IGN:  # under nohup
            continue
        with suppress(ValueError, RuntimeError):  # not in the main thread: signals are somebody else's
            loop.add_signal_handler(one, close, 128 + one)


def write_nowhere() -> None:
    """The terminal is gone: what is still said on the way out must not fail, which would hide the exit code."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
