"""Tables in CSV and TSV, and their first difference."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from skillshelf.text import count_noun, truncate
from skillshelf_evals._limits import MAX_EXPONENT
from skillshelf_evals._text import MAX_QUOTED, list_items

_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class CsvTable:
    """The header of a table, and its rows below it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def parse_table(text: str, path: str) -> CsvTable:
    """Return the table in a text. Blank lines do not count. Raises ValueError if there is none."""
    first_line = text.lstrip().partition("\n")[0]
    delimiter = "\t" if path.lower().endswith(".tsv") else max(_DELIMITERS, key=first_line.count)
    try:
        lines = [line for line in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if line]
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if not lines:
        raise ValueError("it is empty")

    columns = tuple(cell.strip() for cell in lines[0])
    if len(set(columns)) < len(columns):
        raise ValueError(f"two columns have the same name: {list_items(columns)}")
    rows = []
    for number, line in enumerate(lines[1:], 1):
        if len(line) != len(columns):
            raise ValueError(
                f"row {number} has {count_noun(len(line), 'cell')} for {count_noun(len(columns), 'column')}"
            )
        rows.append(tuple(cell.strip() for cell in line))
    return CsvTable(columns, tuple(rows))


def find_table_difference(table: CsvTable, expected: CsvTable, tolerance: float, *, any_order: bool) -> str:
    """Return the first difference as a sentence; empty if there is none. With `any_order`, rows are sorted first."""
    missing = [column for column in expected.columns if column not in table.columns]
    if missing:
        return f"there is no column {list_items(missing)}"
    more = [column for column in table.columns if column not in expected.columns]
    if more:
        return f"there is another column {list_items(more)}"
    if len(table.rows) != len(expected.rows):
        return f"{count_noun(len(table.rows), 'row')} instead of {len(expected.rows)}"

    positions = [table.columns.index(column) for column in expected.columns]
    rows: Sequence[Sequence[str]] = [[row[position] for position in positions] for row in table.rows]
    expected_rows: Sequence[Sequence[str]] = expected.rows
    if any_order:
        rows = sorted(rows, key=_sorting_key)
        expected_rows = sorted(expected_rows, key=_sorting_key)

    for number, (row, expected_row) in enumerate(zip(rows, expected_rows, strict=True), 1):
        for column, cell, wanted in zip(expected.columns, row, expected_row, strict=True):
            if not _is_same(cell, wanted, tolerance):
                place = "a row" if any_order else f"row {number}"
                found = truncate(cell, MAX_QUOTED)
                return f"{place} has {found!r} in {column!r} instead of {truncate(wanted, MAX_QUOTED)!r}"
    return ""


def _is_same(cell: str, wanted: str, tolerance: float) -> bool:
    if cell == wanted:
        return True
    number = _parse_number(cell)
    wanted_number = _parse_number(wanted)
    if number is None or wanted_number is None:
        return False
    return abs(number - wanted_number) <= Decimal(str(tolerance))


def _sorting_key(row: Sequence[str]) -> list[tuple[bool, Decimal, str]]:
    """Sort numbers by their values, before all texts."""
    key = []
    for cell in row:
        number = _parse_number(cell)
        if number is None:
            key.append((True, Decimal(0), cell))
        else:
            key.append((False, number, ""))
    return key


def _parse_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    is_usable = number.is_finite() and abs(number.adjusted()) <= MAX_EXPONENT
    return number if is_usable else None
