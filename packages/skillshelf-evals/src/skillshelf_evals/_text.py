"""Texts in messages and reports: quoted, listed, compared, and values explained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.text import truncate

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


MAX_LISTED_ITEMS = 8
MAX_QUOTED = 160
"""Characters of a text that a message quotes."""
MAX_VALUE_SHOWN = 60
_EXPECTED = {
    "string_type": "It must be text: put it in quotes",
    "bool_type": "It must be true or false",
    "int_type": "It must be a whole number",
    "float_type": "It must be a number",
    "list_type": "It must be a list: lines that begin with `- `",
    "tuple_type": "It must be a list: lines that begin with `- `",
    "dict_type": "It must be a mapping: {path: README.md}",
    "finite_number": "It must be a finite number",
}


def format_money(amount: float) -> str:
    """Return US dollars: in cents, unless that would hide a small amount."""
    is_whole_cents = abs(amount - round(amount, 2)) < 1e-6
    return f"${amount:.2f}" if amount >= 1 or is_whole_cents else f"${amount:.4f}"


def list_items(items: Sequence[str], limit: int = MAX_LISTED_ITEMS) -> str:
    """Return items for a sentence, each once: `a, b and 3 more`, or `none`."""
    unique = list(dict.fromkeys(items))
    if not unique:
        return "none"

    listed = ", ".join(truncate(item, MAX_QUOTED) for item in unique[:limit])
    left_out = len(unique) - limit
    if left_out > 0:
        return f"{listed} and {left_out} more"
    return listed


class LineDifference(NamedTuple):
    """The first line in which two texts differ."""

    number: int
    ours: str | None
    """None if our text has ended before this line."""
    theirs: str | None


def find_first_difference(ours: str, theirs: str) -> LineDifference | None:
    """Return the first line that differs, or None if the texts are equal."""
    our_lines = ours.split("\n")
    their_lines = theirs.split("\n")
    for index in range(max(len(our_lines), len(their_lines))):
        our_line = our_lines[index] if index < len(our_lines) else None
        their_line = their_lines[index] if index < len(their_lines) else None
        if our_line != their_line:
            return LineDifference(index + 1, our_line, their_line)
    return None


def explain_expected(error: ErrorDetails) -> str:
    """Return what a value must be, as a sentence."""
    kind = error["type"]
    context = error.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    if kind == "literal_error":
        return f"It must be {context['expected']}"
    if kind == "greater_than_equal":
        return f"It must be {context['ge']} or more"
    return error["msg"]


def show_value(value: Any) -> str:
    """Return a value for a message, cut if it is long."""
    return truncate(repr(value), MAX_VALUE_SHOWN)
