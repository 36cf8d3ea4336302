"""Printed tables: aligned and complete in a pipe, colored and fitted to the screen in a terminal."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.text._untrusted import clean_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable
    from rich.text import Text

_GAP = "  "
_MIN_CELLS = 8
"""A longer text that is cut to fewer cells says nothing."""


class Column(NamedTuple):
    title: str
    right: bool = False
    """Align the cells to the right, as for numbers."""
    style: str = ""


class Cell(NamedTuple):
    """A cell that needs more than plain text in the style of its column."""

    text: str
    style: str = ""
    """Used instead of the column's style."""
    mark: str = ""
    """Highlighted words in front of the text."""
    link: str = ""
    """An address, for tables on a page."""

    @property
    def full_text(self) -> str:
        if self.mark:
            return f"{self.mark} {self.text}"
        return self.text


class Table(NamedTuple):
    """Rows below a header, with an optional title above them and notes below."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[str | Cell]]
    notes: Sequence[str] = ()


def to_plain_lines(table: Table, *, cut_to: int | None = None) -> list[str]:
    """Return the table as lines of text, with every cell in full or, as in `to_rich`, cut to the width of a screen."""
    header = [clean_line(column.title) for column in table.columns]
    rows = [header]
    for row in table.rows:
        rows.append([cell.full_text for cell in _clean_cells(table, row)])

    longest = [max(_count_cells(row[index]) for row in rows) for index in range(len(table.columns))]
    widths = longest
    if cut_to is not None:
        widths = _fit_columns(longest, cut_to)
        rows = [cut for texts in rows for cut in _cut_row(texts, widths)]
    lines = []
    if table.title:
        lines.append(clean_line(table.title))
    for texts in rows:
        aligned = []
        for column, text, width in zip(table.columns, texts, widths, strict=False):
            padding = " " * (width - _count_cells(text))
            aligned.append(padding + text if column.right else text + padding)
        lines.append(_GAP.join(aligned).rstrip())
    lines.extend(clean_line(note) for note in table.notes)
    return lines


def _cut_row(texts: Sequence[str], widths: Sequence[int]) -> Iterator[list[str]]:
    """Yield a row cut to the columns, or the parts of a name that is wider than the screen."""
    from rich.cells import chop_cells

    from skillshelf.text.rendering import truncate_cells

    name, *others = texts
    if _count_cells(name) > widths[0]:
        for part in chop_cells(name, widths[0]):
            yield [part]
    else:
        yield [name, *map(truncate_cells, others, widths[1:])]


def to_rich(table: Table, *, cut_to: int | None = None) -> "RenderableType":
    """Return the table for a terminal. Imports rich.

    Long texts continue on further lines. If `cut_to` gives the width of the screen, a row takes one line instead: each
    column gets the space that those before it leave, longer texts end in `…`, and a column without room is left out.
    Only the first column is never cut: a name that is wider than the screen continues on the next line.
    """
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    if table.title:
        parts.append(Text(clean_line(table.title), "bold"))
    parts.append(_make_grid(table, cut_to))
    parts.extend(Text(clean_line(note), "dim") for note in table.notes)
    return Group(*parts)


def draw_bar(share: float, length: int) -> str:
    """Draw a bar that is `length` cells long for a share of 1.0, in steps of an eighth of a cell."""
    eighths = max(1, round(share * length * 8))
    whole, rest = divmod(eighths, 8)
    bar = "█" * whole
    if rest:
        bar += " ▏▎▍▌▋▊▉"[rest]
    return bar


def _make_grid(table: Table, cut_to: int | None) -> "RichTable":
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(box=None, padding=(0, len(_GAP), 0, 0), pad_edge=False, header_style="dim")
    rows = [_clean_cells(table, row) for row in table.rows]
    widths: Sequence[int | None] = [None] * len(table.columns)
    if cut_to is not None:
        titles = [Cell(clean_line(column.title)) for column in table.columns]
        longest = [max(_count_cells(cell.full_text) for cell in cells) for cells in zip(titles, *rows, strict=True)]
        widths = _fit_columns(longest, cut_to)
    for column, width in zip(table.columns, widths, strict=False):
        grid.add_column(
            Text(clean_line(column.title), no_wrap=cut_to is not None, overflow="ellipsis"),
            justify="right" if column.right else "left",
            overflow="fold",
            width=width,
        )
    for cells in rows:
        first, *others = cells[: len(widths)]
        grid.add_row(_make_text(first, wrap=True), *(_make_text(cell, wrap=cut_to is None) for cell in others))
    return grid


def _fit_columns(longest: Sequence[int], screen: int) -> list[int]:
    """Return the widths of the columns that have room on the screen, from those of their longest texts."""
    widths: list[int] = []
    room = screen
    for needed in longest:
        width = min(needed, room)
        if widths and width < min(needed, _MIN_CELLS):
            break
        widths.append(width)
        room -= width + len(_GAP)
    return widths


def _make_text(cell: Cell, *, wrap: bool) -> "Text":
    from rich.text import Text

    text = Text(no_wrap=not wrap, overflow="fold" if wrap else "ellipsis")
    if cell.mark:
        text.append(f"{cell.mark} ", "yellow")
    text.append(cell.text, cell.style)
    return text


def _count_cells(text: str) -> int:
    """Return the width of a text on a screen. Chinese, Japanese and Korean characters take two cells."""
    if text.isascii():
        return len(text)
    cells = 0
    for character in text:
        if unicodedata.combining(character):
            continue
        is_wide = unicodedata.east_asian_width(character) in ("W", "F")
        cells += 2 if is_wide else 1
    return cells


def _clean_cells(table: Table, row: Sequence[str | Cell]) -> list[Cell]:
    """Return the cells of a row on one line each, without control characters, in their final style."""
    cells = []
    for column, value in zip(table.columns, row, strict=True):
        if isinstance(value, Cell):
            cells.append(Cell(clean_line(value.text), value.style or column.style, clean_line(value.mark)))
        else:
            cells.append(Cell(clean_line(value), column.style))
    return cells
