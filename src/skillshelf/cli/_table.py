"""Columns: coloured and cut to the screen on a terminal, aligned and whole in a pipe."""

from collections.abc import Sequence

from skillshelf.cli._cells import Cell, Column
from skillshelf.cli._output import Output
from skillshelf.text import clean_line


def print_table(out: Output, columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]]) -> None:
    """The last column takes what the others leave of the screen."""
    cells = [[_cell(one, column) for one, column in zip(row, columns, strict=True)] for row in rows]
    header = [Cell(column.title, "dim") for column in columns]
    if out.terminal:
        from skillshelf.cli._rendering import lay_out

        out.show(lay_out(columns, [header, *cells], out.console.width), no_wrap=True, overflow="crop")
        return
    for line in _plain(columns, [header, *cells]):
        out.text(line)


def _cell(one: str | Cell, column: Column) -> Cell:
    text, style, mark = one if isinstance(one, Cell) else (one, column.style, "")
    return Cell(clean_line(text), style or column.style, mark)


def _plain(columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> list[str]:
    widths = [max(len(row[at].whole) for row in rows) for at in range(len(columns))]
    return [
        "  ".join(
            cell.whole.rjust(width) if column.right else cell.whole.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]
