"""The database of a run: responses that must not be paid for twice, and packed cases for workers.

It lies beside the tables of DBOS, which keep the finished trials: in SQLite in the run's folder, or on the PostgreSQL
server that workers share.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

from skillshelf.errors import EvalError, MissingExtraError

SQLITE_PREFIX = "sqlite:///"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS {}responses (run TEXT, name TEXT, value TEXT, PRIMARY KEY (run, name))",
    "CREATE TABLE IF NOT EXISTS {}blobs (run TEXT, digest TEXT, data {}, PRIMARY KEY (run, digest))",
)
_SCHEMA = "skillshelf_evals"
# SQLite's names of these causes. Each is the beginning of several names.
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_NO_ACCESS = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")
_FIRST_WITH_SUBSEC = (3, 42, 0)
_SUBSEC = "subsec"


class Database:
    """One connection for all threads of a process."""

    def __init__(self, url: str, connect: Callable[[], Any], *, is_postgres: bool = False) -> None:
        """Connect. Raises EvalError if the SQLite file at `url` cannot be used."""
        self._url = url
        self._connect = connect
        self._is_postgres = is_postgres
        self._lock = threading.Lock()
        try:
            self._connection = connect()
        except sqlite3.Error as error:
            raise database_error(url, error) from error

    def execute(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Execute a statement, with `{}` before the names of tables, and return its rows."""
        if self._is_postgres:
            text = statement.format(f"{_SCHEMA}.").replace("?", "%s")
        else:
            text = statement.format("")
        with self._lock:
            try:
                return _execute(self._connection, text, values)
            except sqlite3.Error as error:
                raise database_error(self._url, error) from error
            except Exception:
                if not (self._is_postgres and self._connection.closed):
                    raise
                self._connection = self._connect()  # the server was restarted
                return _execute(self._connection, text, values)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


def _execute(connection: Any, text: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    cursor = connection.execute(text, values)
    return list(cursor.fetchall()) if cursor.description else []


class RunStore:
    """The responses and blobs of one run. A value is never replaced: a second writer finds the first one's value."""

    def __init__(self, run: str, database: Database) -> None:
        self._run = run
        self._database = database

    def for_run(self, run: str) -> RunStore:
        """Return the store of another run in the same database."""
        return RunStore(run, self._database)

    def add_response(self, name: str, value: str) -> None:
        statement = "INSERT INTO {}responses VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._database.execute(statement, self._run, name, value)

    def find_response(self, name: str) -> str | None:
        rows = self._database.execute("SELECT value FROM {}responses WHERE run = ? AND name = ?", self._run, name)
        return str(rows[0][0]) if rows else None

    def add_blob(self, digest: str, data: bytes) -> None:
        statement = "INSERT INTO {}blobs VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        self._database.execute(statement, self._run, digest, data)

    def get_blob(self, digest: str) -> bytes:
        """Return a blob. Raises KeyError."""
        rows = self._database.execute("SELECT data FROM {}blobs WHERE run = ? AND digest = ?", self._run, digest)
        if not rows:
            raise KeyError(digest)
        return bytes(rows[0][0])

    def forget(self) -> None:
        """Remove everything of this run. It is over, and its report is written."""
        for table in ("responses", "blobs"):
            self._database.execute(f"DELETE FROM {{}}{table} WHERE run = ?", self._run)

    def close(self) -> None:
        self._database.close()


def open_file_store(path: str, run: str) -> RunStore:
    """Open a store in a file of the run's folder. Raises EvalError."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # a power cut costs money too
        for table in _TABLES:
            connection.execute(table.format("", "BLOB"))
        return connection

    return RunStore(run, Database(f"{SQLITE_PREFIX}{path}", connect))


def open_server_store(url: str, run: str) -> RunStore:
    """Open a store on a PostgreSQL server. Raises EvalError."""
    psycopg = import_psycopg()

    def connect() -> Any:
        connection = psycopg.connect(url, autocommit=True)
        connection.execute(f"SELECT pg_advisory_lock(hashtext('{_SCHEMA}'))")  # CREATE IF NOT EXISTS can race itself
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
        for table in _TABLES:
            connection.execute(table.format(f"{_SCHEMA}.", "BYTEA"))
        connection.execute(f"SELECT pg_advisory_unlock(hashtext('{_SCHEMA}'))")
        return connection

    try:
        return RunStore(run, Database(url, connect, is_postgres=True))
    except psycopg.Error as error:
        raise database_error(url, error) from error


def import_psycopg() -> Any:
    """Import the PostgreSQL driver. Raises MissingExtraError."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError("--engine", "evals") from None
    return psycopg


def database_error(url: str, error: Exception) -> EvalError:
    """Return an error that says why a database cannot be used and what to do. It leaves out the address's password."""
    from skillshelf.agent import hide_keys

    reason = hide_keys(str(error).splitlines()[0])
    if not url.startswith(SQLITE_PREFIX):
        return EvalError(f"--engine {hide_keys(url)} cannot be used: {reason}")
    path = url.removeprefix(SQLITE_PREFIX)
    return EvalError(f"The run's database {path} cannot be used: {reason}", _advise(path, error))


def _advise(path: str, error: Exception) -> str:
    """Say how to repair a fault of the run's own SQLite file."""
    cause = getattr(error, "orig", error)
    code = getattr(cause, "sqlite_errorname", "")
    run = os.path.dirname(os.path.dirname(path))
    if code.startswith(_DAMAGED):
        return f"The file is damaged. Remove {run} and begin a new run"
    if code.startswith(_NO_ACCESS):
        return f"Make sure that {os.path.dirname(path)} can be written to and has room, then start the run again"
    python = platform.python_version()
    return f"A new run would not help. Report it with these versions: Python {python}, SQLite {sqlite3.sqlite_version}"


class DbosConnection(sqlite3.Connection):
    """A connection on which DBOS can keep its timestamps, on an old SQLite too.

    From Python 3.12 on, DBOS takes the time from `unixepoch('subsec')`. SQLite knows that modifier since 3.42 and
    returns NULL before, which the tables of DBOS refuse. Debian 12 has 3.40.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if sqlite3.sqlite_version_info >= _FIRST_WITH_SUBSEC:
            return

        self.create_function("unixepoch", 1, _unixepoch)
        # The tables name the function in their defaults, which some builds of SQLite allow for built-in functions only.
        self.execute("PRAGMA trusted_schema = ON")


def dbos_engine_arguments(url: str) -> dict[str, Any]:
    """Return the SQLAlchemy engine arguments that DBOS needs for a database."""
    if not url.startswith(SQLITE_PREFIX):
        return {}
    return {"connect_args": {"factory": DbosConnection}}


def _unixepoch(modifier: object) -> float:
    if modifier != _SUBSEC:
        raise ValueError(f"unixepoch({modifier!r}) needs SQLite 3.42; here only unixepoch({_SUBSEC!r}) is known")
    return time.time()
