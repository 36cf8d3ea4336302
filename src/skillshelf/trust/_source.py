"""A folder's skills, of which only what the person agreed to reaches the shelf, and only as it was agreed to."""

import os
import threading
import time
import weakref
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from skillshelf.descriptor import Diagnostic, SkillDescriptor
from skillshelf.errors import ReferenceNotFoundError, ReferenceUnreadableError, SkillUnreadableError
from skillshelf.files import NotPlainFile, Page, mounts_below, open_below, system
from skillshelf.found import Found
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources import SKILL_FILES, DirectorySource, Entries, FolderReader
from skillshelf.trust._copies import Copy, SessionCopies
from skillshelf.trust._grants import Grants, skill_holding
from skillshelf.trust._pending import Pending
from skillshelf.trust._snapshot import Look, look, signature
from skillshelf.trust._store import Trust
from skillshelf.trust._unreviewed import UnreviewedFile, compare_with_approved

_SOURCES: "weakref.WeakSet[TrustedSource]" = weakref.WeakSet()
_DAMAGED = "its approved copy is gone or damaged; the person can look at it with `skillshelf trust`"
_BROKEN = "its SKILL.md cannot be read as a skill right now; `skillshelf check` says why"


class _Served(NamedTuple):
    copy: Copy
    found: Found


class TrustedSource:
    """Wraps the project's source. A skill is served from the copy of its approved version, never from live files."""

    def __init__(self, inner: DirectorySource, trust: Trust) -> None:
        self.name, self.root, self.trust = inner.name, inner.root, trust
        self.refusal = trust.refusal(inner.root)
        """Why nothing here can be approved; empty where it can."""
        self._inner = inner
        self._live: dict[str, Found] = {}
        self._looks: dict[str, Look] = {}
        self._served: dict[str, _Served] = {}
        self._told: dict[str, Found] = {}
        self._doubtful: set[str] = set()
        """To be looked at again at the next refresh."""
        self._session = SessionCopies()
        self._grants = Grants(self.root, self._session)
        self._generation = -1
        self._lock = threading.RLock()
        _SOURCES.add(self)

    # -- as a source --------------------------------------------------------------------------------------------------

    def refresh(self, changed: Collection[str] | None = None) -> Mapping[str, Found | None]:
        with self._lock:
            self.trust.refresh()
            told: dict[str, Found | None] = {}
            again, self._doubtful = self._doubtful | self._holding(changed or ()), set()
            if changed is None:
                again |= {key for key, known in self._looks.items() if known.fresh}
            for key, found in self._inner.refresh(changed).items():
                if key.startswith("/"):  # said of a folder, not of a skill
                    told[key] = found
                elif found is None:
                    self._drop(key)
                    again.add(key)
                else:
                    self._live[key] = found
                    again.add(key)
            return {**told, **self._settle_all(again)}

    def instructions(self, key: str, descriptor: SkillDescriptor) -> str:
        copy = self._open(key)
        if copy is None:
            raise SkillUnreadableError(descriptor.name, _DAMAGED)
        try:
            file = descriptor.location.rpartition("/")[2]
            return read(decode(copy.read(file, 0, MAX_FILE + 1).data)).instructions
        except (OSError, NotPlainFile, Unreadable):
            raise SkillUnreadableError(descriptor.name, _DAMAGED) from None

    def reference(self, key: str, descriptor: SkillDescriptor, path: str, offset: int, limit: int) -> Page:
        copy = self._open(key)
        if copy is None:
            raise ReferenceUnreadableError(descriptor.name, path, _DAMAGED)
        try:
            return copy.read(path, offset, limit)
        except (FileNotFoundError, NotADirectoryError):
            raise ReferenceNotFoundError(descriptor.name, path, descriptor.references) from None
        except (OSError, NotPlainFile):
            raise ReferenceUnreadableError(descriptor.name, path, _DAMAGED) from None

    # -- for the person -----------------------------------------------------------------------------------------------

    @property
    def pending(self) -> tuple[Pending, ...]:
        """The skills that nobody has agreed to as they are now."""
        with self._lock:
            return tuple(one for key in sorted(self._live) if (one := self._pending(key)))

    def unreviewed_files(self) -> tuple[UnreviewedFile, ...]:
        """Return the skills' files, as they are on disk now, that the user has not approved or confirmed."""
        with self._lock:
            files: list[UnreviewedFile] = []
            for key in sorted(self._live):
                self._look_again(key)
                known = self._looks[key]
                if self._is_approved(known.tree):
                    continue
                served = self._served.get(key)
                found = served.found if served else self._live[key]
                approved = served.copy.snapshot if served else None
                files += compare_with_approved(found.name or key, key, known.snapshot, approved)
            return tuple(files)

    def find_pending(self) -> tuple[Pending, ...]:
        """Return `pending` with the approvals that another process has written meanwhile."""
        with self._lock:
            self.trust.refresh()
            return self.pending

    @property
    def gone(self) -> tuple[str, ...]:
        """The names of skills that were approved here and are no longer there."""
        with self._lock:
            known = self.trust.approvals
            keys = [key for key in known.places.get(self.root, {}) if not key.startswith("/") and key not in self._live]
            trees = [known.trees.get(known.last(self.root, key)) for key in keys]
            return tuple(sorted(one.name for one in trees if one))

    @property
    def served(self) -> Mapping[str, tuple[str, str]]:
        """By key: name and tree of what the shelf has from here."""
        with self._lock:
            return {key: (one.found.name, one.copy.tree) for key, one in sorted(self._served.items())}

    @property
    def granted(self) -> frozenset[str]:
        """Names of the skills that serve because the agent wrote them in this session."""
        with self._lock:
            return frozenset(one.found.name for key, one in self._served.items() if self._is_granted(key))

    def approve(self, pending: Iterable[Pending]) -> None:
        """The person agrees to these, exactly as they were shown; the next refresh serves them. Raises TrustError."""
        self.trust.approve(*pending)

    def is_agreed(self, path: str | os.PathLike[str]) -> bool:
        """Whether a file is not there, or holds what the person agreed to: approved, or written with their word."""
        with self._lock:
            parts = self._parts(path)
            if not parts or not os.path.lexists(f"{self.root}/{'/'.join(parts)}"):
                return True
            key = skill_holding(self.root, parts)
            if key is None:
                return False
            served = self._served.get(key)
            return self._grants.is_agreed(key, "/".join(parts), served.copy if served else None)

    def grant(self, paths: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
        """The agent wrote these files, and the person confirmed each write: their skills serve in this session.

        Call it before the reload. Returns the keys of the skills that will serve. Not among them is a skill that holds
        anything else nobody has agreed to.
        """
        with self._lock:
            keys: set[str] = set()
            for path in paths:
                parts = self._parts(path)
                if parts:
                    self._grants.wrote("/".join(parts))
                    key = skill_holding(self.root, parts)
                    keys |= {key} if key is not None else set()
            granted = tuple(key for key in sorted(keys) if self._grant(key))
            self._doubtful.update(granted)
            return granted

    def revoke(self, key: str) -> tuple[str, ...]:
        """Every version of the skill at this place is no longer agreed to, here or elsewhere. Returns their trees."""
        with self._lock:
            known = {*self.trust.approvals.history(self.root, key)}
            known |= {self._served[key].copy.tree} if key in self._served else set()
            known |= {self._looks[key].tree} if key in self._looks else set()
            trees = tuple(sorted(filter(self.trust.is_approved, known)))
            self._grants.forget(key)
            self._doubtful.add(key)
            if trees:
                self.trust.revoke(trees)
            return trees

    # -- deciding what serves -----------------------------------------------------------------------------------------

    def _settle_all(self, again: set[str]) -> dict[str, Found | None]:
        mounts = mounts_below(self.root) if again else frozenset()
        for key in again & self._live.keys():
            self._looks[key] = look(self.root, key, mounts)
        keys = again
        if self.trust.generation != self._generation:
            self._generation = self.trust.generation
            self._grants.recheck(self.trust)
            keys = again | self._live.keys()
        told: dict[str, Found | None] = {}
        for key in sorted(keys):
            now = self._settle(key) if key in self._live else None
            if now is not self._told.get(key):
                told[key] = now
        for key, found in told.items():
            self._told.pop(key, None)
            if found:
                self._told[key] = found
        self.trust.seen(
            self.root,
            {
                key: served.copy.tree
                for key in keys
                if (served := self._served.get(key)) and self._is_approved(served.copy.tree)
            },
        )
        return told

    def _settle(self, key: str) -> Found | None:
        """What the shelf is to have of a skill."""
        before, copy = self._served.get(key), self._choose(key)
        faults = self._own_faults(key)
        if copy is None:
            self._served.pop(key, None)
            return Found(None, faults) if faults else None
        found = before.found if before and before.copy.tree == copy.tree else self._read(key, copy)
        self._served[key] = _Served(copy, found)
        return found.as_last_good(faults) if faults else found

    def _own_faults(self, key: str) -> tuple[Diagnostic, ...]:
        """What is wrong with a SKILL.md that the agent broke. Others' is not told: a diagnostic quotes the file."""
        live, snapshot = self._live[key], self._looks[key].snapshot
        if live.name and not live.is_last_good:
            return ()
        own = any(self._grants.is_own(key, snapshot.entry(file)) for file in SKILL_FILES)
        return live.diagnostics if own else ()

    def _choose(self, key: str) -> Copy | None:
        known, told = self._looks[key], self._served.get(key)
        if self._is_approved(known.tree):
            self._grants.forget(key)
            copy = self.trust.copy(known.tree) or self._session.make(self.root, key, known.snapshot)
            if copy is None:
                self._doubtful.add(key)
            return copy
        granted = self._grants.get(key)
        if granted:
            return granted
        last = told.copy.tree if told else ""
        if not self._is_approved(last):
            last = self.trust.approvals.last(self.root, key)
        return self.trust.copy(last) if self._is_approved(last) else None

    def _read(self, key: str, copy: Copy) -> Found:
        """What the copy says, at the place where people find the skill."""
        with open_below(copy.files, ()) as fd:
            info, entries = system.fstat(fd), Entries(system.scandir(fd))
            if not entries.skill_file():
                return Found(None)
            path = f"{self.root}/{key}" if key else self.root
            reader = FolderReader(self.name, info.st_dev, frozenset(), time.time_ns())
            return reader.read(fd, path, entries, info, entries.skill_file())[0].found

    def _open(self, key: str) -> Copy | None:
        """The copy to read from. What the workspace has meanwhile is compared by the times of its files."""
        with self._lock:
            served, known = self._served.get(key), self._looks.get(key)
            if served is None or known is None:
                return None
            self._look_again(key)
            if served.copy.is_intact():
                return served.copy
            self._doubtful.add(key)
            return None

    def _look_again(self, key: str) -> None:
        """Take the snapshot of a skill anew if its files may have changed since the last one."""
        known = self._looks[key]
        if known.fresh or known.signature is None or signature(self.root, key) != known.signature:
            self._looks[key] = look(self.root, key, mounts_below(self.root))
            self._doubtful.add(key)

    def _pending(self, key: str) -> Pending | None:
        known, live, served = self._looks[key], self._live[key], self._served.get(key)
        if self._is_approved(known.tree) or not (served or live.name):
            return None
        granted = self._is_granted(key)
        copy = served.copy if served else None
        if granted:
            copy = self.trust.copy(self.trust.approvals.last(self.root, key)) if not self.refusal else None
        shown = live.descriptor or (served.found.descriptor if served else None)
        broken = "" if live.name and not live.is_last_good else _BROKEN
        return Pending(
            self.root,
            key,
            shown.name if shown else key,
            "changed" if copy else "new",
            known.snapshot,
            shown.location if shown else f"{self.root}/{key}/SKILL.md",
            copy,
            self.refusal or known.snapshot.fault or broken,
            granted,
        )

    def _grant(self, key: str) -> bool:
        served = self._served.get(key)
        copy = self._grants.get(key) or (served.copy if served else None)
        return self._grants.grant(key, copy, self.trust.approvals.last(self.root, key))

    def _drop(self, key: str) -> None:
        for table in (self._live, self._looks, self._served):
            table.pop(key, None)

    def _is_approved(self, tree: str) -> bool:
        return bool(tree) and not self.refusal and self.trust.is_approved(tree)

    def _is_granted(self, key: str) -> bool:
        served = self._served.get(key)
        return served is not None and served.copy is self._grants.get(key)

    def _holding(self, paths: Iterable[str]) -> set[str]:
        """The known skills that these paths belong to."""
        found = set()
        for path in paths:
            parts = self._parts(path) or []
            keys = ("/".join(parts[:depth]) for depth in range(len(parts), -1, -1))
            found |= {key for key in keys if key in self._live}
        return found

    def _parts(self, path: str | os.PathLike[str]) -> list[str] | None:
        """A path's components below the root; None for a path elsewhere."""
        folder, name = os.path.split(os.path.abspath(path))
        real = os.path.join(os.path.realpath(folder), name)
        return real[len(self.root) + 1 :].split("/") if real.startswith(self.root.rstrip("/") + "/") else None


def _renew_locks() -> None:
    """A fork while another thread reloads would leave the child a lock that nobody releases."""
    for source in _SOURCES:
        source._lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_locks)
