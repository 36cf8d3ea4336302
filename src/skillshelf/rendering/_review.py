"""The page of a review, in colours."""

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from skillshelf.trust import ReviewLine

_STYLES = {
    "title": "bold",
    "fact": "dim",
    "warning": "yellow",
    "heading": "bold",
    "risk": "bold yellow",
    "file": "bold cyan",
    "added": "green",
    "removed": "red",
    "hunk": "cyan",
    "note": "yellow",
}
_MIN_CELLS = 20


class ReviewPage:
    """The lines of a review. A line that is too long goes on after its margin or bar.

    So no part of a skill's text stands where our own words do.
    """

    def __init__(self, lines: Sequence[ReviewLine]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines:
            if not line.text and not line.margin:
                yield Text()
                continue
            style = _STYLES.get(line.kind, "")
            width = max(_MIN_CELLS, options.max_width - len(line.margin))
            for part in Text(line.text, style).wrap(console, width, overflow="fold"):
                yield Text.assemble((line.margin, "dim"), part, no_wrap=True)
