"""Output to a terminal, a pipe or another program. All text is cleaned here, wherever it comes from."""

import os
import sys
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from skillshelf.sources.workspace import relative, workspace_around
from skillshelf.text import clean, to_json
from skillshelf.text.tables import Cell, Column, Table, to_plain_lines, to_rich

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Output:
    """Standard output: rich text in a terminal, plain text in a pipe. rich is imported only for a terminal."""

    def __init__(self) -> None:
        self.is_terminal = sys.stdout.isatty()

    @cached_property
    def console(self) -> "Console":
        from rich.console import Console

        # The text of a skill is never markup, and rich must not guess at colors for it.
        return Console(markup=False, emoji=False, highlight=False)

    def write(self, text: str) -> None:
        """Write plain text as it is."""
        sys.stdout.write(clean(text))

    def print(self, text: str = "") -> None:
        """Write plain text and a line feed."""
        sys.stdout.write(clean(text) + "\n")

    def print_styled(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print a paragraph, which a terminal shows in color and wrapped between words."""
        if not self.is_terminal:
            self.print(" " * indent + text)
            return
        from rich.padding import Padding
        from rich.text import Text

        self.print_rich(Padding(Text(clean(text), style), (0, 0, 0, indent), expand=False))

    def print_table(self, columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]], indent: int = 0) -> None:
        """Print a table: cut to the width of a terminal, in full in a pipe."""
        table = Table("", columns, rows)
        if not self.is_terminal:
            for line in to_plain_lines(table):
                self.print(" " * indent + line)
            return
        from rich.padding import Padding

        grid = to_rich(table, cut_to=self.console.width - indent)
        self.print_rich(Padding(grid, (0, 0, 0, indent), expand=False))

    def print_paged_table(self, columns: Sequence[Column], rows: Sequence[Sequence[str | Cell]], summary: str) -> None:
        """Print a table and a line about it. On a terminal, a table longer than the screen goes to the user's pager."""
        if self.is_terminal and len(rows) >= self.console.height:
            from rich.text import Text

            from skillshelf.text.rendering import show_in_pager

            # A rich table of 10,000 rows takes 2.2 s, and these lines 0.6.
            lines = to_plain_lines(Table("", columns, rows), cut_to=self.console.width)
            show_in_pager(self.console, Text("\n".join(lines), no_wrap=True))
        else:
            self.print_table(columns, rows)
            self.print()
        self.print_styled(summary, "dim")

    def print_rich(self, renderable: "RenderableType") -> None:
        """Print a rich object, without its control characters. For terminals only."""
        from skillshelf.text.rendering import Cleaned

        self.console.print(Cleaned(renderable))

    def print_paged(self, whole: "RenderableType", short: "RenderableType") -> None:
        """Show a rich object on a terminal: in a pager if it is long, with the short form left on the screen."""
        from skillshelf.text.rendering import fits_screen, show_in_pager

        if fits_screen(self.console, whole):
            self.print_rich(whole)
            return
        show_in_pager(self.console, whole)
        self.print_rich(short)

    def print_json(self, value: Any) -> None:
        """Print JSON with everything but printable ASCII escaped, so that a terminal can show it too."""
        sys.stdout.write(to_json(value, indent=2) + "\n")


def complain(text: str) -> None:
    """Print a message to standard error, after the output so far."""
    sys.stdout.flush()
    sys.stderr.write(clean(text) + "\n")


def path_in_repository(path: str) -> str:
    """Return the path below the root of the workspace, which a service such as GitHub expects."""
    root = workspace_around(os.path.realpath(os.curdir)).root
    return path.removeprefix(root.rstrip("/") + "/")


def shown_path(path: str) -> str:
    """Return the relative path on one line. A line break in it is written as its code, so that it can be found."""
    return clean(relative(path)).replace("\n", "<U+000A>").replace("\t", "<U+0009>")
