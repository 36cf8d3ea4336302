"""Markdown on a terminal: the look of each element, on any background, with and without colours."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment

from skillshelf.text.rendering import Cleaned, markdown

EVERYTHING = """\
# One

Words with `code`, **bold** and [a link](https://example.org/page), or <https://auto.example>.

## Two

1. first
2. second

   ```python
   def greet(name: str) -> str:
       return f"Hello {name}"  # politely
   ```

3) other delimiter

- dot
  - deeper

> quoted

### Three

| file | lines |
|------|------:|
| a.py | 12 |

---

#### Four
"""
PIECES = [
    "word ",
    "`code`",
    "**b**",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    "> ",
    "# ",
    "| a | b |\n|---|---|\n| 1 | 2 |\n",
    "```\n",
]


def render(text: str, width: int = 60, *, color: bool = True) -> list[list[Segment]]:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system="standard", no_color=not color or None
    )
    return console.render_lines(Cleaned(markdown(text)), pad=False)


def to_lines(text: str, width: int = 60, *, color: bool = True) -> list[str]:
    lines = ["".join(segment.text for segment in line).rstrip() for line in render(text, width, color=color)]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def find_style(text: str, part: str) -> str:
    """Return the style of the piece of the screen with this text."""
    return next(str(segment.style) for line in render(text) for segment in line if segment.text.strip() == part)


def test_headings_stand_at_the_left_and_differ_by_level() -> None:
    assert to_lines("# One\n\n## Two\n\n### Three") == ["One", "", "Two", "", "Three"]
    styles = [find_style("#" * level + " Title", "Title") for level in range(1, 6)]
    assert len(set(styles)) == 5


def test_nothing_has_a_background_or_a_colour_of_its_own() -> None:
    """Only colours of the terminal are used that are readable on a dark and on a light background."""
    styles = [segment.style for line in render(EVERYTHING) for segment in line if segment.style]
    assert [style for style in styles if style.bgcolor is not None] == []
    colors = {style.color.name for style in styles if style.color is not None}
    assert colors <= {"red", "green", "magenta", "cyan", "default"}


def test_lists_have_their_dots_and_numbers() -> None:
    text = "3. three\n4. four\n   - deeper\n\n- one\n- two\n  words\n"
    assert to_lines(text) == ["3. three", "4. four", "   • deeper", "", "• one", "• two words"]
    assert to_lines("1) one\n2) two") == ["1) one", "2) two"]


def test_a_list_item_hangs_and_its_paragraphs_are_apart() -> None:
    text = "1. aaa bbb ccc ddd\n\n   more\n2. next"
    assert to_lines(text, 14) == ["1. aaa bbb ccc", "   ddd", "", "   more", "", "2. next"]


def test_an_item_looks_the_same_whatever_follows() -> None:
    """So nothing moves while an answer streams in, and a long list can be printed in pieces."""
    items = [f"{number}. item" for number in range(1, 120)]
    assert to_lines("\n".join(items)) == items
    assert to_lines("\n".join(items[90:])) == items[90:]


def test_code_stands_behind_a_margin() -> None:
    assert to_lines("```python\nif x:\n    pass\n```") == ["  if x:", "      pass"]
    assert "magenta" in find_style("```python\nif x:\n    pass\n```", "if")


def test_inline_code_without_colours_keeps_its_backticks() -> None:
    assert to_lines("Run `make`.") == ["Run make."]
    assert to_lines("Run `make` or ``a`b``.", color=False) == ["Run `make` or ``a`b``."]


def test_a_link_shows_its_address_once() -> None:
    assert to_lines("[the page](https://a.example)") == ["the page (https://a.example)"]
    assert to_lines("<https://a.example>") == ["https://a.example"]
    assert to_lines("[https://a.example](https://b.example)") == ["https://a.example (https://b.example)"]
    assert find_style("[`x`](https://a.example)", "x") == "underline cyan"


def test_a_link_cannot_hide_a_character_in_its_address() -> None:
    assert "\u202e" not in "".join(to_lines("[x](<https://a.example/\u202eb>) [y](https://a.example/&#x202e;)"))


def test_a_table_that_is_too_wide_becomes_paragraphs() -> None:
    text = "| file | change | why |\n|---|---|---|\n| a.py | some long words | other long words |\n| b.py | x | y |"
    assert to_lines(text, 60)[0].split() == ["file", "change", "why"]
    assert to_lines(text, 24) == [
        "file: a.py",
        "change: some long words",
        "why: other long words",
        "",
        "file: b.py",
        "change: x",
        "why: y",
    ]


def test_a_quote_has_a_bar_on_every_line() -> None:
    assert to_lines("> aaa bbb ccc\n>\n> ddd", 10) == ["▎ aaa bbb", "▎ ccc", "▎", "▎ ddd"]


@pytest.mark.parametrize("width", [20, 40, 100])
def test_every_word_is_on_the_screen(width: int) -> None:
    shown = "".join("".join(to_lines(EVERYTHING, width)).split())
    for word in ("politely", "https://example.org/page", "first", "second", "other", "deeper", "quoted", "a.py", "12"):
        assert word in shown


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.integers(12, 80))
def test_no_line_is_wider_than_the_screen(text: str, width: int) -> None:
    nested = text.count("> ") + text.count("- ") + text.count("1. ")
    limit = max(width, 10 + 3 * nested)  # deeply nested parts keep a few cells
    assert all(Segment.get_line_length(line) <= limit for line in render(text, width))
