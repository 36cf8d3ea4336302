"""Process groups of programs that were started in one of their own."""

import os
import signal
from contextlib import suppress


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process group, if it is still there. It is, too, if its first process has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
