"""The PostgreSQL server that workers share. It may be away for minutes: every connection waits for it to come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

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


def import_psycopg() -> Any:
    """Import the PostgreSQL driver. Raises MissingExtraError."""
    try:
        import psycopg
    except ImportError:
        raise MissingExtraError("--engine", "evals") from None
    return psycopg


class Server:
    """A PostgreSQL server at an address, for all threads of a process."""

    def __init__(
        self, url: str, report: Callable[[str], None] = lambda text: None, max_outage: float = MAX_OUTAGE
    ) -> None:
        """`report` is called with a sentence when the server goes away and when it is back."""
        self.url = url
        self._report = report
        self._max_outage = max_outage
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
        deadline = time.monotonic() + self._max_outage
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
    from skillshelf.agent import hide_keys

    reason = hide_keys(str(error).splitlines()[0])
    return RunStoppedError(f"--engine {hide_keys(url)} cannot be used: {reason}")
