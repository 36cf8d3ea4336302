"""Choose what goes into the Available Skills section, within a budget of tokens."""

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

# Descriptions are cut to these lengths, one after the other, until the section fits.
_SHORTER_LENGTHS = (400, 200, 120, 60, 30)

# By the estimate the cheapest byte costs a sixteenth of a token. Instructions that cannot fit at that price are not
# even read.
_MAX_BYTES_PER_TOKEN = 16

_HEADING = "# Available Skills\n\n"
_HOW_TO_LOAD = (
    "Each skill holds instructions for one kind of task. When a task fits a skill, first load it: "
    "`search_skills(query)` finds skills by words, `load_skill_instructions(skill_name)` loads its instructions, "
    "and `load_skill_instructions(skill_name, reference)` one of the files it names.\n\n"
)
_ALL_IN_FULL = (
    "Each skill holds instructions for one kind of task. When a task fits a skill, follow its instructions.\n\n"
)

What = Literal["description", "references", "instructions", "omitted"]
"""`instructions`: the skill asks to be shown in full, and is not."""

ReadInstructions = Callable[[SkillDescriptor], str]


@dataclass(frozen=True, slots=True)
class Shortened:
    """A skill that the section does not show whole, and the part that is missing."""

    name: str
    what: What


@dataclass(frozen=True, slots=True)
class Listing:
    """The section, its cost, and what it leaves out."""

    text: str
    tokens: int
    shortened: tuple[Shortened, ...] = ()
    full: tuple[str, ...] = ()
    """Skills whose instructions are in the section."""
    entries: tuple[Entry, ...] = ()
    introduction: str = ""
    """The words before the entries, which say how to use skills."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """A warning that counts the shortened skills, if there are any."""
        counts: dict[str, int] = {}
        for each in self.shortened:
            counts[each.what] = counts.get(each.what, 0) + 1
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


def make_listing(catalog: Catalog, disclosure: str, budget: int, counter: Counter, read: ReadInstructions) -> Listing:
    """Return the section for a catalog. `read` returns a skill's instructions."""
    skills = [skill for skill in catalog.values() if skill.disclosure != "manual"]
    if not skills:
        return Listing("", 0)

    if disclosure == "auto":
        return _fit(skills, budget, counter, read)
    if disclosure == "catalog":
        return _finish(skills, [_make_entry(skill) for skill in skills], counter)
    if disclosure == "full":
        return _finish(skills, [_add_instructions(_make_entry(skill), skill, read) for skill in skills], counter)
    raise ValueError(f"disclosure must be 'auto', 'catalog' or 'full', not {disclosure!r}")


def _fit(skills: Sequence[SkillDescriptor], budget: int, counter: Counter, read: ReadInstructions) -> Listing:
    """Show every skill within the budget, and the instructions that still fit."""
    room = budget - counter(_compose([], omitted=len(skills), is_loadable=True))
    for attempt in _make_shorter_and_shorter(skills):
        entries, costs = _take_within(attempt, room, counter)
        if len(entries) < len(skills):
            continue
        # Each cost is rounded, which adds up over hundreds of them: the whole is counted, too.
        left = budget - counter(_compose(entries, omitted=0, is_loadable=True))
        if left >= 0:
            entries = _fill_with_instructions(skills, entries, costs, left, counter, read)
            return _finish(skills, entries, counter, is_fitted=True)
    return _fit_names(skills, budget, counter)


def _make_shorter_and_shorter(skills: Sequence[SkillDescriptor]) -> Iterator[Iterable[Entry]]:
    yield map(_make_entry, skills)
    for length in (MAX_DESCRIPTION, *_SHORTER_LENGTHS):
        yield (_make_entry(skill, length, 0) for skill in skills)


def _take_within(entries: Iterable[Entry], room: int, counter: Counter) -> tuple[list[Entry], list[int]]:
    """Return the entries up to the first that does not fit, and the cost of each."""
    taken: list[Entry] = []
    costs: list[int] = []
    for entry in entries:
        cost = counter(entry.render())
        room -= cost
        if room < 0:
            break
        taken.append(entry)
        costs.append(cost)
    return taken, costs


def _fill_with_instructions(
    skills: Sequence[SkillDescriptor],
    entries: Sequence[Entry],
    costs: Sequence[int],
    room: int,
    counter: Counter,
    read: ReadInstructions,
) -> list[Entry]:
    """Add the instructions that fit: those of `always` skills first, then the shortest."""
    filled = list(entries)
    order = sorted(range(len(skills)), key=lambda index: (skills[index].disclosure != "always", skills[index].size))
    for index in order:
        skill = skills[index]
        if skill.size <= room * _MAX_BYTES_PER_TOKEN:
            entry = _add_instructions(filled[index], skill, read)
            cost = counter(entry.render()) - costs[index] + 1
            if cost <= room:
                filled[index] = entry
                room -= cost
                continue
        if skill.disclosure != "always":
            break  # the rest is larger still
    return filled


def _fit_names(skills: Sequence[SkillDescriptor], budget: int, counter: Counter) -> Listing:
    """Show as many names as fit, those of `always` skills first."""
    ordered = sorted(skills, key=lambda skill: (skill.disclosure != "always", skill.name))
    entries = [Entry(skill.name, "") for skill in ordered]

    # A binary search for the largest number of names that fits; -1 if not even the section's own words do.
    low = -1
    high = len(entries)
    while low < high:
        middle = (low + high + 1) // 2
        text = _compose(entries[:middle], len(entries) - middle, is_loadable=True)
        if counter(text) <= budget:
            low = middle
        else:
            high = middle - 1
    if low >= 0:
        return _finish(skills, entries[:low], counter, is_fitted=True)

    text = f"{_HEADING}{len(skills)} skills: `search_skills(query)` finds them.\n"
    if counter(text) > budget:
        text = ""
    omitted = tuple(Shortened(skill.name, "omitted") for skill in skills)
    return Listing(text, counter(text), omitted, introduction=text)


def _make_entry(
    skill: SkillDescriptor, max_description: int = MAX_DESCRIPTION, max_references: int = MAX_REFERENCES
) -> Entry:
    description = skill.description
    if len(description) > max_description:
        description = description[: max_description - 1].rstrip() + "…"
    references = skill.references[:max_references]
    return Entry(skill.name, description, references, len(skill.references) - len(references))


def _add_instructions(entry: Entry, skill: SkillDescriptor, read: ReadInstructions) -> Entry:
    try:
        return replace(entry, instructions=text_for_model(read(skill)))
    except SkillError:
        return entry  # it stays in the section, to be loaded when it is mended


def _finish(
    skills: Sequence[SkillDescriptor], entries: Sequence[Entry], counter: Counter, is_fitted: bool = False
) -> Listing:
    """Compose the section and report what it leaves out.

    If it `is_fitted` to a budget, an `always` skill without its instructions counts as shortened.
    """
    shortened = list(_find_shortened(skills, entries, is_fitted))
    omitted = len(skills) - len(entries)
    is_loadable = omitted > 0 or any(entry.instructions is None or entry.references or entry.more for entry in entries)
    is_cut = any(each.what != "omitted" for each in shortened)
    text = _compose(entries, omitted, is_loadable, is_cut)
    return Listing(
        text=text,
        tokens=counter(text),
        shortened=tuple(shortened),
        full=tuple(entry.name for entry in entries if entry.instructions is not None),
        entries=tuple(entries),
        introduction=_introduce(is_loadable),
    )


def _find_shortened(
    skills: Sequence[SkillDescriptor], entries: Sequence[Entry], is_fitted: bool
) -> Iterator[Shortened]:
    by_name = {entry.name: entry for entry in entries}
    for skill in skills:
        entry = by_name.get(skill.name)
        if entry is None:
            yield Shortened(skill.name, "omitted")
            continue
        if entry.description != skill.description:
            yield Shortened(skill.name, "description")
        if entry.more:
            yield Shortened(skill.name, "references")
        if is_fitted and skill.disclosure == "always" and entry.instructions is None:
            yield Shortened(skill.name, "instructions")


def _introduce(is_loadable: bool) -> str:
    return _HEADING + (_HOW_TO_LOAD if is_loadable else _ALL_IN_FULL)


def _compose(entries: Sequence[Entry], omitted: int, is_loadable: bool, is_cut: bool = True) -> str:
    """Return the section's text: an introduction, the entries, and a note on what is missing."""
    notes: list[str] = []
    if is_cut:
        notes.append(
            "Some descriptions, reference names or instructions are shortened here or left out; "
            "loading a skill shows them whole."
        )
    if omitted:
        notes.append(f"{omitted} more skills are not named here: search_skills finds them.")

    text = _introduce(is_loadable) + render(entries)
    if notes:
        text += "\n" + " ".join(notes) + "\n"
    return text
