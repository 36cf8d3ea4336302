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


def cut(text: str, width: int) -> str:
    """Shorten text to a number of cells. Wide characters take two, so nothing is pushed off the edge of the screen."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def cut_words(text: str, width: int) -> str:
    """Shorten text to one line, between words unless that would lose more than a third of the line."""
    short = cut(" ".join(text.split()), width)
    if not short.endswith("…"):
        return short

    whole_words = short.rpartition(" ")[0].rstrip(",;:.")
    if cell_len(whole_words) > width * 2 // 3:
        return f"{whole_words} …"
    return short
