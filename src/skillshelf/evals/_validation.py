"""Pydantic's faults in the words of this package: what a value is, and what it must be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillshelf.text import clip

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

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
    return clip(repr(value), MAX_VALUE_SHOWN)
