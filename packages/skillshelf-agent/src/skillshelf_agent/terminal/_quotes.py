"""Text from elsewhere among our own, laid out so that it cannot pass for ours and none of it is out of sight."""

from collections.abc import Iterator

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from skillshelf.text import clean, clean_line, count_noun
from skillshelf.text.rendering import truncate_cells

_BAR = "  │ "
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_DIFF_HEAD = ("--- ", "+++ ")
"""How the two lines at the beginning of a diff begin, which name the file."""
_MAX_CHARACTERS_PER_CELL = 4
"""A line of a file can have millions of characters. No more of it than this is measured to fill a row."""


class Argument:
    """An argument of a tool call. If it has several lines, they stand behind a bar, so that none can pass for ours.

    A line that is too long for the screen goes on behind its bar.
    """

    def __init__(self, name: str, value: object) -> None:
        self._name = clean_line(name)
        self._value = clean(str(value))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        label = Text(f"{self._name}: ", "dim")
        if "\n" not in self._value:
            yield label + Text(self._value)
            return

        yield label
        width = max(20, options.max_width - len(_BAR))
        for line in self._value.split("\n"):
            for part in Text(line).wrap(console, width, overflow="fold"):
                yield Text.assemble((_BAR, "dim"), part)


class Diff:
    """A diff with every character in it. The rest of a long line follows behind a mark that begins no diff line."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for position, line in enumerate(self._lines):
            first, *more = chop_cells(line.expandtabs(4), max(10, options.max_width - 2)) or [""]
            is_head = position < len(_DIFF_HEAD) and line.startswith(_DIFF_HEAD[position])
            style = "bold" if is_head else _DIFF_STYLES.get(line[:1], "")
            yield Text(first, style, no_wrap=True)
            for part in more:
                yield Text.assemble(("↪ ", "dim"), (part, style), no_wrap=True)


def count_changed_lines(diff: str) -> str:
    """Return how many lines a diff adds and removes: `+3 −1`."""
    lines = diff.split("\n")[len(_DIFF_HEAD) :]
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    counts = [f"+{added:,}" if added else "", f"−{removed:,}" if removed else ""]
    return " ".join(filter(None, counts)) or "no change"


class FoldedDiff:
    """The first and last lines of a diff behind a bar, each on one row."""

    def __init__(self, text: str, max_lines: int, margin: str = "") -> None:
        """`margin` comes before the bar."""
        lines = text.splitlines()[len(_DIFF_HEAD) :]  # the line above it names the file
        self._prefix = margin + _BAR
        self._hidden = max(0, len(lines) - max_lines)
        self._head = lines
        self._tail: list[str] = []
        if self._hidden:
            self._head = lines[: (max_lines + 1) // 2]
            self._tail = lines[len(lines) - max_lines // 2 :]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(10, options.max_width - cell_len(self._prefix))
        for line in self._head:
            yield self._draw_line(line, room)
        if self._hidden:
            hint = f"… {count_noun(self._hidden, 'more line')}: Ctrl+O shows them …"
            yield Text.assemble((self._prefix, "dim"), (truncate_cells(hint, room), "yellow"), no_wrap=True)
        for line in self._tail:
            yield self._draw_line(line, room)

    def _draw_line(self, line: str, room: int) -> Text:
        shown = truncate_cells(line[: _MAX_CHARACTERS_PER_CELL * room].expandtabs(4), room)
        return Text.assemble((self._prefix, "dim"), (shown, _DIFF_STYLES.get(line[:1], "")), no_wrap=True)


class Excerpt:
    """The first and last rows of something long, and the number of rows left out between them."""

    def __init__(self, console: Console, content: RenderableType, max_rows: int) -> None:
        rows = console.render_lines(content, pad=False)
        self.hidden_rows = max(0, len(rows) - max_rows)
        self._head = rows
        self._tail: list[list[Segment]] = []
        if self.hidden_rows:
            self._head = rows[: (max_rows + 1) // 2]
            self._tail = rows[len(rows) - max_rows // 2 :]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _join_rows(self._head)
        if self.hidden_rows:
            unit = "line" if self.hidden_rows == 1 else "lines"
            yield Text(f"… {self.hidden_rows:,} {unit} …", "bold yellow")
            yield from _join_rows(self._tail)


def _join_rows(rows: list[list[Segment]]) -> Iterator[Segment]:
    for row in rows:
        yield from row
        yield Segment.line()
