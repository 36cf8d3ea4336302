"""What goes into the section: disclosure, budget, and an account of what was shortened."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from skillshelf.catalog import Catalog
from skillshelf.descriptor import MAX_DESCRIPTION, Diagnostic, SkillDescriptor
from skillshelf.errors import SkillError
from skillshelf.listing._markup import Entry, render
from skillshelf.text import text_for_model
from skillshelf.tokens import Counter

MAX_REFERENCES = 50
# Lengths a description is cut to, one after the other, until the section fits.
_STEPS = (400, 200, 120, 60, 30)
# By the estimate the cheapest byte costs a sixteenth of a token: what cannot fit at that price is not even read.
_MOST_BYTES_PER_TOKEN = 16

_HEADING = "# Available Skills\n\n"
_HOW = (
    "Each skill holds instructions for one kind of task. When a task fits a skill, first load it: "
    "`search_skills(query)` finds skills by words, `load_skill_instructions(skill_name)` brings its instructions, "
    "and `load_skill_instructions(skill_name, reference)` one of the files it names.\n\n"
)
_FULL = "Each skill holds instructions for one kind of task. When a task fits a skill, follow its instructions.\n\n"

What = Literal["description", "references", "instructions", "omitted"]
"""`instructions`: those of a skill that asks to be always in full."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A skill that the section does not show whole, and what of it is missing."""

    name: str
    what: What


@dataclass(frozen=True, slots=True)
class Listing:
    """The section, what it costs, and what it leaves out."""

    text: str
    tokens: int
    shortened: tuple[Shortened, ...] = ()
    full: tuple[str, ...] = ()
    """Skills whose instructions are in the section."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was shortened, counted."""
        kinds: dict[str, int] = {}
        for one in self.shortened:
            kinds[one.what] = kinds.get(one.what, 0) + 1
        if not kinds:
            return ()
        counts = ", ".join(f"{what}: {count}" for what, count in kinds.items())
        return (
            Diagnostic(
                "warning",
                "listing-shortened",
                f"not all skills are shown whole ({counts})",
                fix="raise the budget, or keep fewer and shorter skills here",
            ),
        )


def make_listing(
    catalog: Catalog, disclosure: str, budget: int, counter: Counter, read: Callable[[SkillDescriptor], str]
) -> Listing:
    """The section for a catalog. `read` gives a skill's instructions."""
    skills = [skill for skill in catalog.values() if skill.disclosure != "manual"]
    if not skills:
        return Listing("", 0)
    if disclosure == "full":
        entries = [_with_body(_entry(skill), skill, read) for skill in skills]
    elif disclosure == "catalog":
        entries = [_entry(skill) for skill in skills]
    elif disclosure == "auto":
        return _fit(skills, budget, counter, read)
    else:
        raise ValueError(f"disclosure must be 'auto', 'catalog' or 'full', not {disclosure!r}")
    return _listing(skills, entries, counter)


def _fit(
    skills: Sequence[SkillDescriptor], budget: int, counter: Counter, read: Callable[[SkillDescriptor], str]
) -> Listing:
    """Every skill visible within the budget, and in full the instructions that fit."""
    room = budget - counter(_wrap([], omitted=len(skills), loadable=True))
    for some in _shorter_and_shorter(skills):
        entries, costs = _take_within(some, room, counter)
        # Each cost is rounded, which over hundreds of them adds up: the whole is counted too.
        if len(entries) == len(skills) and (left := budget - counter(_wrap(entries, 0, loadable=True))) >= 0:
            return _listing(skills, _add_bodies(skills, entries, costs, left, counter, read), counter, fitted=True)
    return _names_that_fit(skills, budget, counter)


def _take_within(some: Iterable[Entry], room: int, counter: Counter) -> tuple[list[Entry], list[int]]:
    """The entries that fit, and what each costs; it stops at the first that does not."""
    entries, costs = [], []
    for entry in some:
        cost = counter(entry.render())
        room -= cost
        if room < 0:
            break
        entries.append(entry)
        costs.append(cost)
    return entries, costs


def _add_bodies(
    skills: Sequence[SkillDescriptor],
    entries: list[Entry],
    costs: Sequence[int],
    room: int,
    counter: Counter,
    read: Callable[[SkillDescriptor], str],
) -> list[Entry]:
    """The instructions that still fit: those of `always` skills first, then the shortest."""
    order = sorted(range(len(skills)), key=lambda at: (skills[at].disclosure != "always", skills[at].size, at))
    for at in order:
        skill = skills[at]
        if skill.size <= room * _MOST_BYTES_PER_TOKEN:
            whole = _with_body(entries[at], skill, read)
            cost = counter(whole.render()) - costs[at] + 1
            if cost <= room:
                entries[at] = whole
                room -= cost
                continue
        if skill.disclosure != "always":
            break  # the rest is larger still
    return entries


def _shorter_and_shorter(skills: Sequence[SkillDescriptor]) -> Iterator[Iterable[Entry]]:
    yield map(_entry, skills)
    for length in (MAX_DESCRIPTION, *_STEPS):
        yield (_entry(skill, length, 0) for skill in skills)


def _names_that_fit(skills: Sequence[SkillDescriptor], budget: int, counter: Counter) -> Listing:
    """As many names as fit, those of `always` skills first."""
    ordered = sorted(skills, key=lambda skill: (skill.disclosure != "always", skill.name))
    entries = [Entry(skill.name, "") for skill in ordered]
    # One less than none: not even the section's own words fit.
    low, high = -1, len(entries)
    while low < high:
        middle = (low + high + 1) // 2
        if counter(_wrap(entries[:middle], len(entries) - middle, loadable=True)) <= budget:
            low = middle
        else:
            high = middle - 1
    if low < 0:
        text = f"{_HEADING}{len(skills)} skills: `search_skills(query)` finds them.\n"
        text = text if counter(text) <= budget else ""
        return Listing(text, counter(text), tuple(Shortened(skill.name, "omitted") for skill in skills))
    return _listing(skills, entries[:low], counter, fitted=True)


def _entry(skill: SkillDescriptor, length: int = MAX_DESCRIPTION, references: int = MAX_REFERENCES) -> Entry:
    text = skill.description
    shown = skill.references[:references]
    if len(text) > length:
        text = text[: length - 1].rstrip() + "…"
    return Entry(skill.name, text, shown, len(skill.references) - len(shown))


def _with_body(entry: Entry, skill: SkillDescriptor, read: Callable[[SkillDescriptor], str]) -> Entry:
    try:
        return replace(entry, instructions=text_for_model(read(skill)))
    except SkillError:
        return entry  # it stays in the section, to be loaded when it is mended


def _listing(
    skills: Sequence[SkillDescriptor], entries: Sequence[Entry], counter: Counter, fitted: bool = False
) -> Listing:
    """`fitted`: to a budget, where an `always` skill should have its instructions."""
    shown = {entry.name: entry for entry in entries}
    shortened: list[Shortened] = []
    for skill in skills:
        entry = shown.get(skill.name)
        if entry is None:
            shortened.append(Shortened(skill.name, "omitted"))
            continue
        if entry.description != skill.description:
            shortened.append(Shortened(skill.name, "description"))
        if entry.more:
            shortened.append(Shortened(skill.name, "references"))
        if fitted and skill.disclosure == "always" and entry.instructions is None:
            shortened.append(Shortened(skill.name, "instructions"))
    loadable = any(entry.instructions is None or entry.references or entry.more for entry in entries) or len(
        entries
    ) < len(skills)
    text = _wrap(entries, len(skills) - len(entries), loadable, any(one.what != "omitted" for one in shortened))
    full = tuple(entry.name for entry in entries if entry.instructions is not None)
    return Listing(text, counter(text), tuple(shortened), full)


def _wrap(entries: Sequence[Entry], omitted: int, loadable: bool, cut: bool = True) -> str:
    notes = []
    if cut:
        notes.append(
            "Some descriptions, reference names or instructions are shortened here or left out; "
            "loading a skill shows them whole."
        )
    if omitted:
        notes.append(f"{omitted} more skills are not named here: search_skills finds them.")
    note = "\n" + " ".join(notes) + "\n" if notes else ""
    return f"{_HEADING}{_HOW if loadable else _FULL}{render(entries)}{note}"
