"""The terminal between prompts: what is typed then is neither shown nor taken for an answer."""

import os
import re
import select
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?<]*[ -/]*[@-~]|O.|[^\x1b])?", re.S)
_MOST = 64 * 1024
"""Bytes that are kept of what was typed meanwhile."""


class Tty:
    """The terminal that the person types in."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keys are not echoed in the middle of an answer, and Ctrl+C still stops it. At the end it is as it was."""
        try:
            before = termios.tcgetattr(self._fileno)
        except termios.error:  # no terminal: nothing is echoed
            yield
            return
        try:
            self.hush()
            yield
        finally:
            with suppress(termios.error):  # it was closed
                termios.tcsetattr(self._fileno, termios.TCSANOW, before)

    def hush(self) -> None:
        """Switch the echo off; once more after a shell had the terminal meanwhile."""
        with suppress(termios.error):
            now = termios.tcgetattr(self._fileno)
            now[3] = now[3] & ~(termios.ECHO | termios.ICANON) | termios.ISIG
            now[6][termios.VMIN], now[6][termios.VTIME] = 1, 0
            termios.tcsetattr(self._fileno, termios.TCSANOW, now)

    def is_open(self) -> bool:
        """Whether the window is still there."""
        try:
            termios.tcgetattr(self._fileno)
        except termios.error:
            return False
        return True

    def take(self) -> str:
        """What was typed and nobody has read yet; it is read now."""
        data = b""
        with suppress(OSError):  # it was closed
            while len(data) < _MOST and select.select([self._fileno], [], [], 0)[0]:
                piece = os.read(self._fileno, 4096)
                if not piece:
                    break
                data += piece
        return data.decode(errors="ignore")


def as_text(keys: str) -> str:
    """Keys as the text that they would have made: no arrows, Backspace takes back, and the last Enter sends nothing."""
    text: list[str] = []
    for key in _ESCAPE.sub("", keys).replace("\r", "\n"):
        if key in "\x7f\b":
            del text[-1:]
        elif key.isprintable() or key == "\n":
            text.append(key)
    return "".join(text).strip("\n")
