"""Files that the agent wrote while the user looked on: the user saw the whole change, and allowed it."""

import os
from contextlib import suppress
from dataclasses import replace

from skillshelf.errors import TrustError
from skillshelf.sources import SKILL_FILES
from skillshelf.trust._snapshot import SnapshotEntry, hash_file


class AgentWrites:
    """The files of a workspace that the agent wrote in this session in the user's sight, as it left them.

    Skills have several files, and the agent writes one at a time: a skill is approved when all of it has been seen.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._entries: dict[str, SnapshotEntry] = {}

    def add(self, path: str, sha256: str) -> None:
        """Record a file below the root, unless its content is no longer the one with this hash."""
        self._entries.pop(path, None)
        with suppress(TrustError):
            entry = hash_file(self._root, path)
            if entry.sha256 == sha256:
                self._entries[path] = entry

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
