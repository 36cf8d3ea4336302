"""A folder of skills that is compared with its skills.lock whenever it is read."""

import os
from collections.abc import Collection, Mapping
from contextlib import suppress

from skillshelf.errors import RegistryError, SkillUnreadableError
from skillshelf.files import Page, file_stamp, system
from skillshelf.registry._installation import SKILLS_FOLDER, Installation, project_installation, user_installation
from skillshelf.skills import Diagnostic, Found, SkillDescriptor
from skillshelf.sources import DirectorySource, NoteKey

_WHY = "its files are not those that skills.lock pins"
_FIX = "`skillshelf verify` names them; `skillshelf sync --yes` gives the edits up"


class LockedSource(DirectorySource):
    """Reports each skill that is not as its lock pins it. Without a lock, that costs one system call.

    A skill that differs is still offered, with the diagnostic `lock-mismatch`. With `frozen`, loading it fails.
    """

    def __init__(
        self, root: str | os.PathLike[str], name: str = "", *, cache: bool = True, frozen: bool = False
    ) -> None:
        super().__init__(root, name, cache=cache)
        self._frozen = frozen
        self._installation = _find_installation(self.root)
        self._lock_stamp: tuple[int, ...] = ()
        self._trees: Mapping[str, str] = {}
        """The tree that the lock pins, by name."""
        self._signatures: dict[str, int | None] = {}
        """By name, of the files that were compared last; None if only their bytes can tell."""
        self._mismatched: set[str] = set()

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        changes = super().refresh(changed)
        if self._installation is None:
            return changes
        notes = self._read_lock(self._installation) if self._has_new_lock(self._installation) else {}
        notes |= self._compare(self._installation)
        return {**changes, **notes} if notes else changes

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        self._refuse_mismatch(key, descriptor)
        return super().instructions(key, descriptor)

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        self._refuse_mismatch(key, descriptor)
        return super().reference(key, descriptor, path, offset, limit)

    def frozen_tree(self, key: str) -> str:
        """Return the only tree that may be served of the skill at a key; empty if any may."""
        name = os.path.basename(key)
        if not self._frozen or self._installation is None or self._key(self._installation, name) != key:
            return ""
        return self._trees.get(name, "")

    def _refuse_mismatch(self, key: str, descriptor: SkillDescriptor) -> None:
        name = os.path.basename(key)
        if self._installation and self.frozen_tree(key) and self._differs(self._installation, name):
            raise SkillUnreadableError(descriptor.name, _WHY)

    def _has_new_lock(self, installation: Installation) -> bool:
        try:
            stamp = file_stamp(system.stat(installation.lock_path, follow_symlinks=False))
        except OSError:
            stamp = ()
        is_new = stamp != self._lock_stamp
        self._lock_stamp = stamp
        return is_new

    def _read_lock(self, installation: Installation) -> dict[str, Found | None]:
        """Read the lock, or what is known of it from the last time that it was compared. Return changed diagnostics."""
        from skillshelf.registry._status import read_pinned_trees

        notes: dict[str, Found | None] = {self._note_key(name): None for name in self._mismatched}
        notes[NoteKey("/lock")] = None
        self._mismatched.clear()
        self._trees = {}
        self._signatures = {}
        if self._lock_stamp:
            try:
                self._trees, self._signatures = read_pinned_trees(installation)
            except RegistryError as error:
                note = Diagnostic("warning", "lock-unusable", str(error), installation.lock_path)
                notes[NoteKey("/lock")] = Found(None, (note,))
        return notes

    def _compare(self, installation: Installation) -> dict[str, Found | None]:
        """Compare all locked skills with the lock. Return the diagnostics that are new, and None for those over."""
        notes: dict[str, Found | None] = {}
        for name in self._trees:
            is_mismatched = self._differs(installation, name)
            if is_mismatched and name not in self._mismatched:
                path = f"{installation.folder}/{name}/SKILL.md"
                note = Diagnostic("warning", "lock-mismatch", _WHY, path, fix=_FIX)
                notes[self._note_key(name)] = Found(None, (note,))
                self._mismatched.add(name)
            elif not is_mismatched and name in self._mismatched:
                notes[self._note_key(name)] = None
                self._mismatched.discard(name)
        return notes

    def _differs(self, installation: Installation, name: str) -> bool:
        """Return True if a skill is there and not as the lock pins it. Its files are hashed if their times changed."""
        from skillshelf.trust import take_signature, take_snapshot

        known = self._signatures.get(name)
        if known is not None and take_signature(installation.folder, name) == known:
            return name in self._mismatched
        if not os.path.lexists(f"{installation.folder}/{name}"):
            return False
        state = take_snapshot(installation.folder, name)
        self._signatures[name] = None if state.is_fresh else state.signature
        return state.tree != self._trees[name]

    def _key(self, installation: Installation, name: str) -> str:
        return os.path.relpath(f"{installation.folder}/{name}", self.root)

    def _note_key(self, name: str) -> NoteKey:
        return NoteKey(f"/lock/{name}")


def _find_installation(root: str) -> Installation | None:
    """Return the installed skills of a folder: of a workspace or its skills folder, or the user's own."""
    with suppress(RegistryError):
        own = user_installation()
        if own.folder == root:
            return own
    with suppress(RegistryError):
        return project_installation(root.removesuffix(f"/{SKILLS_FOLDER}"))
    return None
