"""The index of a catalog: a store that is kept up to date with the skills that a shelf serves."""

import os
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from threading import Event
from typing import NamedTuple

from skillshelf.catalog import Candidate, Catalog, Place
from skillshelf.descriptor import Found
from skillshelf.errors import SkillError
from skillshelf.files import LockTimeout
from skillshelf.search._document import hash_text, make_document
from skillshelf.search._engine import EngineName
from skillshelf.search._similarity import Encoder, text_to_compare
from skillshelf.search._store import NewSkill, NewStamp, Store, Version, clear_folder, lock_folder

MIN_STORED = 100
"""A smaller collection is indexed in a tenth of a second, which is not worth a file."""


Announce = Callable[[int], None]
"""Called with the number of skills that are about to be indexed."""


class Stopped(Exception):
    """The caller of an update wants no index any more."""


class _Entry(NamedTuple):
    id: int
    found: Found | None
    """The skill as it was when it was indexed or compared with the index; None if it was not compared yet."""


class Index:
    """The skills of a catalog by id. Its store is in a folder if there is one that can be used, else in memory."""

    def __init__(
        self,
        read_instructions: Callable[[Candidate], str],
        engine: EngineName,
        encoder: Encoder | None,
        folder: str | None,
    ) -> None:
        self._read_instructions = read_instructions
        self._engine = engine
        self._encoder = encoder
        self._folder = folder
        self._is_damaged = False
        self._store: Store | None = None
        self._process = os.getpid()
        self._generation = -1
        self._entries: dict[Place, _Entry] = {}
        self._places: dict[int, Place] = {}

    @property
    def store(self) -> Store:
        assert self._store is not None, "update comes first"
        return self._store

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """Bytes in memory, without what the engine holds."""
        per_skill = sys.getsizeof(_Entry(0, None)) + sys.getsizeof(Place(0, "")) + sys.getsizeof("") + sys.getsizeof(1)
        tables = sys.getsizeof(self._entries) + sys.getsizeof(self._places)
        vectors = self._store.vectors if self._store else None
        return tables + per_skill * len(self) + (vectors.size if vectors else 0)

    def place_of(self, number: int) -> Place | None:
        """Return the place of a skill by its id; None if the catalog does not have it."""
        return self._places.get(number)

    # --- keeping up to date ---

    def update(self, catalog: Catalog, announce: Announce | None = None, stop: Event | None = None) -> None:
        """Index the skills that are new or changed since the last time, and forget those that are gone.

        `announce` is called before skills are read. If the store fails, it is rebuilt, and after that kept in memory.
        Raises Stopped if `stop` is set meanwhile; the store is then as it was.
        """
        if self._store is not None and os.getpid() != self._process:
            self.close()  # the parent's database must not be used in a forked child
        if self._is_current(catalog):
            return
        if self._store is None and len(catalog) < MIN_STORED:
            self._folder = None

        # As it is, rebuilt, and in memory. A damaged store can fail in any way; a fault that is not the store's comes
        # up again in memory.
        for _ in range(3):
            try:
                with lock_folder(self._folder):
                    versions = self._open()
                    self._apply_changes(catalog.found, versions, announce, stop)
            except LockTimeout:
                self.leave_folder()
            except Exception:
                if not self.is_stored:
                    self.close()
                    raise
                if self._is_damaged:
                    self.leave_folder()
                else:
                    self.discard()
            except BaseException:
                self.close()
                raise
            else:
                self._is_damaged = False
                self._generation = catalog.generation
                return

    def _is_current(self, catalog: Catalog) -> bool:
        if self._store is None or catalog.generation != self._generation:
            return False
        try:
            return not self._store.is_outdated()
        except sqlite3.Error:
            return False

    def close(self) -> None:
        """Forget the store. The next update opens it again."""
        self._store = None
        self._generation = -1
        self._entries = {}
        self._places = {}

    @property
    def is_stored(self) -> bool:
        """True if the store is in a folder, or will be once it is opened."""
        return self._folder is not None

    def discard(self) -> None:
        """Give up a store that turned out to be damaged. The next update makes a new one in its folder."""
        self.close()
        self._is_damaged = True

    def leave_folder(self) -> None:
        """Give up the folder. From the next update on, the store is in memory."""
        self.close()
        self._folder = None

    def _open(self) -> dict[Place, Version]:
        """Open the store unless it is open and no other process changed it. If it was opened, return its skills."""
        if self._store is not None and not self._store.is_replaced() and not self._store.is_outdated():
            return {}
        self.close()
        if self._is_damaged and self._folder is not None:
            clear_folder(self._folder)
        self._process = os.getpid()
        self._store = Store(self._folder, self._engine, self._encoder)
        versions: dict[Place, Version] = {}
        for skill in self._store.load():
            self._remember(skill.place, skill.id, None)
            versions[skill.place] = skill.version
        return versions

    def _apply_changes(
        self,
        found: Mapping[Place, Found],
        versions: Mapping[Place, Version],
        announce: Announce | None,
        stop: Event | None,
    ) -> None:
        """Compare the store with everything found. `versions` has those of skills that were not compared yet."""
        store = self.store
        removed = [self._forget(place) for place in self._entries.keys() - found.keys()]
        stamps: list[NewStamp] = []
        added: list[Candidate] = []
        for place, now in found.items():
            entry = self._entries.get(place)
            if entry is not None and entry.found is now:
                continue
            candidate = Candidate(place, now)
            if entry is not None:
                version = versions.get(place) or store.read_version(entry.id)
                if _is_indexed(now) and self._is_same(version, candidate):
                    self._remember(place, entry.id, now)
                    if now.stamp != version.stamp:
                        stamps.append(NewStamp(entry.id, now.stamp))
                    continue
                removed.append(self._forget(place))
            if _is_indexed(now):
                added.append(candidate)

        if added and announce is not None:
            announce(len(added))
        if removed or stamps or added or store.is_new:
            for skill in store.change(removed, self._read(added, stop), stamps):
                self._remember(skill.place, skill.id, found[skill.place])

    def _remember(self, place: Place, number: int, found: Found | None) -> None:
        self._entries[place] = _Entry(number, found)
        self._places[number] = place

    def _forget(self, place: Place) -> int:
        number = self._entries.pop(place).id
        del self._places[number]
        return number

    # --- reading skills ---

    def _is_same(self, version: Version, candidate: Candidate) -> bool:
        """Return whether a skill is still the one that was indexed. Its text is read if only that can tell."""
        stamp = candidate.found.stamp
        if stamp and stamp == version.stamp:
            return True
        return hash_text(candidate.descriptor, self._read_text(candidate)) == version.digest

    def _read(self, candidates: list[Candidate], stop: Event | None) -> Iterator[NewSkill]:
        for candidate in candidates:
            if stop is not None and stop.is_set():
                raise Stopped
            skill = candidate.descriptor
            document = make_document(skill, self._read_text(candidate))
            yield NewSkill(candidate.place, candidate.found.stamp, document, text_to_compare(skill))

    def _read_text(self, candidate: Candidate) -> str:
        try:
            return self._read_instructions(candidate)
        except SkillError:  # gone or broken since the scan: what the catalog has can still be found
            return ""


def _is_indexed(found: Found) -> bool:
    """Return whether a skill can be found by a search. Those for the user alone cannot."""
    return found.descriptor is not None and found.descriptor.disclosure != "manual"
