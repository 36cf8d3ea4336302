"""Run `skillshelf chat` as a process, on a pipe or on a terminal. Its model follows a script."""

import json
import os
import re
import select
import shlex
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyte

import prepared
from prepared import SKILLSHELF
from terminals import Child, set_size, start_on_terminal

_SYNCHRONIZED_UPDATE = 2026 << 5  # as pyte stores private modes
_OTHER_SCREEN = 1049
_QUESTION_ROWS = 6
"""A question stands above the prompt and the status line, and takes more rows in a narrow window."""
_SECONDS_TO_READ = 0.35
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")


def script(folder: Path, *steps: Any) -> str:
    """Return the name of a model that follows these steps."""
    path = folder / "script.json"
    path.write_text(json.dumps(steps))
    return f"script:{path}"


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool": name, "arguments": arguments}


def chat(*options: str, cwd: Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a chat without a terminal."""
    return prepared.run(["chat", *options], cwd=cwd, stdin=stdin)


def terminal_environment() -> dict[str, str]:
    """Return the environment without the size of another terminal, which parallel test runs inherit."""
    return {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}


class _Screen(pyte.Screen):
    """A screen with another one for programs that take all of it: what was there before comes back after them."""

    def set_mode(self, *modes: int, **options: Any) -> None:
        super().set_mode(*modes, **options)
        if _OTHER_SCREEN in modes:
            self._rows_before = {row: dict(cells) for row, cells in self.buffer.items()}
            self._cursor_before = (self.cursor.x, self.cursor.y)
            self.erase_in_display(2)

    def reset_mode(self, *modes: int, **options: Any) -> None:
        super().reset_mode(*modes, **options)
        if _OTHER_SCREEN in modes:
            self.erase_in_display(2)
            for row, cells in self._rows_before.items():
                self.buffer[row].update(cells)
            self.cursor.x, self.cursor.y = self._cursor_before


class OnTerminal:
    """A chat on a pseudo-terminal: `send` keys, then `expect` output."""

    def __init__(
        self,
        *options: str,
        cwd: Path,
        columns: int = 100,
        rows: int = 40,
        env: Mapping[str, str] | None = None,
        shell: Sequence[str] = (),
        is_fresh: bool = False,
    ) -> None:
        """Start a chat, from a `shell` if one is given. A fresh one is a child of this process."""
        environment = {**terminal_environment(), "TERM": "xterm-256color", **(env or {})}
        words = ["chat", *options]
        self._process: prepared.Process | Child
        self._screen = _Screen(columns, rows)
        if shell:
            pid, self.terminal = start_on_terminal(shell, environment, cwd=cwd, columns=columns, rows=rows)
            self._process = Child(pid)
            self.send(shlex.join([*SKILLSHELF, *words]) + "\n")
        else:
            self._process, self.terminal = prepared.start_on_terminal(
                words, environment, cwd=cwd, columns=columns, rows=rows, is_fresh=is_fresh
            )
        self.pid = self._process.pid
        self.raw = ""
        self._read_to = 0
        self._stream = pyte.ByteStream(self._screen)

    def send(self, keys: str) -> None:
        """Press keys. Like a user, read a question first: it takes no answer in its first moments."""
        rows = [row for row in self.screen().splitlines() if row]
        if any("[y]es" in row for row in rows[-_QUESTION_ROWS:]):
            time.sleep(_SECONDS_TO_READ)
        os.write(self.terminal, keys.encode())

    def expect(self, text: str, seconds: float = 60) -> str:
        """Wait for this text, and return the new output up to and including it, without escapes."""
        deadline = time.monotonic() + seconds
        while text not in (output := self._unread_output()):
            if time.monotonic() > deadline or not self._read(deadline):
                raise AssertionError(f"{text!r} did not appear. The terminal shows:\n{output}")
        end = output.index(text) + len(text)
        self._read_to += end
        return output[:end]

    def screen(self) -> str:
        """Return the screen as the user sees it now, without blanks at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def see(self, text: str, seconds: float = 60) -> str:
        """Wait until the screen shows this text, and return the screen."""
        self._wait_for_screen(lambda: text in self.screen(), f"{text!r} did not appear", seconds)
        return self.screen()

    def see_no(self, text: str, seconds: float = 60) -> str:
        """Wait until the screen shows this text no more, and return the screen."""
        self._wait_for_screen(lambda: text not in self.screen(), f"{text!r} did not go away", seconds)
        return self.screen()

    def see_idle(self) -> str:
        """Wait until the agent is ready, nothing is being worked on and the prompt is empty. Return the screen."""
        self._wait_for_screen(self._is_idle, "The chat is not idle", 60)
        return self.screen()

    def _is_drawing(self) -> bool:
        """Return True in the middle of a frame, when a part of the screen is missing."""
        return _SYNCHRONIZED_UPDATE in self._screen.mode

    def _is_idle(self) -> bool:
        lines = self.screen().splitlines()
        return "›" in lines and not any("Esc stops" in line or line == " starting…" for line in lines)

    def _wait_for_screen(self, condition: Callable[[], bool], problem: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._is_drawing() or not condition():
            if time.monotonic() > deadline or not self._read(deadline):
                raise AssertionError(f"{problem}. The screen shows:\n{self.screen()}")

    def settle(self, seconds: float = 0.7) -> str:
        """Return the output of the next seconds. A later `expect` begins after it."""
        deadline = time.monotonic() + seconds
        while self._read(deadline):
            pass
        output = self._unread_output()
        self._read_to += len(output)
        return output

    def wait_until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """Read output until the condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, (
                f"The condition never held. The terminal shows:\n{self._unread_output()}"
            )
            self._read(time.monotonic() + 0.05)

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size. The chat gets a signal."""
        self._screen.resize(rows, columns)
        set_size(self.terminal, columns, rows)

    def switch_echo_on(self) -> None:
        """Set the terminal up as another program leaves it: it echoes keys, and holds them back until Enter."""
        mode = termios.tcgetattr(self.terminal)
        mode[3] |= termios.ECHO | termios.ICANON
        termios.tcsetattr(self.terminal, termios.TCSANOW, mode)

    def local_flags(self) -> int:
        """Return the terminal's local modes, such as whether it echoes keys."""
        flags: int = termios.tcgetattr(self.terminal)[3]
        return flags

    def hang_up(self) -> int:
        """Close the window, and return the exit code."""
        os.close(self.terminal)
        return self._wait(time.monotonic() + 30)

    def end(self, seconds: float = 60) -> int:
        """Wait for the end of the chat, and return the exit code."""
        deadline = time.monotonic() + seconds
        while self._read(deadline):
            pass
        code = self._wait(deadline)
        os.close(self.terminal)  # not earlier: closing it would end the process by a signal
        return code

    def _wait(self, deadline: float) -> int:
        code = self._process.wait(deadline - time.monotonic())
        return -1 if code is None else code

    def _unread_output(self) -> str:
        return _ESCAPE.sub("", self.raw)[self._read_to :]

    def _read(self, deadline: float) -> bool:
        if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # Linux reports the closed end of the terminal this way
            return False
        # prompt_toolkit queries the position of the cursor, and waits for an answer.
        for _ in range(data.count(b"\x1b[6n")):
            os.write(self.terminal, b"\x1b[1;1R")
        self._stream.feed(data)
        self.raw += data.decode(errors="replace")
        return bool(data)
