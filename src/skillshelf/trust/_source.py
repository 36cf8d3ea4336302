"""A source that serves the skills of a workspace only in versions that the user approved."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from skillshelf.descriptor import Diagnostic, Found, SkillDescriptor
from skillshelf.errors import ReferenceNotFoundError, ReferenceUnreadableError, SkillUnreadableError, TrustError
from skillshelf.files import NotPlainFile, Page, mounts_below, split_below
from skillshelf.locks import ForkSafeLock
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources import SKILL_FILES, DirectorySource, read_skill_folder
from skillshelf.trust._confirmed_writes import ConfirmedWrites, find_skill_of
from skillshelf.trust._copies import SessionCopies, TreeCopy
from skillshelf.trust._decision import Versions, choose_version
from skillshelf.trust._pending import Pending, UnreviewedFile, compare_with_approved
from skillshelf.trust._snapshot import DiskState, SnapshotEntry, hash_file, take_signature, take_snapshot
from skillshelf.trust._store import Trust

_DAMAGED = "its approved copy is missing or damaged; the user can review it with `skillshelf trust`"
_BROKEN = "its SKILL.md cannot be read as a skill right now; `skillshelf check` says why"


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """The copy that a skill is served from, and the skill as it reads there."""

    copy: TreeCopy
    found: Found


@dataclass(frozen=True, slots=True)
class SessionVersion:
    """A copy of what the agent wrote in this session, with the user's permission for each write."""

    copy: TreeCopy
    base: str
    """The tree that was approved at this place at that time; empty if there was none."""


@dataclass(slots=True)
class WorkspaceSkill:
    """A skill of the workspace: its files on disk, and the versions that may be served instead of them."""

    reading: Found | None = None
    """The files on disk, read as a skill; None if the skill is not there."""
    on_disk: DiskState | None = None
    serving: ServedVersion | None = None
    session: SessionVersion | None = None
    reported: Found | None = None
    """The last version that the shelf was given."""
    needs_check: bool = False
    """True if the next refresh must take a new snapshot and decide again."""

    def versions(self, last_approved: str) -> Versions:
        """Return the versions to choose from. A session copy that was damaged does not count."""
        in_session = ""
        if self.session and self.session.copy.is_intact():
            in_session = self.session.copy.tree
        return Versions(
            on_disk=self.on_disk.tree if self.on_disk else "",
            in_session=in_session,
            session_base=self.session.base if self.session else "",
            serving=self.serving.copy.tree if self.serving else "",
            last_approved=last_approved,
        )

    @property
    def serves_session_version(self) -> bool:
        return bool(self.session and self.serving and self.serving.copy is self.session.copy)

    @property
    def served_entries(self) -> tuple[SnapshotEntry, ...]:
        return self.serving.copy.snapshot.entries if self.serving else ()


class TrustedSource:
    """Wraps the source of a workspace. Skills are served from copies of approved versions, never from live files."""

    def __init__(self, inner: DirectorySource, trust: Trust) -> None:
        self.name = inner.name
        self.root = inner.root
        self.trust = trust
        self.refusal = trust.refusal(inner.root)
        """Why nothing here can be approved; empty if it can."""
        self._inner = inner
        self._skills: dict[str, WorkspaceSkill] = {}
        self._confirmed_writes = ConfirmedWrites(inner.root)
        self._session_copies = SessionCopies()
        self._generation = -1
        self._lock = ForkSafeLock()

    # -- as a source --------------------------------------------------------------------------------------------------

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        with self._lock:
            self.trust.refresh()
            notes: dict[str, Found | None] = {}
            keys = self._keys_to_check(changed)
            for key, found in self._inner.refresh(changed).items():
                if key.startswith("/"):  # a note about a folder, not a skill
                    notes[key] = found
                    continue
                skill = self._skills.setdefault(key, WorkspaceSkill())
                skill.reading = found
                if found is None:
                    skill.on_disk = None
                    skill.serving = None
                keys.add(key)
            return {**notes, **self._update(keys)}

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        copy = self._copy_to_read(key)
        if copy is None:
            raise SkillUnreadableError(descriptor.name, _DAMAGED)
        file = os.path.basename(descriptor.location)
        try:
            return read(decode(copy.read(file, 0, MAX_FILE + 1).data)).instructions
        except (OSError, NotPlainFile, Unreadable):
            raise SkillUnreadableError(descriptor.name, _DAMAGED) from None

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        copy = self._copy_to_read(key)
        if copy is None:
            raise ReferenceUnreadableError(descriptor.name, path, _DAMAGED)
        try:
            return copy.read(path, offset, limit)
        except (FileNotFoundError, NotADirectoryError):
            raise ReferenceNotFoundError(descriptor.name, path, descriptor.references) from None
        except (OSError, NotPlainFile):
            raise ReferenceUnreadableError(descriptor.name, path, _DAMAGED) from None

    # -- for the user -------------------------------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The skills that the user has not approved as they are now."""
        with self._lock:
            waiting = [self._pending(key, skill) for key, skill in self._present_skills()]
            return tuple(pending for pending in waiting if pending)

    def find_pending(self) -> tuple[Pending, ...]:
        """Return `pending`, with the approvals that another process has written meanwhile."""
        with self._lock:
            self.trust.refresh()
            return self.pending

    def unreviewed_files(self) -> tuple[UnreviewedFile, ...]:
        """Return the skills' files, as they are on disk now, that the user has not approved or confirmed."""
        with self._lock:
            files: list[UnreviewedFile] = []
            for key, skill in self._present_skills():
                on_disk = self._check_disk(key, skill)
                if on_disk.tree in self._approved_trees:
                    continue
                if skill.serving:
                    name = skill.serving.found.name
                    approved = skill.serving.copy.snapshot
                else:
                    name = skill.reading.name if skill.reading else ""
                    approved = None
                files += compare_with_approved(name or key, key, on_disk.snapshot, approved)
            return tuple(files)

    @property
    def gone(self) -> tuple[str, ...]:
        """The names of skills that were approved here and are no longer there."""
        with self._lock:
            approvals = self.trust.approvals
            names = []
            for key in approvals.places.get(self.root, {}):
                is_file = key.startswith("/")
                approval = approvals.trees.get(approvals.last(self.root, key))
                if approval and not is_file and not self._is_present(key):
                    names.append(approval.name)
            return tuple(sorted(names))

    @property
    def served(self) -> Mapping[str, tuple[str, str]]:
        """By key: the name and the tree of each skill that the shelf has from here."""
        with self._lock:
            served = {}
            for key, skill in sorted(self._skills.items()):
                if skill.serving:
                    served[key] = (skill.serving.found.name, skill.serving.copy.tree)
            return served

    @property
    def granted(self) -> frozenset[str]:
        """The names of the skills that are served because the agent wrote them in this session."""
        with self._lock:
            skills = [skill for skill in self._skills.values() if skill.serves_session_version]
            return frozenset(skill.serving.found.name for skill in skills if skill.serving)

    def approve(self, pending: Iterable[Pending]) -> None:
        """Approve skills exactly as they were shown; the next refresh serves them. Raises TrustError."""
        self.trust.approve(*pending)

    def revoke(self, key: str) -> tuple[str, ...]:
        """Withdraw the approval of every version of the skill at a place, here and elsewhere. Return their trees."""
        with self._lock:
            skill = self._skills.setdefault(key, WorkspaceSkill())
            versions = skill.versions(last_approved="")
            candidates = {*self.trust.approvals.history(self.root, key), versions.serving, versions.on_disk}
            trees = tuple(sorted(tree for tree in candidates if self.trust.is_approved(tree)))
            skill.session = None
            skill.needs_check = True
            if trees:
                self.trust.revoke(trees)
            return trees

    # -- what the agent writes itself ---------------------------------------------------------------------------------

    def is_reviewed(self, path: str | os.PathLike[str]) -> bool:
        """Return True if a file does not exist, or holds only what the user approved or confirmed."""
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
            in_skill = replace(entry, path="/".join(parts).removeprefix(prefix))
            skill = self._skills.get(key)
            return in_skill in self._confirmed_writes.entries(key) or (
                skill is not None and in_skill in skill.served_entries
            )

    def grant(self, paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
        """Serve the skills of files that the agent wrote, in this session, after the user confirmed each write.

        Call it before the reload. Returns the keys of the skills that will be served. A skill that also holds content
        the user has neither approved nor confirmed is not among them.
        """
        with self._lock:
            keys: set[str] = set()
            for path in paths:
                parts = split_below(self.root, path)
                if not parts:
                    continue
                self._confirmed_writes.add("/".join(parts))
                key = find_skill_of(self.root, parts)
                if key is not None:
                    keys.add(key)
            return tuple(key for key in sorted(keys) if self._start_session_version(key))

    def _start_session_version(self, key: str) -> bool:
        """Copy a skill as it is now, to be served in this session. Return False if the user has not seen all of it."""
        skill = self._skills.setdefault(key, WorkspaceSkill())
        reviewed = self._confirmed_writes.entries(key)
        if skill.session and skill.session.copy.is_intact():
            reviewed.update(skill.session.copy.snapshot.entries)
        else:
            reviewed.update(skill.served_entries)

        snapshot = take_snapshot(self.root, key).snapshot
        if not snapshot.entries or not reviewed.issuperset(snapshot.entries):
            return False
        copy = self._session_copies.make(self.root, key, snapshot)
        if copy is None:
            return False
        skill.session = SessionVersion(copy, base=self.trust.approvals.last(self.root, key))
        skill.needs_check = True
        return True

    # -- deciding and carrying it out ---------------------------------------------------------------------------------

    def _keys_to_check(self, changed: Collection[str] | None) -> set[str]:
        """Return the known skills whose snapshot may be out of date."""
        keys = {key for key, skill in self._skills.items() if skill.needs_check}
        if changed is None:
            keys |= {key for key, skill in self._skills.items() if skill.on_disk and skill.on_disk.is_fresh}
        for path in changed or ():
            parts = split_below(self.root, path) or []
            for depth in range(len(parts) + 1):
                key = "/".join(parts[:depth])
                if self._is_present(key):
                    keys.add(key)
        return keys

    def _update(self, keys: set[str]) -> dict[str, Found | None]:
        """Decide again about these skills, or about all if the approvals changed. Return the changes for the shelf."""
        mounts = mounts_below(self.root) if keys else frozenset()
        for key in keys:
            skill = self._skills[key]
            skill.needs_check = True  # until it is served, so that a fault on the way is made up for
            if skill.reading is not None:
                skill.on_disk = take_snapshot(self.root, key, mounts)

        if self.trust.generation != self._generation:
            self._generation = self.trust.generation
            keys = set(self._skills)

        changes: dict[str, Found | None] = {}
        approved_here: dict[str, str] = {}
        for key in sorted(keys):
            skill = self._skills[key]
            found = self._serve(key, skill)
            if found is not skill.reported:
                skill.reported = found
                changes[key] = found
            if skill.serving and skill.serving.copy.tree in self._approved_trees:
                approved_here[key] = skill.serving.copy.tree
            if skill.reading is None and skill.session is None:
                del self._skills[key]
        self.trust.note_places(self.root, approved_here)
        return changes

    def _serve(self, key: str, skill: WorkspaceSkill) -> Found | None:
        """Bring the served copy of a skill in line with the decision. Return the skill for the shelf."""
        decision = choose_version(skill.versions(self.trust.approvals.last(self.root, key)), self._approved_trees)
        if decision.ends_session:
            skill.session = None
        if skill.reading is None:
            skill.needs_check = False
            return None

        copy: TreeCopy | None = None
        if decision.serve == "on_disk" and skill.on_disk:
            copy = self.trust.copy(decision.tree) or self._session_copies.make(self.root, key, skill.on_disk.snapshot)
        elif decision.serve == "in_session" and skill.session:
            copy = skill.session.copy
        elif decision.serve == "approved_copy":
            copy = self.trust.copy(decision.tree)

        if copy is None:
            skill.serving = None
            skill.needs_check = decision.serve == "on_disk"
        else:
            skill.serving = ServedVersion(copy, self._read_copy(key, skill, copy))
            # Only usable skills can be approved, so an approved copy that cannot be read as one is tried again.
            is_unread = skill.serving.found.descriptor is None
            skill.needs_check = is_unread and decision.serve != "in_session"
        return self._found_for_shelf(key, skill)

    def _read_copy(self, key: str, skill: WorkspaceSkill, copy: TreeCopy) -> Found:
        """Read a copy as a skill, unless it is the version that is served already."""
        known = skill.serving
        if known and known.copy.tree == copy.tree and known.found.descriptor:
            return known.found
        return read_skill_folder(copy.files, self._path(key), self.name)

    def _found_for_shelf(self, key: str, skill: WorkspaceSkill) -> Found | None:
        faults = self._own_faults(key, skill)
        if skill.serving is None:
            return Found(None, faults) if faults else None
        if faults:
            return skill.serving.found.as_last_good(faults)
        return skill.serving.found

    def _own_faults(self, key: str, skill: WorkspaceSkill) -> tuple[Diagnostic, ...]:
        """Return the diagnostics about a SKILL.md that the agent itself broke.

        Others are not reported: a diagnostic quotes the file, and the user has not approved its content.
        """
        if skill.reading is None or skill.on_disk is None or _is_usable(skill.reading):
            return ()
        written = self._confirmed_writes.entries(key)
        if any(skill.on_disk.snapshot.entry(name) in written for name in SKILL_FILES):
            return skill.reading.diagnostics
        return ()

    def _copy_to_read(self, key: str) -> TreeCopy | None:
        """Return the copy that a skill is served from, if it is intact. Notice changes of the files on disk."""
        with self._lock:
            skill = self._skills.get(key)
            if skill is None or skill.serving is None:
                return None
            self._check_disk(key, skill)
            if not skill.serving.copy.is_intact():
                skill.needs_check = True
                return None
            return skill.serving.copy

    def _check_disk(self, key: str, skill: WorkspaceSkill) -> DiskState:
        """Return the state of a skill's files. A new snapshot is taken if they may have changed since the last one."""
        known = skill.on_disk
        is_comparable = known is not None and known.signature is not None and not known.is_fresh
        if known and is_comparable and take_signature(self.root, key) == known.signature:
            return known
        skill.on_disk = take_snapshot(self.root, key, mounts_below(self.root))
        skill.needs_check = True
        return skill.on_disk

    def _pending(self, key: str, skill: WorkspaceSkill) -> Pending | None:
        """Return a skill as pending; None if it is approved as it is now, or if it is neither usable nor served."""
        if skill.reading is None or skill.on_disk is None or skill.on_disk.tree in self._approved_trees:
            return None
        if not skill.serving and not skill.reading.name:
            return None

        copy = skill.serving.copy if skill.serving else None
        if skill.serves_session_version:
            last = self.trust.approvals.last(self.root, key)
            copy = self.trust.copy(last) if last in self._approved_trees else None
        descriptor = skill.reading.descriptor
        if descriptor is None and skill.serving:
            descriptor = skill.serving.found.descriptor
        fault = "" if _is_usable(skill.reading) else _BROKEN
        return Pending(
            root=self.root,
            key=key,
            name=descriptor.name if descriptor else key,
            snapshot=skill.on_disk.snapshot,
            location=descriptor.location if descriptor else f"{self._path(key)}/SKILL.md",
            copy=copy,
            blocked=self.refusal or skill.on_disk.snapshot.fault or fault,
            granted=skill.serves_session_version,
        )

    # -- lookups ------------------------------------------------------------------------------------------------------

    @property
    def _approved_trees(self) -> Collection[str]:
        """The trees that count as approved in this workspace."""
        return () if self.refusal else self.trust.approvals.trees.keys()

    def _present_skills(self) -> Iterator[tuple[str, WorkspaceSkill]]:
        for key, skill in sorted(self._skills.items()):
            if skill.reading is not None:
                yield key, skill

    def _is_present(self, key: str) -> bool:
        skill = self._skills.get(key)
        return skill is not None and skill.reading is not None

    def _path(self, key: str) -> str:
        return f"{self.root}/{key}" if key else self.root


def _is_usable(reading: Found) -> bool:
    """Return True if the files on disk are a skill now, and not a broken one whose last version stays in use."""
    return bool(reading.name) and not reading.is_last_good
