"""The index: one SQLite database, in a file or in memory, with an FTS5 table of words and a vector for each text.

FTS5 finds the texts that have a word. Its own ranking is not used: a word that half of the texts have counts nothing
in it, which makes it useless in small collections.
"""

import heapq
import os
import sqlite3
import weakref
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import islice
from typing import NamedTuple

from skillshelf._version import __version__
from skillshelf.errors import SkillError
from skillshelf.files import make_private_folders, read_private, system, write_new
from skillshelf.search._document import FIELDS, Document
from skillshelf.search._similarity import Encoder, Vectors

_FORMAT = 3
_BATCH = 500
_LOCK_SECONDS = 5.0
"""How long to wait for another process that changes the index."""
_MAX_PARAMETERS = 500
_MIN_WORDS = 3
_MAX_ROWS = 4_000
"""The rarest words of a query are looked up until they are in this many texts. Common words can hardly bring another
text to the top then, but would take most of the time."""
_CARD_WEIGHT = 1.5
"""How much more a word counts if it is in the name or the description, when candidates are chosen."""

_FIELD_COLUMNS = ", ".join(f'"{field}"' for field in FIELDS)
_SCHEMA = (
    "CREATE TABLE entries (id INTEGER PRIMARY KEY AUTOINCREMENT, place BLOB UNIQUE, stamp INTEGER NOT NULL, "
    "digest BLOB NOT NULL, vector BLOB)",
    # Words are letters and digits alone, and the tokenizer `ascii` leaves other scripts as they are.
    f"CREATE VIRTUAL TABLE words USING fts5({_FIELD_COLUMNS}, exclusions UNINDEXED, detail=column, tokenize='ascii')",
    # Counting a word's rows in the FTS5 table instead takes 5 ms for a query.
    "CREATE TABLE counts (word TEXT PRIMARY KEY, entries INTEGER NOT NULL) WITHOUT ROWID",
)


class NewEntry(NamedTuple):
    """A text to be indexed."""

    document: Document
    place: bytes | None = None
    """Where it is from; unique unless it is None."""
    stamp: int = 0
    id: int | None = None
    """The entry that it replaces."""


class StoredEntry(NamedTuple):
    """What tells whether an entry is still up to date."""

    id: int
    stamp: int
    """The stamp of the skill's files; 0 if only the text can tell."""
    digest: bytes
    """The digest of its text."""
    has_vector: bool


class FoundEntry(NamedTuple):
    """A text that may fit a query. The fields have its words."""

    id: int
    place: bytes | None
    name: str
    description: str
    headings: str
    instructions: str
    references: str
    exclusions: str


class SkillDatabase:
    """An open index. Raises sqlite3.Error or OSError if something is wrong with its file."""

    def __init__(self, path: str | None, encoder: Encoder | None) -> None:
        """Open the index in a file, or create it; in memory without a path.

        Also raises NotPlainFile or NotPrivate.
        """
        expected = _read_expected_schema()
        self._path = path
        self._connection = _connect(path)
        self.close = weakref.finalize(self, self._connection.close)
        if not self._read_schema():
            self._create_tables()
        if self._read_schema() != expected or self._read_number("PRAGMA user_version") != _identify_version():
            raise sqlite3.DatabaseError("another version or another program made it")
        self.size = self._read_number("SELECT count(*) FROM entries")
        if self._read_number("SELECT count(*) FROM words_docsize") != self.size:
            raise sqlite3.DatabaseError("it lacks the words of some entries")
        self.vectors: Vectors | None = None
        if encoder is not None:
            self.vectors = Vectors(encoder, self._read_vectors())
        self._inode = system.stat(path).st_ino if path else 0
        self._seen_version = self._read_data_version()

    def _create_tables(self) -> None:
        with self.transaction():
            if self._read_schema():
                return  # another process was faster
            for statement in _SCHEMA:
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {_identify_version()}")

    def _read_schema(self) -> list[tuple[str, str]]:
        return self._connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()

    def _read_number(self, statement: str) -> int:
        return int(self._connection.execute(statement).fetchone()[0])

    def _read_data_version(self) -> int:
        """Return a number that changes when another process changes the database."""
        return self._read_number("PRAGMA data_version")

    def _read_vectors(self) -> dict[int, bytes | None]:
        return dict(self._connection.execute("SELECT id, vector FROM entries ORDER BY id"))

    # --- other processes ---

    def is_outdated(self) -> bool:
        """Return whether another process changed the index since it was opened, or replaced its file."""
        if self._path is not None:
            try:
                if system.stat(self._path).st_ino != self._inode:
                    return True
            except FileNotFoundError:
                return True
        return self._read_data_version() != self._seen_version

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()

    # --- reading ---

    def read_entries(self, places: Iterable[bytes] | None = None) -> dict[bytes, StoredEntry]:
        """Return the entries at some places, or all of them, by place."""
        dimensions = self.vectors.dimensions if self.vectors else 0
        select = f"SELECT place, id, stamp, digest, length(vector) IS {dimensions} FROM entries"
        if places is None:
            rows = self._connection.execute(select).fetchall()
        else:
            rows = []
            for place in places:
                rows += self._connection.execute(f"{select} WHERE place = ?", (place,))
        return {place: StoredEntry(*rest) for place, *rest in rows}

    def count(self, words: Sequence[str]) -> list[int]:
        """Return how many texts have each word."""
        counts: dict[str, int] = {}
        for start in range(0, len(words), _MAX_PARAMETERS):
            some = words[start : start + _MAX_PARAMETERS]
            counts.update(
                self._connection.execute(f"SELECT word, entries FROM counts WHERE word IN ({_marks(some)})", some)
            )
        return [counts.get(word, 0) for word in words]

    def choose(self, weights: Mapping[str, float], limit: int) -> list[int]:
        """Return the ids of the texts that have most of the words, by weight."""
        scores: dict[int, float] = {}
        for word in self._choose_rarest(weights):
            for phrase, factor in ((f'"{word}"', 1.0), (f'{{name description}} : "{word}"', _CARD_WEIGHT)):
                weight = factor * weights[word]
                for (number,) in self._connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (phrase,)):
                    scores[number] = scores.get(number, 0.0) + weight
        return heapq.nlargest(limit, scores, key=scores.__getitem__)

    def _choose_rarest(self, weights: Mapping[str, float]) -> list[str]:
        words = list(weights)
        chosen: list[str] = []
        rows = 0
        for count, word in sorted(zip(self.count(words), words, strict=True)):
            rows += count
            if len(chosen) >= _MIN_WORDS and rows > _MAX_ROWS:
                break
            if count:
                chosen.append(word)
        return chosen

    def read(self, ids: Sequence[int]) -> list[FoundEntry]:
        """Return some texts, in no order."""
        rows: list[FoundEntry] = []
        for start in range(0, len(ids), _MAX_PARAMETERS):
            some = ids[start : start + _MAX_PARAMETERS]
            found = self._connection.execute(
                f"SELECT id, place, {_FIELD_COLUMNS}, exclusions FROM entries JOIN words ON words.rowid = id "
                f"WHERE id IN ({_marks(some)})",
                some,
            )
            rows += map(FoundEntry._make, found)
        return rows

    # --- changing ---

    def change(self, removed: Sequence[int], stamps: Mapping[int, int], entries: Iterable[NewEntry]) -> list[int]:
        """Remove entries, give others a new stamp, add or replace some. Return the ids of the latter, in order.

        It needs a transaction. If it fails, open the index again.
        """
        counts: Counter[str] = Counter()
        for number in removed:
            self._remove_words(number, counts)
            self._connection.execute("DELETE FROM entries WHERE id = ?", (number,))
        self.size -= len(removed)
        self._connection.executemany(
            "UPDATE entries SET stamp = ? WHERE id = ?", [(stamp, number) for number, stamp in stamps.items()]
        )
        if self.vectors is not None:
            self.vectors.remove(removed)

        ids: list[int] = []
        rest = iter(entries)
        while batch := list(islice(rest, _BATCH)):
            ids += self._put(batch, counts)
        self._connection.executemany(
            "INSERT INTO counts VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET entries = entries + excluded.entries",
            sorted((word, count) for word, count in counts.items() if count),
        )
        return ids

    def _put(self, entries: Sequence[NewEntry], counts: "Counter[str]") -> list[int]:
        vectors: Sequence[bytes | None] = [None] * len(entries)
        if self.vectors is not None:
            vectors = self.vectors.pack([entry.document.meaning for entry in entries])
        ids: list[int] = []
        for entry, vector in zip(entries, vectors, strict=True):
            document = entry.document
            number = self._put_entry(entry, vector, counts)
            self._connection.execute(
                f"INSERT INTO words (rowid, {_FIELD_COLUMNS}, exclusions) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, *document.fields, document.exclusions),
            )
            counts.update(document.words)
            ids.append(number)
        if self.vectors is not None:
            self.vectors.put(dict(zip(ids, vectors, strict=True)))
        return ids

    def _put_entry(self, entry: NewEntry, vector: bytes | None, counts: "Counter[str]") -> int:
        row = (entry.place, entry.stamp, entry.document.digest, vector)
        if entry.id is not None:
            self._remove_words(entry.id, counts)
            self._connection.execute(
                "UPDATE entries SET place = ?, stamp = ?, digest = ?, vector = ? WHERE id = ?", (*row, entry.id)
            )
            return entry.id

        cursor = self._connection.execute("INSERT INTO entries (place, stamp, digest, vector) VALUES (?, ?, ?, ?)", row)
        assert cursor.lastrowid is not None
        self.size += 1
        return cursor.lastrowid

    def _remove_words(self, number: int, counts: "Counter[str]") -> None:
        row = self._connection.execute(f"SELECT {_FIELD_COLUMNS} FROM words WHERE rowid = ?", (number,)).fetchone()
        counts.subtract({*" ".join(row).split()})
        self._connection.execute("DELETE FROM words WHERE rowid = ?", (number,))


@cache
def _read_expected_schema() -> list[tuple[str, str]]:
    """Return what is in the schema of a new database. Raises SkillError if this SQLite has no FTS5."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in _SCHEMA:
            connection.execute(statement)
        return connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    except sqlite3.OperationalError as error:
        raise SkillError(f"Search needs SQLite with FTS5, which this Python lacks ({error}).") from None
    finally:
        connection.close()


def _identify_version() -> int:
    """Return a number for the version of the index: another version may cut words differently."""
    return zlib.crc32(f"{_FORMAT} {__version__}".encode()) & 0x7FFF_FFFF


def _connect(path: str | None) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)

    make_private_folders(os.path.dirname(path))
    with suppress(FileExistsError):
        write_new(path, b"")  # SQLite would let others read it
    read_private(path, limit=1)
    connection = sqlite3.connect(path, timeout=_LOCK_SECONDS, check_same_thread=False, isolation_level=None)
    try:
        # No WAL: its shared memory kills every process that has it open if somebody truncates the file.
        connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
