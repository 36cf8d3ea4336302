"""A source that serves the skills of a workspace only in versions that the user approved or owns."""

import os
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple, TypeGuard

from skillshelf.errors import (
    ReferenceNotFoundError,
    ReferenceUnreadableError,
    SkillError,
    SkillUnreadableError,
    TrustError,
)
from skillshelf.files import NotPlainFile, Page, make_lock, mounts_below, split_below, system
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.skills import Diagnostic, Found, SkillDescriptor
from skillshelf.sources import ENVIRONMENT, SKILL_FILES, FolderSource, InFolder, NoteKey, Source, read_skill_folder
from skillshelf.trust._approvals import OwnRepository, Pending
from skillshelf.trust._other_content import find_file_trees, find_pending_folder
from skillshelf.trust._own import is_foreign
from skillshelf.trust._store import Trust
from skillshelf.trust._trees import (
    DiskState,
    Snapshot,
    SnapshotEntry,
    TreeCopy,
    hash_file,
    take_signature,
    take_snapshot,
)


class ServedVersion(NamedTuple):
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

    def __init__(self, inner: FolderSource) -> None:
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
                skill.on_disk = self._take(key, mounts)

    def _take(self, key: str, mounts: frozenset[str]) -> DiskState:
        return take_snapshot(self.root, key, mounts, partial(self._inner.has_file, key))

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
        skill.on_disk = self._take(key, mounts_below(self.root))
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


_DAMAGED = "its approved copy is missing or damaged; the user can review it with `skillshelf trust`"
_STAMP_DIGITS = 15
"""Digits of a tree's hash that make a stamp: 60 bits."""
_BROKEN = "its SKILL.md cannot be read as a skill right now; `skillshelf check` says why"


def choose_version(versions: Iterable[str], usable: Container[str]) -> str:
    """Return the version of a skill that the model may read, or an empty string if there is none.

    `versions` are hashes of content, the best first: the files on disk, the version served at the moment, and the one
    in use last, in this process or another. An empty hash is no version. `usable` has the trees that the user approved,
    and those in use in a repository of the user's own.
    """
    for tree in versions:
        if tree and tree in usable:
            return tree
    return ""


class UnreviewedFile(NamedTuple):
    """A file of a skill that the user has not approved as it is now."""

    skill: str
    folder: str
    """The skill's folder, below the workspace."""
    path: str
    """The file, below the skill's folder."""
    status: Literal["new", "changed"]
    """`new`: no version of the skill was approved."""

    def __str__(self) -> str:
        if self.status == "changed":
            return f"{self.path} changed since you approved the skill {self.skill!r}."
        return f"{self.path} belongs to the skill {self.skill!r}, which you have not approved."

    def as_json(self) -> dict[str, str]:
        """Return the file's fields for programs."""
        return {"skill": self.skill, "folder": self.folder, "path": self.path, "status": self.status}


def compare_with_approved(
    skill: str, folder: str, on_disk: Snapshot, approved: Snapshot | None
) -> Iterator[UnreviewedFile]:
    """Yield the files on disk that are not exactly as they were approved.

    If the folder could not be read as a whole, nothing is known about any of its files, and all known ones count.
    """
    if approved is None:
        for entry in on_disk.entries:
            yield UnreviewedFile(skill, folder, entry.path, "new")
        return

    present = approved.entries if on_disk.fault else on_disk.entries
    for entry in present:
        if on_disk.fault or approved.entry(entry.path) != entry:
            yield UnreviewedFile(skill, folder, entry.path, "changed")


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
                entries.add(entry._replace(path=path.removeprefix(prefix)))
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


class ServedSkill(NamedTuple):
    """A skill that the shelf has from a workspace."""

    name: str
    tree: str
    """The hash of the version that is served."""


class TrustedSource:
    """Wraps the source of a workspace. Skills are served from copies of approved versions, never from live files.

    In a repository that the user declared their own, each version on disk comes into use by itself as long as no agent
    is at work there.
    """

    def __init__(
        self, inner: FolderSource, trust: Trust, *, frozen_tree: Callable[[str], str] = lambda key: ""
    ) -> None:
        """`frozen_tree` returns the only tree that may be served at a key; empty if any approved one may."""
        self.name = inner.name
        self.root = inner.root
        self.uses_cache = inner.uses_cache
        self.trust = trust
        self.refusal = trust.refusal(inner.root)
        """Why nothing here can be approved; empty if it can."""
        self.own: OwnRepository | None = None
        """The record of the repository if the user declared it their own; None if it is one like any other."""
        self._frozen_tree = frozen_tree
        self._skills = SkillsOnDisk(inner)
        self._writes = AgentWrites(inner.root)
        self._usable: Collection[str] = ()
        """The trees that may be served: approved ones, and those in use because the repository is the user's own."""
        self._generation = -1
        self._lock = make_lock()

    # -- as a source --------------------------------------------------------------------------------------------------

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        with self._lock:
            self._skills.sweep(changed)
            self._read_record()
            self._use_own_content()
            return {**self._skills.take_notes(), **self._serve_changed()}

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        copy = self.find_copy(key)
        if copy is None:
            raise SkillUnreadableError(descriptor.name, _DAMAGED)
        file = os.path.basename(descriptor.location)
        try:
            return read(decode(copy.read(file, 0, MAX_FILE + 1).data)).instructions
        except (OSError, NotPlainFile, Unreadable):
            raise SkillUnreadableError(descriptor.name, _DAMAGED) from None

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        copy = self.find_copy(key)
        if copy is None:
            raise ReferenceUnreadableError(descriptor.name, path, _DAMAGED)
        try:
            return copy.read(path, offset, limit)
        except (FileNotFoundError, NotADirectoryError):
            raise ReferenceNotFoundError(descriptor.name, path, descriptor.references) from None
        except (OSError, NotPlainFile):
            raise ReferenceUnreadableError(descriptor.name, path, _DAMAGED) from None

    def find_copy(self, key: str) -> TreeCopy | None:
        """Return the copy that a skill is served from, or None if it is not intact. Notice changes on disk."""
        with self._lock:
            skill = self._skills.get(key)
            if skill is None or skill.serving is None:
                return None
            self._skills.check(key, skill)
            if skill.needs_check and self.own:
                # A sweep does not see that a reference changed, and the user's own apply at once.
                self._use_own_content()
                self._serve(key, skill)
                skill.needs_check = True  # the shelf learns of it at the next refresh
            if skill.serving is None or not skill.serving.copy.is_intact():
                skill.needs_check = True
                return None
            return skill.serving.copy

    # -- for the user -------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The skills that wait for the user's review: the model does not get them as they are now."""
        with self._lock:
            return self._list_unapproved(self._usable)

    def count_pending(self) -> int:
        """Return how many skills wait for the user's review. Unlike a refresh, this brings nothing into use."""
        with self._lock:
            self._skills.sweep()
            self._read_record()
            is_agent_at_work = self.own is not None and self.trust.is_agent_at_work(self.root)
            pending = self._list_unapproved(self._usable)
            if self.own is None or is_agent_at_work:
                return len(pending)
            return sum(1 for skill in pending if not self.own.applies(skill))

    @property
    def unapproved(self) -> tuple[Pending, ...]:
        """The skills that the user has not approved as they are now, even if they are in use as the user's own."""
        with self._lock:
            return self._list_unapproved(self._approved)

    def find_pending(self) -> tuple[Pending, ...]:
        """Return `pending`, with the approvals that another process has written meanwhile."""
        with self._lock:
            self._read_record()
            return self.pending

    @property
    def unusable(self) -> tuple[Diagnostic, ...]:
        """The errors in each SKILL.md that is not a usable skill. They quote the file: they are not for the model."""
        with self._lock:
            faults: list[Diagnostic] = []
            for _, skill in self._skills.present():
                if skill.reading and not skill.is_usable:
                    faults += [fault for fault in skill.reading.diagnostics if fault.severity == "error"]
            return tuple(faults)

    def unreviewed_files(self) -> tuple[UnreviewedFile, ...]:
        """Return the skills' files, as they are on disk now, that the user has not approved or confirmed."""
        with self._lock:
            files: list[UnreviewedFile] = []
            for key, skill in self._skills.present():
                on_disk = self._skills.check(key, skill)
                if on_disk.tree in self._usable or self._applies_unasked(key, skill):
                    continue
                name = skill.name_on_disk
                approved = None
                if skill.serving:
                    name = skill.serving.found.name
                    approved = skill.serving.copy.snapshot
                files += compare_with_approved(name or key, key, on_disk.snapshot, approved)
            return tuple(files)

    @property
    def gone(self) -> tuple[str, ...]:
        """The names of skills that were approved here and are no longer there."""
        with self._lock:
            approvals = self.trust.approvals
            names = []
            for key in approvals.places.get(self.root, {}):
                approval = approvals.trees.get(approvals.last(self.root, key))
                if approval and approval.kind == "skill" and not self._skills.is_present(key):
                    names.append(approval.name)
            return tuple(sorted(names))

    @property
    def served(self) -> Mapping[str, ServedSkill]:
        """The skills that the shelf has from here, by key."""
        with self._lock:
            served = {}
            for key, skill in self._skills.items():
                if skill.serving:
                    served[key] = ServedSkill(skill.serving.found.name, skill.serving.copy.tree)
            return served

    def approve(self, pending: Iterable[Pending]) -> None:
        """Approve skills exactly as they were shown; the next refresh serves them. Raises TrustError."""
        self.trust.approve(*pending)

    def revoke(self, key: str) -> tuple[str, ...]:
        """Withdraw the approval of every version of the skill at a place, here and elsewhere. Return their trees."""
        with self._lock:
            skill = self._skills.get_or_add(key)
            candidates = {*self.trust.approvals.history(self.root, key), skill.served_tree, skill.tree}
            trees = tuple(sorted(candidates & self.trust.approvals.kept_trees))
            skill.needs_check = True
            if trees:
                self.trust.revoke(trees)
            return trees

    # -- what the agent writes ----------------------------------------------------------------------------------------

    def is_reviewed(self, path: str | os.PathLike[str]) -> bool:
        """Return True if a file does not exist, or holds only what the user approved, allowed in sight, or wrote."""
        with self._lock:
            parts = split_below(self.root, path)
            if not parts or not os.path.lexists(f"{self.root}/{'/'.join(parts)}"):
                return True
            key = find_skill_of(self.root, parts)
            if key is None:
                return False
            try:
                entry = hash_file(self.root, "/".join(parts))
            except TrustError:
                return False
            prefix = f"{key}/" if key else ""
            in_skill = entry._replace(path="/".join(parts).removeprefix(prefix))
            skill = self._skills.get(key)
            return in_skill in self._writes.entries(key) or (skill is not None and in_skill in skill.served_entries)

    def approve_writes(self, written: Mapping[str, str]) -> tuple[str, ...]:
        """Approve the skills of files that the agent wrote, each with the whole change in the user's sight.

        `written` has the hash of the content that the user saw, by path. Call it before the reload. Returns the keys of
        the approved skills. A skill that also holds content the user has neither approved nor seen is not among them.
        Raises TrustError if the record cannot be written.
        """
        with self._lock:
            keys: set[str] = set()
            for path, sha256 in written.items():
                parts = split_below(self.root, path)
                if not parts:
                    continue
                self._writes.add("/".join(parts), sha256)
                key = find_skill_of(self.root, parts)
                if key is not None:
                    keys.add(key)
            return tuple(key for key in sorted(keys) if self._approve_written(key))

    def _approve_written(self, key: str) -> bool:
        """Approve a skill as it is now. Return False if the user has not seen all of it."""
        skill = self._skills.get_or_add(key)
        reviewed = {*self._writes.entries(key), *skill.served_entries}
        snapshot = take_snapshot(self.root, key, mounts_below(self.root)).snapshot
        if not snapshot.entries or not reviewed.issuperset(snapshot.entries):
            return False

        skill.needs_check = True
        content = Pending(
            root=self.root,
            key=key,
            name=skill.name_on_disk or key.rpartition("/")[2],
            snapshot=snapshot,
            location=f"{self._skills.path(key)}/SKILL.md",
            copy=skill.serving.copy if skill.serving else None,
            blocked=self.refusal,
        )
        self.trust.approve_write(content)
        return True

    @contextmanager
    def agent_at_work(self) -> Iterator[None]:
        """Let an agent change files while the block runs. In a repository of the user's own, they review the changes.

        Raises TrustError, before the block, if that cannot be recorded.
        """
        lock = self._lock_for_agent()
        try:
            yield
        finally:
            if lock is not None:
                system.close(lock)
                self._record_agent_changes()

    def _lock_for_agent(self) -> int | None:
        """Return the descriptor of a lock; None if the repository is not the user's own."""
        with self._lock:
            was_own = self.own is not None  # and is so again if the record just cannot be read right now
            self._read_record()
            if self.own is None and not was_own:
                return None
            try:
                before = self._find_content()
            except OSError as error:
                raise TrustError(f"{self.root} cannot be read: {error.strerror or error}.") from None
            return self.trust.lock_for_agent(self.root, before)

    def _record_agent_changes(self) -> None:
        """Have the user review what an agent changed that has ended or was killed."""
        # If that cannot be recorded, its lock file stays, and nothing comes into use until it can be.
        with self._lock, suppress(SkillError, OSError):
            self.trust.record_agent_changes(self.root, self._find_content)

    def _find_content(self) -> dict[str, str]:
        """Return the skills and the files of instructions as they are on disk now, by key, but none that is foreign."""
        self._skills.sweep()
        trees = find_file_trees(self.root)
        for key, skill in self._skills.present():
            self._skills.check(key, skill)
            if not self._is_foreign(key, skill):
                trees[key] = skill.tree
        return trees

    # -- deciding and carrying it out ---------------------------------------------------------------------------------

    def _read_record(self) -> None:
        """Bring the user's decisions up to date, including those made in other processes."""
        self.trust.refresh()
        self.own = self.trust.find_own(self.root)
        in_use = self.own.in_use.values() if self.own else ()
        self._usable = {*self._approved, *in_use}

    def _use_own_content(self) -> None:
        """In a repository of the user's own, bring into use what changed on disk."""
        if self.own is None:
            return
        self._record_agent_changes()
        self._read_record()
        if self.own is None:
            return

        content = []
        for key, skill in self._skills.present():
            if skill.tree not in self._usable and self._applies_unasked(key, skill):
                content.append(self._describe(key, skill))
        gone = [key for key, skill in self._skills.items() if skill.reading is None and key in self.own.in_use]
        if not content and not gone:
            return
        try:
            self.trust.use_own(self.root, *content, gone=gone)
        except TrustError:
            return  # the record cannot be written: they stay pending
        self._read_record()

    def _is_foreign(self, key: str, skill: SkillOnDisk) -> bool:
        entries = skill.on_disk.snapshot.entries if skill.on_disk else ()
        return is_foreign(self.root, key, [entry.path for entry in entries])

    def _applies_unasked(self, key: str, skill: SkillOnDisk) -> bool:
        """Return True if a skill comes into use without a question, because the repository is the user's own."""
        if self._frozen_tree(key) not in ("", skill.tree):
            return False
        return self.own is not None and self.own.applies(self._describe(key, skill))

    def _serve_changed(self) -> dict[str, Found | None]:
        """Decide again about changed skills, or about all if the record changed. Return the changes for the shelf."""
        is_record_new = self.trust.generation != self._generation
        self._generation = self.trust.generation
        changes: dict[str, Found | None] = {}
        approved_here: dict[str, str] = {}
        for key, skill in self._skills.items():
            if not skill.needs_check and not is_record_new:
                continue
            found = self._serve(key, skill)
            if found is not skill.reported:
                skill.reported = found
                changes[key] = found
            if skill.tree in self._approved:
                approved_here[key] = skill.tree
            if skill.reading is None:
                self._skills.remove(key)
        self.trust.note_places(self.root, approved_here)
        return changes

    def _serve(self, key: str, skill: SkillOnDisk) -> Found | None:
        """Bring the served copy of a skill in line with the decision. Return the skill for the shelf."""
        if skill.reading is None:
            skill.needs_check = False
            return None

        last_in_use = self.trust.approvals.last_in_use(self.root, key, self.own)
        frozen = self._frozen_tree(key)
        usable = {frozen}.intersection(self._usable) if frozen else self._usable
        tree = choose_version((skill.tree, skill.served_tree, last_in_use), usable)
        is_on_disk = bool(tree) and tree == skill.tree
        copy = self.trust.copy(tree) if tree else None
        if copy is None and is_on_disk:
            copy = self.trust.restore_copy(self._describe(key, skill))

        if copy is None:
            skill.serving = None
            skill.needs_check = is_on_disk
        else:
            skill.serving = ServedVersion(copy, self._read_copy(key, skill, copy))
            # Only usable skills come into use, so a copy that cannot be read as one is tried again.
            skill.needs_check = skill.serving.found.descriptor is None
        return self._found_for_shelf(key, skill)

    def _read_copy(self, key: str, skill: SkillOnDisk, copy: TreeCopy) -> Found:
        """Read a copy as a skill, unless it is the version that is served already.

        If the disk fails, the result has no skill, and the next refresh tries again.
        """
        known = skill.serving
        if known and known.copy.tree == copy.tree and known.found.descriptor:
            return known.found
        try:
            source = self.name
            if skill.reading and skill.reading.descriptor:
                source = skill.reading.descriptor.source
            found = read_skill_folder(copy.files, self._skills.path(key), source)
        except (OSError, NotPlainFile):
            return Found(None)
        # The copy has one and the same content for good, whatever the times of its files.
        return replace(found, stamp=int(copy.tree[:_STAMP_DIGITS], 16))

    def _found_for_shelf(self, key: str, skill: SkillOnDisk) -> Found | None:
        faults = self._known_faults(key, skill)
        if skill.serving is None:
            return Found(None, faults) if faults else None
        if faults:
            return skill.serving.found.as_last_good(faults)
        return skill.serving.found

    def _known_faults(self, key: str, skill: SkillOnDisk) -> tuple[Diagnostic, ...]:
        """Return the diagnostics about a broken SKILL.md that the user wrote, or the agent in the user's sight.

        Others do not reach the shelf: a diagnostic quotes the file, and the user has not approved its content.
        """
        if skill.reading is None or skill.on_disk is None or skill.is_usable:
            return ()
        is_own = self.own is not None and key not in self.own.to_review and not self._is_foreign(key, skill)
        written = self._writes.entries(key)
        if is_own or any(skill.on_disk.snapshot.entry(name) in written for name in SKILL_FILES):
            return skill.reading.diagnostics
        return ()

    # -- pending skills -----------------------------------------------------------------------------------------------

    @property
    def _approved(self) -> Collection[str]:
        """The trees that the user approved, as far as they count in this workspace."""
        return () if self.refusal else self.trust.approvals.trees.keys()

    def _list_unapproved(self, approved: Collection[str]) -> tuple[Pending, ...]:
        """Return the skills whose files are not among these trees, except for those neither usable nor served."""
        unapproved = []
        for key, skill in self._skills.present():
            is_skill = skill.serving is not None or bool(skill.name_on_disk)
            if skill.on_disk and skill.tree not in approved and is_skill:
                unapproved.append(self._describe(key, skill))
        return tuple(unapproved)

    def _describe(self, key: str, skill: SkillOnDisk) -> Pending:
        """Return a skill that is present, as it is on disk, as pending."""
        assert skill.reading is not None
        assert skill.on_disk is not None
        descriptor = skill.reading.descriptor
        if descriptor is None and skill.serving:
            descriptor = skill.serving.found.descriptor
        name = key
        location = f"{self._skills.path(key)}/SKILL.md"
        if descriptor:
            name = descriptor.name
            location = descriptor.location
        copy = None
        if skill.serving and skill.served_tree != skill.tree:
            copy = skill.serving.copy
        blocked = self.refusal or skill.on_disk.snapshot.fault
        if not blocked and not skill.is_usable:
            blocked = _BROKEN
        return Pending(
            root=self.root,
            key=key,
            name=name,
            snapshot=skill.on_disk.snapshot,
            location=location,
            copy=copy,
            blocked=blocked,
            by_agent=self.own is not None and key in self.own.to_review,
        )


_OF_OTHERS = ("project", "parent", ENVIRONMENT)
"""The sources whose skills come with a workspace or a package. The user's own skills need no review."""


def needs_review(source: Source) -> TypeGuard[FolderSource | TrustedSource]:
    """Return whether the agent uses the skills of a source only in versions that the user approved."""
    return isinstance(source, InFolder) and source.name in _OF_OTHERS


def find_pending_skill(source: Source, location: str, trust: Trust) -> Pending | None:
    """Return the skill at `location` as pending, or None if the agent uses it as it is now."""
    if not needs_review(source):
        return None
    if isinstance(source, TrustedSource):
        return next((pending for pending in source.find_pending() if pending.location == location), None)
    folder = os.path.dirname(location)
    key = "/".join(split_below(source.root, folder) or ())
    return find_pending_folder(folder, source.root, trust, partial(source.has_file, key))
