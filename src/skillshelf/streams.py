"""The standard streams of the process: open from the start, kept for our own output, and silent once unread."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def keep_output_clean() -> Iterator[None]:
    """Send what the code of skills prints to standard error, so that it does not mix with a command's output."""
    with redirect_stdout(sys.stderr):
        yield


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
