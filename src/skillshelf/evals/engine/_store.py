"""The durable store of a run: paid responses, finished trials, and packed cases for workers.

It is a SQLite file in the run's folder, or a schema on the PostgreSQL server that workers share.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
from typing import Any, Protocol

from skillshelf.errors import RunStoppedError
from skillshelf.evals.engine._server import Server, ServerDatabase

_SCHEMA = "skillshelf_evals"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS {}responses (run TEXT, name TEXT, value TEXT, PRIMARY KEY (run, name))",
    "CREATE TABLE IF NOT EXISTS {}traces (run TEXT, name TEXT, value TEXT, PRIMARY KEY (run, name))",
    "CREATE TABLE IF NOT EXISTS {}blobs (run TEXT, name TEXT, value BYTES, PRIMARY KEY (run, name))",
)
# SQLite's names of these causes. Each is the beginning of several names.
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_NO_ACCESS = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")


class Database(Protocol):
    """A database for all threads of a process. Statements have `{}` before the names of tables."""

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]: ...

    def close(self) -> None: ...


class FileDatabase:
    """A SQLite file."""

    def __init__(self, path: str) -> None:
        """Open or make the file. Raises RunStoppedError."""
        self._path = path
        self._lock = threading.Lock()
        try:
            self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise file_error(path, error) from error
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=FULL")  # a power cut costs money too
        except sqlite3.Error as error:
            self._connection.close()
            raise file_error(path, error) from error

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._connection.execute(statement.format(""), values).fetchall()
            except sqlite3.Error as error:
                raise file_error(self._path, error) from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class RunStore:
    """The records of one run. A record is never replaced: a second writer finds the first one's value."""

    def __init__(self, run: str, database: Database, *, begins_empty: bool = False) -> None:
        """`begins_empty` says that nothing was stored before, and that no other process writes to the store."""
        self._run = run
        self._database = database
        self.begins_empty = begins_empty

    def for_run(self, run: str) -> RunStore:
        """Return the store of another run in the same database."""
        return RunStore(run, self._database)

    def add_response(self, name: str, value: str) -> None:
        self._add("responses", name, value)

    def find_response(self, name: str) -> str | None:
        found: str | None = self._find("responses", name)
        return found

    def add_trace(self, trial: str, value: str) -> None:
        self._add("traces", trial, value)

    def find_trace(self, trial: str) -> str | None:
        found: str | None = self._find("traces", trial)
        return found

    def add_blob(self, digest: str, data: bytes) -> None:
        self._add("blobs", digest, data)

    def get_blob(self, digest: str) -> bytes:
        """Return a blob. Raises KeyError."""
        found = self._find("blobs", digest)
        if found is None:
            raise KeyError(digest)
        return bytes(found)

    def forget(self) -> None:
        """Remove everything of this run. It is over, and its report is written."""
        for table in ("responses", "traces", "blobs"):
            self._database.execute(f"DELETE FROM {{}}{table} WHERE run = ?", self._run)

    def close(self) -> None:
        self._database.close()

    def _add(self, table: str, name: str, value: str | bytes) -> None:
        statement = f"INSERT INTO {{}}{table} VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._database.execute(statement, self._run, name, value)

    def _find(self, table: str, name: str) -> Any:
        statement = f"SELECT value FROM {{}}{table} WHERE run = ? AND name = ?"
        rows = self._database.execute(statement, self._run, name)
        return rows[0][0] if rows else None


def open_file_store(path: str, run: str) -> RunStore:
    """Open a store in a file. Raises RunStoppedError."""
    begins_empty = not os.path.exists(path)
    database = FileDatabase(path)
    for table in _TABLES:
        database.execute(table.replace("BYTES", "BLOB"))
    return RunStore(run, database, begins_empty=begins_empty)


def open_server_store(server: Server, run: str) -> RunStore:
    """Open a store on a PostgreSQL server. Raises RunStoppedError."""
    database = ServerDatabase(server, _SCHEMA)
    # CREATE IF NOT EXISTS can race itself, so processes take turns.
    database.execute(f"SELECT pg_advisory_lock(hashtext('{_SCHEMA}'))")
    database.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
    for table in _TABLES:
        database.execute(table.replace("BYTES", "BYTEA"))
    database.execute(f"SELECT pg_advisory_unlock(hashtext('{_SCHEMA}'))")
    return RunStore(run, database)


def file_error(path: str, error: sqlite3.Error) -> RunStoppedError:
    """Return an error that says why a run's own file cannot be used, and what to do."""
    reason = str(error).splitlines()[0]
    return RunStoppedError(f"The run's database {path} cannot be used: {reason}", _advise(path, error))


def _advise(path: str, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorname", "")
    run = os.path.dirname(os.path.dirname(path))
    if code.startswith(_DAMAGED):
        return f"The file is damaged. Remove {run} and begin a new run"
    if code.startswith(_NO_ACCESS):
        return f"Make sure that {os.path.dirname(path)} can be written to and has room, then start the run again"
    python = platform.python_version()
    return f"A new run would not help. Report it with these versions: Python {python}, SQLite {sqlite3.sqlite_version}"
