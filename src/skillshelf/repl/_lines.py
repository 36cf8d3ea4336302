"""The lines that the user sent: they wait here for their turn, and a long paste in one of them is shown folded."""

import asyncio
import os
import re
from collections import deque
from dataclasses import dataclass

from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from skillshelf.files import make_private_folders, state_home

MAX_PASTED_LINES = 20
"""A paste of more lines is folded in the editor."""

_FOLDED = re.compile(r"\[pasted [\d,]+ lines(?: #\d+)?\]")


@dataclass(frozen=True, slots=True)
class Line:
    """A message or command as the user sent it."""

    text: str
    shown: str
    """The text as the editor showed it: with folded pastes."""


class LineQueue:
    """Lines that were sent and not answered yet, in order."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._changed = asyncio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._lines)

    def list_shown(self) -> list[str]:
        return [line.shown for line in self._lines]

    def put(self, line: Line) -> None:
        self._lines.append(line)
        self._changed.set()

    @property
    def is_at_end(self) -> bool:
        """True if no line waits and no more will come."""
        return self._is_closed and not self._lines

    def close(self) -> None:
        """Let `take` return None once the queue is empty."""
        self._is_closed = True
        self._changed.set()

    async def take(self) -> Line | None:
        """Wait for the next line. Return None if no more will come."""
        while not self._lines:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._lines.popleft()

    def take_back_last(self) -> str:
        """Remove the last line, and return it as the editor showed it."""
        return self._lines.pop().shown

    def take_back_all(self) -> list[str]:
        """Remove all lines, and return them as the editor showed them."""
        shown = self.list_shown()
        self._lines.clear()
        return shown


class Pastes:
    """Long pastes, each behind the words that stand for it in the editor."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold(self, text: str) -> str:
        """Return the text to insert for a paste: the paste itself, or the words that stand for a long one."""
        count = len(text.splitlines())
        if count <= MAX_PASTED_LINES:
            return text

        words = f"[pasted {count:,} lines]"
        number = 1
        while self._texts.get(words, text) != text:
            number += 1
            words = f"[pasted {count:,} lines #{number}]"
        self._texts[words] = text
        return words

    def unfold(self, shown: str) -> str:
        """Return the text with every paste in full."""
        return _FOLDED.sub(lambda words: self._texts.get(words[0], words[0]), shown)

    def find_end(self, shown: str) -> str:
        """Return the words for a paste at the end of this text, or an empty string."""
        return next((words for words in self._texts if shown.endswith(words)), "")


def open_history() -> History:
    """Return the lines of earlier sessions."""
    home = state_home()
    if home is None:
        return InMemoryHistory()
    try:
        make_private_folders(home)
        path = os.path.join(home, "history")
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
