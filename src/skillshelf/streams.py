"""The standard streams of the process: open from the start, and silent once their reader is gone."""

import os
import sys
from typing import TextIO


def reopen_closed_streams() -> None:
    """Open /dev/null for standard streams that a supervisor closed.

    Otherwise the next files to be opened would get their numbers, and be written to.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor != number:
            os.dup2(descriptor, number)
            os.close(descriptor)
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115


def discard_output(*streams: TextIO) -> None:
    """Send further output of these streams to /dev/null.

    Python flushes at exit, which must neither fail, and so hide the exit code, nor wait for a reader.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
