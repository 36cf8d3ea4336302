"""Reports of the output of commands and scripts while they run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ReportOutput = Callable[[str], None]

_REPORT_SECONDS = 0.1
_MAX_REPORT_CHARACTERS = 8_000

_report_output: ContextVar[ReportOutput | None] = ContextVar("report_output", default=None)


@contextmanager
def reporting_output(report: ReportOutput) -> Iterator[None]:
    """Report the output of the programs that run in this block."""
    token = _report_output.set(report)
    try:
        yield
    finally:
        _report_output.reset(token)


def find_output_report() -> ReportOutput | None:
    """Return where a program that starts now should report its output, or None."""
    return _report_output.get()


class OutputReporter:
    """Reports output in pieces: at most ten a second, and of much output only the end."""

    def __init__(self, report: ReportOutput) -> None:
        self._report = report
        self._waiting = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        self._waiting = (self._waiting + text)[-_MAX_REPORT_CHARACTERS:]
        if self._timer is None and text:
            self._timer = asyncio.get_running_loop().call_later(_REPORT_SECONDS, self._send)

    def close(self) -> None:
        """Report the rest."""
        if self._timer:
            self._timer.cancel()
        self._send()

    def _send(self) -> None:
        self._timer = None
        if self._waiting:
            self._report(self._waiting)
            self._waiting = ""
