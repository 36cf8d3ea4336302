"""What reaches a terminal, a pipe or a program. Whoever made a string, it is cleaned here before it leaves."""

import os
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

from skillshelf.text import clean, to_json

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class Output:
    """Rich text for a terminal, plain text for a pipe, JSON for a program. rich is imported for a terminal only."""

    def __init__(self, *, color: bool = True) -> None:
        self.terminal = sys.stdout.isatty()
        self._color = color

    @cached_property
    def console(self) -> "Console":
        from rich.console import Console

        # Skill text is never markup, and nothing in it is to be coloured by guess.
        return Console(no_color=None if self._color else True, markup=False, emoji=False, highlight=False)

    def write(self, text: str) -> None:
        """Plain text."""
        sys.stdout.write(clean(text))

    def text(self, text: str = "") -> None:
        """Plain text and a line's end."""
        sys.stdout.write(clean(text) + "\n")

    def styled(self, text: str, style: str = "", indent: int = 0) -> None:
        """A paragraph that is coloured and wrapped at words on a terminal."""
        if not self.terminal:
            self.text(" " * indent + text)
            return
        from rich.padding import Padding
        from rich.text import Text

        self.show(Padding(Text(clean(text), style), (0, 0, 0, indent), expand=False))

    def shorten(self, text: str, lines: int) -> str:
        """Cut to so many lines of the terminal; a pipe gets all of it."""
        if not self.terminal:
            return text
        from skillshelf.rendering import cut

        return cut(text, lines * (self.console.width - 8))

    def show(self, renderable: "RenderableType", **options: Any) -> None:
        """On a terminal only: what rich makes of it."""
        from skillshelf.rendering import Cleaned

        self.console.print(Cleaned(renderable), **options)

    def json(self, value: Any) -> None:
        """Escaped down to printable ASCII, so that it can be looked at in a terminal too."""
        sys.stdout.write(to_json(value, indent=2) + "\n")


def complain(text: str) -> None:
    """For the person, beside what a pipe carries away."""
    sys.stdout.flush()
    sys.stderr.write(clean(text) + "\n")


def relative(path: str) -> str:
    """A path as a person here would type it: from the current folder on where it lies below."""
    here = os.path.realpath(os.curdir)
    if path == here:
        return "."
    return path[len(here) + 1 :] if path.startswith(here.rstrip("/") + "/") else path


def shown_path(path: str) -> str:
    """`relative`, on one line and clean: a line break in a name is written out, so that the path can be found."""
    return clean(relative(path)).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def positive(text: str) -> int:
    """An argument that must be a number above 0; argparse makes wrong use of what raises."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
