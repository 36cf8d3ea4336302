"""Passages: pieces of a text that are small enough to be quoted, and know where they come from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillshelf.text import clean_line, text_for_model, truncate
from skillshelf_skills.agentic_rag._limits import MAX_CHARACTERS, MAX_PASSAGES, MAX_TITLE
from skillshelf_skills.agentic_rag._results import FoundPassage
from skillshelf_skills.agentic_rag._sources import Passage

_DAMPING = 60
_HEADING = re.compile(r"^(#{1,6})[ \t]+(.*)")
"""What closes a heading is cut afterwards: a pattern for both takes hours for a long line of `#`."""
_FENCE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})")


def show_passage(passage: Passage) -> FoundPassage:
    """Return a passage as a model may read it: on one line what is one line, and hidden characters written out."""
    return FoundPassage(
        source=clean_line(passage.source),
        locator=clean_line(passage.locator),
        title=clean_line(passage.title),
        text=text_for_model(passage.text),
    )


def rate_rank(rank: int) -> float:
    """Return what a rank in a list is worth, from 1 on: reciprocal rank fusion with the usual damping."""
    return 1 / (_DAMPING + rank)


def fuse_ranks(lists: Sequence[Sequence[Passage]]) -> dict[Passage, float]:
    """Return the passages of several lists, each with the sum of what its ranks are worth."""
    scores: dict[Passage, float] = {}
    for passages in lists:
        for rank, passage in enumerate(passages, 1):
            scores[passage] = scores.get(passage, 0.0) + rate_rank(rank)
    return scores


def cut_into_passages(source: str, place: str, title: str, text: str, *, has_lines: bool) -> list[Passage]:
    """Cut a text at its Markdown headings, and long sections at paragraphs.

    `place` is the path or the address of the text. If it `has_lines` that a reader can find, passages say where they
    begin. `title` is for what stands before the first heading. A text has at most `MAX_PASSAGES`.
    """
    passages: list[Passage] = []
    trail: list[tuple[int, str]] = []
    for section in _split_sections(text):
        if section.heading:
            trail = [(level, heading) for level, heading in trail if level < section.level]
            trail.append((section.level, section.heading))
        headings = " > ".join(heading for _, heading in trail)
        full_title = truncate(clean_line(headings or title), MAX_TITLE)
        for line, piece in _split_section(section):
            locator = f"{place}:{line}" if has_lines else place
            passages.append(Passage(source, locator, full_title, piece))
            if len(passages) == MAX_PASSAGES:
                return passages
    return passages


@dataclass(slots=True)
class _Section:
    level: int
    heading: str
    line: int
    """The line after the heading, from 1 on."""
    lines: list[str]


def _split_sections(text: str) -> Iterator[_Section]:
    """Yield the sections of a Markdown text. A heading in a block of code is not one."""
    section = _Section(0, "", 1, [])
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence):
            fence = ""
        heading = None if fence or mark else _HEADING.match(line)
        if heading is None:
            section.lines.append(line)
            continue
        yield section
        title = truncate(heading[2].rstrip(" \t#"), MAX_TITLE)
        section = _Section(len(heading[1]), title, number + 1, [])
    yield section


def _split_section(section: _Section) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a section, each with its first line. Pieces end at blank lines if they can."""
    piece: list[str] = []
    first = section.line
    size = 0
    for number, line in enumerate(section.lines, section.line):
        is_full = size + len(line) > MAX_CHARACTERS
        is_long_enough = size > MAX_CHARACTERS // 2 and not line.strip()
        if piece and (is_full or is_long_enough):
            yield from _finish(first, piece)
            piece = []
            size = 0
        if not piece:
            first = number
            if not line.strip():
                continue
        piece.append(line)
        size += len(line) + 1
    yield from _finish(first, piece)


def _finish(first: int, lines: list[str]) -> Iterator[tuple[int, str]]:
    text = "\n".join(lines).strip()
    for start in range(0, len(text), MAX_CHARACTERS):  # a single line can be longer than a passage
        yield first, text[start : start + MAX_CHARACTERS]
