"""A long text on the whole screen, to be read page by page."""

import os
import re
import select
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from skillshelf.rendering._output import Cleaned, cut

_KEY = re.compile(r"\x1b(?:\[[0-9;]*[~A-Za-z]|O[A-Z])?|.", re.S)
_PAGE_DOWN = {" ", "f", "\x06", "\x1b[6~"}
_PAGE_UP = {"b", "\x02", "\x1b[5~"}
_LINE_DOWN = {"\r", "\n", "j", "\x1b[B", "\x1bOB"}
_LINE_UP = {"k", "y", "\x1b[A", "\x1bOA"}
_TOP = {"g", "<", "\x1b[H", "\x1bOH", "\x1b[1~"}
_END = {"G", ">", "\x1b[F", "\x1bOF", "\x1b[4~"}
_CLOSE = {"q", "Q", "\x1b", "\x03", "\x04"}
_HINT = "space next · b back · q close"
_OPEN_SCREEN = "\x1b[?1049h\x1b[?25l"
_CLOSE_SCREEN = "\x1b[?25h\x1b[?1049l"
_QUESTION_ROWS = 6
_TICK_SECONDS = 0.2
"""How soon a new size of the window is noticed, and the end of the program."""


def can_page() -> bool:
    """Return True if there is a terminal to turn pages on."""
    is_dumb = os.environ.get("TERM", "dumb") == "dumb"
    return sys.__stdin__ is not None and sys.__stdin__.isatty() and not is_dumb


def fits_screen(console: Console, content: RenderableType) -> bool:
    """Return True if a text and a question below it fit on the screen."""
    rows = console.render_lines(content, console.options.update(height=None), pad=False)
    return len(rows) <= console.height - _QUESTION_ROWS


def show_pages(console: Console, content: RenderableType, title: str, stop: threading.Event | None = None) -> bool:
    """Show a text until the user closes it, or `stop` is set. Return True if its end was on the screen.

    The text is drawn on a screen of its own, and nothing of it stays behind. Keys pressed before it appeared are
    ignored.
    """
    pages = _Pages(console, content, title)
    with _whole_screen() as terminal:
        while not (stop and stop.is_set()):
            pages.draw(terminal)
            keys = terminal.read_keys()
            if keys is None or not _CLOSE.isdisjoint(keys):
                break
            for key in keys:
                pages.press(key)
    return pages.was_at_end


class _Pages:
    """The rows of a text, and those of them on the screen."""

    def __init__(self, console: Console, content: RenderableType, title: str) -> None:
        self._console = console
        self._content = Cleaned(content)
        self._title = title
        self._rows: list[list[Segment]] = []
        self._size = os.terminal_size((0, 0))
        self._top = 0
        self._drawn: tuple[int, os.terminal_size] | None = None
        self.was_at_end = False

    @property
    def _height(self) -> int:
        return max(1, self._size.lines - 1)

    @property
    def _last_top(self) -> int:
        return max(0, len(self._rows) - self._height)

    def press(self, key: str) -> None:
        page = max(1, self._height - 1)  # a row of the last page stays in sight
        top = self._top
        if key in _PAGE_DOWN:
            top += page
        elif key in _PAGE_UP:
            top -= page
        elif key in _LINE_DOWN:
            top += 1
        elif key in _LINE_UP:
            top -= 1
        elif key in _TOP:
            top = 0
        elif key in _END:
            top = self._last_top
        self._top = max(0, min(top, self._last_top))

    def draw(self, terminal: "_WholeScreen") -> None:
        self._lay_out(terminal.size())
        if self._drawn == (self._top, self._size):
            return
        self._drawn = (self._top, self._size)
        rows = self._rows[self._top : self._top + self._height]
        self.was_at_end = self.was_at_end or self._top >= self._last_top

        lines = [self._to_ansi(Segments(row)) for row in rows]
        lines += ["~"] * (self._height - len(rows))
        bar = cut(self._describe_position(), self._size.columns)
        lines.append(self._to_ansi(Text(bar.ljust(self._size.columns), "reverse")))
        terminal.write("\x1b[H" + "\r\n".join(f"\x1b[K{line}" for line in lines))

    def _lay_out(self, size: os.terminal_size) -> None:
        """Break the text into rows. After a change of the width, the same part of it stays in sight."""
        if size == self._size:
            return
        if size.columns != self._size.columns:
            before = max(1, len(self._rows))
            options = self._console.options.update(width=size.columns, height=None)
            self._rows = self._console.render_lines(self._content, options, pad=False)
            self._top = self._top * len(self._rows) // before
        self._size = size
        self._top = min(self._top, self._last_top)

    def _describe_position(self) -> str:
        last = min(self._top + self._height, len(self._rows))
        end = " (end)" if self._top >= self._last_top else ""
        return f" {self._title} · lines {self._top + 1}–{last} of {len(self._rows):,}{end} · {_HINT}"

    def _to_ansi(self, content: RenderableType) -> str:
        with self._console.capture() as capture:
            self._console.print(content, end="", soft_wrap=True)
        return capture.get().rstrip("\n")


class _WholeScreen:
    """The terminal while the pager has it."""

    def __init__(self, keys: int, screen: int) -> None:
        self._keys = keys
        self._screen = screen

    def size(self) -> os.terminal_size:
        with suppress(OSError):
            size = os.get_terminal_size(self._screen)
            if size.columns and size.lines:
                return size
        return os.terminal_size((80, 24))

    def write(self, text: str) -> None:
        data = text.encode(errors="replace")
        with suppress(OSError):  # it was closed
            while data:
                data = data[os.write(self._screen, data) :]

    def read_keys(self) -> list[str] | None:
        """Return the keys that were pressed, after a while also none. Return None if the terminal was closed."""
        try:
            readable, _, _ = select.select([self._keys], [], [], _TICK_SECONDS)
            if not readable:
                return []
            data = os.read(self._keys, 1024)
        except OSError:
            return None
        return _KEY.findall(data.decode(errors="ignore")) if data else None


@contextmanager
def _whole_screen() -> Iterator[_WholeScreen]:
    """Take the terminal, and leave it as it was."""
    assert sys.__stdin__ is not None
    assert sys.__stdout__ is not None
    keys = sys.__stdin__.fileno()
    terminal = _WholeScreen(keys, sys.__stdout__.fileno())
    sys.stdout.flush()
    before = termios.tcgetattr(keys)
    mode = termios.tcgetattr(keys)
    mode[0] &= ~(termios.ICRNL | termios.IXON)
    mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
    mode[6][termios.VMIN] = 1
    mode[6][termios.VTIME] = 0
    try:
        termios.tcsetattr(keys, termios.TCSAFLUSH, mode)  # which drops earlier keys
        terminal.write(_OPEN_SCREEN)
        yield terminal
    finally:
        terminal.write(_CLOSE_SCREEN)
        with suppress(termios.error):  # it was closed
            termios.tcsetattr(keys, termios.TCSAFLUSH, before)
