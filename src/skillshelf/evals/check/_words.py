"""Short words for a report: what was found, never so long that it crowds out the rest."""

from collections.abc import Sequence

from skillshelf.errors import EvalError

_MOST = 8
_LONG = 160


def some(items: Sequence[str]) -> str:
    """A list for a sentence; each item once."""
    found = list(dict.fromkeys(items))
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return (", ".join(clip(one) for one in found[:_MOST]) or "none") + more


def clip(text: str, length: int = _LONG) -> str:
    """A text of at most this length; what was cut shows."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def refuse_empty(check: str, **given: str) -> None:
    """Every text has the empty one, and no skill is called nothing: such a check could only ever say the same."""
    for key, value in given.items():
        if not value:
            raise EvalError(f"{check}: {key} is empty", "Say what to look for")
