"""Show skill text and answers with rich, with nothing hidden. Imported only for a terminal."""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
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


def markdown(text: str) -> Markdown:
    """Render Markdown so that the user sees all that a model would: no comment, target or definition is left out."""
    shown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parsed = parser.disable(["reference", "image"]).parse(clean(text.replace("\r\n", "\n")))
    _clean(parsed)
    shown.markup = text
    shown.parsed = parsed
    return shown


def _clean(tokens: Sequence[Token]) -> None:
    """Clean the parsed text, since Markdown can spell a hidden character as an entity (`&#8238;`).

    This happens before lines are broken by their width.
    """
    for token in tokens:
        token.content = clean(token.content)
        _clean(token.children or ())
