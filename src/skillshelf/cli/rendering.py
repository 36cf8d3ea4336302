"""Rich text. Imported for a terminal only."""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment
from rich.text import Text

from skillshelf.characters import clean
from skillshelf.cli.cells import Cell, Column

_GAP = "  "


class Cleaned:
    """The last gate to the terminal: Markdown can spell a control or hidden character as an entity (`&#8238;`)."""

    def __init__(self, renderable: RenderableType) -> None:
        self.renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self.renderable, options):
            yield segment if segment.control else Segment(clean(segment.text), segment.style)


def cut(text: str, width: int) -> str:
    """At most so many cells of the screen: wide characters count double, so nothing is pushed off its edge."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…"


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


def markdown(text: str) -> Markdown:
    """Rendered so that a person sees all that a model would: no comment, target or definition is left out."""
    shown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    shown.markup, shown.parsed = text, parser.disable(["reference", "image"]).parse(clean(text.replace("\r\n", "\n")))
    return shown


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
