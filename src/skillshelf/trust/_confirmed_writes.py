"""What the agent wrote itself in this session, after the user confirmed each write."""

import os
from dataclasses import replace

from skillshelf.errors import TrustError
from skillshelf.sources import SKILL_FILES
from skillshelf.trust._snapshot import SnapshotEntry, hash_file


class ConfirmedWrites:
    """The files of a workspace that the agent wrote with the user's permission, as it left them.

    A confirmed write of one file says nothing about the other files of its skill.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._entries: dict[str, SnapshotEntry] = {}

    def add(self, path: str) -> None:
        """Record a file below the root as it is now. A file that cannot be read counts as not written."""
        try:
            self._entries[path] = hash_file(self._root, path)
        except TrustError:
            self._entries.pop(path, None)

    def entries(self, key: str) -> set[SnapshotEntry]:
        """Return the files of the skill at a key, with their paths in the skill."""
        prefix = f"{key}/" if key else ""
        entries = set()
        for path, entry in self._entries.items():
            if path.startswith(prefix):
                entries.add(replace(entry, path=path.removeprefix(prefix)))
        return entries


def find_skill_of(root: str, parts: list[str]) -> str | None:
    """Return the key of the skill that a path below the root belongs to: of the outermost folder that is one."""
    depths = [*range(1, len(parts)), 0]
    # A workspace that is itself a skill has other skills in its dot-folders only.
    if len(parts) > 1 and not parts[0].startswith("."):
        depths = list(range(len(parts)))
    for depth in depths:
        key = "/".join(parts[:depth])
        if any(os.path.isfile(f"{root}/{key}/{name}") for name in SKILL_FILES):
            return key
    return None
