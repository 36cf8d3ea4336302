"""Markdown as it comes: what is finished is printed for good, what is still being said is shown below it."""

import re

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment

from skillshelf.characters import clean

_FENCE = re.compile(r"^\s{0,3}(```+|~~~+)", re.M)


class MarkdownStream:
    """On a terminal, the paragraph that is being said is redrawn as it grows; elsewhere only whole ones are printed."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tail = ""
        self._live: Live | None = None

    def feed(self, text: str) -> None:
        self._tail += text
        done, self._tail = split_finished(self._tail)
        if done:
            self._print(done)
        if self._console.is_terminal and self._tail.strip():
            self._draw()

    def end(self) -> None:
        """Nothing more comes."""
        rest, self._tail = self._tail, ""
        self._print(rest)

    def _draw(self) -> None:
        if self._live is None:
            self._live = Live(console=self._console, transient=True, auto_refresh=False, vertical_overflow="crop")
            self._live.start()
        self._live.update(_Last(Markdown(clean(self._tail)), self._console.height - 2), refresh=True)

    def _print(self, text: str) -> None:
        if self._live:
            self._live.stop()
            self._live = None
        if text.strip():
            self._console.print(Markdown(clean(text)))
            self._console.print()


class _Last:
    """The last lines of something long, so that what is being said stays in sight."""

    def __init__(self, content: Markdown, lines: int) -> None:
        self._content, self._lines = content, max(1, lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self._content, options, pad=False)[-self._lines :]:
            yield from line
            yield Segment.line()


def split_finished(text: str) -> tuple[str, str]:
    """What can be rendered for good, up to the last blank line outside a fence, and the rest."""
    at = text.rfind("\n\n")
    while at > 0:
        if _is_closed(text[:at]):
            return text[: at + 2], text[at + 2 :]
        at = text.rfind("\n\n", 0, at)
    return "", text


def _is_closed(text: str) -> bool:
    open_with = ""
    for match in _FENCE.finditer(text):
        if not open_with:
            open_with = match[1]
        elif match[1].startswith(open_with):
            open_with = ""
    # A list goes on after a blank line: cut in two, its numbers would begin again.
    last = text.rstrip().rpartition("\n")[2]
    return not open_with and not re.match(r"\s*(?:[-*+]|\d+[.)])\s|\s{2,}\S", last)
