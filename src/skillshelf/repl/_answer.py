"""An answer as it streams in: cut into blocks, which are printed for good; the unfinished one is drawn until it is."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import dedent
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from skillshelf.rendering import Cleaned, markdown

_FENCE = re.compile(r"[ \t]*(`{3,}(?=[^`]*$)|~{3,})")
_ITEM = re.compile(r"(?P<indent> {0,3})(?:(?P<bullet>[-*+])|(?P<number>\d{1,9})[.)])(?:[ \t]+(?P<text>\S)|[ \t]*$)")
_TABLE_RULE = re.compile(r"[ \t]*\|?[ \t:|-]*-[ \t:|-]*$")
_LONG = 40
"""Code and lists are printed in pieces of about this many lines, so that the user can scroll to them."""


class Block(NamedTuple):
    """A part of an answer that will not change any more."""

    text: str
    blank: int = 0
    """Blank lines of code that come before it."""
    goes_on: bool = False
    """True if the next block is the rest of this code or list."""


class BlockSplitter:
    """Cuts a stream of text into blocks. The blocks do not depend on how the stream was cut into pieces."""

    def __init__(self) -> None:
        self._unfinished_line: list[str] = []
        """The pieces of a line whose end has not arrived."""
        self._lines: list[str] = []
        """The lines of the block whose end has not arrived. In a block of code, the first line opens the code."""
        self.blank = 0
        """Blank lines of code that come before those lines."""
        self._code: _OpenCode | None = None
        self._list: _OpenList | None = None

    def feed(self, text: str) -> list[Block]:
        """Take the next piece of the stream and return the blocks that it finishes."""
        *whole, rest = text.split("\n")
        blocks: list[Block] = []
        for piece in whole:
            line = "".join([*self._unfinished_line, piece])
            self._unfinished_line.clear()
            blocks += self._add_line(line.removesuffix("\r"))
        if rest:
            self._unfinished_line.append(rest)
        return blocks

    def end(self) -> list[Block]:
        """Return the last blocks: nothing more will come."""
        blocks: list[Block] = []
        if self._unfinished_line:
            blocks += self._add_line("".join(self._unfinished_line))
        return [*blocks, *self._finish()]

    def tail(self, width: int, height: int) -> str:
        """Return the last lines of the unfinished block that fit on a screen of this size."""
        room = width * height
        shown = ["".join(self._unfinished_line)[-room:]]
        rows = len(shown[0]) // width
        first = len(self._lines)
        while first and rows < height:
            first -= 1
            rows += 1 + len(self._lines[first]) // width
            shown.append(self._lines[first][-room:])

        text = "\n".join(reversed(shown))
        if self._list and first:
            text = dedent(text)
        return "\n".join([*self._heading_for(first), text])

    def _heading_for(self, hidden: int) -> list[str]:
        """Return the lines that make sense of a block whose first lines are hidden: a code fence, a table's head."""
        if self._code:
            is_opener_hidden = hidden > self._code.index
            return [self._code.opener] if is_opener_hidden else []
        is_table = len(self._lines) > 1 and "|" in self._lines[0] and _TABLE_RULE.match(self._lines[1])
        return self._lines[: min(2, hidden)] if is_table else []

    def _add_line(self, line: str) -> Iterator[Block]:
        if self._code:
            yield from self._add_code(self._code, line)
        elif line.strip():
            yield from self._add_text(line)
        elif self._list:
            self._lines.append("")
        else:
            yield from self._finish()

    def _add_text(self, line: str) -> Iterator[Block]:
        if self._list and self._list.ends_before(line, after_blank=not self._lines[-1]):
            yield from self._finish()

        fence = _FENCE.match(line)
        item = _ITEM.match(line)
        opens_code = fence is not None and _indent(line) <= 3
        if self._list:
            can_cut = item is not None and self._list.count_item(item)
            if can_cut and len(self._lines) >= _LONG:
                yield from self._finish(goes_on=True)
        elif opens_code or (item and (not self._lines or _interrupts_paragraph(item))):
            yield from self._finish()
            if item:
                self._list = _OpenList(item)

        if fence and (self._list or opens_code):
            self._code = _OpenCode(fence[1], line.strip(), index=len(self._lines))
        self._lines.append(line)

    def _add_code(self, code: "_OpenCode", line: str) -> Iterator[Block]:
        if self._list:
            yield from self._add_code_in_list(code, self._list, line)
            return

        if code.is_closed_by(line) and _indent(line) <= 3:
            self._lines.append(line)
            yield from self._finish()
            self._code = None
            return

        after_blank = not self._lines[-1].strip()
        is_long = len(self._lines) > _LONG and after_blank
        is_very_long = len(self._lines) > 2 * _LONG
        if line.strip() and (is_long or is_very_long):
            yield from self._cut_code(code)
        self._lines.append(line)

    def _add_code_in_list(self, code: "_OpenCode", open_list: "_OpenList", line: str) -> Iterator[Block]:
        if line.strip() and _indent(line) <= open_list.indent:  # the end of the item is the end of its code
            self._code = None
            yield from self._add_text(line)
            return

        self._lines.append(line)
        if code.is_closed_by(line):
            self._code = None

    def _cut_code(self, code: "_OpenCode") -> Iterator[Block]:
        """Finish the code so far, and open it again for the rest."""
        blank = 0
        while not self._lines[-1].strip():
            self._lines.pop()
            blank += 1

        opener = self._lines[0]
        self._lines.append(code.fence)
        yield from self._finish(goes_on=True)
        self._lines = [opener]
        self.blank = blank
        code.index = 0

    def _finish(self, *, goes_on: bool = False) -> Iterator[Block]:
        block = Block("\n".join(self._lines), self.blank, goes_on)
        self._lines = []
        self.blank = 0
        if not goes_on:
            self._list = None
        if block.text.strip():
            yield block


@dataclass(slots=True)
class _OpenCode:
    """The code that the current lines belong to."""

    fence: str
    """The characters that close it."""
    opener: str
    """The line that opened it, without its indentation."""
    index: int
    """The index of that line among the current lines; 0 after a cut within the code."""

    def is_closed_by(self, line: str) -> bool:
        stripped = line.strip()
        return stripped.startswith(self.fence) and not stripped.strip(self.fence[0])


class _OpenList:
    """The list that the current lines belong to."""

    def __init__(self, item: re.Match[str]) -> None:
        self.indent = len(item["indent"])
        self._bullet = item["bullet"]
        self._number = int(item["number"] or 0)

    def ends_before(self, line: str, *, after_blank: bool) -> bool:
        if _indent(line) > self.indent:
            return False
        return bool(_FENCE.match(line)) or (after_blank and not _ITEM.match(line))

    def count_item(self, item: re.Match[str]) -> bool:
        """Count an item. Return True if a list that begins with it would look the same, so that a cut is safe."""
        is_nested = len(item["indent"]) > self.indent + 1
        if is_nested:
            return False
        self._number += 1
        if item["bullet"]:
            return bool(item["bullet"] == self._bullet)
        return int(item["number"]) == self._number


def _interrupts_paragraph(item: re.Match[str]) -> bool:
    """Return True if this item ends the paragraph before it, by the rules of CommonMark."""
    return bool(item["text"]) and item["number"] in (None, "1")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


class MarkdownStream:
    """Prints an answer as it arrives, block by block. `draw_tail` returns the part that is not printed yet."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._splitter = BlockSplitter()
        self._drawn_key: tuple[str, int, int] | None = None
        self._drawn: list[list[Segment]] = []

    def feed(self, text: str) -> None:
        """Take the next piece of the answer."""
        self._print(self._splitter.feed(text))

    def end(self) -> None:
        """Print the rest: nothing more comes."""
        rest = self._splitter.end()
        self._splitter = BlockSplitter()
        self._print(rest)

    def draw_tail(self, columns: int, rows: int) -> list[list[Segment]]:
        """Return the last rows of the unfinished block, as lines of the screen."""
        text = self._splitter.tail(columns, rows)
        key = (text, columns, self._splitter.blank)
        if key != self._drawn_key:
            self._drawn_key = key
            no_text: list[Segment] = []
            options = self._console.options.update(width=columns)
            self._drawn = [no_text] * self._splitter.blank + _render_lines(text, self._console, options)
        return self._drawn[-rows:]

    def _print(self, blocks: list[Block]) -> None:
        for block in blocks:
            self._console.print(PrintedBlock(block))


class PrintedBlock:
    """A block with one blank line after it and none before, so that pieces of an answer look like one text."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for _ in range(self._block.blank):
            yield Segment.line()
        for line in _render_lines(self._block.text, console, options):
            yield from line
            yield Segment.line()
        if not self._block.goes_on:
            yield Segment.line()


def _render_lines(text: str, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
    """Return the text as lines of the screen, without blank lines around it or blanks at the ends of lines."""
    lines = console.render_lines(Cleaned(markdown(text)), options, pad=False)
    for line in lines:
        _strip_trailing_blanks(line)
    while lines and not lines[0]:
        del lines[0]
    while lines and not lines[-1]:
        del lines[-1]
    return lines


def _strip_trailing_blanks(line: list[Segment]) -> None:
    """Remove blanks that would show up in a copy from the terminal, or wrap when it gets narrower."""
    while line and not line[-1].text.strip() and not (line[-1].style and line[-1].style.bgcolor):
        line.pop()
