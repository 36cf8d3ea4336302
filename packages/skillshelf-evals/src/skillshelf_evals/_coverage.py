"""Coverage: which parts of a skill no trial ever loaded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from skillshelf.errors import SkillError
from skillshelf.files import NotPlainFile
from skillshelf.listing import parse
from skillshelf.shelf import Shelf
from skillshelf_agent.events import ReferenceLoaded
from skillshelf_evals._limits import MAX_REFERENCE_READ
from skillshelf_evals._results import Outcome

MARKDOWN_ENDINGS = (".md", ".markdown")
# The closing marks are cut off in code: a pattern for them would try every run of spaces in the title.
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class SkillContent:
    """Everything of a skill that can be loaded."""

    instructions: str
    references: Mapping[str, str] = field(default_factory=dict)
    """Text by path; empty for a file that is not text."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a file."""

    file: str
    """Empty for the instructions."""
    title: str
    offset: int
    """Where it begins, in bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The parts of one skill that the cases loaded."""

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
        """For readers: the files that were never loaded, then the sections of files that were loaded in part."""
        if not self.loaded:
            return "SKILL.md", *self.unloaded
        sections = [section for section in self.unread if section.file not in self.unloaded]
        return *self.unloaded, *(f"{section.file or 'SKILL.md'} # {section.title}" for section in sections)


def measure_coverage(skill: str, content: SkillContent, loaded: bool, references: Mapping[str, int]) -> Coverage:
    """Return the coverage of a skill. `references` has the most bytes that any one trial loaded of each.

    Instructions are loaded whole, references in pages from the beginning. A section is loaded if its heading is.
    """
    sections = list(find_headings("", content.instructions))
    for path, text in content.references.items():
        if path.endswith(MARKDOWN_ENDINGS):
            sections += find_headings(path, text)

    unread = []
    for section in sections:
        is_read = section.offset < references.get(section.file, 0) if section.file else loaded
        if not is_read:
            unread.append(section)

    unloaded = tuple(path for path in content.references if path not in references)
    return Coverage(skill, loaded, len(content.references), unloaded, len(sections), tuple(unread))


def find_headings(file: str, text: str) -> Iterator[Section]:
    """Yield the ATX headings of a Markdown text, outside fenced code."""
    offset = 0
    open_fence = ""
    for line in text.splitlines(keepends=True):
        fence = _FENCE.match(line)
        if fence and not open_fence:
            open_fence = fence[1]
        elif fence and fence[1].startswith(open_fence):
            open_fence = ""
        elif not open_fence:
            heading = _HEADING.match(line.rstrip("\r\n"))
            if heading:
                yield Section(file, _strip_closing_marks(heading[1]), offset)
        offset += len(line.encode("utf-8", "surrogatepass"))


def _strip_closing_marks(title: str) -> str:
    return title.rstrip(" \t").rstrip("#").rstrip(" \t")


def read_skill_contents(shelf: Shelf, names: Iterable[str]) -> dict[str, SkillContent]:
    """Read these skills from a shelf. A skill that cannot be read is left out."""
    contents = {}
    for name in names:
        try:
            contents[name] = SkillContent(shelf.instructions(name), _read_references(shelf, name))
        except SkillError:
            continue
    return contents


def _read_references(shelf: Shelf, name: str) -> dict[str, str]:
    candidate = shelf.catalog.find(name)
    source = shelf.sources[candidate.place.source]
    texts = {}
    for path in candidate.descriptor.main_references:
        try:
            page = source.reference(candidate.place.key, candidate.descriptor, path, 0, MAX_REFERENCE_READ)
        except (SkillError, OSError, NotPlainFile):
            texts[path] = ""
            continue
        texts[path] = "" if b"\0" in page.data else page.data.decode("utf-8", "replace")

    return texts


@lru_cache(256)
def list_offered(system: str) -> tuple[tuple[str, bool], ...]:
    """Return the skills that a system prompt lists, and whether each is there in full."""
    return tuple((entry.name, entry.instructions is not None) for entry in parse(system))


def cover_skill(skill: str, content: SkillContent, outcomes: Sequence[Outcome]) -> Coverage:
    """Return the parts of a skill that trials loaded. Instructions that the listing shows in full count as loaded."""
    is_loaded = False
    most_bytes: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.arm != "with":
            continue
        if skill in outcome.loaded or any((skill, True) in list_offered(system) for system in outcome.trace.systems):
            is_loaded = True
        loaded_bytes: Counter[str] = Counter()
        for event in outcome.trace.events:
            if isinstance(event, ReferenceLoaded) and event.skill == skill:
                # A binary file was loaded, too, though nothing of it enters the conversation.
                loaded_bytes[event.reference] += max(1, event.size)
        most_bytes |= loaded_bytes

    return measure_coverage(skill, content, is_loaded, most_bytes)
