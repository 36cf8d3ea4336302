"""Text from elsewhere among our own, laid out so that it cannot pass for ours and none of it is out of sight."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from skillshelf.text import clean, clean_line, count_noun
from skillshelf.text.rendering import truncate_cells

_BAR = "  │ "
UNFOLD_KEY = "Ctrl+O"
"""The key that shows in full what is folded on the screen."""
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
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


class _DiffLine(NamedTuple):
    number: str
    """Its number in the new file, or in the old one for a line that is removed. All of a diff have the same width."""
    text: str
    style: str


def _read_diff(text: str) -> list[_DiffLine]:
    lines = text.splitlines()
    numbers: list[int | None] = []
    old = 0
    new = 0
    is_in_hunk = False
    for line in lines:
        number = None
        hunk = _HUNK.match(line)
        if hunk:
            old = int(hunk[1])
            new = int(hunk[2])
            is_in_hunk = True
        elif is_in_hunk and line.startswith("-"):
            number = old
            old += 1
        elif is_in_hunk and line.startswith("+"):
            number = new
            new += 1
        elif is_in_hunk and line.startswith(" "):
            number = new
            old += 1
            new += 1
        numbers.append(number)

    width = max((len(str(number)) for number in numbers if number is not None), default=-1) + 1
    read: list[_DiffLine] = []
    for position, (line, number) in enumerate(zip(lines, numbers, strict=True)):
        is_head = position < len(_DIFF_HEAD) and line.startswith(_DIFF_HEAD[position])
        style = "bold" if is_head else _DIFF_STYLES.get(line[:1], "")
        shown = "" if number is None else f"{number} "
        read.append(_DiffLine(shown.rjust(width), line, style))
    return read


class Diff:
    """A diff with every character in it, and line numbers.

    The rest of a long line follows behind a mark that begins no diff line.
    """

    def __init__(self, text: str) -> None:
        self._lines = _read_diff(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            margin = " " * len(line.number)
            room = max(10, options.max_width - len(margin) - 2)
            first, *more = chop_cells(line.text.expandtabs(4), room) or [""]
            yield Text.assemble((line.number, "dim"), (first, line.style), no_wrap=True)
            for part in more:
                yield Text.assemble((f"{margin}↪ ", "dim"), (part, line.style), no_wrap=True)


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
        lines = _read_diff(text)[len(_DIFF_HEAD) :]  # the line above it names the file
        self._prefix = margin + _BAR
        self._hidden = max(0, len(lines) - max_lines)
        self._head = lines
        self._tail: list[_DiffLine] = []
        if self._hidden:
            self._head = lines[: (max_lines + 1) // 2]
            self._tail = lines[len(lines) - max_lines // 2 :]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(10, options.max_width - cell_len(self._prefix))
        for line in self._head:
            yield self._draw_line(line, room)
        if self._hidden:
            hint = f"… {count_noun(self._hidden, 'more line')}: {UNFOLD_KEY} shows all …"
            yield Text.assemble((self._prefix, "dim"), (truncate_cells(hint, room), "yellow"), no_wrap=True)
        for line in self._tail:
            yield self._draw_line(line, room)

    def _draw_line(self, line: _DiffLine, room: int) -> Text:
        room -= len(line.number)
        shown = truncate_cells(line.text[: _MAX_CHARACTERS_PER_CELL * room].expandtabs(4), room)
        return Text.assemble((self._prefix, "dim"), (line.number, "dim"), (shown, line.style), no_wrap=True)


class Excerpt:
    """The first and last rows of something long, and between them how many there are more, and the key for them."""

    def __init__(self, console: Console, content: RenderableType, max_rows: int, key: str) -> None:
        self._key = key
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
            yield Text(f"… {count_noun(self.hidden_rows, 'more line')}: {self._key} shows all …", "bold yellow")
            yield from _join_rows(self._tail)


def _join_rows(rows: list[list[Segment]]) -> Iterator[Segment]:
    for row in rows:
        yield from row
        yield Segment.line()
