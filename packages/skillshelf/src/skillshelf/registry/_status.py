"""Compare installed skills with their lock."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Literal, NamedTuple

from skillshelf.errors import RegistryError
from skillshelf.files import NotPlainFile, NotPrivate, make_private_folders, read_private, replace_file
from skillshelf.registry._installation import Installation
from skillshelf.registry._lock import LockedSkill, SkillsLock, parse_lock, read_lock_bytes
from skillshelf.registry._transaction import is_interrupted
from skillshelf.trust import DiskState, Snapshot, take_signature, take_snapshot

_MAX_KNOWN = 4 * 1024 * 1024


class Difference(NamedTuple):
    """A file that is not as the lock pins it."""

    path: str
    change: Literal["added", "removed", "changed", "mode"]
    """`mode`: it became executable, or is no longer."""


class SkillStatus(NamedTuple):
    """A skill on disk, compared with the lock."""

    skill: LockedSkill
    state: Literal["same", "edited", "missing"]
    tree: str = ""
    """The hash of the files on disk; empty if they are missing or could not be read as a whole."""
    differences: tuple[Difference, ...] = ()
    fault: str = ""
    """Why the folder could not be read as a whole."""

    @property
    def name(self) -> str:
        return self.skill.name


def compare(installation: Installation, lock: SkillsLock) -> list[SkillStatus]:
    """Hash every file of every locked skill, compare them with the lock, and remember those that are the same."""
    states = {name: take_snapshot(installation.folder, name) for name in lock.skills}
    remember(installation, lock, states)
    return [_compare_skill(installation, skill, states[name]) for name, skill in lock.skills.items()]


def _compare_skill(installation: Installation, skill: LockedSkill, state: DiskState) -> SkillStatus:
    now = state.snapshot
    if now.fault and not os.path.lexists(f"{installation.folder}/{skill.name}"):
        return SkillStatus(skill, "missing")
    if now.fault:
        return SkillStatus(skill, "edited", fault=now.fault)
    if state.tree == skill.tree:
        return SkillStatus(skill, "same", state.tree)
    return SkillStatus(skill, "edited", state.tree, tuple(find_differences(skill.snapshot, now)))


def find_differences(locked: Snapshot, now: Snapshot) -> Iterator[Difference]:
    """Yield the files that are not as they were, in order of their paths."""
    before = {entry.path: entry for entry in locked.entries}
    after = {entry.path: entry for entry in now.entries}
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            yield Difference(path, "removed")
        elif path not in before:
            yield Difference(path, "added")
        elif before[path]._replace(executable=after[path].executable) != after[path]:
            yield Difference(path, "changed")
        elif before[path] != after[path]:
            yield Difference(path, "mode")


# -- what is known from the last time ----------------------------------------------------------------------------------


class Known(NamedTuple):
    """What this machine found when it last compared the skills with the lock, so that an unchanged one costs little."""

    lock: str = ""
    """The hash of the lock's bytes."""
    skills: Mapping[str, tuple[str, int | None]] = {}
    """By name, for each locked skill: its tree in the lock, and the signature of the same files on disk, if known."""
    trees: frozenset[str] = frozenset()
    """All trees that were installed here: a folder with one of them has no edits of the user."""
    left: frozenset[str] = frozenset()
    """The names that only an earlier lock has, and whose folders are still there."""

    def is_current(self, lock: bytes) -> bool:
        """Return True if the lock is the one that was compared."""
        return bool(self.lock) and hash_lock(lock) == self.lock

    def is_same(self, installation: Installation, name: str) -> bool:
        """Return True if a skill's files have not changed since they were found to be as in the lock."""
        signature = self.skills[name][1]
        return signature is not None and take_signature(installation.folder, name) == signature


def hash_lock(lock: bytes) -> str:
    return hashlib.sha256(lock).hexdigest()


def load_known(installation: Installation) -> Known:
    """Return what is known from the last time; nothing if that cannot be read."""
    with suppress(OSError, NotPlainFile, NotPrivate, ValueError, TypeError, KeyError, RegistryError):
        plain = json.loads(read_private(f"{installation.state}/known.json", _MAX_KNOWN))
        skills = {name: (tree, signature) for name, (tree, signature) in plain["skills"].items()}
        return Known(plain["lock"], skills, frozenset(plain["trees"]), frozenset(plain["left"]))
    return Known()


def remember(installation: Installation, lock: SkillsLock, states: Mapping[str, DiskState]) -> None:
    """Remember which skills are as in the lock. If that cannot be written, the next time costs more."""
    known = load_known(installation)
    skills: dict[str, tuple[str, int | None]] = {}
    installed = set(known.trees)
    for name, skill in lock.skills.items():
        state = states.get(name)
        signature = None
        if state and state.tree == skill.tree:
            if not skill.upstream:
                installed.add(skill.tree)
            # The times of files that changed just now may not show the next change.
            signature = None if state.is_fresh else state.signature
        skills[name] = (skill.tree, signature)
    before = (known.skills.keys() | known.left) - skills.keys()
    left = frozenset(name for name in before if os.path.lexists(f"{installation.folder}/{name}"))
    data = read_lock_bytes(installation.lock_path)
    now = Known(hash_lock(data), skills, frozenset(installed), left)
    if now == known:
        return
    plain = {"lock": now.lock, "skills": skills, "trees": sorted(now.trees), "left": sorted(left)}
    with suppress(OSError, RegistryError):
        make_private_folders(installation.state)
        replace_file(f"{installation.state}/known.json", json.dumps(plain).encode())


def read_pinned_trees(installation: Installation) -> tuple[dict[str, str], dict[str, int | None]]:
    """Return by name the tree that the lock pins, and the signature of the files that were found to be the same.

    What is known from the last time saves parsing the lock. Raises SkillsLockError.
    """
    data = read_lock_bytes(installation.lock_path)
    known = load_known(installation)
    if known.is_current(data):
        trees = {name: tree for name, (tree, _) in known.skills.items()}
        return trees, {name: signature for name, (_, signature) in known.skills.items()}
    lock = parse_lock(data, installation.lock_path)
    return {name: skill.tree for name, skill in lock.skills.items()}, {}


def count_same(installation: Installation) -> int | None:
    """Hash every file of every locked skill. Return the number of skills if all are as the lock pins them.

    None if `compare` has to tell, as with a lock that is new here: parsing one of 200 skills takes 26 of 47 ms.
    """
    data = read_lock_bytes(installation.lock_path)
    known = load_known(installation)
    if not data or not known.is_current(data):
        return None
    for name, (tree, signature) in known.skills.items():
        # Without a signature, there is something left to remember.
        if signature is None or take_snapshot(installation.folder, name).tree != tree:
            return None
    return len(known.skills)


def is_in_sync(installation: Installation, lock: bytes) -> bool:
    """Return True if nothing has changed since all skills were found to be as in the lock. Reads no file of theirs."""
    known = load_known(installation)
    if not known.is_current(lock) or known.left or is_interrupted(installation):
        return False
    return all(known.is_same(installation, name) for name in known.skills)
