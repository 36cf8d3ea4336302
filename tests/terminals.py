"""Programs on a pseudo-terminal."""

import fcntl
import os
import platform
import pty
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_READ_CALL = {"x86_64": "0", "aarch64": "63"}

PAGER = {"MANPAGER": "", "PAGER": "cat; printf '(end)'; read -r line < /dev/tty"}
"""A pager that shows everything at once, and is closed with Enter."""


def start_on_terminal(
    command: Sequence[str], environment: Mapping[str, str], *, cwd: Path, columns: int = 100, rows: int = 40
) -> tuple[int, int]:
    """Start a program on a terminal of this size. Return its process id and our end of the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        set_size(0, columns, rows)
        os.execve(command[0], list(command), dict(environment))
    return pid, terminal


class Child:
    """A process that was started here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._exit_code: int | None = None

    def wait(self, seconds: float) -> int | None:
        """Wait for the end, and return the exit code, or None if it still runs after so many seconds."""
        deadline = time.monotonic() + seconds
        while self._exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                break
            else:
                time.sleep(0.02)
        return self._exit_code


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Give a terminal this size. The programs on it get a signal if it is another one."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read_terminal(terminal: int) -> bytes:
    """Return what appeared, or nothing if the program has closed its end."""
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux reports that the other end was closed
        return b""


def wait_for_reader(pid: int, seconds: float = 60) -> None:
    """Wait until the process waits for its standard input: keys that it throws away before are gone by then."""
    if not sys.platform.startswith("linux"):
        time.sleep(0.5)
        return
    deadline = time.monotonic() + seconds
    while not _reads_standard_input(pid):
        assert time.monotonic() < deadline, "the program does not read its standard input"
        time.sleep(0.01)


def _reads_standard_input(pid: int) -> bool:
    """Return True if the process is in a read(2) of descriptor 0.

    The number counts: a tcflush just before the read is a call on descriptor 0 too, and throws keys away.
    """
    number, *arguments = Path(f"/proc/{pid}/syscall").read_text().split()
    return number == _READ_CALL[platform.machine()] and arguments[:1] == ["0x0"]
