"""Rows of a query in a form that a model can read."""

import math
from collections.abc import Iterable, Sequence
from datetime import date, time, timedelta
from typing import Any

from skillshelf.bundled.database._results import Rows, Value

_MAX_TEXT = 2_000
"""Characters of one value. A longer one is cut, and says so."""


def make_rows(columns: Sequence[str], rows: Iterable[Sequence[Any]], limit: int) -> Rows:
    """Return at most `limit` rows. One more is read, to know whether there are more."""
    kept: list[list[Value]] = []
    is_whole = True
    for row in rows:
        if len(kept) == limit:
            is_whole = False
            break
        kept.append([_as_value(value) for value in row])
    return Rows(columns=list(columns), rows=kept, is_whole=is_whole)


def _as_value(value: Any) -> Value:
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return _cut(value)
        case bytes() | bytearray() | memoryview():
            return f"({len(bytes(value)):,} bytes)"
        case date() | time():  # a datetime is a date
            return value.isoformat()
        case timedelta():
            return str(value)
        case list() | tuple() | set():
            return [_as_value(item) for item in value]
        case dict():
            return {str(key): _as_value(item) for key, item in value.items()}
        case _:  # a decimal number, a UUID, a network address, a range
            return _cut(str(value))


def _cut(text: str) -> str:
    if len(text) <= _MAX_TEXT:
        return text
    return f"{text[:_MAX_TEXT]}… ({len(text):,} characters)"
