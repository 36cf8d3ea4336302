"""Tables and bars for a terminal. Imported for a terminal only."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from skillshelf.cli._cells import Cell, Column
from skillshelf.rendering import cut

_GAP = "  "


def lay_out(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], width: int) -> Text:
    """Lines no wider than the screen; the last column takes what the others leave."""
    widths = [min(max(cell_len(row[at].whole) for row in rows), width // 3) for at in range(len(columns) - 1)]
    widths.append(max(8, width - sum(widths) - len(_GAP) * len(widths)))
    return Text("\n").join(_line(columns, row, widths) for row in rows)


def bar(value: float, cells: int) -> str:
    """A bar of so many cells for 1.0, in eighths of a cell."""
    eighths = round(min(1.0, value) * cells * 8)
    rest = eighths % 8
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[rest] if rest else "" if eighths else "▏")


def _line(columns: Sequence[Column], row: Sequence[Cell], widths: Sequence[int]) -> Text:
    line = Text()
    for at, (column, cell, width) in enumerate(zip(columns, row, widths, strict=True)):
        text = cut(cell.whole, width)
        space = " " * (width - cell_len(text))
        line.append(_GAP if at else "")
        line.append(space if column.right else "")
        line.append(text[: len(cell.mark)], "yellow")
        line.append(text[len(cell.mark) :], cell.style)
        line.append("" if column.right or at == len(widths) - 1 else space)
    return line
