"""An answer on the screen while it comes: nothing lost, nothing twice, nothing hidden, nothing drawn in vain."""

import io
import time
from itertools import pairwise

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from skillshelf.repl._blocks import Block, BlockSplitter
from skillshelf.repl._markdown import MarkdownStream, PrintedBlock

PIECES = [
    "Words. ",
    "\n",
    "\n\n",
    "```python\n",
    "```\n",
    "~~~\n",
    "- item\n",
    "1. one\n",
    "2. two\n",
    "   more\n",
    "    deep\n",
    "# Head\n",
    "| a | b |\n|---|---|\n",
    "| 1 | 2 |\n",
    "> said\n",
    "\r\n",
    "日本語",
    "x = 1\n" * 30,
    "- item\n" * 45,
    "```",
    "**bold**",
    "&#x202e;",
]
texts = st.lists(st.sampled_from(PIECES) | st.text("ab `~-\n\r", max_size=5), max_size=25).map("".join)


def cut(text: str, at: list[int]) -> list[str]:
    places = [0, *sorted(min(one, len(text)) for one in at), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def blocks(*pieces: str) -> list[Block]:
    splitter = BlockSplitter()
    return [*(block for piece in pieces for block in splitter.feed(piece)), *splitter.end()]


def plain(*pieces: str) -> str:
    """What a stream leaves where nothing can be redrawn."""
    console = Console(file=io.StringIO(), width=60, markup=False, highlight=False)
    stream = MarkdownStream(console)
    for piece in pieces:
        stream.feed(piece)
    stream.end()
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@settings(max_examples=200, deadline=None)
@given(texts, st.lists(st.integers(0, 600), max_size=12))
def test_blocks_are_the_same_however_the_text_comes(text: str, at: list[int]) -> None:
    """Cut anywhere: the blocks are those of the whole, and they hold every line of it in its order."""
    whole = blocks(text)
    assert blocks(*cut(text, at)) == whole
    kept = iter([line for block in whole for line in block.text.split("\n")])
    assert all(line in kept for line in text.replace("\r\n", "\n").split("\n") if line.strip())


@settings(max_examples=60, deadline=None)
@given(texts, st.lists(st.integers(0, 600), max_size=12))
def test_what_is_printed_is_the_blocks(text: str, at: list[int]) -> None:
    """The stream prints each block once, in order, and nothing else."""
    console = Console(file=io.StringIO(), width=60, markup=False, highlight=False)
    for block in blocks(text):
        console.print(PrintedBlock(block))
    assert plain(*cut(text, at)) == console.file.getvalue()  # type: ignore[attr-defined]


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(20, 100), st.integers(3, 50))
def test_what_is_drawn_fits_the_screen(text: str, width: int, height: int) -> None:
    """However long the block is that has no end yet, no more of it is rendered than a screen holds twice."""
    splitter = BlockSplitter()
    splitter.feed(text.rstrip("\n") + " word" * 400)
    assert len(splitter.tail(width, height)) <= 2 * width * (height + 1) + 100


class Counting(Console):
    """Counts the characters that are put on the screen."""

    drawn = 0

    def _write_buffer(self) -> None:
        self.drawn += sum(len(segment.text) for segment in self._buffer)
        super()._write_buffer()


def test_a_long_answer_costs_its_length() -> None:
    """Four times the code, four times the characters: not the square of it."""

    def cost(lines: int) -> int:
        console = Counting(file=io.StringIO(), force_terminal=True, width=80, height=20)
        stream = MarkdownStream(console)
        code = "```python\n" + "".join(f"value_{number} = {number}\n" for number in range(lines)) + "```\n"
        for at in range(0, len(code), 12):
            stream.feed(code[at : at + 12])
        stream.end()
        return console.drawn

    assert cost(1_600) < 8 * cost(400)


class Emulated(io.StringIO):
    """A terminal that can be looked at."""

    def __init__(self, width: int, height: int) -> None:
        super().__init__()
        self.screen = pyte.HistoryScreen(width, height, history=1_000)
        self._stream = pyte.Stream(self.screen)

    def write(self, text: str) -> int:
        self._stream.feed(text.replace("\n", "\r\n"))
        return len(text)

    def shown(self) -> list[str]:
        above = ["".join(line[at].data for at in range(self.screen.columns)) for line in self.screen.history.top]
        return [line.rstrip() for line in [*above, *self.screen.display]]


def test_what_was_drawn_meanwhile_leaves_no_trace() -> None:
    """At the end a small terminal, with what scrolled off it, shows what a pipe would get."""
    terminal = Emulated(60, 12)
    stream = MarkdownStream(Console(file=terminal, force_terminal=True, width=60, height=12, highlight=False))
    code = "".join(f"def f_{number}(argument):\n    return {number}\n\n" for number in range(30))
    rows = "".join(f"| {number} | 漢字 and a cell that is long |\n" for number in range(20))
    text = (
        f"# Head\n\n{'Words 日本語。' * 30}\n\n```python\n{code}```\n\n| a | b |\n|---|---|\n{rows}\n1. x\n2. y\n\nEnd."
    )
    for at in range(0, len(text), 9):
        stream.feed(text[at : at + 9])
        time.sleep(0.005)
    stream.end()
    assert "\n".join(terminal.shown()).rstrip() == "\n".join(map(str.rstrip, plain(text).splitlines())).rstrip()


def test_long_code_is_printed_in_pieces_without_a_seam() -> None:
    """Each line of it is there once, blank ones too, and only the end is followed by a blank line."""
    lines = [f"line_{number} = {number}" if number % 7 else "" for number in range(1, 200)]
    text = "Look:\n```python\n" + "\n".join(lines) + "\n```\nDone."
    assert len(blocks(text)) > 4
    assert [line.strip() for line in plain(text).splitlines()] == ["Look:", "", *lines, "", "Done.", ""]


def test_a_long_list_goes_on_counting() -> None:
    """A numbered list that is printed in pieces has its numbers."""
    text = "".join(f"{number}. item\n" for number in range(1, 100))
    assert [line.split() for line in plain(text).splitlines() if line] == [[str(n), "item"] for n in range(1, 100)]
    assert len(blocks(text)) == 3
    repeated = "1. item\n" * 100
    assert plain(repeated).splitlines()[98].split() == ["99", "item"]


def test_code_in_a_list_is_not_cut_at_its_blank_lines() -> None:
    """The list goes on after it; what is not indented ends both."""
    text = "1. First:\n\n   ```\n   a\n\n   b\n   ```\n\n2. Second\n\nAfter.\n"
    assert [block.text.split("\n")[0] for block in blocks(text)] == ["1. First:", "After."]


def test_while_it_comes_code_is_drawn_as_code_and_a_table_has_its_head() -> None:
    """Also where their beginning is no longer on the screen."""
    code, table = BlockSplitter(), BlockSplitter()
    code.feed("```python\n" + "x = 1\n" * 30)
    assert code.tail(40, 5).startswith("```python\nx = 1\n")
    table.feed("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 30)
    assert table.tail(40, 5).startswith("| a | b |\n|---|---|\n| 1 | 2 |\n")


def test_nothing_hides_in_an_answer() -> None:
    """Characters spelled as entities, the targets of links, comments and pictures are all to be seen."""
    said = plain(
        "pay &#x202e;x &#x200b;y &#27;[31m [safe](http://evil.example) <!-- psst --> ![p](http://track.example)"
    )
    for shown in ("<U+202E>", "<U+200B>", "http://evil.example", "<!-- psst -->", "http://track.example"):
        assert shown in said
    assert not {"\u202e", "\u200b", "\x1b"} & set(said)
