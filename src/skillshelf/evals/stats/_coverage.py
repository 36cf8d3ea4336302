"""Which parts of a skill no case ever loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skillshelf.errors import SkillError
from skillshelf.files import NotPlainFile
from skillshelf.shelf import Shelf

# What is beyond is not looked into for headings.
_READ = 4 * 1024 * 1024
# The closing marks are cut off in code: a pattern for them would try every run of spaces in the title.
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class SkillText:
    """What there is of a skill to be loaded."""

    instructions: str
    references: Mapping[str, str] = field(default_factory=dict)
    """Text by path; empty for what is no text."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a file. `file` is empty for the instructions."""

    file: str
    title: str
    offset: int
    """Where it begins, in bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of one skill."""

    skill: str
    loaded: bool
    """Whether its instructions ever entered a conversation."""
    references: int
    unloaded: tuple[str, ...]
    """References that no case loaded."""
    sections: int
    unread: tuple[Section, ...]
    """Sections that no case loaded."""

    @property
    def gaps(self) -> tuple[str, ...]:
        """For people: files first, then the sections of files that were loaded in part."""
        if not self.loaded:
            return "SKILL.md", *self.unloaded
        parts = [one for one in self.unread if one.file not in self.unloaded]
        return *self.unloaded, *(f"{one.file or 'SKILL.md'} # {one.title}" for one in parts)


def cover(skill: str, text: SkillText, loaded: bool, references: Mapping[str, int]) -> Coverage:
    """`references`: the most bytes that any one trial loaded of each.

    Instructions come whole, references in pages from the beginning: a section is loaded where its heading is.
    """
    sections = [*headings("", text.instructions)]
    for path, body in text.references.items():
        sections += headings(path, body) if path.endswith((".md", ".markdown")) else ()
    unread = [one for one in sections if not (one.offset < references.get(one.file, 0) if one.file else loaded)]
    unloaded = tuple(path for path in text.references if path not in references)
    return Coverage(skill, loaded, len(text.references), unloaded, len(sections), tuple(unread))


def headings(file: str, text: str) -> Iterable[Section]:
    """The ATX headings of a Markdown text, outside fenced code."""
    offset, fence = 0, ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif not fence:
            heading = _HEADING.match(line.rstrip("\r\n"))
            if heading:
                yield Section(file, _title(heading[1]), offset)
        offset += len(line.encode("utf-8", "surrogatepass"))


def _title(text: str) -> str:
    """Return a heading's text without the marks that close it."""
    return text.rstrip(" \t").rstrip("#").rstrip(" \t")


def skill_texts(shelf: Shelf, names: Iterable[str]) -> dict[str, SkillText]:
    """The texts of these skills as they are on a shelf; one that cannot be read is left out."""
    found = {}
    for name in names:
        try:
            found[name] = SkillText(shelf.instructions(name), _references(shelf, name))
        except SkillError:
            continue
    return found


def _references(shelf: Shelf, name: str) -> dict[str, str]:
    candidate = shelf.catalog.find(name)
    source, texts = shelf.sources[candidate.place.source], {}
    for path in candidate.descriptor.references:
        try:
            page = source.reference(candidate.place.key, candidate.descriptor, path, 0, _READ)
        except (SkillError, OSError, NotPlainFile):
            texts[path] = ""
            continue
        texts[path] = "" if b"\0" in page.data else page.data.decode("utf-8", "replace")
    return texts
