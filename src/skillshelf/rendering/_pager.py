"""Long texts on the whole screen, to be read page by page."""

import os
import re
import select
import signal
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from skillshelf.rendering._output import Cleaned, truncate_cells

_KEY = re.compile(r"\x1b(?:\[[0-9;]*[~A-Za-z]|O[A-Z])?|.", re.S)
_PAGE_DOWN = {" ", "f", "\x06", "\x1b[6~"}
_PAGE_UP = {"b", "\x02", "\x1b[5~"}
_LINE_DOWN = {"\r", "\n", "j", "\x1b[B", "\x1bOB"}
_LINE_UP = {"k", "y", "\x1b[A", "\x1bOA"}
_TOP = {"g", "<", "\x1b[H", "\x1bOH", "\x1b[1~"}
_END = {"G", ">", "\x1b[F", "\x1bOF", "\x1b[4~"}
_EARLIER_TEXT = {"\x0f", "\x1b[D", "\x1bOD"}
_LATER_TEXT = {"\x1b[C", "\x1bOC"}
_SUSPEND = "\x1a"
_CLOSE = {"q", "Q", "\x1b", "\x03", "\x04"}
_HINT = "space next · b back · q close"
_HINT_FOR_SEVERAL = "← → others · space next · q close"
_MIN_TITLE_CELLS = 12
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


@dataclass(frozen=True, slots=True)
class LongText:
    """A text for the pager."""

    title: str
    content: RenderableType


def show_pages(console: Console, texts: Sequence[LongText], stop: threading.Event | None = None) -> bool:
    """Show texts until the user closes them, or `stop` is set, beginning with the last one.

    Return True if the end of one was on the screen. The texts are drawn on a screen of their own, and nothing of them
    stays behind. Keys pressed before it appeared are ignored.
    """
    reader = _Reader(console, texts)
    with _whole_screen() as terminal:
        while not (stop and stop.is_set()):
            reader.draw(terminal)
            keys = terminal.read_keys()
            if keys is None or not _CLOSE.isdisjoint(keys):
                break
            if _SUSPEND in keys:
                terminal.suspend()
                reader.forget_drawing()
            for key in keys:
                reader.press(key)
    return reader.was_at_end


class _Reader:
    """Several texts, one of them on the screen."""

    def __init__(self, console: Console, texts: Sequence[LongText]) -> None:
        self._console = console
        self._texts = texts
        self._index = len(texts) - 1
        self._opened: dict[int, _Pages] = {}

    @property
    def was_at_end(self) -> bool:
        return any(pages.was_at_end for pages in self._opened.values())

    def press(self, key: str) -> None:
        if key in _EARLIER_TEXT:
            self._index = max(0, self._index - 1)
            self.forget_drawing()
        elif key in _LATER_TEXT:
            self._index = min(len(self._texts) - 1, self._index + 1)
            self.forget_drawing()
        else:
            self._pages.press(key)

    def draw(self, terminal: "_WholeScreen") -> None:
        self._pages.draw(terminal)

    def forget_drawing(self) -> None:
        """Draw everything again: something else is on the screen."""
        self._pages.forget_drawing()

    @property
    def _pages(self) -> "_Pages":
        if self._index not in self._opened:
            text = self._texts[self._index]
            title = text.title
            hint = _HINT
            if len(self._texts) > 1:
                title = f"({self._index + 1} of {len(self._texts)}) {title}"
                hint = _HINT_FOR_SEVERAL
            self._opened[self._index] = _Pages(self._console, text.content, title, hint)
        return self._opened[self._index]


class _Pages:
    """The rows of a text, and those of them on the screen."""

    def __init__(self, console: Console, content: RenderableType, title: str, hint: str) -> None:
        self._console = console
        self._content = Cleaned(content)
        self._title = title
        self._hint = hint
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

    def forget_drawing(self) -> None:
        self._drawn = None

    def draw(self, terminal: "_WholeScreen") -> None:
        self._lay_out(terminal.size())
        if self._drawn == (self._top, self._size):
            return
        self._drawn = (self._top, self._size)
        rows = self._rows[self._top : self._top + self._height]
        self.was_at_end = self.was_at_end or self._top >= self._last_top

        lines = [self._to_ansi(Segments(row)) for row in rows]
        lines += ["~"] * (self._height - len(rows))
        bar = truncate_cells(self._describe_position(self._size.columns), self._size.columns)
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

    def _describe_position(self, columns: int) -> str:
        last = min(self._top + self._height, len(self._rows))
        end = " (end)" if self._top >= self._last_top else ""
        place = f"lines {self._top + 1:,}–{last:,} of {len(self._rows):,}{end} · {self._hint}"
        room = max(_MIN_TITLE_CELLS, columns - cell_len(place) - len("  · "))
        return f" {truncate_cells(self._title, room)} · {place}"

    def _to_ansi(self, content: RenderableType) -> str:
        with self._console.capture() as capture:
            self._console.print(content, end="", soft_wrap=True)
        return capture.get().rstrip("\n")


class _WholeScreen:
    """The terminal while the pager has it."""

    def __init__(self, keys: int, screen: int) -> None:
        self._keys = keys
        self._screen = screen
        self._mode_before = termios.tcgetattr(keys)

    def take(self) -> None:
        """Set the terminal up for pages. Keys pressed before are dropped."""
        mode = termios.tcgetattr(self._keys)
        mode[0] &= ~(termios.ICRNL | termios.IXON)
        mode[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
        mode[6][termios.VMIN] = 1
        mode[6][termios.VTIME] = 0
        termios.tcsetattr(self._keys, termios.TCSAFLUSH, mode)
        self.write(_OPEN_SCREEN)

    def give_back(self) -> None:
        """Leave the terminal as it was."""
        self.write(_CLOSE_SCREEN)
        with suppress(termios.error):  # it was closed
            termios.tcsetattr(self._keys, termios.TCSAFLUSH, self._mode_before)

    def suspend(self) -> None:
        """Stop the process and all others of its job, as Ctrl+Z does in other programs. It goes on from here."""
        self.give_back()
        os.kill(0, signal.SIGTSTP)
        time.sleep(_TICK_SECONDS)  # in a thread of its own, the pager runs on for a moment
        self.take()

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
    sys.stdout.flush()
    terminal = _WholeScreen(sys.__stdin__.fileno(), sys.__stdout__.fileno())
    try:
        terminal.take()
        yield terminal
    finally:
        terminal.give_back()
