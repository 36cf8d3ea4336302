"""The skills of a workspace as they are on disk: their readings, their snapshots, and when to take new ones."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from skillshelf.descriptor import Found
from skillshelf.files import mounts_below, split_below
from skillshelf.sources import DirectorySource, NoteKey
from skillshelf.trust._copies import TreeCopy
from skillshelf.trust._snapshot import DiskState, SnapshotEntry, take_signature, take_snapshot


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """The copy that a skill is served from, and the skill as it reads there."""

    copy: TreeCopy
    found: Found


@dataclass(slots=True)
class SkillOnDisk:
    """A skill of the workspace: its files on disk, and the version that is served."""

    reading: Found | None = None
    """The files on disk, read as a skill; None if the skill is not there."""
    on_disk: DiskState | None = None
    serving: ServedVersion | None = None
    reported: Found | None = None
    """The last version that the shelf was given."""
    needs_check: bool = False
    """True if the next refresh must take a new snapshot and decide again."""

    @property
    def is_usable(self) -> bool:
        """True if the files on disk are a skill now, and not a broken one whose last version stays in use."""
        return self.reading is not None and bool(self.reading.name) and not self.reading.is_last_good

    @property
    def name_on_disk(self) -> str:
        """The name that the files on disk give; empty if they give none."""
        if self.reading is None:
            return ""
        return self.reading.name

    @property
    def tree(self) -> str:
        """The hash of the files on disk; empty if they could not be read as a whole."""
        return self.on_disk.tree if self.on_disk else ""

    @property
    def served_tree(self) -> str:
        return self.serving.copy.tree if self.serving else ""

    @property
    def served_entries(self) -> tuple[SnapshotEntry, ...]:
        return self.serving.copy.snapshot.entries if self.serving else ()


class SkillsOnDisk:
    """The skills below a root, by key, kept up to date with the disk."""

    def __init__(self, inner: DirectorySource) -> None:
        self.root = inner.root
        self._inner = inner
        self._skills: dict[str, SkillOnDisk] = {}
        self._notes: dict[str, Found | None] = {}

    def sweep(self, changed: Collection[str] | None = None) -> None:
        """Look at the disk, and take a snapshot of each skill that may have changed. `changed`: look at these paths."""
        keys = self._keys_in_doubt(changed)
        for key, found in self._inner.refresh(changed).items():
            if isinstance(key, NoteKey):
                self._notes[key] = found
                continue
            skill = self.get_or_add(key)
            skill.reading = found
            if found is None:
                skill.on_disk = None
                skill.serving = None
            keys.add(key)

        mounts = mounts_below(self.root) if keys else frozenset()
        for key in keys:
            skill = self._skills[key]
            skill.needs_check = True  # until it is served, so that a fault on the way is made up for
            if skill.reading is not None:
                skill.on_disk = take_snapshot(self.root, key, mounts)

    def _keys_in_doubt(self, changed: Collection[str] | None) -> set[str]:
        """Return the known skills whose snapshot may be out of date."""
        keys = {key for key, skill in self._skills.items() if skill.needs_check}
        if changed is None:
            keys |= {key for key, skill in self._skills.items() if skill.on_disk and skill.on_disk.is_fresh}
        for path in changed or ():
            parts = split_below(self.root, path) or []
            for depth in range(len(parts) + 1):
                key = "/".join(parts[:depth])
                if self.is_present(key):
                    keys.add(key)
        return keys

    def check(self, key: str, skill: SkillOnDisk) -> DiskState:
        """Return the state of a skill's files. A new snapshot is taken if they may have changed since the last one."""
        known = skill.on_disk
        is_comparable = known is not None and known.signature is not None and not known.is_fresh
        if known and is_comparable and take_signature(self.root, key) == known.signature:
            return known
        skill.on_disk = take_snapshot(self.root, key, mounts_below(self.root))
        skill.needs_check = True
        return skill.on_disk

    def take_notes(self) -> dict[str, Found | None]:
        """Return the diagnostics about folders that changed since the last call."""
        notes = self._notes
        self._notes = {}
        return notes

    def get(self, key: str) -> SkillOnDisk | None:
        return self._skills.get(key)

    def get_or_add(self, key: str) -> SkillOnDisk:
        return self._skills.setdefault(key, SkillOnDisk())

    def remove(self, key: str) -> None:
        del self._skills[key]

    def is_present(self, key: str) -> bool:
        """Return True if there is a SKILL.md at this place, whether or not it is usable."""
        skill = self._skills.get(key)
        return skill is not None and skill.reading is not None

    def items(self) -> list[tuple[str, SkillOnDisk]]:
        """Return all skills, with those that have just gone, in the order of their keys."""
        return sorted(self._skills.items())

    def present(self) -> Iterator[tuple[str, SkillOnDisk]]:
        """Yield the skills that are there, in the order of their keys."""
        for key, skill in self.items():
            if skill.reading is not None:
                yield key, skill

    def path(self, key: str) -> str:
        return f"{self.root}/{key}" if key else self.root
