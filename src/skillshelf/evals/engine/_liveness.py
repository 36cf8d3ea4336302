"""Who is at work on a run. A process that was killed says nothing, so each holds a lock that dies with it."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals.engine._store import postgres

LOCK = "lock"
# A machine that vanished is noticed by the server after about half a minute.
_KEEPALIVE = ("SET tcp_keepalives_idle = 15", "SET tcp_keepalives_interval = 5", "SET tcp_keepalives_count = 3")


@contextmanager
def only_here(state: str) -> Iterator[None]:
    """A run belongs to one process at a time. Raises EvalError where another has it."""
    descriptor = os.open(os.path.join(state, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise EvalError(
                f"{os.path.dirname(state)}: another process is at work on this run", "Wait for its end"
            ) from None
        yield
    finally:
        os.close(descriptor)


class Alive:
    """A lock on the server, by the name of this process, which the server lets go when the connection ends."""

    def __init__(self, url: str, executor: str) -> None:
        self._url, self._executor = url, executor
        self._lock = threading.Lock()
        self._connection = self._take()

    def dead(self, executors: set[str]) -> Iterator[str]:
        """Those among them whose process is gone. Each is held while the caller looks after what it left behind."""
        with self._lock:
            try:
                self._connection.execute("SELECT 1")
            except Exception:  # whatever ended the connection ended the lock, which others may have noticed already
                self._connection = self._take()
            for executor in sorted(executors - {self._executor}):
                if self._one("SELECT pg_try_advisory_lock(hashtextextended(%s, 5))", executor):
                    try:
                        yield executor
                    finally:
                        self._one("SELECT pg_advisory_unlock(hashtextextended(%s, 5))", executor)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _take(self) -> Any:
        connection = postgres().connect(self._url, autocommit=True)
        for setting in _KEEPALIVE:
            connection.execute(setting)
        connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 5))", (self._executor,))
        return connection

    def _one(self, statement: str, value: str) -> bool:
        return bool(self._connection.execute(statement, (value,)).fetchone()[0])
