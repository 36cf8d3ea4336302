"""The signals that end a chat, in a terminal and in a pipe."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def call_on_end_signal(close: Callable[[int], None]) -> None:
    """Call `close` in the running loop, with the exit code for the signal, when a signal ends the program."""
    loop = asyncio.get_running_loop()
    for number in _ENDING_SIGNALS:
        is_ignored = signal.getsignal(number) is signal.SIG_IGN  # under nohup
        if is_ignored:
            continue
        with suppress(ValueError, RuntimeError):  # outside the main thread, signals belong to the caller
            loop.add_signal_handler(number, close, 128 + number)
