"""The index of a catalog: a database that is kept up to date with the skills of a shelf.

It is in the user's cache, in a file that several processes may share, or in memory if that file can't be used.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from skillshelf.errors import SkillError
from skillshelf.files import NotPlainFile, NotPrivate, cache_home, system
from skillshelf.search._database import NewEntry, SkillDatabase
from skillshelf.search._document import hash_text, make_document
from skillshelf.search._similarity import Encoder
from skillshelf.skills import Candidate, Catalog, Found, Place

_MIN_STORED = 100
"""A smaller collection is indexed in a tenth of a second, which is not worth a file."""
_UNUSABLE_NOW = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_FULL,
}
"""Errors that don't come from a damaged file."""

Announce = Callable[[int], None]
"""Called with the number of skills that are about to be indexed."""
_Result = TypeVar("_Result")


@dataclass
class _Changes:
    """What has to change in the database."""

    removed: list[int] = field(default_factory=list)
    stamps: dict[int, int] = field(default_factory=dict)
    added: list[tuple[Candidate, int | None]] = field(default_factory=list)
    """New and changed skills, each with the id of the entry that it replaces."""

    def __bool__(self) -> bool:
        return bool(self.removed or self.stamps or self.added)


class Index:
    """The searchable skills of a catalog. It isn't thread-safe."""

    def __init__(
        self, read_instructions: Callable[[Candidate], str], path: str | None, encoder: Encoder | None
    ) -> None:
        self._read_instructions = read_instructions
        self._path = path
        self._encoder = encoder
        self._was_rebuilt = False
        self._database: SkillDatabase | None = None
        self._process = os.getpid()
        self._generation: int | None = None
        """That of the catalog that the database has; None if they weren't compared yet."""

    def use(
        self,
        catalog: Catalog,
        job: Callable[[SkillDatabase], _Result],
        announce: Announce | None = None,
    ) -> _Result:
        """Bring the database up to date with a catalog and run a job on it.

        If the file is damaged, it's rebuilt; if it can't be used, the index is in memory from then on.
        """
        while True:
            try:
                return job(self._update(catalog, announce))
            except Exception as error:  # a damaged file can fail in any way
                self._close()
                if self._path is None:
                    raise
                self._path = self._recover(self._path, error)
            except BaseException:
                self._close()
                raise

    def _recover(self, path: str, error: Exception) -> str | None:
        """Return the path for the next attempt, after removing a damaged file; None for memory."""
        if isinstance(error, OSError | NotPlainFile | NotPrivate):
            return None
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNUSABLE_NOW:
            return None
        try:
            for suffix in ("", "-journal"):
                with suppress(FileNotFoundError):
                    system.unlink(path + suffix)
        except OSError:
            return None
        if self._was_rebuilt:
            return None
        self._was_rebuilt = True
        return path

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
        self._database = None
        self._generation = None

    # --- keeping up to date ---

    def _update(self, catalog: Catalog, announce: Announce | None) -> SkillDatabase:
        if self._database is not None and (os.getpid() != self._process or self._database.is_outdated()):
            self._close()  # a forked child must not use its parent's database
        while True:
            if self._database is None:
                self._process = os.getpid()
                if len(catalog) < _MIN_STORED:
                    self._path = None
                self._database = SkillDatabase(self._path, self._encoder)
            if self._generation == catalog.generation:
                return self._database

            changes = self._compare(self._database, catalog)
            if not changes or self._apply(self._database, changes, announce):
                self._generation = catalog.generation
                return self._database
            self._close()  # another process was faster

    def _apply(self, database: SkillDatabase, changes: _Changes, announce: Announce | None) -> bool:
        """Make the changes. Return False without making them if another process changed the database meanwhile."""
        with database.transaction():
            if database.is_outdated():
                return False
            if changes.added and announce is not None:
                announce(len(changes.added))
            database.change(changes.removed, changes.stamps, self._make_entries(changes.added))
        return True

    def _compare(self, database: SkillDatabase, catalog: Catalog) -> _Changes:
        """Return what differs between a database and a catalog: in all skills, or in those that changed since."""
        places: Iterable[Place] | None = None
        if self._generation is not None:
            places = catalog.changed_since(self._generation)
        if places is None:
            stored = database.read_entries()
            found: Mapping[Place, Found | None] = catalog.found
        else:
            found = {place: catalog.found.get(place) for place in places}
            stored = database.read_entries(map(encode_place, found))

        changes = _Changes()
        for place, now in found.items():
            if now is None or not is_searchable(now):
                continue
            candidate = Candidate(place, now)
            entry = stored.pop(encode_place(place), None)
            if entry is None:
                changes.added.append((candidate, None))
            elif self._encoder is not None and not entry.has_vector:
                changes.added.append((candidate, entry.id))
            elif not now.stamp or now.stamp != entry.stamp:
                # The stamp doesn't tell whether the text is the same.
                if hash_text(candidate.descriptor, self._read_text(candidate)) != entry.digest:
                    changes.added.append((candidate, entry.id))
                elif now.stamp != entry.stamp:
                    changes.stamps[entry.id] = now.stamp
        changes.removed = [entry.id for entry in stored.values()]
        return changes

    def _make_entries(self, added: Iterable[tuple[Candidate, int | None]]) -> Iterator[NewEntry]:
        for candidate, number in added:
            document = make_document(candidate.descriptor, self._read_text(candidate))
            yield NewEntry(document, encode_place(candidate.place), candidate.found.stamp, number)

    def _read_text(self, candidate: Candidate) -> str:
        try:
            return self._read_instructions(candidate)
        except SkillError:  # gone or broken since the scan: what the catalog has can still be found
            return ""


def is_searchable(found: Found) -> bool:
    """Return whether a skill can be found by a search. Those for the user alone can't."""
    return found.descriptor is not None and found.descriptor.disclosure != "manual"


def encode_place(place: Place) -> bytes:
    return f"{place.source}\0{place.key}".encode("utf-8", "surrogatepass")


def decode_place(encoded: bytes) -> Place:
    source, _, key = encoded.decode("utf-8", "surrogatepass").partition("\0")
    return Place(int(source), key)


def find_index_file(sources: Iterable[str]) -> str | None:
    """Return the file in the user's cache for the index of some sources, or None if the user has no cache.

    Each source is given by a text that tells it from others.
    """
    home = cache_home()
    if home is None:
        return None
    name = hashlib.sha256("\0\0".join(sources).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return os.path.join(home, "search", f"{name}.db")
