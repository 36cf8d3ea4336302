"""Helpers for the tables of reports."""

from __future__ import annotations

import re
from dataclasses import replace

from skillshelf.tables import Table

_SHOWN = 50
_COMMAND = re.compile(r"^\s*:(?=:)")


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
