"""Text of others amid ours, laid out so that none of it can pass for ours, and none of it is out of sight."""

from collections.abc import Iterator

from rich.cells import chop_cells
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from skillshelf.text import clean, clean_line

_QUOTED = "  │ "
_DIFF = {"+": "green", "-": "red", "@": "cyan"}


class Page:
    """A review: a quoted line that is too long goes on behind its bar, so that no text can stand where ours does."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            if not line.startswith(_QUOTED):
                yield Text(line)
                continue
            room = max(20, options.max_width - len(_QUOTED))
            for part in Text(line.removeprefix(_QUOTED)).wrap(console, room, overflow="fold"):
                yield Text.assemble((_QUOTED, "dim"), part)


class Argument:
    """What a tool is to be called with: several lines stand behind bars, so that none can pass for our question."""

    def __init__(self, name: str, value: object) -> None:
        self._name, self._value = clean_line(name), clean(str(value))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head = Text(f"{self._name}: ", "dim")
        if "\n" not in self._value:
            yield head + Text(self._value)
            return
        yield head
        yield Page("\n".join(_QUOTED + line for line in self._value.split("\n")))


class Diff:
    """A diff with every character of it: a line that is too long goes on behind a mark that no line begins with."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            first, *more = chop_cells(line.expandtabs(4), max(10, options.max_width - 2)) or [""]
            style = _DIFF.get(line[:1], "")
            yield Text(first, style, no_wrap=True)
            for part in more:
                yield Text.assemble(("↪ ", "dim"), (part, style), no_wrap=True)


class Excerpt:
    """The first and the last rows of what is long; how many are between them is said."""

    def __init__(self, console: Console, what: RenderableType, rows: int) -> None:
        lines = console.render_lines(what, pad=False)
        self.hidden = len(lines) - rows if len(lines) > rows else 0
        """Rows that are left out."""
        self._head, self._tail = lines[: (rows + 1) // 2] if self.hidden else lines, lines[-(rows // 2) :]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _rows(self._head)
        if self.hidden:
            yield Text(f"… {self.hidden:,} line{'s' * (self.hidden > 1)} …", "bold yellow")
            yield from _rows(self._tail)


def _rows(lines: list[list[Segment]]) -> Iterator[Segment]:
    for line in lines:
        yield from line
        yield Segment.line()
