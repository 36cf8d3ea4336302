"""Markdown while it streams in: finished blocks are printed for good, the unfinished one is redrawn below them."""

import threading
import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.spinner import Spinner
from rich.text import Text

from skillshelf.rendering import Cleaned, markdown
from skillshelf.repl._blocks import Block, BlockSplitter

_REDRAWS_PER_SECOND = 12
_SILENCE_SECONDS = 1.0
"""After this long without text a spinner shows that more is to come."""


class MarkdownStream:
    """Prints an answer as it arrives. Without a terminal, only whole blocks are printed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._splitter = BlockSplitter()
        self._lock = threading.Lock()  # rich redraws in a thread of its own
        self._live: Live | None = None
        self._spinner = Spinner("dots", Text("thinking", "dim"))
        self._last_fed = 0.0

    def feed(self, text: str) -> None:
        """Show the next piece of the answer."""
        self._last_fed = time.monotonic()
        with self._lock:
            finished = self._splitter.feed(text)
        self._print(finished)

        if self._live is None and self._console.is_terminal:
            self._live = Live(self, console=self._console, transient=True, refresh_per_second=_REDRAWS_PER_SECOND)
            self._live.start()

    def end(self) -> None:
        """Print the rest: nothing more comes."""
        with self._lock:
            rest = self._splitter.end()
            self._splitter = BlockSplitter()
        self._print(rest)
        self._stop_redrawing()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the part of the unfinished block that fits on the screen."""
        height = max(1, console.height - 2)
        with self._lock:
            text = self._splitter.tail(options.max_width, height)
            blank = self._splitter.blank

        no_text: list[Segment] = []
        lines = [no_text] * blank + _render_lines(text, console, options)
        for line in lines[-height:]:
            yield from line
            yield Segment.line()

        is_silent = time.monotonic() - self._last_fed > _SILENCE_SECONDS
        if is_silent:  # such as while the model writes out a long call
            yield self._spinner

    def _print(self, blocks: list[Block]) -> None:
        if blocks:
            self._stop_redrawing()
        for block in blocks:
            self._console.print(PrintedBlock(block))

    def _stop_redrawing(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None


class PrintedBlock:
    """A block with one blank line after it and none before, so that pieces of an answer look like one text."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for _ in range(self._block.blank):
            yield Segment.line()
        for line in _render_lines(self._block.text, console, options):
            yield from line
            yield Segment.line()
        if not self._block.goes_on:
            yield Segment.line()


def _render_lines(text: str, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
    """Return the text as lines of the screen, without blank lines around it or blanks at the ends of lines."""
    lines = console.render_lines(Cleaned(markdown(text)), options, pad=False)
    for line in lines:
        _strip_trailing_blanks(line)
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return lines


def _strip_trailing_blanks(line: list[Segment]) -> None:
    """Remove blanks that would show up in a copy from the terminal, or wrap when it gets narrower."""
    while line and not line[-1].text.strip() and not (line[-1].style and line[-1].style.bgcolor):
        line.pop()
