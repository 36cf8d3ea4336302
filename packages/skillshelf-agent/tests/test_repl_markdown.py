"""Test the display of an answer while it streams: every line appears once, nothing is hidden or drawn needlessly."""

import io
from itertools import pairwise

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from skillshelf_agent.terminal._answer import MarkdownStream, PrintedBlock, split_blocks

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
    places = [0, *sorted(min(place, len(text)) for place in at), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def render_plain(*pieces: str) -> str:
    """Return the output of a stream on a console that cannot redraw."""
    console = Console(file=io.StringIO(), width=60, markup=False, highlight=False)
    stream = MarkdownStream(console)
    for piece in pieces:
        stream.feed(piece)
    stream.end()
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


@settings(max_examples=200, deadline=None)
@given(texts)
def test_blocks_hold_every_line_in_order(text: str) -> None:
    block_lines = iter([line for block in split_blocks(text) for line in block.text.split("\n")])
    assert all(line in block_lines for line in text.split("\n") if line.strip())


@settings(max_examples=200, deadline=None)
@given(texts, st.lists(st.integers(0, 600), max_size=12))
def test_the_stream_prints_each_block_once(text: str, at: list[int]) -> None:
    """Any cut of the text prints the blocks of the whole text in order, and nothing else."""
    console = Console(file=io.StringIO(), width=60, markup=False, highlight=False)
    for block in split_blocks(text.replace("\r\n", "\n")):
        console.print(PrintedBlock(block))
    assert render_plain(*cut(text, at)) == console.file.getvalue()  # type: ignore[attr-defined]


@settings(max_examples=100, deadline=None)
@given(texts, st.integers(20, 100), st.integers(3, 50))
def test_an_open_block_is_drawn_within_the_screen(text: str, columns: int, rows: int) -> None:
    stream = MarkdownStream(Console(file=io.StringIO(), width=columns))
    stream.feed(text.rstrip("\n") + " word" * 400)
    assert len(stream.draw_tail(columns, rows)) <= rows


def test_the_part_that_is_not_printed_yet_is_drawn() -> None:
    """It holds the end of the unfinished block, in as many rows as there are."""
    console = Console(file=io.StringIO(), width=60, markup=False, highlight=False)
    stream = MarkdownStream(console)
    stream.feed("Printed.\n\n```python\n" + "".join(f"line_{number} = 1\n" for number in range(30)))
    drawn = ["".join(segment.text for segment in line).strip() for line in stream.draw_tail(60, 5)]
    assert drawn == [f"line_{number} = 1" for number in range(25, 30)]
    assert console.file.getvalue().split() == ["Printed."]  # type: ignore[attr-defined]
    stream.end()
    assert stream.draw_tail(60, 5) == []


def test_long_code_printed_in_pieces_has_no_gaps() -> None:
    """Each line appears once, including blank ones, and a blank line follows only at the end."""
    lines = [f"line_{number} = {number}" if number % 7 else "" for number in range(1, 200)]
    text = "Look:\n```python\n" + "\n".join(lines) + "\n```\nDone."
    assert len(split_blocks(text)) > 4
    assert [line.strip() for line in render_plain(text).splitlines()] == ["Look:", "", *lines, "", "Done.", ""]


def test_a_long_list_keeps_its_numbers() -> None:
    """Even a numbered list that is printed in pieces counts on."""
    text = "".join(f"{number}. item\n" for number in range(1, 100))
    assert [line.split() for line in render_plain(text).splitlines() if line] == [
        [f"{n}.", "item"] for n in range(1, 100)
    ]
    assert len(split_blocks(text)) == 3
    repeated = "1. item\n" * 100
    assert render_plain(repeated).splitlines()[98].split() == ["99.", "item"]


def test_code_in_a_list_is_not_cut_at_its_blank_lines() -> None:
    """The list continues after the code; unindented text ends both."""
    text = "1. First:\n\n   ```\n   a\n\n   b\n   ```\n\n2. Second\n\nAfter.\n"
    assert [block.text.split("\n")[0] for block in split_blocks(text)] == ["1. First:", "After."]


def test_partial_code_and_tables_keep_their_form() -> None:
    """Code is drawn as code, and a table has columns, even after their beginning has scrolled away."""
    assert draw_tail("```python\n" + "*x* = 1\n" * 30) == ["*x* = 1"] * 5
    assert draw_tail("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 30) == ["1   2"] * 5


def draw_tail(text: str) -> list[str]:
    stream = MarkdownStream(Console(file=io.StringIO(), width=40))
    stream.feed(text)
    return ["".join(segment.text for segment in line).strip() for line in stream.draw_tail(40, 5)]


def test_nothing_is_hidden_in_an_answer() -> None:
    """Characters written as entities, link targets, comments and images are all visible."""
    output = render_plain(
        "pay &#x202e;x &#x200b;y &#27;[31m [safe](http://evil.example) <!-- psst --> ![p](http://track.example)"
    )
    for visible in ("<U+202E>", "<U+200B>", "http://evil.example", "<!-- psst -->", "http://track.example"):
        assert visible in output
    assert not {"\u202e", "\u200b", "\x1b"} & set(output)
