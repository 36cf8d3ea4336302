"""Questions to a database in SQL. The database itself keeps them to reading."""

import os
from typing import TYPE_CHECKING, Self

from skillshelf.errors import SettingsError
from skillshelf.skills import BaseSkill, Permission, tool
from skillshelf_skills._addresses import POSTGRES_PASSWORD, refuse_password
from skillshelf_skills._narrowing import narrow
from skillshelf_skills._values import clean_values
from skillshelf_skills.database._results import DescribedTable, Parameter, Rows, TableInfo

if TYPE_CHECKING:
    from skillshelf_skills.database._process import DatabaseProcess

_WRITE = "write:"
_SERVER_PREFIXES = ("postgresql://", "postgres://")
_SQLITE_HEADER = b"SQLite format 3\0"


class DatabaseSkill(BaseSkill):
    name = "database"
    description = (
        "Answer questions from a SQLite or PostgreSQL database: schema, read-only SQL queries, query plans. "
        "Use when data has to be looked up, counted or compared."
    )
    category = "raw"
    references = ("references/query_patterns.md", "references/error_codes.md", "references/explain_plans.md")
    instructions = """
    Call `list_tables` and `describe_table` before you write SQL, and never guess a name. Then call `run_query` with one
    statement; put values into `parameters`, not into the text. Give numbers as the rows have them, and say which query
    they come from.

    - Before paging, dates, percentages or the newest row per group: load the reference `query_patterns.md`.
    - A statement is refused: load the reference `error_codes.md`.
    - It is too slow: call `explain_query`, and load the reference `explain_plans.md`.
    - To change data, use `run_statement` if you have it, and show the user the statement first.
    """

    def __init__(self, target: str, *, writable: bool = False, max_rows: int = 500, seconds: float = 15.0) -> None:
        """Open nothing yet.

        `target` is an SQLite file, or the address of a PostgreSQL database: `postgresql://user@host/name`. Statements
        that write need `writable`; one statement returns at most `max_rows` and takes at most `seconds`.
        """
        self._target = target
        self._writable = writable
        self._max_rows = max_rows
        self._seconds = seconds

    @classmethod
    def from_setting(cls, setting: str) -> Self:
        """Return the skill for `FILE` or `postgresql://…`, after `write:` if it may write.

        Statements ask for approval, except on a file that is opened read-only: nothing else is within their reach.
        """
        writable = setting.startswith(_WRITE)
        target = setting.removeprefix(_WRITE)
        if not target:
            raise SettingsError("Name a database: --with database=app.db, or database=postgresql://user@host/name")
        skill = cls(target, writable=writable)
        is_server = target.startswith(_SERVER_PREFIXES)
        # A mistake in it shows now, not in the middle of a conversation.
        if is_server:
            refuse_password(target, POSTGRES_PASSWORD)
            skill._open()
        else:
            _check_file(target)
            if not _is_sqlite(target):
                raise SettingsError(f"{os.path.basename(target)!r} is not an SQLite database. Give the path of one.")
        query: Permission = "ask" if writable or is_server else "safe"
        if not writable:
            narrow(skill, without=["run_statement"])
        return skill.with_policy(
            {
                "list_tables": "safe",
                "describe_table": "safe",
                "run_query": query,
                "explain_query": query,
                "run_statement": "ask" if writable else "blocked",
            }
        )

    @tool
    def list_tables(self) -> list[TableInfo]:
        """Name the tables and views of the database."""
        return clean_values(self._open().list_tables())

    @tool
    def describe_table(self, table: str) -> DescribedTable:
        """Return the columns of a table, with types, keys and indexes.

        Args:
            table: Its name, as `list_tables` gives it.
        """
        return clean_values(self._open().describe_table(table))

    @tool
    def run_query(self, sql: str, parameters: list[Parameter] | None = None, limit: int = 100) -> Rows:
        """Run one SQL statement that reads, and return its rows. The database refuses statements that write.

        Args:
            sql: One statement. Placeholders are `?` in SQLite and `$1`, `$2` in PostgreSQL.
            parameters: The values for the placeholders, in order.
            limit: The maximum number of rows. `is_whole` says whether there are more.
        """
        rows = max(1, min(limit, self._max_rows))
        return clean_values(self._open().query(sql, parameters or [], rows))

    @tool
    def explain_query(self, sql: str, parameters: list[Parameter] | None = None) -> str:
        """Return the database's plan for a statement, without running it.

        Args:
            sql: One statement, without EXPLAIN.
            parameters: The values for its placeholders.
        """
        return clean_values(self._open().explain(sql, parameters or []))

    @tool
    def run_statement(self, sql: str, parameters: list[Parameter] | None = None) -> int:
        """Run one SQL statement that changes data, and return the number of rows it changed.

        Args:
            sql: One statement. It is committed if it succeeds.
            parameters: The values for its placeholders, in order.
        """
        if not self._writable:
            from skillshelf_skills.database._errors import DatabaseError

            raise DatabaseError("This database is attached for reading. Ask the user to attach it with `write:`.")
        return self._open().execute(sql, parameters or [])

    def _open(self) -> "DatabaseProcess":
        """Return the database. Nothing is connected yet. Raises SettingsError for a target that cannot be one."""
        from skillshelf_skills.database._process import Postgres, SqliteProcess

        if self._target.startswith(_SERVER_PREFIXES):
            return Postgres(self._target, self._seconds)
        _check_file(self._target)
        return SqliteProcess(self._target, self._seconds)


def _check_file(path: str) -> None:
    if not os.path.isfile(path):
        raise SettingsError(
            f"There is no database file {os.path.basename(path)!r}. Give its path, or the address of a server: "
            f"postgresql://user@host/name"
        )


def _is_sqlite(path: str) -> bool:
    """Return False for a file of another kind. An empty file is a database without tables.

    Not for every statement: closing a file frees the locks that this process has on it, for example with a connection
    of its own.
    """
    try:
        with open(path, "rb") as file:
            beginning = file.read(len(_SQLITE_HEADER))
    except OSError:  # each call of a tool says so
        return True
    return beginning in (b"", _SQLITE_HEADER)
