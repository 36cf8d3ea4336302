"""The progress of a run: a bar on a terminal, otherwise a line on standard error once a minute."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skillshelf.cli import Output, complain
from skillshelf.text import count_noun
from skillshelf_evals import Outcome
from skillshelf_evals.report import format_money

SECONDS_BETWEEN_LINES = 60.0
_STATUS_STYLES = {"passed": "green", "missed": "red", "error": "yellow"}


class Progress:
    """Counts the outcomes of a run, and prints a line once in a while."""

    def __init__(self, total: int, seconds: float = SECONDS_BETWEEN_LINES) -> None:
        self._total = total
        self._seconds = seconds
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._counts: Counter[str] = Counter()
        self._cost = 0.0

    @property
    def state(self) -> str:
        """The trials so far, such as `3 of 10 trials, 2 passed, 1 missed`."""
        parts = [f"{self._counts.total()} of {count_noun(self._total, 'trial')}"]
        parts += [f"{self._counts[status]} {status}" for status in _STATUS_STYLES if self._counts[status]]
        if self._cost:
            parts.append(f"{format_money(self._cost)} for these")
        return ", ".join(parts)

    def add_outcome(self, outcome: Outcome) -> None:
        self._counts[outcome.status] += 1
        self._cost += outcome.usage.cost or 0.0

    def say(self, text: str) -> None:
        """Print a sentence about the run."""
        complain(f"skillshelf: {text}")

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the progress within a `with` block."""
        threading.Thread(target=self._print_lines, daemon=True).start()
        try:
            yield
        finally:
            self._ended.set()

    def _print_lines(self) -> None:
        while not self._ended.wait(self._seconds):
            minutes = (time.monotonic() - self._started) / 60
            self.say(f"{self.state}, after {count_noun(round(minutes), 'minute')}")


class ProgressBar(Progress):
    """A bar on a terminal."""

    def __init__(self, total: int, out: Output) -> None:
        super().__init__(total)
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns: list[Any] = [TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
        columns.append(TextColumn("{task.fields[counts]}"))
        self._bar = Bar(*columns, console=out.console, transient=True)
        self._task = self._bar.add_task("", total=total, counts="")

    def add_outcome(self, outcome: Outcome) -> None:
        super().add_outcome(outcome)
        parts = []
        for status, style in _STATUS_STYLES.items():
            if self._counts[status]:
                parts.append(f"[{style}]{self._counts[status]} {status}[/]")
        if self._cost:
            parts.append(f"[dim]{format_money(self._cost)}[/]")
        self._bar.update(self._task, advance=1, counts="  ".join(parts))

    def say(self, text: str) -> None:
        self._bar.console.print(text, style="dim", markup=False)

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self._bar:
            yield


def make_progress(out: Output, total: int, *, is_visible: bool) -> Progress:
    """Return a bar if it is to be visible, otherwise lines for a log."""
    return ProgressBar(total, out) if is_visible else Progress(total)
