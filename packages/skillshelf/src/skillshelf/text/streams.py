"""The standard streams of the process: open from the start, kept for our own output, and silent once unread."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, TextIO

from skillshelf.text._untrusted import clean, clean_line

if TYPE_CHECKING:
    from logging import LogRecord


@contextmanager
def keep_output_clean() -> Iterator[None]:
    """Send what the code of skills prints to standard error, so that it does not mix with a command's output."""
    with redirect_stdout(sys.stderr):
        yield


def clean_library_messages() -> None:
    """Write out control characters in the log messages and warnings that libraries print to standard error.

    They quote servers, and a terminal would obey an escape sequence in them. A program that has set up its logging is
    left alone.
    """
    import logging
    import warnings

    if logging.lastResort is not None:
        logging.lastResort.addFilter(_clean_record)  # a second time does nothing

    def show_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = warnings.formatwarning(message, category, filename, lineno, line)
        (file or sys.stderr).write(clean(text))

    warnings.showwarning = show_warning


def _clean_record(record: "LogRecord") -> bool:
    """Clean a log message before it is printed. Nothing is left out."""
    import traceback

    record.msg = clean_line(record.getMessage())
    record.args = None
    if record.exc_info:
        record.exc_text = clean("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
    return True


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
