"""Databases whose statements run in a worker, each in one of its own.

SQLite looks at the clock between two steps, and one step, such as a search in a long text, can take hours. A file that
someone else made can crash it, or have it delete other files. A value from a server can take all memory.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from skillshelf.sandbox import Worker, WorkerError, WorkerLimits
from skillshelf_skills.database import _worker
from skillshelf_skills.database._errors import DatabaseError, StatementRefusedError, TooSlowError
from skillshelf_skills.database._results import DescribedTable, Rows, TableInfo

_MEMORY_MEGABYTES = 512
_FILE_MEGABYTES = 1024
"""For a statement that reads, and sorts more than fits into memory."""
_LARGEST_FILE_MEGABYTES = 1024 * 1024
"""For a statement that writes: the database may have any size."""
_GRACE_SECONDS = 5.0
"""How long a worker has to start and to end. The databases themselves end most statements in time."""
_CONNECT_SECONDS = 10.0
_SERVER_VARIABLES = ("PG", "SSL_CERT_", "KRB5")
"""Beginnings of the environment variables from which libpq takes a server, passwords, certificates and tickets."""


class DatabaseProcess:
    """A database. See `SqliteFile` and `PostgresServer`, which do the work.

    Each call is a process and a connection of its own, so that no statement changes what the next one may do.
    """

    def __init__(self, request: dict[str, Any], seconds: float, *, grace_seconds: float) -> None:
        """`request` says which database it is. A statement may take this many `seconds`."""
        self._request = {**request, "seconds": seconds}
        self._seconds = seconds
        self._worker_seconds = seconds + grace_seconds

    def list_tables(self) -> list[TableInfo]:
        return self._ask("list_tables")  # type: ignore[no-any-return]

    def describe_table(self, table: str) -> DescribedTable:
        return self._ask("describe_table", table)  # type: ignore[no-any-return]

    def query(self, sql: str, parameters: Sequence[Any], limit: int) -> Rows:
        """Run one statement that reads. The database itself refuses one that writes."""
        return self._ask("query", sql, list(parameters), limit)  # type: ignore[no-any-return]

    def explain(self, sql: str, parameters: Sequence[Any]) -> str:
        return self._ask("explain", sql, list(parameters))  # type: ignore[no-any-return]

    def execute(self, sql: str, parameters: Sequence[Any]) -> int:
        """Run one statement that writes, and return the number of rows it changed."""
        return self._ask("execute", sql, list(parameters), writable=True)  # type: ignore[no-any-return]

    def _ask(self, method: str, *arguments: Any, writable: bool = False) -> Any:
        """Return what a worker answers. Raises DatabaseError."""
        limits = WorkerLimits(
            _MEMORY_MEGABYTES,
            cpu_seconds=math.ceil(self._worker_seconds),
            file_mb=_LARGEST_FILE_MEGABYTES if writable else _FILE_MEGABYTES,
        )
        request = {**self._request, "method": method, "arguments": arguments}
        try:
            with self._make_worker(limits, writable=writable) as worker:
                answer = worker.ask(request, seconds=self._worker_seconds)
        except WorkerError as error:
            raise self._explain(error) from None
        if "error" in answer:
            raise self._read_error(**answer)
        return answer["result"]

    def _make_worker(self, limits: WorkerLimits, *, writable: bool) -> Worker:
        raise NotImplementedError

    def _explain(self, error: WorkerError) -> DatabaseError:
        match error.kind:
            case "time":
                return TooSlowError(self._seconds)
            case "memory":
                return StatementRefusedError(f"it needs more than {_MEMORY_MEGABYTES} MB of memory.", code="")
            case "size":
                return StatementRefusedError("its result is longer than it may be.", code="")
            case "crash":
                return DatabaseError(
                    f"The process that runs the statement failed: {error}. Either the database is damaged, or the "
                    f"statement is beyond what it can do: try a simpler one, and tell the user."
                )

    def _read_error(self, error: str, message: str, code: str) -> DatabaseError:
        if error == "too-slow":
            return TooSlowError(self._seconds)
        if error == "refused":
            return StatementRefusedError(message, code=code)
        return DatabaseError(message, code=code)


class SqliteProcess(DatabaseProcess):
    """A database in a file. It is not opened here: closing it would free the locks that this process has on it."""

    def __init__(self, path: str, seconds: float) -> None:
        self._path = os.path.realpath(path)
        super().__init__({"path": self._path}, seconds, grace_seconds=_GRACE_SECONDS)

    def _ask(self, method: str, *arguments: Any, writable: bool = False) -> Any:
        try:
            return super()._ask(method, *arguments, writable=writable)
        except DatabaseError as error:
            if writable or error.code != "SQLITE_CANTOPEN":
                raise
        # A file in WAL mode that no program has open. To read it, SQLite makes an index beside it.
        return super()._ask(method, *arguments, writable=True)

    def _make_worker(self, limits: WorkerLimits, *, writable: bool) -> Worker:
        folder = os.path.dirname(self._path)
        return Worker(_worker.__file__, limits, readable=[folder], writable=[folder] if writable else [])


class Postgres(DatabaseProcess):
    """A database on a server, at an address as libpq takes it.

    The worker is sandboxed, except for a server behind a socket of this machine: a sandbox refuses those.
    """

    def __init__(self, address: str, seconds: float) -> None:
        """Connect to nothing yet. Raises SettingsError and MissingExtraError."""
        from skillshelf_skills.database._postgres import parse_address

        parts = parse_address(address)
        environment = {name: value for name, value in os.environ.items() if name.startswith(_SERVER_VARIABLES)}
        self._is_sandboxed = _is_over_network(parts, environment)
        environment["HOME"] = os.path.expanduser("~")
        # Certificates and files with passwords can be in /run.
        folders = [os.path.dirname(value) for value in (*parts.values(), *environment.values())]
        self._readable = [os.path.realpath(folder) for folder in folders if os.path.isabs(folder)]
        super().__init__(
            {"address": address, "environment": environment}, seconds, grace_seconds=_CONNECT_SECONDS + _GRACE_SECONDS
        )

    def _make_worker(self, limits: WorkerLimits, *, writable: bool) -> Worker:
        return Worker(_worker.__file__, limits, readable=self._readable, network=True, sandboxed=self._is_sandboxed)


def _is_over_network(parts: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return False for a server behind a Unix socket, and for one that a service file names."""
    hosts = parts.get("hostaddr") or parts.get("host")
    if not hosts and not (parts.get("service") or environment.get("PGSERVICE")):
        hosts = environment.get("PGHOSTADDR") or environment.get("PGHOST")
    return all(host and host[0] not in "/@" for host in (hosts or "").split(","))
