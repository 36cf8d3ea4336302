"""Drive `skillshelf chat` on a terminal: send keys, and read the screen with its colours."""

import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pyte
from rich.style import Style
from rich.text import Text

from terminals import start_on_terminal

COMMAND = (sys.executable, "-m", "skillshelf", "chat")
_SECONDS_TO_READ = 0.35
DIM = 2
NAMES = {"brown": "yellow", "brightblack": "bright_black", "default": None}


@contextmanager
def chat(*words: str, columns: int, rows: int) -> "Iterator[Session]":
    """Start a chat in the current folder, and end it with the block."""
    session = Session(*words, columns=columns, rows=rows)
    try:
        yield session
    finally:
        session.end()


class Session:
    """A running chat: `send` presses keys, `expect` waits until the screen shows a text."""

    def __init__(self, *words: str, columns: int, rows: int) -> None:
        # A text that doesn't fit on the screen goes through the pager: here it has no keys of its own.
        environment = {**os.environ, "TERM": "xterm-256color", "MANPAGER": "cat", "PAGER": "cat"}
        self.pid, self._terminal = start_on_terminal(
            [*COMMAND, *words], environment, cwd=Path.cwd(), columns=columns, rows=rows
        )
        self._screen = _Screen(columns, rows, self._terminal)
        self._stream = pyte.ByteStream(self._screen)

    def send(self, keys: str) -> None:
        """Press keys. A question takes no answer before it can have been read."""
        if any("[y]es" in row for row in self._screen.display):
            time.sleep(_SECONDS_TO_READ)
        os.write(self._terminal, keys.encode())

    def expect(self, text: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while text not in "\n".join(self._screen.display):
            if time.monotonic() > deadline or not self._read(1):
                raise AssertionError(f"{text!r} did not appear:\n" + "\n".join(self._screen.display))

    def wait_until(self, is_ready: Callable[[list[Text]], bool], seconds: float = 60) -> list[Text]:
        """Return the screen as soon as it is ready, or as it is when the time is up."""
        deadline = time.monotonic() + seconds
        while not is_ready(self.lines()) and time.monotonic() < deadline:
            self._read(1)
        return self.lines()

    def settle(self) -> list[Text]:
        """Return the screen after it has stood still for a second."""
        while self._read(1, wait=False):
            pass
        return self.lines()

    def lines(self) -> list[Text]:
        """Return the screen without the blank lines at its end."""
        rows = [self._screen.row(at) for at in range(self._screen.lines)]
        while rows and not rows[-1].plain.strip():
            rows.pop()
        return rows

    def end(self) -> None:
        self.send("\x03\x04")
        while self._read(5, wait=False):
            pass
        os.close(self._terminal)
        os.waitpid(self.pid, 0)

    def _read(self, seconds: float, wait: bool = True) -> bool:
        if not select.select([self._terminal], [], [], seconds)[0]:
            return wait
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux: the other end was closed
            return False
        self._stream.feed(data)
        return bool(data)


class _Screen(pyte.Screen):
    """A screen that knows dim text, which pyte does not: it is stored as blinking, which we never use."""

    def __init__(self, columns: int, rows: int, terminal: int) -> None:
        super().__init__(columns, rows)
        self._terminal = terminal

    def write_process_input(self, data: str) -> None:
        os.write(self._terminal, data.encode())

    def select_graphic_rendition(self, *attrs: int, **keywords: bool) -> None:
        super().select_graphic_rendition(*attrs, **keywords)
        if DIM in _without_colors(attrs):
            self.cursor.attrs = self.cursor.attrs._replace(blink=True)
        elif 22 in attrs:
            self.cursor.attrs = self.cursor.attrs._replace(blink=False)

    def row(self, at: int) -> Text:
        cells = [self.buffer[at][column] for column in range(self.columns)]
        while cells and cells[-1] == self.default_char:
            cells.pop()
        line = Text()
        for style, run in groupby(cells, _style):
            line.append("".join(cell.data for cell in run), style)
        return line


def _style(cell: pyte.screens.Char) -> Style:
    return Style(
        color=_color(cell.fg),
        bgcolor=_color(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
        dim=cell.blink,
    )


def _without_colors(attributes: tuple[int, ...]) -> list[int]:
    """Return the attributes without the numbers that define a colour."""
    remaining = list(attributes)
    others: list[int] = []
    while remaining:
        attribute = remaining.pop(0)
        if attribute in (38, 48) and remaining:
            is_palette = remaining[0] == 5
            del remaining[: 2 if is_palette else 4]
        else:
            others.append(attribute)
    return others


def _color(name: str) -> str | None:
    if len(name) == 6 and not set(name) - set("0123456789abcdef"):
        return f"#{name}"
    return NAMES.get(name, name.replace("bright", "bright_"))


# -- a workspace for pictures ------------------------------------------------------------------------------------------

SKILL = """\
---
name: release-notes
description: Write release notes from merged changes. Use when asked for release notes.
---

1. Read `merged.txt`: the changes since the last release.
2. Leave out changes that users won't notice.
3. Write `NOTES.md` in the style of `references/style.md`.
"""
STYLE = "Breaking changes first. One line per change, in the present tense.\n"
MERGED = "#41 dark mode\n#43 rename a helper\n#44 drop Python 3.9\n"
OWN = ("incident-runbook", "pdf-forms", "sql-review")


def fresh_clone(skills: Path) -> None:
    """Turn the current folder into a small repository with one skill; the user has more skills at home."""
    for name in os.listdir("."):
        if os.path.isdir(name):
            shutil.rmtree(name)
        else:
            os.unlink(name)
    folder = Path(".agents/skills/release-notes")
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "references" / "style.md").write_text(STYLE)
    Path("merged.txt").write_text(MERGED)
    for path in skills.rglob("SKILL.md"):
        if path.parent.name in OWN:
            shutil.copytree(path.parent, Path.home() / ".agents" / "skills" / path.parent.name)
