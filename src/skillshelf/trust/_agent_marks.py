"""Marks of agents at work: files that say in which repository an agent is changing files right now.

Content that comes into use unasked must not be an agent's. So nothing does while a mark of the repository is there, in
any process. A mark is locked as long as its agent works; one that is there without a lock was left by an agent that was
killed, and whatever it changed is not known.
"""

import hashlib
import os
import secrets
from contextlib import suppress
from typing import Literal

from skillshelf.files import make_private_folders, system, try_lock

AgentState = Literal["idle", "at work", "killed"]
"""`killed`: no agent works there, and one of them left its mark behind."""

_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class AgentMark:
    """A mark that this process has set."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = system.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
        try_lock(self._fd)

    def remove(self) -> None:
        """Take the mark away. Raises OSError."""
        with suppress(FileNotFoundError):
            system.unlink(self._path)

    def release(self) -> None:
        """Give up the lock. A mark that was not removed counts as that of a killed agent from now on."""
        system.close(self._fd)


class AgentMarks:
    """The marks in a folder of the trust store. Call these methods with the lock of the store held."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def set(self, root: str) -> AgentMark:
        """Mark a repository. Raises OSError."""
        make_private_folders(self._folder)
        return AgentMark(f"{self._folder}/{_prefix(root)}{secrets.token_hex(8)}")

    def any(self, root: str) -> bool:
        """Return True if there is a mark of a repository, whether or not its agent lives. Raises OSError."""
        return bool(self._names(root))

    def find_state(self, root: str) -> AgentState:
        """Return the state of the agents in a repository. Raises OSError."""
        state: AgentState = "idle"
        for name in self._names(root):
            if self._is_locked(name):
                return "at work"
            state = "killed"
        return state

    def remove_abandoned(self, root: str) -> None:
        """Remove the marks of agents that were killed. Raises OSError."""
        for name in self._names(root):
            if not self._is_locked(name):
                system.unlink(f"{self._folder}/{name}")

    def _names(self, root: str) -> list[str]:
        try:
            names = system.listdir(self._folder)
        except FileNotFoundError:
            return []
        return [name for name in names if name.startswith(_prefix(root))]

    def _is_locked(self, name: str) -> bool:
        try:
            fd = system.open(f"{self._folder}/{name}", _OPEN)
        except FileNotFoundError:
            return False
        try:
            return not try_lock(fd)
        finally:
            system.close(fd)


def _prefix(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:32] + "-"
