"""SQLite, from a file. This runs in the process of one statement."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any
from urllib.parse import quote

from skillshelf.text import truncate
from skillshelf_skills.database._errors import DatabaseError, StatementRefusedError, TooSlowError
from skillshelf_skills.database._results import (
    MAX_TABLES,
    MAX_TEXT,
    ColumnInfo,
    DescribedTable,
    Rows,
    TableInfo,
    make_rows,
)

_MAX_VALUE = 10_000_000
"""Bytes of one value, and of one statement. SQLite's own limit is a gigabyte."""
_STEPS = 1_000
"""Instructions of SQLite's machine between two looks at the clock."""
# What a statement may do besides reading and writing tables is decided by name. Not among them: ATTACH, which opens
# another file, and PRAGMA, which changes what the connection may do. Full-text tables and json_each() prepare
# statements that write; the file is opened for reading, so that SQLite refuses to carry them out.
_READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_INSERT,
        sqlite3.SQLITE_UPDATE,
        sqlite3.SQLITE_DELETE,
    }
)
_FORBIDDEN_TO_WRITERS = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})
_UNFINISHED = "SQLITE_READONLY_ROLLBACK"
_ALLOWED_PRAGMA = "data_version"  # full-text tables ask for it, and it changes nothing
_FORBIDDEN_FUNCTIONS = frozenset({"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"})


class SqliteFile:
    """A database in a file. It is opened for reading unless a statement is to write."""

    def __init__(self, path: str, seconds: float) -> None:
        """A statement may take this many seconds."""
        self._path = path
        self._name = os.path.basename(path)
        self._seconds = seconds

    def list_tables(self) -> list[TableInfo]:
        with self._open(is_guarded=False) as connection:
            found = connection.execute(
                "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
                "ESCAPE '\\' ORDER BY name LIMIT ?",
                (MAX_TABLES,),
            )
            return [TableInfo(name=name, kind=kind) for name, kind in found]

    def describe_table(self, table: str) -> DescribedTable:
        with self._open(is_guarded=False) as connection:
            targets = {
                column: f"{target}.{target_column or ''}".rstrip(".")
                for target, column, target_column in connection.execute(
                    'SELECT "table", "from", "to" FROM pragma_foreign_key_list(?)', (table,)
                )
            }
            columns = [
                ColumnInfo(
                    name=name,
                    type=truncate(kind, MAX_TEXT),
                    is_nullable=not not_null,
                    is_key=bool(key),
                    references=targets.get(name, ""),
                )
                for name, kind, not_null, key in connection.execute(
                    'SELECT name, type, "notnull", pk FROM pragma_table_info(?) ORDER BY cid', (table,)
                )
            ]
            if not columns:
                raise DatabaseError(f"There is no table {table!r}. list_tables names them all.")
            indexes = connection.execute(
                "SELECT coalesce(sql, name) FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? COLLATE NOCASE",
                (table,),
            )
            texts = [truncate(text, MAX_TEXT) for (text,) in indexes]
            return DescribedTable(name=table, columns=columns, indexes=texts)

    def query(self, sql: str, parameters: Sequence[Any], limit: int) -> Rows:
        with self._open() as connection:
            cursor = connection.execute(sql, tuple(parameters))
            columns = [column[0] for column in cursor.description or ()]
            return make_rows(columns, cursor, limit)

    def explain(self, sql: str, parameters: Sequence[Any]) -> str:
        with self._open() as connection:
            steps = connection.execute(f"EXPLAIN QUERY PLAN {sql}", tuple(parameters)).fetchall()
        depths = {0: -1}
        lines = []
        for number, parent, _, text in steps:
            depths[number] = depths.get(parent, -1) + 1
            lines.append(f"{'  ' * depths[number]}{text}")
        return "\n".join(lines)

    def execute(self, sql: str, parameters: Sequence[Any]) -> int:
        with self._open(writable=True) as connection, connection:
            return max(0, connection.execute(sql, tuple(parameters)).rowcount)

    @contextmanager
    def _open(self, *, writable: bool = False, is_guarded: bool = True) -> Iterator[sqlite3.Connection]:
        """Open the file for one statement. SQLite itself keeps the statement to reading, if it may do no more."""
        if writable:
            self._refuse_unfinished_write()
        with closing(self._connect("rw" if writable else "ro")) as connection:
            connection.text_factory = _decode
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
            connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_VALUE)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            end = time.monotonic() + self._seconds
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            try:
                # A view or a trigger of a file that someone else made may not call functions with side effects.
                connection.execute("PRAGMA trusted_schema = OFF")
                if not writable:
                    connection.execute("PRAGMA query_only = ON")
                if is_guarded:
                    connection.set_authorizer(_allow_writing if writable else _allow_reading)
                yield connection
            except sqlite3.Error as error:
                raise self._explain(error, is_late=time.monotonic() > end) from None
            except (OverflowError, UnicodeError) as error:
                raise StatementRefusedError(f"{error}.", code="") from None

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"file:{quote(self._path)}?mode={mode}"
        try:
            return sqlite3.connect(address, uri=True, timeout=self._seconds)
        except sqlite3.Error:
            raise DatabaseError(f"The file {self._name!r} cannot be opened. Ask the user for the right path.") from None

    def _refuse_unfinished_write(self) -> None:
        """Raise DatabaseError if SQLite would first undo a write that never ended.

        Its journal can name files that SQLite then deletes. Whoever opens a file for reading is told of it instead.
        """
        with closing(self._connect("ro")) as connection:
            try:
                connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorname", "") == _UNFINISHED:
                    raise self._explain(error, is_late=False) from None

    def _explain(self, error: sqlite3.Error, *, is_late: bool) -> DatabaseError:
        code = getattr(error, "sqlite_errorname", "")
        if code == _UNFINISHED:
            return DatabaseError(
                f"Beside {self._name!r} is the journal of a write that has not ended ({self._name}-journal). Either a "
                f"program writes to the database right now or crashed while it did, or someone put the journal there "
                f"to do harm. Tell the user: if a program of theirs uses the database, start it, and it tidies up; "
                f"otherwise delete the journal.",
                code=code,
            )
        if code == "SQLITE_INTERRUPT" or (is_late and code == "SQLITE_BUSY"):
            return TooSlowError(self._seconds)
        if code == "SQLITE_NOTADB":
            return DatabaseError(f"The file {self._name!r} is not an SQLite database.", code=code)
        if code.startswith(("SQLITE_READONLY", "SQLITE_AUTH")):
            return StatementRefusedError("it may only read here.", code=code)
        return StatementRefusedError(f"{str(error).rstrip('.')}.", code=code)


def _decode(data: bytes) -> str:
    """Return a text of the file, which may not be one."""
    return data.decode("utf-8", "replace")


def _allow_reading(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_PRAGMA and first == _ALLOWED_PRAGMA:
        return sqlite3.SQLITE_OK
    if action not in _READING or (action == sqlite3.SQLITE_FUNCTION and second in _FORBIDDEN_FUNCTIONS):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _allow_writing(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action in _FORBIDDEN_TO_WRITERS or (action == sqlite3.SQLITE_FUNCTION and second in _FORBIDDEN_FUNCTIONS):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK
