"""Arguments: split into words, and put where a skill asks for them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

# A backslash before a letter is a Windows path. An apostrophe inside a word is none that opens anything.
_PIECE = re.compile(
    r"""(?P<space>\s++) | "(?P<double>(?:[^"\\]|\\.)*+)" | (?<![^\s"'])'(?P<single>[^']*+)'
      | \\(?P<escaped>["'\\\s]) | (?P<plain>[^\s"'\\]++|.)""",
    re.S | re.X,
)
# A megabyte of placeholders, each filled with what somebody pasted, would be gigabytes.
_MAX_FILLED = 1_000_000
_ESCAPE = re.compile(r'\\(["\\])')


def split_words(arguments: str) -> list[str]:
    """As a shell splits, except that a quote which nothing closes is an ordinary character."""
    words: list[list[str]] = []
    inside = False
    for piece in _PIECE.finditer(arguments):
        kind, text = piece.lastgroup, piece[piece.lastgroup or 0]
        if kind == "space":
            inside = False
            continue
        if not inside:
            words.append([])
            inside = True
        words[-1].append(_ESCAPE.sub(r"\1", text) if kind == "double" else text)
    return ["".join(parts) for parts in words]


class Filled(NamedTuple):
    text: str
    complete: bool
    """Whether everything that was given has its place in the text."""


def fill(text: str, arguments: str, names: Sequence[str]) -> Filled:
    """Replace `$ARGUMENTS`, `$1`, `$2` … and `$name`, in one pass: what is put in is not looked at again."""
    words = split_words(arguments)
    places = {name: at for at, name in enumerate(names) if name and name != "ARGUMENTS" and not name.isdecimal()}
    named = "".join(f"|{re.escape(name)}" for name in sorted(places, key=len, reverse=True))
    # `$1.50` is money.
    pattern = re.compile(rf"\$(ARGUMENTS|[1-9][0-9]?{named})(?!\w|\.\d)")
    used: set[int] = set()
    room = _MAX_FILLED

    def put(match: re.Match[str]) -> str:
        nonlocal room
        every = match[1] == "ARGUMENTS"
        at = -1 if every else places[match[1]] if match[1] in places else int(match[1]) - 1
        value = arguments if every else words[at] if at < len(words) else ""
        room -= len(value)
        if room < 0:
            return match[0]
        used.update(range(len(words)) if every else (at,))
        return value

    filled = pattern.sub(put, text)
    return Filled(filled, used.issuperset(range(len(words))))
