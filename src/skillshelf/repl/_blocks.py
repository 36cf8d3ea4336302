"""An answer cut into blocks as it comes: each line is looked at once, and each block is Markdown by itself."""

import re
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_ITEM = re.compile(r"( {0,3})(?:([-*+])|(\d{1,9})[.)])(?:[ \t]+(\S)|[ \t]*$)")
_RULER = re.compile(r"[ \t]*\|?[ \t:|-]*-[ \t:|-]*$")
_LONG = 40
"""Lines of code, or of a list, after which what is there is printed, so that it can be scrolled to."""


class Block(NamedTuple):
    """A part of an answer that changes no more."""

    text: str
    blank: int = 0
    """Blank lines of code that come before it."""
    goes_on: bool = False
    """The next one is the rest of this code or list."""


class Blocks:
    """What is fed is given back in blocks, which are the same however it was cut when it came."""

    def __init__(self) -> None:
        self._begun: list[str] = []
        """The pieces of a line that has no end yet."""
        self._lines: list[str] = []
        """Of the block that has no end yet; in code, the first is what opened it."""
        self.blank = 0
        """Blank lines of code that come before those."""
        self._fence = ""
        """What closes the code that is open."""
        self._opener, self._opened = "", 0
        """The line that opened it, and its place among the lines."""
        self._list = _List()

    def feed(self, text: str) -> list[Block]:
        """The blocks that are finished by this."""
        *whole, rest = text.split("\n")
        done: list[Block] = []
        for piece in whole:
            line = "".join([*self._begun, piece])
            self._begun.clear()
            done += self._take(line.removesuffix("\r"))
        if rest:
            self._begun.append(rest)
        return done

    def end(self) -> list[Block]:
        """The last of them: nothing more comes."""
        done = list(self._take("".join(self._begun))) if self._begun else []
        return [*done, *self._finish()]

    def tail(self, width: int, height: int) -> str:
        """Of what has no end yet, the last lines that a screen of this size can hold."""
        room = width * height
        shown = ["".join(self._begun)[-room:]]
        rows, first = len(shown[0]) // width, len(self._lines)
        while first and rows < height:
            first -= 1
            rows += 1 + len(self._lines[first]) // width
            shown.append(self._lines[first][-room:])
        text = "\n".join(reversed(shown))
        return "\n".join([*self._heading(first), dedent(text) if self._list and first else text])

    def _heading(self, hidden: int) -> list[str]:
        """What makes sense of the lines after the first, hidden ones: that it is code, or a table's columns."""
        if self._fence:
            return [self._opener] if hidden > self._opened else []
        is_table = hidden and len(self._lines) > 1 and "|" in self._lines[0] and _RULER.match(self._lines[1])
        return self._lines[: min(2, hidden)] if is_table else []

    def _take(self, line: str) -> Iterator[Block]:
        if self._fence:
            yield from self._code(line)
        elif not line.strip():
            if self._list:
                self._lines.append("")
            else:
                yield from self._finish()
        else:
            yield from self._text(line)

    def _text(self, line: str) -> Iterator[Block]:
        if self._list and self._list.ends_before(line, after_blank=not self._lines[-1]):
            yield from self._finish()
        fence, item = _FENCE.match(line), _ITEM.match(line)
        if self._list:
            if item and self._list.takes(item) and len(self._lines) >= _LONG:
                yield from self._finish(goes_on=True)
        elif (fence and _indent(line) <= 3) or (item and (not self._lines or _interrupts(item))):
            yield from self._finish()
            if item:
                self._list = _List(item)
        if fence and (self._list or _indent(line) <= 3):
            self._fence, self._opener, self._opened = fence[1], line.strip(), len(self._lines)
        self._lines.append(line)

    def _code(self, line: str) -> Iterator[Block]:
        stripped = line.strip()
        closes = stripped.startswith(self._fence) and not stripped.strip(self._fence[0])
        if self._list:
            if stripped and _indent(line) <= self._list.indent:  # the end of the item is the end of its code
                self._fence = ""
                yield from self._text(line)
                return
        elif closes and _indent(line) <= 3:
            self._lines.append(line)
            yield from self._finish()
            self._fence = ""
            return
        elif stripped and len(self._lines) > _LONG and (not self._lines[-1].strip() or len(self._lines) > 2 * _LONG):
            yield from self._cut_code()
        self._lines.append(line)
        if closes and self._list:
            self._fence = ""

    def _cut_code(self) -> Iterator[Block]:
        blank = 0
        while not self._lines[-1].strip():
            self._lines.pop()
            blank += 1
        opener = self._lines[0]
        self._lines.append(self._fence)
        yield from self._finish(goes_on=True)
        self._lines, self.blank, self._opened = [opener], blank, 0

    def _finish(self, *, goes_on: bool = False) -> Iterator[Block]:
        text, blank = "\n".join(self._lines), self.blank
        self._lines, self.blank = [], 0
        if not goes_on:
            self._list = _List()
        if text.strip():
            yield Block(text, blank, goes_on)


class _List:
    """The list that the lines are in; false where they are in none."""

    def __init__(self, item: re.Match[str] | None = None) -> None:
        self.indent = len(item[1]) if item else 0
        self._bullet = item[2] if item else None
        self._number = int(item[3] or 0) if item else 0
        self._is_one = item is not None

    def __bool__(self) -> bool:
        return self._is_one

    def ends_before(self, line: str, *, after_blank: bool) -> bool:
        if _indent(line) > self.indent:
            return False
        return bool(_FENCE.match(line)) or (after_blank and not _ITEM.match(line))

    def takes(self, item: re.Match[str]) -> bool:
        """Count an item; whether a list that begins with it would show the same."""
        if len(item[1]) > self.indent + 1:
            return False
        self._number += 1
        return item[2] == self._bullet if item[2] else int(item[3]) == self._number


def _interrupts(item: re.Match[str]) -> bool:
    """Whether an item ends the paragraph before it."""
    return bool(item[4]) and item[3] in (None, "1")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
