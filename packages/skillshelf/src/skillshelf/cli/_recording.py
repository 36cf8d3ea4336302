"""The demonstration: a recording of a conversation in the real interface, and how it is played."""

import json
import os
import select
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo.json")
_SECONDS_PER_KEY = 0.04
_SECONDS_PER_FRAME = 0.7
_SECONDS_PER_LINE = 0.15
_SECONDS_PER_QUESTION = 2.5


@dataclass(frozen=True, slots=True)
class Frame:
    """One thing that appeared on the screen."""

    kind: Literal["status", "typed", "shown", "asked"]
    """The line below the prompt, a line that the user typed, output, or a question that one key answers."""
    text: str
    """Plain text; output has the colors of a terminal."""


def read_recording() -> list[Frame]:
    with open(_FILE, encoding="utf-8") as file:
        return [Frame(**frame) for frame in json.load(file)]


class Playback:
    """Plays frames on a terminal at reading pace, or at once in a pipe."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._is_fast = not console.is_terminal

    def play(self, frames: Sequence[Frame]) -> None:
        """Show all frames. A key skips the pauses, `q` leaves."""
        with _single_keys():
            for frame in frames:
                if not self._show(frame):
                    return

    def _show(self, frame: Frame) -> bool:
        """Show a frame and pause. Return False if the user leaves."""
        from rich.text import Text

        if frame.kind == "status":
            self._console.print(Text(frame.text, "dim"))
            return self._pause(_SECONDS_PER_FRAME)
        if frame.kind == "asked":
            self._console.print(Text(frame.text), end=" ")
            return self._pause(_SECONDS_PER_QUESTION)
        if frame.kind == "typed":
            return self._type(frame.text)
        for line in frame.text.splitlines():
            shown = Text.from_ansi(line)
            shown.rstrip()
            self._console.print(shown)
        return self._pause(_SECONDS_PER_FRAME + _SECONDS_PER_LINE * frame.text.count("\n"))

    def _type(self, text: str) -> bool:
        from rich.text import Text

        self._console.print(Text("› ", "bold"), end="")
        for char in text:
            self._console.print(Text(char), end="")
            if not self._pause(_SECONDS_PER_KEY):
                return False
        self._console.print()
        return self._pause(_SECONDS_PER_FRAME)

    def _pause(self, seconds: float) -> bool:
        """Wait for a key. Return False if it is `q`."""
        if self._is_fast or not sys.stdin.isatty():
            return True
        readable, _, _ = select.select([sys.stdin], [], [], seconds)
        if not readable:
            return True
        keys = os.read(sys.stdin.fileno(), 1024)
        self._is_fast = True
        return b"q" not in keys.lower()


@contextmanager
def _single_keys() -> Iterator[None]:
    """Read keys without Enter and without showing them. Ctrl+C still interrupts."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin, termios.TCSADRAIN)  # a key that was pressed before this counts
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
