"""Run `skillshelf chat` in tmux, a terminal that breaks lines anew when its window gets narrower."""

import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chats import terminal_environment
from prepared import SKILLSHELF

needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
_MAX_SECONDS = 60.0


class InTmux:
    """A chat in a window of tmux: `send` text or `press` keys, then `see` text on the screen."""

    def __init__(self) -> None:
        self._server = f"skillshelf-{uuid.uuid4().hex[:12]}"

    def send(self, text: str) -> None:
        self.run("send-keys", "-l", "--", text)

    def press(self, *keys: str) -> None:
        """Press keys by the names that tmux has for them: `Enter`, `Escape`, `C-c`."""
        self.run("send-keys", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self.run("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self) -> str:
        return self.run("capture-pane", "-p")

    def see(self, text: str) -> None:
        """Wait until the screen shows this text."""
        self._wait(lambda: text in self.screen(), f"{text!r} did not appear")

    def see_once(self, text: str) -> None:
        """Wait until this text is there once, on the screen and on everything that has left it at the top."""
        self._wait(lambda: self._all_lines().count(text) == 1, f"{text!r} is not there once")

    def _all_lines(self) -> str:
        return self.run("capture-pane", "-p", "-S", "-")

    def _wait(self, condition: Callable[[], bool], problem: str) -> None:
        """Wait: a look at the screen can come in the middle of a frame."""
        deadline = time.monotonic() + _MAX_SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"{problem}. The screen shows:\n{self._all_lines()}"
            time.sleep(0.05)

    def run(self, *command: str) -> str:
        """Run a command of tmux, and return its output."""
        tmux = ["tmux", "-f", "/dev/null", "-L", self._server, *command]
        return subprocess.run(
            tmux, env=terminal_environment(), capture_output=True, text=True, check=True, timeout=60
        ).stdout


@contextmanager
def chat_in_tmux(*options: str, cwd: Path, columns: int, rows: int) -> Iterator[InTmux]:
    """Start a chat in a window of this size. After the block, tmux is ended with everything in it."""
    chat = InTmux()
    size = ["-x", str(columns), "-y", str(rows)]
    command = shlex.join([*SKILLSHELF, "chat", *options])
    chat.run("new-session", "-d", *size, "-c", str(cwd), command)
    try:
        yield chat
    finally:
        chat.run("kill-server")
