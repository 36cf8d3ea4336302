"""What Python code prints while the footer is on the screen."""

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress


class PrintedOutput(io.TextIOBase):
    """Text printed while the footer is on the screen. The footer draws it above itself."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._pieces: list[str] = []
        self._lock = threading.Lock()  # libraries may log from a thread
        self._stdout = sys.stdout

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Take over what is printed by Python code while the block runs."""
        self._stdout = sys.stdout
        with redirect_stdout(self), redirect_stderr(self):
            yield

    def write(self, text: str) -> int:
        with self._lock:
            self._pieces.append(text)
        self._announce()
        return len(text)

    @property
    def has_lines(self) -> bool:
        return any("\n" in piece for piece in self._pieces)

    def take_lines(self) -> str:
        """Return the whole lines that were written; the rest of a line waits for its end."""
        with self._lock:
            text = "".join(self._pieces)
            lines, newline, rest = text.rpartition("\n")
            self._pieces = [rest] if rest else []
        return lines + newline

    def flush_rest(self) -> None:
        """Write what is left: the footer is gone."""
        rest = "".join(self._pieces)
        self._pieces = []
        with suppress(OSError, ValueError):  # the terminal was closed
            self._stdout.write(rest)
            self._stdout.flush()

    def isatty(self) -> bool:
        return self._stdout.isatty()

    def fileno(self) -> int:
        return self._stdout.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stdout.encoding
