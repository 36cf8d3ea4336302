"""What the agent wrote itself after the person confirmed the write: live in this process, nowhere else."""

import os
from dataclasses import replace

from skillshelf.errors import TrustError
from skillshelf.sources import SKILL_FILES
from skillshelf.trust._copies import Copy, SessionCopies
from skillshelf.trust._snapshot import Entry, look, look_at_file
from skillshelf.trust._store import Trust


class Grants:
    """Copies of skills in which every byte is approved already or came from a write that was confirmed.

    A confirmed write of one file says nothing of the others: in a skill that nobody has approved, it grants nothing.
    """

    def __init__(self, root: str, session: SessionCopies) -> None:
        self._root, self._session = root, session
        self._written: dict[str, Entry] = {}
        self._copies: dict[str, tuple[Copy, str]] = {}
        """By key: the copy, and the tree that was approved there when it was made."""

    def get(self, key: str) -> Copy | None:
        copy = self._copies[key][0] if key in self._copies else None
        return copy if copy and copy.is_intact() else None

    def forget(self, key: str) -> None:
        self._copies.pop(key, None)

    def recheck(self, trust: Trust) -> None:
        """What was granted on top of a version that is revoked since goes with it."""
        for key, (_, base) in list(self._copies.items()):
            if base and not trust.is_approved(base):
                self.forget(key)

    def wrote(self, path: str) -> None:
        """A confirmed write of this file, below the root."""
        try:
            self._written[path] = look_at_file(self._root, path)
        except TrustError:
            self._written.pop(path, None)

    def is_own(self, key: str, entry: Entry | None) -> bool:
        """Whether a file of the skill at a key is as a confirmed write left it."""
        return entry in self._written_in(key)

    def is_agreed(self, key: str, path: str, served: Copy | None) -> bool:
        """Whether a file below the root, in the skill at a key, is as it serves or as a confirmed write left it."""
        try:
            entry = look_at_file(self._root, path)
        except TrustError:
            return False
        inside = replace(entry, path=path.removeprefix(f"{key}/"))
        return inside in self._written_in(key) or inside in (served.snapshot.entries if served else ())

    def grant(self, key: str, served: Copy | None, base: str) -> bool:
        """Let the skill at a key serve as it is now; False where something in it is nobody's word."""
        snapshot = look(self._root, key).snapshot
        agreed = {*(served.snapshot.entries if served else ()), *self._written_in(key)}
        if not snapshot.entries or not agreed.issuperset(snapshot.entries):
            return False
        copy = self._session.make(self._root, key, snapshot)
        if copy:
            self._copies[key] = copy, base
        return copy is not None

    def _written_in(self, key: str) -> set[Entry]:
        prefix = f"{key}/" if key else ""
        return {
            replace(entry, path=path[len(prefix) :]) for path, entry in self._written.items() if path.startswith(prefix)
        }


def skill_holding(root: str, parts: list[str]) -> str | None:
    """The key of the skill that a path below the root belongs to, known or not: the outermost folder that is one."""
    # A workspace that is itself a skill keeps others in its dot-folders only.
    depths = [*range(1, len(parts)), 0]
    if len(parts) > 1 and parts[0][0] != ".":
        depths = list(range(len(parts)))
    for depth in depths:
        key = "/".join(parts[:depth])
        if any(os.path.isfile(f"{root}/{key}/{name}") for name in SKILL_FILES):
            return key
    return None
