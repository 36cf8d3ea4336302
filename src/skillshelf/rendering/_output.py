"""Text on its way to a terminal: cleaned, and cut to the cells that there are."""

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from skillshelf.text import clean


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
