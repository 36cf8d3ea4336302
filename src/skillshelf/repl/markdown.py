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
        self._live.update(Block(clean(self._tail), max(1, self._console.height - 2)), refresh=True)

    def _print(self, text: str) -> None:
        if self._live:
            self._live.stop()
            self._live = None
        if text.strip():
            self._console.print(Block(clean(text)))


class Block:
    """Markdown with one blank line after it and none before, so that what is printed piece by piece looks like one."""

    def __init__(self, text: str, last: int = 0) -> None:
        """`last`: only so many lines from the end, so that what is being said stays in sight."""
        self._text, self._last = text, last

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(Markdown(self._text), options, pad=False)
        while lines and _is_blank(lines[0]):
            del lines[0]
        while lines and _is_blank(lines[-1]):
            del lines[-1]
        for line in lines[-self._last :]:
            yield from line
            yield Segment.line()
        yield Segment.line()


def _is_blank(line: list[Segment]) -> bool:
    return not any(segment.text.strip() for segment in line)


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
