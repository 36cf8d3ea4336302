"""SQLite in a process of its own for each statement.

SQLite looks at the clock between two steps, and one step, such as a search in a long text, can take hours. A file that
someone else made can crash the library. In a process that can be ended, both cost one statement.
"""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from skillshelf.bundled.database._errors import DatabaseError, StatementRefusedError, TooSlowError
from skillshelf.bundled.database._results import DescribedTable, Rows, TableInfo

_WORKER = "skillshelf.bundled.database._sqlite_worker"
_MEMORY_MEGABYTES = 512
_FILE_MEGABYTES = 1024
"""For a statement that reads, and sorts more than fits into memory."""
_LARGEST_FILE_MEGABYTES = 1024 * 1024
"""For a statement that writes: the database may have any size."""
_GRACE_SECONDS = 5.0
"""How long a process has to start and to end. SQLite itself ends most statements in time."""


class SqliteProcess:
    """A database in a file. See `SqliteFile`, which does the work."""

    def __init__(self, path: str, seconds: float) -> None:
        """A statement may take this many seconds."""
        self._path = os.path.abspath(path)
        self._seconds = seconds

    def list_tables(self) -> list[TableInfo]:
        return self._ask("list_tables")  # type: ignore[no-any-return]

    def describe_table(self, table: str) -> DescribedTable:
        return self._ask("describe_table", table)  # type: ignore[no-any-return]

    def query(self, sql: str, parameters: Sequence[Any], limit: int) -> Rows:
        return self._ask("query", sql, list(parameters), limit)  # type: ignore[no-any-return]

    def explain(self, sql: str, parameters: Sequence[Any]) -> str:
        return self._ask("explain", sql, list(parameters))  # type: ignore[no-any-return]

    def execute(self, sql: str, parameters: Sequence[Any]) -> int:
        return self._ask("execute", sql, list(parameters))  # type: ignore[no-any-return]

    def _ask(self, method: str, *arguments: Any) -> Any:
        """Return what the process answers. Raises DatabaseError."""
        request = {
            "path": self._path,
            "seconds": self._seconds,
            "method": method,
            "arguments": arguments,
            "memory_megabytes": _MEMORY_MEGABYTES,
            "cpu_seconds": math.ceil(self._seconds + _GRACE_SECONDS),
            "file_megabytes": _LARGEST_FILE_MEGABYTES if method == "execute" else _FILE_MEGABYTES,
        }
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-m", _WORKER],
                input=json.dumps(request).encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=self._seconds + _GRACE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise TooSlowError(self._seconds) from None
        if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
            raise TooSlowError(self._seconds)
        if done.returncode or not done.stdout:
            raise DatabaseError(
                f"SQLite ended in the middle of the statement (status {done.returncode}). Either the file "
                f"{os.path.basename(self._path)!r} is damaged, or the statement is beyond what SQLite can do: try a "
                f"simpler one, and tell the user."
            )
        answer = json.loads(done.stdout)
        if "error" in answer:
            self._fail(**answer)
        return answer["result"]

    def _fail(self, error: str, message: str, code: str) -> NoReturn:
        if error == "too-slow":
            raise TooSlowError(self._seconds)
        if error == "refused":
            raise StatementRefusedError(message, code=code)
        raise DatabaseError(message, code=code)
