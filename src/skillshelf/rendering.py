"""Skill text and answers as rich text, with nothing hidden. Imported for a terminal only."""

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markdown import Markdown
from rich.segment import Segment

from skillshelf.text import clean


class Cleaned:
    """The last gate to the terminal: whatever was rendered, no control or hidden character gets through."""

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


def cut_words(text: str, width: int) -> str:
    """The same, on one line and between words; amid one that is longer than a third of it."""
    short = cut(" ".join(text.split()), width)
    head = short.rpartition(" ")[0].rstrip(",;:.") if short.endswith("…") else ""
    return f"{head} …" if cell_len(head) > width * 2 // 3 else short


def markdown(text: str) -> Markdown:
    """Rendered so that a person sees all that a model would: no comment, target or definition is left out."""
    shown = Markdown("", code_theme="ansi_dark", hyperlinks=False)
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parsed = parser.disable(["reference", "image"]).parse(clean(text.replace("\r\n", "\n")))
    _clean(parsed)
    shown.markup, shown.parsed = text, parsed
    return shown


def _clean(tokens: Sequence[Token]) -> None:
    """Markdown can spell a hidden character as an entity (`&#8238;`). Here, before lines are broken by their width."""
    for token in tokens:
        token.content = clean(token.content)
        _clean(token.children or ())
