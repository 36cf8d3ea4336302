"""Results of the tools, and rows of a query in a form that a model can read."""

import math
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta
from typing import Any, TypedDict

from skillshelf.text import truncate

MAX_TEXT = 2_000
"""Characters of one value. A longer one is cut, and says so."""
_MAX_ITEMS = 200
"""Of an array."""
_MAX_RESULT = 200_000
"""Characters of all rows. A result has at least one row."""
MAX_TABLES = 2_000

Parameter = str | int | float | bool | None
"""A value that a query gets beside its text."""
Value = str | int | float | bool | None | list[Any] | dict[str, Any]


class Rows(TypedDict):
    """The result of a query."""

    columns: list[str]
    rows: list[list[Value]]
    is_whole: bool
    """False if the query has more rows than were asked for, or than fit into a result."""


class ColumnInfo(TypedDict):
    """A column of a table."""

    name: str
    type: str
    is_nullable: bool
    is_key: bool
    """True if it belongs to the primary key."""
    references: str
    """`table.column` that a foreign key leads to; empty if there is none."""


class TableInfo(TypedDict):
    """A table or a view."""

    name: str
    kind: str
    """`table` or `view`."""


class DescribedTable(TypedDict):
    """A table with its columns and indexes."""

    name: str
    columns: list[ColumnInfo]
    indexes: list[str]


def make_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], limit: int) -> Rows:
    """Return at most `limit` rows. One more is read, to know whether there are more."""
    kept: list[list[Value]] = []
    room = _MAX_RESULT
    is_whole = True
    for row in rows:
        if len(kept) == limit or room <= 0:
            is_whole = False
            break
        kept.append([_as_value(value) for value in row])
        room -= sum(len(str(value)) for value in kept[-1])
    return Rows(columns=list(columns), rows=kept, is_whole=is_whole)


def _as_value(value: Any) -> Value:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return truncate(value, MAX_TEXT)
        case bytes() | bytearray() | memoryview():
            return f"({len(bytes(value)):,} bytes)"
        case date() | time():  # a datetime is a date
            return value.isoformat()
        case timedelta():
            return str(value)
        case list() | tuple() | set():
            items = [_as_value(item) for item in list(value)[:_MAX_ITEMS]]
            return items if len(value) <= _MAX_ITEMS else [*items, f"… ({len(value):,} items)"]
        case dict():  # a node, a relationship or a path of a graph; databases send JSON as text
            return {str(key): _as_value(item) for key, item in list(value.items())[:_MAX_ITEMS]}
        case _:  # a decimal number, a UUID, a network address, a range
            return truncate(str(value), MAX_TEXT)
