"""What goes to a terminal: cleaned, truncated to its cells, in a pager, and the page of a review in colours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from skillshelf.text._untrusted import clean

if TYPE_CHECKING:
    from skillshelf.trust import ReviewLine


class Cleaned:
    """The last gate to the terminal: no control or hidden character gets through, however it was rendered."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(clean(segment.text), segment.style)


def truncate_cells(text: str, width: int) -> str:
    """Return as much of a text as fits in so many cells of a terminal, ending in `…` if some is missing.

    Wide characters take two cells. For characters, use `text.truncate`.
    """
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…"


_QUESTION_ROWS = 6


def fits_screen(console: Console, content: RenderableType) -> bool:
    """Return True if a text and a question below it fit on the screen."""
    rows = console.render_lines(content, console.options.update(height=None), pad=False)
    return len(rows) <= console.height - _QUESTION_ROWS


def show_in_pager(console: Console, content: RenderableType) -> None:
    """Show a long text in PAGER, less or more, until the user closes it. If there is none of them, print it."""
    os.environ.setdefault("LESS", "-R")  # otherwise less shows the codes of colours
    with console.pager(styles=True):
        console.print(Cleaned(content))


_STYLES = {
    "title": "bold",
    "fact": "dim",
    "warning": "yellow",
    "heading": "bold",
    "risk": "bold yellow",
    "file": "bold cyan",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
    "note": "yellow",
}
_MIN_CELLS = 20


class ReviewPage:
    """The lines of a review. A line that is too long goes on after its margin or bar.

    So no part of a skill's text stands where our own words do.
    """

    def __init__(self, lines: Sequence[ReviewLine]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            if not line.text and not line.margin:
                yield Text()
                continue
            style = _STYLES.get(line.kind, "")
            width = max(_MIN_CELLS, options.max_width - len(line.margin))
            for part in Text(line.text, style).wrap(console, width, overflow="fold"):
                yield Text.assemble((line.margin, "dim"), part, no_wrap=True)
