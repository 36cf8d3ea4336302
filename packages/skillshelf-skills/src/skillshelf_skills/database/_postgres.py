"""PostgreSQL, over a connection of its own for each statement. This runs in the process of one statement."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from skillshelf.errors import MissingExtraError, SettingsError
from skillshelf_skills.database._errors import DatabaseError, StatementRefusedError, TooSlowError
from skillshelf_skills.database._results import ColumnInfo, DescribedTable, Rows, TableInfo, make_rows

try:
    import psycopg
    from psycopg import Cursor, RawCursor
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.types.string import TextLoader
except ModuleNotFoundError as error:
    raise MissingExtraError("PostgreSQL", "database") from error

_MAX_CONNECT_SECONDS = 10
# Roles that reach the files and programs of the server, or everyone's data.
_POWERS = ("pg_read_server_files", "pg_write_server_files", "pg_execute_server_program")
# What a role may become counts as what it is: a statement can say SET ROLE first. That is why the role that logged in
# counts too, if another one is set for it.
_POWERS_QUERY = """
SELECT DISTINCT power.rolname, power.rolsuper
FROM pg_roles AS power, (VALUES (current_user), (session_user)) AS own (name)
WHERE (power.rolsuper OR power.rolname = ANY ($1)) AND pg_has_role(own.name, power.oid, 'member')
ORDER BY 2 DESC, 1
"""
# These are passed on as the server writes them. Python knows no infinite dates, and no bound for the depth of JSON.
_AS_TEXT = ("json", "jsonb", "date", "timestamp", "timestamptz", "interval")
_GRACE_SECONDS = 3.0
"""How long the server has to end a statement. After that the process ends."""
_CHECK_CLIENT = "SET client_connection_check_interval = 1000"
_TABLES_QUERY = """
SELECT CASE table_schema WHEN current_schema() THEN table_name ELSE table_schema || '.' || table_name END,
       CASE table_type WHEN 'VIEW' THEN 'view' ELSE 'table' END
FROM information_schema.tables
WHERE table_schema NOT IN ('pg_catalog', 'information_schema')
ORDER BY 1
"""
_COLUMNS_QUERY = """
SELECT attname, format_type(atttypid, atttypmod), NOT attnotnull,
       EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey)),
       coalesce((SELECT format('%s.%s', confrelid::regclass, target.attname)
                 FROM pg_constraint
                 JOIN pg_attribute AS target ON target.attrelid = confrelid AND target.attnum = confkey[1]
                 WHERE conrelid = column_.attrelid AND contype = 'f' AND conkey = ARRAY[column_.attnum] LIMIT 1), '')
FROM pg_attribute AS column_
WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
"""
_INDEXES_QUERY = "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = to_regclass($1) ORDER BY 1"


def parse_address(address: str) -> dict[str, str]:
    """Return the parts of an address, which is a URL as libpq takes it. Raises SettingsError."""
    try:
        return {name: str(value) for name, value in conninfo_to_dict(address).items()}
    except psycopg.Error:
        # The library's message repeats the address, and with it a password.
        raise SettingsError(
            "This is not the address of a PostgreSQL database. Write: postgresql://user@host/name, and put the "
            "password in PGPASSWORD or ~/.pgpass."
        ) from None


class PostgresServer:
    """A database on a server. The server keeps statements to reading, and ends those that take too long."""

    def __init__(self, address: str, seconds: float) -> None:
        """A statement may take this many seconds."""
        self._seconds = seconds
        self._parts = parse_address(address)
        self._label = f"PostgreSQL {self._parts.get('dbname', '')}".rstrip()

    def list_tables(self) -> list[TableInfo]:
        found = self._read(_TABLES_QUERY)
        return [TableInfo(name=name, kind=kind) for name, kind in found]

    def describe_table(self, table: str) -> DescribedTable:
        columns = [
            ColumnInfo(name=name, type=kind, is_nullable=nullable, is_key=key, references=target)
            for name, kind, nullable, key, target in self._read(_COLUMNS_QUERY, table)
        ]
        if not columns:
            raise DatabaseError(f"There is no table {table!r}. list_tables names them all.")
        return DescribedTable(
            name=table, columns=columns, indexes=[text for (text,) in self._read(_INDEXES_QUERY, table)]
        )

    def query(self, sql: str, parameters: Sequence[Any], limit: int) -> Rows:
        with self._connect() as cursor:
            rows = cursor.stream(sql, parameters)
            with _refuse_other_kinds(cursor, "It returns no rows. Send one that does, such as SELECT."):
                first = next(rows, None)
            columns = [column.name for column in cursor.description or ()]
            return make_rows(columns, () if first is None else _chain(first, rows), limit)

    def explain(self, sql: str, parameters: Sequence[Any]) -> str:
        with self._connect() as cursor:
            _execute_one(cursor, f"EXPLAIN {sql}", parameters)
            return "\n".join(str(line) for (line,) in cursor.fetchall())

    def execute(self, sql: str, parameters: Sequence[Any]) -> int:
        with self._connect(writable=True) as cursor:
            with _refuse_other_kinds(cursor, "COPY cannot send rows here, or take them. Use SELECT or INSERT."):
                _execute_one(cursor, sql, parameters)
            return max(0, cursor.rowcount)

    def _read(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with self._connect() as cursor:
            _execute_one(cursor, sql, parameters)
            return cursor.fetchall()

    @contextmanager
    def _connect(self, *, writable: bool = False) -> Iterator[Cursor[tuple[Any, ...]]]:
        """Begin a transaction on a new connection. What a statement sets for its session ends with it."""
        milliseconds = round(self._seconds * 1000)
        mode = "off" if writable else "on"
        options = (
            f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds} "
            f"-c idle_in_transaction_session_timeout={milliseconds} -c default_transaction_read_only={mode}"
        )
        overrides: dict[str, str | int | None] = {
            "options": options,
            "connect_timeout": _MAX_CONNECT_SECONDS,
            "application_name": "skillshelf",
        }
        address = make_conninfo("", **{**self._parts, **overrides})
        try:
            connection = psycopg.connect(address, cursor_factory=RawCursor, autocommit=True)
        except psycopg.Error as error:
            raise DatabaseError(
                f"There is no connection to {self._label}: {_first_line(error)} Tell the user: the address, the "
                f"password (PGPASSWORD or ~/.pgpass) or the server needs their attention.",
                code=error.sqlstate or "",
            ) from None
        # A function can catch the server's own time limit and go on. The end of this process, and with it of the
        # connection, cannot be caught.
        signal.setitimer(signal.ITIMER_REAL, self._seconds + _GRACE_SECONDS)
        try:
            with suppress(psycopg.Error):  # a server older than 14, or on a system where it cannot tell
                connection.execute(_CHECK_CLIENT)
            connection.autocommit = False
            connection.read_only = not writable
            for name in _AS_TEXT:
                connection.adapters.register_loader(name, TextLoader)
            with connection, connection.cursor() as cursor:
                # After this first query, the server refuses to make the transaction writable.
                _refuse_powers(cursor)
                yield cursor
                if not writable:
                    connection.rollback()
        except psycopg.errors.QueryCanceled:
            raise TooSlowError(self._seconds) from None
        except psycopg.Error as error:
            raise StatementRefusedError(_first_line(error), code=error.sqlstate or "") from None
        except UnicodeError as error:
            raise StatementRefusedError(f"{error}.", code="") from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.close()


def _execute_one(cursor: Cursor[tuple[Any, ...]], sql: str, parameters: Sequence[Any]) -> None:
    """Execute one statement. Prepared ones cannot be several, so a second one after a semicolon is refused."""
    cursor.execute(sql, parameters, prepare=True)


def _refuse_powers(cursor: Cursor[tuple[Any, ...]]) -> None:
    """Raise DatabaseError if the role could do more on the server than the statement may."""
    _execute_one(cursor, _POWERS_QUERY, [list(_POWERS)])
    powers = cursor.fetchall()
    if powers:
        name, is_superuser = powers[0]
        what = f"a superuser, or can become one ({name})" if is_superuser else f"a member of {name}"
        raise DatabaseError(
            f"The role of this connection is {what}, and could read the server's files and run programs there. Ask the "
            f"user to connect with a role that may do no more than it needs: CREATE ROLE reader LOGIN; "
            f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader."
        )


@contextmanager
def _refuse_other_kinds(cursor: Cursor[tuple[Any, ...]], reason: str) -> Iterator[None]:
    """Raise StatementRefusedError with our reason if the library, not the server, cannot run a statement."""
    try:
        yield
    except (psycopg.ProgrammingError, psycopg.InternalError) as error:
        if error.sqlstate:
            raise
        cursor.connection.close()  # the server may still wait for the rest of a COPY
        raise StatementRefusedError(reason, code="") from None


def _chain(first: tuple[Any, ...], rest: Iterator[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    yield first
    yield from rest


def _first_line(error: psycopg.Error) -> str:
    """Return what the server said, without the position and the context that follow."""
    text = error.diag.message_primary or str(error).strip().partition("\n")[0]
    return f"{text.rstrip('.')}."
