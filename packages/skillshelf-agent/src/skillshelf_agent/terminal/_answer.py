"""An answer as it streams in: finished blocks are printed for good, and the unfinished one is drawn until it is."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from textwrap import dedent
from typing import NamedTuple

from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from skillshelf.text.rendering import Cleaned, make_parser, markdown

_LONG = 40
"""Code and lists are printed in pieces of about this many lines, so that the user can scroll to them."""
_HEADS = {"fence": 1, "table_open": 2}
"""The number of lines without which the end of a block makes no sense: the fence of code, the head of a table."""
_BLOCK_PARSER = make_parser().disable("inline")


class Block(NamedTuple):
    """A part of an answer."""

    text: str
    kind: str
    """The type of its token."""
    goes_on: bool = False
    """True if the next block is the rest of this code or list."""


def split_blocks(text: str) -> list[Block]:
    """Split Markdown into blocks. Whatever text follows can change only the last one."""
    lines = text.split("\n")
    # A lone carriage return would be a line of its own for the parser.
    tokens = _BLOCK_PARSER.parse(text.replace("\r", " "))
    tops = [token for token in tokens if token.level == 0 and token.map]
    ends = [*(_first_line(token) for token in tops[1:]), len(lines)]
    blocks: list[Block] = []
    for token, end in zip(tops, ends, strict=False):
        start = _first_line(token)
        pieces = [lines[start:end]]
        if token.type == "fence":
            pieces = list(_split_code(lines[start:end], token.markup))
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            cuts = [start, *_find_cuts(token, tokens, end), end]
            pieces = [lines[first:last] for first, last in pairwise(cuts)]
        blocks += [Block("\n".join(piece), token.type, goes_on=True) for piece in pieces[:-1]]
        blocks.append(Block("\n".join(pieces[-1]), token.type))
    return blocks


def _first_line(token: Token) -> int:
    assert token.map is not None
    return token.map[0]


def _split_code(lines: Sequence[str], fence: str) -> Iterator[list[str]]:
    """Yield pieces of code, each with its fences. None begins or ends with a blank line."""
    opener = lines[0]
    piece = [opener]
    for before, line in pairwise(lines):
        if len(piece) > _LONG and before.strip() and line.strip():
            yield [*piece, fence]
            piece = [opener]
        piece.append(line)
    yield piece


def _find_cuts(opening: Token, tokens: Sequence[Token], end: int) -> Iterator[int]:
    """Yield the lines at which a long list can be cut, so that each piece looks the same as in the whole list."""
    start = _first_line(opening)
    first_number = int(opening.attrs.get("start", 1))
    items = [token for token in tokens if token.type == "list_item_open" and token.level == 1 and token.map]
    items = [item for item in items if start <= _first_line(item) < end]
    for number, item in enumerate(items, first_number):
        if _first_line(item) - start >= _LONG and item.info in ("", str(number)):
            start = _first_line(item)
            yield start


class MarkdownStream:
    """Prints an answer as it arrives, block by block. `draw_tail` returns the part that is not printed yet."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines = ""
        """The whole lines of the block whose end has not arrived."""
        self._unfinished_line: list[str] = []
        """The pieces of a line whose end has not arrived."""
        self._head_lines = 0
        self._drawn_key: tuple[str, int, int] | None = None
        self._drawn: list[list[Segment]] = []

    def feed(self, text: str) -> None:
        """Take the next piece of the answer."""
        whole, newline, rest = text.rpartition("\n")
        if newline:
            new_lines = "".join([*self._unfinished_line, whole, newline]).replace("\r\n", "\n")
            self._unfinished_line.clear()
            blocks = split_blocks(self._lines + new_lines)
            self._print(blocks[:-1])
            self._lines = blocks[-1].text if blocks else ""
            self._head_lines = _HEADS.get(blocks[-1].kind, 0) if blocks else 0
        if rest:
            self._unfinished_line.append(rest)

    def end(self) -> None:
        """Print the rest: nothing more comes."""
        blocks = split_blocks(self._lines + "".join(self._unfinished_line))
        self._lines = ""
        self._unfinished_line.clear()
        self._print(blocks)

    def draw_tail(self, columns: int, rows: int) -> list[list[Segment]]:
        """Return the last rows of the unfinished block, as lines of the screen."""
        text = self._find_tail(columns, rows)
        key = (text, columns, rows)
        if key != self._drawn_key:
            self._drawn_key = key
            self._drawn = _render_lines(text, self._console, self._console.options.update(width=columns))
        return self._drawn[-rows:]

    def _find_tail(self, columns: int, rows: int) -> str:
        """Return the end of the unfinished block. Rendering more of it than fits would take too long for each frame."""
        text = self._lines + "".join(self._unfinished_line)
        lines = [line[-columns * rows :] for line in text.rstrip("\n").split("\n")]
        head = lines[: self._head_lines]
        tail = "\n".join(lines[len(head) :][-rows:])
        if head:
            return "\n".join([*head, tail])
        return dedent(tail) if len(lines) > rows else tail

    def _print(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            self._console.print(PrintedBlock(block))


class PrintedBlock:
    """A block with one blank line after it and none before, so that pieces of an answer look like one text."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
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
