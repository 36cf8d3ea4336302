"""Markdown while it streams in: finished blocks are printed for good, the unfinished one is drawn until it is."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from skillshelf.rendering import Cleaned, markdown
from skillshelf.repl._blocks import Block, BlockSplitter


class MarkdownStream:
    """Prints an answer as it arrives, block by block. `draw_tail` returns the part that is not printed yet."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._splitter = BlockSplitter()
        self._drawn_key: tuple[str, int, int] | None = None
        self._drawn: list[list[Segment]] = []

    def feed(self, text: str) -> None:
        """Take the next piece of the answer."""
        self._print(self._splitter.feed(text))

    def end(self) -> None:
        """Print the rest: nothing more comes."""
        rest = self._splitter.end()
        self._splitter = BlockSplitter()
        self._print(rest)

    def draw_tail(self, columns: int, rows: int) -> list[list[Segment]]:
        """Return the last rows of the unfinished block, as lines of the screen."""
        text = self._splitter.tail(columns, rows)
        key = (text, columns, self._splitter.blank)
        if key != self._drawn_key:
            self._drawn_key = key
            no_text: list[Segment] = []
            options = self._console.options.update(width=columns)
            self._drawn = [no_text] * self._splitter.blank + _render_lines(text, self._console, options)
        return self._drawn[-rows:]

    def _print(self, blocks: list[Block]) -> None:
        for block in blocks:
            self._console.print(PrintedBlock(block))


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
