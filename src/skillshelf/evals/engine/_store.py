"""What a run must not lose and not pay for twice, in a database: the responses of models, and the cases that travel.

Beside the tables of DBOS, which keep the finished trials: SQLite in the run's folder, or the PostgreSQL server that the
workers share.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

from skillshelf.errors import EvalError, MissingExtraError
from skillshelf.evals.engine._sqlite import URL_PREFIX

_TABLES = (
    "CREATE TABLE IF NOT EXISTS {}kept (run TEXT, name TEXT, value TEXT, PRIMARY KEY (run, name))",
    "CREATE TABLE IF NOT EXISTS {}blobs (run TEXT, digest TEXT, data {}, PRIMARY KEY (run, digest))",
)
_SCHEMA = "skillshelf_evals"
# How SQLite names the causes, each the beginning of several names.
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT")
_NO_ACCESS = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_BUSY")


class Database:
    """One connection, for all threads of a process."""

    def __init__(self, url: str, connect: Callable[[], Any], *, postgres: bool = False) -> None:
        """Connect. Raises EvalError if the SQLite file at `url` cannot be used."""
        self._url = url
        self._connect = connect
        self._postgres = postgres
        self._lock = threading.Lock()
        try:
            self._connection = connect()
        except sqlite3.Error as error:
            raise unusable(url, error) from error

    def do(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        text = statement.format(f"{_SCHEMA}." if self._postgres else "")
        if self._postgres:
            text = text.replace("?", "%s")
        with self._lock:
            try:
                return _execute(self._connection, text, values)
            except sqlite3.Error as error:
                raise unusable(self._url, error) from error
            except Exception:
                if not (self._postgres and self._connection.closed):
                    raise
                self._connection = self._connect()  # the server was started anew
                return _execute(self._connection, text, values)

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class Store:
    """Of one run. What is written once stays: a second writer finds the first one's value."""

    def __init__(self, run: str, database: Database) -> None:
        self._run, self._database = run, database

    def of(self, run: str) -> Store:
        """The same database, for another run."""
        return Store(run, self._database)

    def keep(self, name: str, value: str) -> None:
        self._database.do("INSERT INTO {}kept VALUES (?, ?, ?) ON CONFLICT DO NOTHING", self._run, name, value)

    def kept(self, name: str) -> str | None:
        rows = self._database.do("SELECT value FROM {}kept WHERE run = ? AND name = ?", self._run, name)
        return str(rows[0][0]) if rows else None

    def put(self, digest: str, data: bytes) -> None:
        self._database.do("INSERT INTO {}blobs VALUES (?, ?, ?) ON CONFLICT DO NOTHING", self._run, digest, data)

    def get(self, digest: str) -> bytes:
        """Raises KeyError."""
        rows = self._database.do("SELECT data FROM {}blobs WHERE run = ? AND digest = ?", self._run, digest)
        if not rows:
            raise KeyError(digest)
        return bytes(rows[0][0])

    def forget(self) -> None:
        """The run is over, and its report is written."""
        for table in ("kept", "blobs"):
            self._database.do(f"DELETE FROM {{}}{table} WHERE run = ?", self._run)

    def close(self) -> None:
        self._database.close()


def open_file(path: str, run: str) -> Store:
    """A store in a file of the run's folder."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # a power cut costs money too
        for table in _TABLES:
            connection.execute(table.format("", "BLOB"))
        return connection

    return Store(run, Database(f"{URL_PREFIX}{path}", connect))


def open_server(url: str, run: str) -> Store:
    """A store on a PostgreSQL server. Raises EvalError."""
    psycopg = postgres()

    def connect() -> Any:
        connection = psycopg.connect(url, autocommit=True)
        connection.execute(f"SELECT pg_advisory_lock(hashtext('{_SCHEMA}'))")  # CREATE IF NOT EXISTS can race itself
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
        for table in _TABLES:
            connection.execute(table.format(f"{_SCHEMA}.", "BYTEA"))
        connection.execute(f"SELECT pg_advisory_unlock(hashtext('{_SCHEMA}'))")
        return connection

    try:
        return Store(run, Database(url, connect, postgres=True))
    except psycopg.Error as error:
        raise unusable(url, error) from error


def unusable(url: str, error: Exception) -> EvalError:
    """Return an error that says why a database cannot be used and what to do. It leaves out the address's password."""
    from skillshelf.agent import safe

    reason = safe(str(error).splitlines()[0])
    if not url.startswith(URL_PREFIX):
        return EvalError(f"--engine {safe(url)} cannot be used: {reason}")
    path = url.removeprefix(URL_PREFIX)
    return EvalError(f"The run's database {path} cannot be used: {reason}", _advice(path, error))


def _advice(path: str, error: Exception) -> str:
    """Say what mends a fault of the run's own SQLite file."""
    cause = getattr(error, "orig", error)
    code = getattr(cause, "sqlite_errorname", "")
    run = os.path.dirname(os.path.dirname(path))
    if code.startswith(_DAMAGED):
        return f"The file is damaged. Remove {run} and begin a new run"
    if code.startswith(_NO_ACCESS):
        return f"Make sure that {os.path.dirname(path)} can be written to and has room, then start the run again"
    python = platform.python_version()
    return f"A new run would not help. Report it with these versions: Python {python}, SQLite {sqlite3.sqlite_version}"


def _execute(connection: Any, text: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    cursor = connection.execute(text, values)
    return list(cursor.fetchall()) if cursor.description else []


def postgres() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError("--engine", "evals") from None
    return psycopg
