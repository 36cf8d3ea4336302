"""Tables as values, for a terminal and for a pipe."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_SHOWN = 50
_COMMAND = re.compile(r"^\s*:(?=:)")


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    right: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of plain text under a title; what cannot be said in a row is said below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def cut_rows(table: Table) -> Table:
    """As many rows as a person reads; the rest is counted."""
    more = len(table.rows) - _SHOWN
    if more <= 0:
        return table
    return replace(table, rows=table.rows[:_SHOWN], notes=(*table.notes, f"{more} more rows are in the HTML report"))


def inert(line: str) -> str:
    """A line that GitHub takes for no command of the workflow, whatever a skill or a case is called.

    It looks for `::` after any blanks at the beginning, and for `##[` anywhere.
    """
    return _COMMAND.sub(r"\g<0> ", line.replace("##[", "## ["))
