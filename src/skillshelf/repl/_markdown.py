"""Markdown as it comes: what is finished is printed for good, what is still being said is shown below it."""

import threading
import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from skillshelf.rendering import Cleaned, markdown
from skillshelf.repl._blocks import Block, Blocks

_DRAWN = 12
"""Times a second."""
_SILENCE = 1.0
"""Seconds without a word after which it is shown that more is to come."""


class MarkdownStream:
    """On a terminal, the end of what is being said is redrawn as it grows; elsewhere only whole blocks are printed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._blocks = Blocks()
        self._lock = threading.Lock()  # a thread draws
        self._live: Live | None = None
        self._spinner = Spinner("dots", Text("thinking", "dim"))
        self._fed = 0.0

    def feed(self, text: str) -> None:
        self._fed = time.monotonic()
        with self._lock:
            done = self._blocks.feed(text)
        self._print(done)
        if self._live is None and self._console.is_terminal:
            self._live = Live(self, console=self._console, transient=True, refresh_per_second=_DRAWN)
            self._live.start()

    def end(self) -> None:
        """Nothing more comes."""
        with self._lock:
            rest, self._blocks = self._blocks.end(), Blocks()
        self._print(rest)
        self._stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """What has no end yet, as far as it is in sight."""
        height = max(1, console.height - 2)
        with self._lock:
            text, blank = self._blocks.tail(options.max_width, height), self._blocks.blank
        for line in [*[[]] * blank, *_lines(text, console, options)][-height:]:
            yield from line
            yield Segment.line()
        if time.monotonic() - self._fed > _SILENCE:  # such as while the model writes out a long call
            yield self._spinner

    def _print(self, blocks: list[Block]) -> None:
        if blocks:
            self._stop()
        for block in blocks:
            self._console.print(Printed(block))

    def _stop(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None


class Printed:
    """A block with one blank line after it and none before, so that what is printed piece by piece looks like one."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from [Segment.line()] * self._block.blank
        for line in _lines(self._block.text, console, options):
            yield from line
            yield Segment.line()
        if not self._block.goes_on:
            yield Segment.line()


def _lines(text: str, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
    """The text as lines of the screen, without blank ones around them and blanks behind them."""
    lines = [_trimmed(line) for line in console.render_lines(Cleaned(markdown(text)), options, pad=False)]
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return lines


def _trimmed(line: list[Segment]) -> list[Segment]:
    """What is copied from the terminal, or wrapped when it gets narrower, has no tail of blanks."""
    while line and not line[-1].text.strip() and not (line[-1].style and line[-1].style.bgcolor):
        line.pop()
    return line
