"""The Available Skills section: its words, its entries, and the skills that it does not show whole."""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

from skillshelf.errors import SkillError
from skillshelf.listing._markup import Entry, join_block
from skillshelf.skills import MAX_DESCRIPTION, Diagnostic, SkillDescriptor
from skillshelf.text import text_for_model, truncate_words
from skillshelf.text.tokens import Counter

MAX_REFERENCES = 50
MIN_DESCRIPTION = 40
"""Characters of the shortest description: below that, a skill is shown by its name alone."""

_HEADING = "# Available Skills\n\n"
_HOW_TO_LOAD = (
    "Each skill holds instructions for one kind of task. When a task fits a skill, first load it: "
    "`search_skills(query)` finds skills by words, `load_skill_instructions(skill_name)` loads its instructions, "
    "and `load_skill_instructions(skill_name, reference)` one of the files it names.\n\n"
)
_ALL_IN_FULL = (
    "Each skill holds instructions for one kind of task. When a task fits a skill, follow its instructions.\n\n"
)
_SOME_ARE_CUT = "Some descriptions or reference names are shortened here or left out; loading a skill shows them whole."

MissingPart = Literal["description", "references", "instructions", "omitted"]
"""`instructions`: the skill has a first claim on being shown in full, and is not."""

ReadInstructions = Callable[[SkillDescriptor], str]


class Level(IntEnum):
    """How much the section shows of a skill that it names."""

    NAME = 1
    SHORT = 2
    """The beginning of the description, and the number of references."""
    WHOLE = 3
    """The whole description and the names of the main references."""
    FULL = 4
    """The instructions, too."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A skill that the section does not show whole, and the part that is missing."""

    name: str
    what: MissingPart


@dataclass(frozen=True, slots=True)
class Listing:
    """The section, its cost, and what it leaves out."""

    text: str
    tokens: int
    shortened: tuple[Shortened, ...] = ()
    full: tuple[str, ...] = ()
    """Skills whose instructions are in the section."""
    entries: tuple[Entry, ...] = ()
    """The skills in the order of the text: by name, those that are shown by name alone at the end."""
    introduction: str = ""
    """The words before the entries, which say how to use skills."""
    is_crowded: bool = False
    """True if the budget has no room for a description of every skill."""

    def level_of(self, name: str) -> Level | None:
        """Return how much the section shows of a skill, or None if it does not name it."""
        entry = next((entry for entry in self.entries if entry.name == name), None)
        if entry is None:
            return None
        if entry.is_bare:
            return Level.NAME
        if entry.instructions is not None:
            return Level.FULL
        # The section never shows more of a description than the format allows.
        if len(entry.description) < MAX_DESCRIPTION and Shortened(name, "description") in self.shortened:
            return Level.SHORT
        return Level.WHOLE

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """A warning that counts the shortened skills, if there are any."""
        counts: dict[str, int] = {}
        for shortened in self.shortened:
            counts[shortened.what] = counts.get(shortened.what, 0) + 1
        if not counts:
            return ()

        shown = ", ".join(f"{what}: {count}" for what, count in counts.items())
        return (
            Diagnostic(
                "warning",
                "listing-shortened",
                f"not all skills are shown whole ({shown})",
                fix="raise the budget, or keep fewer and shorter skills here",
            ),
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What the section shows of one skill."""

    level: Level
    entry: Entry
    text: str
    is_cut: bool
    """True if the description or the list of main references is not whole."""
    is_bare: bool
    is_loadable: bool
    """True if the model may want to load more of the skill."""


def make_part(skill: SkillDescriptor, level: Level, read: ReadInstructions, length: int = MIN_DESCRIPTION) -> Part:
    """Return a skill's part of the section at this level, or at the next one if there is no difference.

    `length` is the most characters of a shortened description.
    """
    entry = _make_entry(skill, level, length)
    is_cut = entry.description != skill.description or len(entry.references) < len(skill.main_references)
    if level == Level.SHORT and not is_cut:
        level = Level.WHOLE
    elif level == Level.FULL and not skill.runs_apart:  # its instructions are for another conversation
        # Instructions that cannot be read now are loaded when the skill is repaired.
        with contextlib.suppress(SkillError):
            entry = replace(entry, instructions=text_for_model(read(skill)))
    return Part(
        level=level,
        entry=entry,
        text=entry.render(),
        is_cut=is_cut,
        is_bare=entry.is_bare,
        is_loadable=entry.instructions is None or bool(entry.references or entry.more),
    )


def _make_entry(skill: SkillDescriptor, level: Level, length: int) -> Entry:
    """Return a skill's entry without instructions."""
    if level == Level.NAME:
        return Entry(skill.name, "")

    description = skill.summary
    max_references = MAX_REFERENCES
    if level == Level.SHORT:
        description = truncate_words(description, length)
        max_references = 0

    references = skill.main_references[:max_references]
    more = len(skill.references) - len(references)
    return Entry(skill.name, description, references, more, runs_apart=skill.runs_apart)


def write_section(parts: Sequence[Part | None]) -> str:
    """Return the section's text: an introduction, the entries, and a note on what is missing. None is left out."""
    shown = [part for part in parts if part is not None]
    omitted = len(parts) - len(shown)
    elements = [part.text for part in shown if not part.is_bare]
    bare_names = [part.entry.name for part in shown if part.is_bare]

    notes: list[str] = []
    if any(part.is_cut for part in shown):
        notes.append(_SOME_ARE_CUT)
    if omitted == 1:
        notes.append("1 more skill is not named here: search_skills finds it.")
    elif omitted:
        notes.append(f"{omitted} more skills are not named here: search_skills finds them.")

    text = _introduce(parts) + join_block(elements, bare_names)
    if notes:
        text += "\n" + " ".join(notes) + "\n"
    return text


def write_count(skills: int) -> str:
    """Return a section that has room for the number of skills only."""
    return f"{_HEADING}{skills} skills: `search_skills(query)` finds them.\n"


def finish_section(
    skills: Sequence[SkillDescriptor],
    parts: Sequence[Part | None],
    counter: Counter,
    claims: Iterable[str] = (),
    by_name_only: frozenset[str] = frozenset(),
) -> Listing:
    """Return the listing of these parts, one for each skill.

    `claims` names the skills to be shown in full, `by_name_only` those of which the user wants no more than the name.
    """
    text = write_section(parts)
    entries = [part.entry for part in parts if part is not None and not part.is_bare]
    entries += [part.entry for part in parts if part is not None and part.is_bare]
    return Listing(
        text=text,
        tokens=counter(text),
        shortened=tuple(_find_shortened(skills, parts, frozenset(claims), by_name_only)),
        full=tuple(entry.name for entry in entries if entry.instructions is not None),
        entries=tuple(entries),
        introduction=_introduce(parts),
    )


def _find_shortened(
    skills: Sequence[SkillDescriptor],
    parts: Sequence[Part | None],
    claims: frozenset[str],
    by_name_only: frozenset[str],
) -> Iterator[Shortened]:
    for skill, part in zip(skills, parts, strict=True):
        if part is None:
            yield Shortened(skill.name, "omitted")
            continue
        if skill.name in by_name_only:
            continue
        if part.entry.description != skill.description:
            yield Shortened(skill.name, "description")
        if len(part.entry.references) < len(skill.main_references):
            yield Shortened(skill.name, "references")
        if skill.name in claims and part.entry.instructions is None and not skill.runs_apart:
            yield Shortened(skill.name, "instructions")


def _introduce(parts: Sequence[Part | None]) -> str:
    for part in parts:
        if part is None or part.is_loadable:
            return _HEADING + _HOW_TO_LOAD
    return _HEADING + _ALL_IN_FULL
