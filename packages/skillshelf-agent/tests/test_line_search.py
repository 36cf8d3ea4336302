"""Searching lines for a pattern, within limits that hold for any pattern and any file."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillshelf_agent.filetools import FileAccess, FileTools, PatternError, search_lines

FILES = [("a.txt", b"one\ntwo words\n"), ("b.txt", b"Two\r\nthree")]


@pytest.mark.parametrize(
    ("pattern", "lines"),
    [
        ("two", [("a.txt", 2, "two words")]),
        ("(?i)^two", [("a.txt", 2, "two words"), ("b.txt", 1, "Two")]),
        ("o$|ree$", [("b.txt", 1, "Two"), ("b.txt", 2, "three")]),
        ("nothing", []),
    ],
)
def test_a_search_returns_the_lines_that_match(pattern: str, lines: list[tuple[str, int, str]]) -> None:
    assert search_lines(FILES, pattern, limit=10, seconds=60).matches == lines


@pytest.mark.parametrize("pattern", ["o", "o+"])
def test_a_search_stops_at_its_limit_and_reports_it(pattern: str) -> None:
    result = search_lines(FILES, pattern, limit=2, seconds=60)
    assert len(result.matches) == 2
    assert result.has_more
    assert not search_lines(FILES, pattern, limit=3, seconds=60).has_more


@pytest.mark.parametrize("pattern", ["(", "[a", "a" * 2000])
def test_a_pattern_that_cannot_be_used_is_an_error(pattern: str) -> None:
    with pytest.raises(PatternError):
        search_lines(FILES, pattern, limit=2, seconds=60)


def test_a_file_on_which_a_pattern_explodes_is_left_out_and_named() -> None:
    files = [("good", b"aaa\n"), ("evil", b"a" * 60 + b"!\n"), ("also good", b"aaaa\n")]
    result = search_lines(files, "^(a+)+$", limit=10, seconds=600, file_seconds=0.1)
    assert [match.path for match in result.matches] == ["good", "also good"]
    assert result.slow_files == ["evil"]


def test_a_pattern_that_explodes_again_and_again_is_refused() -> None:
    files = [(str(number), b"a" * 60 + b"!\n") for number in range(100)]
    with pytest.raises(PatternError, match="too long"):
        search_lines(files, "^(a+)+$", limit=10, seconds=600, file_seconds=0.1)


@pytest.mark.parametrize("pattern", ["plain", "reg.lar"])
def test_a_search_ends_when_its_time_is_up(pattern: str) -> None:
    def endless() -> Iterator[tuple[str, bytes]]:
        while True:
            yield "a.txt", b"nothing here\n"

    assert search_lines(endless(), pattern, limit=10, seconds=0.3).timed_out


def test_only_the_beginning_of_a_very_long_line_is_searched_with_a_regular_expression() -> None:
    line = b"x" * 20_000 + b"end\n"
    result = search_lines([("a", line)], "e.d", limit=10, seconds=60)
    assert (result.matches, result.cut_lines) == ([], 1)
    (match,) = search_lines([("a", line)], "end", limit=10, seconds=60).matches
    assert match.text.endswith("xend")
    assert len(match.text) < 600


def test_a_search_without_a_file_to_read_ends_in_time_too(tmp_path: Path) -> None:
    """The ignore files of a clone can make the walk itself slow, and leave every file out."""
    (tmp_path / ".gitignore").write_text("*.txt\n")
    (tmp_path / "a.txt").write_text("x")
    tools = FileTools(FileAccess(str(tmp_path)), search_seconds=0.0)
    assert "[stopped after 0 s" in asyncio.run(tools.search_files("x"))
