"""The durable store of a run: paid responses, finished trials, and packed cases for workers.

It is a SQLite file in the run's folder, or a schema on the PostgreSQL server that workers share. The server may be away
for minutes: every connection waits for it to come back.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol, get_args

from skillshelf.errors import MissingExtraError, RunStoppedError

MAX_OUTAGE = 3600.0
"""Seconds to wait for a server that was there before. Then the process ends, and the run can be resumed."""
MAX_CONNECTIONS = 8
"""Connections of DBOS in each process: a server has a hundred for all workers together."""
_RETRY_SECONDS = 1.0
_CONNECT_TIMEOUT = 10
# A server notices after about half a minute that a machine has vanished, and the machine that the server has.
_KEEPALIVES = {"keepalives_idle": 15, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
_SERVER_KEEPALIVES = "SET tcp_keepalives_idle = 15; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3"
_SCHEMA = "skillshelf_evals"
Table = Literal["responses", "traces", "blobs"]
_TABLES = (
    "CREATE TABLE IF NOT EXISTS {}responses (run TEXT, name TEXT, value TEXT, PRIMARY KEY (run, name))",
    "CREATE TABLE IF NOT EXISTS {}traces (run TEXT, name TEXT, value TEXT, PRIMARY KEY (run, name))",
    "CREATE TABLE IF NOT EXISTS {}blobs (run TEXT, name TEXT, value BYTES, PRIMARY KEY (run, name))",
)
# SQLite's names of these causes. Each is the beginning of several names.
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_NO_ACCESS = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")


def import_psycopg() -> Any:
    """Import the PostgreSQL driver. Raises MissingExtraError."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError("--engine", "evals") from None
    return psycopg


class Server:
    """A PostgreSQL server at an address, for all threads of a process."""

    def __init__(self, url: str, report: Callable[[str], None] = lambda text: None) -> None:
        """`report` is called with a sentence when the server goes away and when it is back."""
        self.url = url
        self._report = report
        self._psycopg = import_psycopg()
        self._lock = threading.Lock()
        self._is_away = False
        self._closed = threading.Event()

    @property
    def errors(self) -> type[Exception]:
        """The errors of the driver."""
        kind: type[Exception] = self._psycopg.Error
        return kind

    def check(self) -> None:
        """Raise RunStoppedError unless the server can be reached now. A wrong address is reported at once."""
        try:
            self._connect().close()
        except self._psycopg.Error as error:
            raise server_error(self.url, error) from error

    def connect(self) -> Any:
        """Return a new connection, once the server is there. Raises RunStoppedError if it is away for too long."""
        deadline = time.monotonic() + MAX_OUTAGE
        while True:
            try:
                connection = self._connect()
            except self._psycopg.OperationalError as error:
                if time.monotonic() > deadline or self._closed.is_set():
                    raise server_error(self.url, error) from error
                self._set_away(True)
                self._closed.wait(_RETRY_SECONDS)
            else:
                self._set_away(False)
                return connection

    def close(self) -> None:
        """Let no thread wait any longer."""
        self._closed.set()

    def _connect(self) -> Any:
        connection = self._psycopg.connect(self.url, connect_timeout=_CONNECT_TIMEOUT, **_KEEPALIVES)
        connection.execute(_SERVER_KEEPALIVES)
        connection.commit()
        return connection

    def _set_away(self, is_away: bool) -> None:
        with self._lock:
            has_changed = is_away != self._is_away
            self._is_away = is_away
        if not has_changed:
            return
        if is_away:
            self._report("The database server cannot be reached. Waiting for it; nothing is lost.")
        else:
            self._report("The database server is back.")


class ServerDatabase:
    """One connection for the statements of all threads, which are repeated if the server went away."""

    def __init__(self, server: Server, schema: str) -> None:
        self._server = server
        self._schema = schema
        self._lock = threading.Lock()
        self._connection = self._connect()

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute a statement, with `{}` before the names of tables, and return its rows.

        It may be executed twice if the server goes away. Raises RunStoppedError.
        """
        text = statement.format(f"{self._schema}.").replace("?", "%s")
        with self._lock:
            while True:
                try:
                    cursor = self._connection.execute(text, values)
                    return list(cursor.fetchall()) if cursor.description else []
                except self._server.errors as error:
                    if not self._connection.closed:
                        raise server_error(self._server.url, error) from error
                self._connection = self._connect()

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _connect(self) -> Any:
        connection = self._server.connect()
        connection.autocommit = True
        return connection


def server_error(url: str, error: Exception) -> RunStoppedError:
    """Return an error that says why a server cannot be used. It leaves out the address's password."""
    from skillshelf_agent import hide_keys

    reason = hide_keys(str(error).splitlines()[0])
    return RunStoppedError(f"--engine {hide_keys(url)} cannot be used: {reason}")


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

    def __init__(self, run: str, database: Database) -> None:
        self._run = run
        self._database = database

    def for_run(self, run: str) -> RunStore:
        """Return the store of another run in the same database."""
        return RunStore(run, self._database)

    def add(self, table: Table, name: str, value: str | bytes) -> None:
        statement = f"INSERT INTO {{}}{table} VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._database.execute(statement, self._run, name, value)

    def find(self, table: Table, name: str) -> Any:
        """Return a record, or None if there is none of this name."""
        statement = f"SELECT value FROM {{}}{table} WHERE run = ? AND name = ?"
        rows = self._database.execute(statement, self._run, name)
        return rows[0][0] if rows else None

    def get_blob(self, digest: str) -> bytes:
        """Return a blob. Raises KeyError."""
        found = self.find("blobs", digest)
        if found is None:
            raise KeyError(digest)
        return bytes(found)

    def forget(self) -> None:
        """Remove everything of this run. It is over, and its report is written."""
        for table in get_args(Table):
            self._database.execute(f"DELETE FROM {{}}{table} WHERE run = ?", self._run)

    def close(self) -> None:
        self._database.close()


def open_file_store(path: str, run: str) -> RunStore:
    """Open a store in a file. Raises RunStoppedError."""
    database = FileDatabase(path)
    for table in _TABLES:
        database.execute(table.replace("BYTES", "BLOB"))
    return RunStore(run, database)


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
