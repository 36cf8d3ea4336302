"""Results of the tools."""

from typing import Any, TypedDict

Parameter = str | int | float | bool | None
"""A value that a query gets beside its text."""
Value = str | int | float | bool | None | list[Any] | dict[str, Any]


class Rows(TypedDict):
    """The result of a query."""

    columns: list[str]
    rows: list[list[Value]]
    is_whole: bool
    """False if the query has more rows than were asked for, or than fit into a result."""


class Column(TypedDict):
    """A column of a table."""

    name: str
    type: str
    is_nullable: bool
    is_key: bool
    """True if it belongs to the primary key."""
    references: str
    """`table.column` that a foreign key leads to; empty if there is none."""


class Table(TypedDict):
    """A table or a view."""

    name: str
    kind: str
    """`table` or `view`."""


class DescribedTable(TypedDict):
    """A table with its columns and indexes."""

    name: str
    columns: list[Column]
    indexes: list[str]
