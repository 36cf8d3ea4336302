"""The index of a shelf: a database with the skills' words, pairs and vectors, and an engine beside it.

It is in a folder of its own in the cache, private to the user, or in memory. A folder holds `index.db`, the lock that
a process has while it opens or changes the index, and the files of tantivy. All changes are made in one transaction of
the database, which ends with a list of tantivy's files. If that list is wrong, a process died between tantivy's commit
and the database's, or the folder was tampered with. Such an index is not repaired but made anew, like one that is
damaged or from another version.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import stat
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

from skillshelf._version import __version__
from skillshelf.catalog import Place
from skillshelf.files import (
    NotPlainFile,
    NotPrivate,
    cache_home,
    hold_lock,
    make_private_folders,
    read_private,
    system,
    write_new,
)
from skillshelf.search._document import Document, Pairs, pack_pairs, shorten, unpack_pairs
from skillshelf.search._engine import Engine, EngineName, EngineText
from skillshelf.search._similarity import Encoder, Vectors

_FORMAT = 2
_DATABASE = "index.db"
_LOCK = "lock"
_ENGINE_FOLDER = re.compile("[0-9a-f]{16}")
_BATCH = 500
_LOCK_SECONDS = 60.0
"""How long to wait for another process that builds the index. After that, an index in memory is built."""
_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE skills (
    id INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER, key BLOB, stamp INTEGER, digest BLOB, vector BLOB
);
CREATE TABLE texts (id INTEGER PRIMARY KEY, words TEXT NOT NULL);
CREATE TABLE pairs (id INTEGER PRIMARY KEY, in_name INTEGER, pairs BLOB, exclusions TEXT);
"""


class UnusableStore(Exception):
    """The stored index is damaged, incomplete, or from another version."""


class Version(NamedTuple):
    """What tells whether a skill is still the one that was indexed."""

    stamp: int
    """The stamp of its files; 0 if only the text can tell."""
    digest: bytes
    """The digest of its text."""


class IndexedSkill(NamedTuple):
    """A skill in the index, without its text."""

    id: int
    place: Place
    version: Version


class NewSkill(NamedTuple):
    """A skill to be indexed."""

    place: Place
    stamp: int
    document: Document
    text_to_compare: str


class NewStamp(NamedTuple):
    """An indexed skill whose files changed, but not its text."""

    id: int
    stamp: int


class PairRow(NamedTuple):
    """What is needed of each skill that words or similarity found."""

    pairs: Pairs
    exclusions: str


class Store:
    """An open index."""

    def __init__(self, folder: str | None, engine: EngineName, encoder: Encoder | None) -> None:
        """Open the index in a folder, or make one there; in memory without a folder. Hold the folder's lock meanwhile.

        Raises UnusableStore, OSError, NotPlainFile, NotPrivate, or sqlite3.Error.
        """
        self.folder = folder
        self._encoder = encoder
        self._made_by = json.dumps([_FORMAT, __version__, engine, encoder.dimensions if encoder else 0])
        self._database = self._connect()
        # SQLite and tantivy free what they hold when they are collected, but Python wants databases to be closed.
        weakref.finalize(self, self._database.close)
        self.is_new = not self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        """Whether nothing was ever written to it. The first change must come soon: it ends the transaction."""
        if self.is_new:
            self._create_tables(engine)
        elif self._has_views_or_triggers():
            raise UnusableStore("it has parts that no version made")
        elif self._read_meta("made_by") != self._made_by:
            raise UnusableStore("another version made it")

        self._engine_folder = self._find_engine_folder()
        if self._list_files() != self._read_meta("files"):
            raise UnusableStore("tantivy's files are not those of the last change")
        try:
            self.engine = self._open_engine(engine)
        except ValueError as error:  # tantivy's
            raise UnusableStore(str(error)) from error
        self.vectors: Vectors | None = None
        self._seen_version = self._read_data_version()

    def _connect(self) -> sqlite3.Connection:
        if self.folder is None:
            return sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)

        path = os.path.join(self.folder, _DATABASE)
        with suppress(FileExistsError):
            write_new(path, b"")  # SQLite would let others read it
        read_private(path, limit=1)
        self._inode = system.stat(path).st_ino
        database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        try:
            database.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error:
            database.close()
            raise
        return database

    def _has_views_or_triggers(self) -> bool:
        """Return whether reading or changing the tables would run SQL of others, which need not even end."""
        found = self._database.execute("SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index')")
        return bool(found.fetchone()[0])

    def _create_tables(self, engine: EngineName) -> None:
        """Create the tables in a transaction that the first change ends: until then, the file stays empty."""
        self._database.execute("BEGIN IMMEDIATE")
        for statement in filter(str.strip, _TABLES.split(";")):
            self._database.execute(statement)
        self._write_meta("made_by", self._made_by)
        if self.folder is not None and engine == "tantivy":
            self._write_meta("engine_folder", secrets.token_hex(8))
        self._write_meta("files", "{}")

    def _open_engine(self, name: EngineName) -> Engine:
        if name == "tantivy":
            from skillshelf.search._tantivy import TantivyEngine  # needs the extra `search`

            return TantivyEngine(self._engine_folder)

        from skillshelf.search._fts5 import Fts5Engine

        return Fts5Engine(self._database, is_new=self.is_new)

    # --- reading ---

    def load(self) -> list[IndexedSkill]:
        """Return all skills, and make their vectors ready."""
        skills: list[IndexedSkill] = []
        packed: dict[int, bytes] = {}
        rows = self._database.execute("SELECT id, source, key, stamp, digest, vector FROM skills ORDER BY id")
        for number, source, key, stamp, digest, vector in rows:
            place = Place(source, key.decode("utf-8", "surrogatepass"))
            skills.append(IndexedSkill(number, place, Version(stamp, digest)))
            packed[number] = vector
        if self._encoder is not None:
            self.vectors = Vectors(self._encoder, packed)
        return skills

    def read_version(self, number: int) -> Version:
        row = self._database.execute("SELECT stamp, digest FROM skills WHERE id = ?", (number,)).fetchone()
        return Version(*row)

    def read_pairs(self, ids: Sequence[int]) -> dict[int, PairRow]:
        rows = self._database.execute(
            f"SELECT id, in_name, pairs, exclusions FROM pairs WHERE id IN ({_marks(ids)})", ids
        ).fetchall()
        if len(rows) < len(ids):
            raise UnusableStore("it lacks skills that it had when it was opened")
        return {number: PairRow(unpack_pairs(packed, in_name), excluded) for number, in_name, packed, excluded in rows}

    def read_words(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the words of each skill: see `Document.words`."""
        return dict(self._database.execute(f"SELECT id, words FROM texts WHERE id IN ({_marks(ids)})", ids).fetchall())

    def is_outdated(self) -> bool:
        """Return whether another process changed the index since it was opened or last changed here."""
        return self._read_data_version() != self._seen_version

    def is_replaced(self) -> bool:
        """Return whether another process has made a new index in the folder."""
        if self.folder is None:
            return False
        try:
            return system.stat(os.path.join(self.folder, _DATABASE)).st_ino != self._inode
        except OSError:
            return True

    # --- changing ---

    def change(
        self, removed: Sequence[int], added: Iterable[NewSkill], stamps: Iterable[NewStamp] = ()
    ) -> list[IndexedSkill]:
        """Take skills out, add others, and give unchanged ones new stamps, by id. Return those added.

        Hold the folder's lock meanwhile. If this fails, open the store again.
        """
        inserted: list[IndexedSkill] = []
        if not self._database.in_transaction:
            self._database.execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany(
                "UPDATE skills SET stamp = ? WHERE id = ?", [(each.stamp, each.id) for each in stamps]
            )
            self.engine.remove(removed)
            for table in ("skills", "texts", "pairs"):
                self._database.executemany(f"DELETE FROM {table} WHERE id = ?", [(number,) for number in removed])
            if self.vectors is not None and removed:
                self.vectors.remove(removed)
            rest = iter(added)
            while batch := list(islice(rest, _BATCH)):
                inserted += self._insert(batch)
            self.engine.commit()
            self._write_meta("files", self._list_files())
        except BaseException:
            self._database.rollback()
            raise
        self._database.commit()
        self.is_new = False
        self._seen_version = self._read_data_version()
        return inserted

    def _insert(self, skills: Sequence[NewSkill]) -> list[IndexedSkill]:
        vectors: Sequence[bytes | None] = [None] * len(skills)
        if self._encoder is not None:
            vectors = self._encoder.pack([skill.text_to_compare for skill in skills])
        inserted: list[IndexedSkill] = []
        packed: dict[int, bytes] = {}
        texts: list[EngineText] = []
        for skill, vector in zip(skills, vectors, strict=True):
            number = self._insert_rows(skill, vector)
            words = skill.document.words
            texts.append(EngineText(number, words, shorten(words)))
            if vector is not None:
                packed[number] = vector
            inserted.append(IndexedSkill(number, skill.place, Version(skill.stamp, skill.document.digest)))
        self.engine.add(texts)
        if self.vectors is not None:
            self.vectors.add(packed)
        return inserted

    def _insert_rows(self, skill: NewSkill, vector: bytes | None) -> int:
        document = skill.document
        cursor = self._database.execute(
            "INSERT INTO skills (source, key, stamp, digest, vector) VALUES (?, ?, ?, ?, ?)",
            (
                skill.place.source,
                skill.place.key.encode("utf-8", "surrogatepass"),
                skill.stamp,
                document.digest,
                vector,
            ),
        )
        number = cursor.lastrowid
        assert number is not None
        self._database.execute("INSERT INTO texts (id, words) VALUES (?, ?)", (number, document.words))
        self._database.execute(
            "INSERT INTO pairs (id, in_name, pairs, exclusions) VALUES (?, ?, ?, ?)",
            (number, len(document.pairs.in_name), pack_pairs(document.pairs), document.exclusions),
        )
        return number

    # --- parts ---

    def _read_meta(self, name: str) -> str:
        row = self._database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def _write_meta(self, name: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def _read_data_version(self) -> int:
        """Return a number that changes when another process changes the database."""
        version: int = self._database.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _find_engine_folder(self) -> str | None:
        name = self._read_meta("engine_folder")
        if self.folder is None or not name:
            return None
        path = os.path.join(self.folder, name)
        if not _ENGINE_FOLDER.fullmatch(name) or os.path.islink(path):
            raise UnusableStore("tantivy's folder is not one that was made for it")
        make_private_folders(path)
        return path

    def _list_files(self) -> str:
        """Return the sizes and times of tantivy's files. Raises UnusableStore if one is a link or would block."""
        files: dict[str, list[int]] = {}
        if self._engine_folder:
            for name in sorted(system.listdir(self._engine_folder)):
                info = system.stat(os.path.join(self._engine_folder, name), follow_symlinks=False)
                if not stat.S_ISREG(info.st_mode):
                    raise UnusableStore(f"{name} is not a plain file")
                if not name.endswith(".lock"):
                    files[name] = [info.st_size, info.st_mtime_ns]
        return json.dumps(files)


def find_index_folder(sources: Sequence[str]) -> str | None:
    """Return the folder in the user's cache for the index of some sources, or None if the user has no cache.

    Each source is given by a text that tells it from others.
    """
    home = cache_home()
    if home is None:
        return None
    name = hashlib.sha256("\0\0".join(sources).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return os.path.join(home, "search", name)


@contextmanager
def lock_folder(folder: str | None) -> Iterator[None]:
    """Hold the lock of an index, and create its folder if necessary. An index in memory needs none.

    Raises LockTimeout if another process has it for too long, NotPlainFile if the folder is a link, NotPrivate if it is
    another user's, or OSError if it cannot be written to.
    """
    if folder is None:
        yield
        return
    make_private_folders(folder)
    info = system.stat(folder, follow_symlinks=False)
    if not stat.S_ISDIR(info.st_mode):
        raise NotPlainFile("it is a link, and what it leads to may be anything")
    if info.st_uid != os.geteuid():
        raise NotPrivate(folder)
    with hold_lock(os.path.join(folder, _LOCK), timeout=_LOCK_SECONDS):
        yield


def clear_folder(folder: str) -> None:
    """Remove the index from its folder. The caller holds the lock, which stays. Raises OSError."""
    for name in system.listdir(folder):
        if not name.startswith(_DATABASE) and not _ENGINE_FOLDER.fullmatch(name):
            continue
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            system.unlink(path)


def _marks(values: Sequence[int]) -> str:
    return ", ".join("?" * len(values))
