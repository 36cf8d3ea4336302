"""Choose how much of each skill the section shows.

First come the claims: skills that should be shown in full. One that does not fit is passed over, because a skill with
long instructions must not empty the section. Then the ranked skills get their descriptions; every skill its name, then
the beginning of its description; then all descriptions grow together to a common length, until they are whole; then
come the names of references, and the instructions. The first step that does not fit ends this, so a larger budget takes
the same steps and then more.

Whether something fits is decided by the count of the whole section: a counter need not be additive.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from skillshelf.listing._section import (
    MIN_DESCRIPTION,
    Level,
    Listing,
    Part,
    ReadInstructions,
    Shortened,
    finish_section,
    make_part,
    write_count,
    write_section,
)
from skillshelf.skills import Catalog, Choice, SkillDescriptor
from skillshelf.text.tokens import Counter

# By the estimate the cheapest byte costs a sixteenth of a token. Instructions that cannot fit at that price are not
# even read.
_MAX_BYTES_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class _Order:
    """The order in which skills get their share of the budget, as indexes of the list of skills."""

    claims: Sequence[int]
    """Skills to be shown in full before anything else."""
    ranked: Sequence[int]
    """Skills to be shown with their whole descriptions before the others are named."""
    by_name: Sequence[int]
    """All skills."""
    by_description: Sequence[int]
    """The skills that may be shown with more than their name."""
    by_instructions: Sequence[int]
    """The same skills in the order in which they get their instructions."""


class _Draft:
    """A section in the making, which fits the budget at every step."""

    def __init__(
        self, skills: Sequence[SkillDescriptor], budget: int, counter: Counter, read: ReadInstructions
    ) -> None:
        self.parts: list[Part | None] = [None] * len(skills)
        self._skills = skills
        self._budget = budget
        self._counter = counter
        self._read = read

    def fits(self, parts: Sequence[Part | None]) -> bool:
        return self._counter(write_section(parts)) <= self._budget

    def spend(self, order: _Order) -> None:
        """Give each skill as much as the budget has room for."""
        for index in order.claims:
            for level in (Level.WHOLE, Level.FULL):
                if not self._raise_to(level, [index]):
                    break

        is_enough = (
            self._raise_to(Level.NAME, order.ranked)
            and self._raise_to(Level.SHORT, order.ranked)
            and self._raise_to(Level.WHOLE, order.ranked)
            and self._raise_to(Level.NAME, order.by_name)
            and self._raise_to(Level.SHORT, order.by_description)
            and self._lengthen(order.by_description)
            and self._raise_to(Level.WHOLE, order.by_description)
        )
        if is_enough:
            self._raise_to(Level.FULL, order.by_instructions)

    def _raise_to(self, level: Level, order: Sequence[int], length: int = MIN_DESCRIPTION) -> bool:
        """Raise skills to a level in this order, as many as fit. Return whether all of them did.

        `length` is the most characters of a shortened description.
        """
        lower = [index for index in order if self._can_rise(index, level)]
        room = self._budget - self._counter(write_section(self.parts))
        made: list[Part] = []
        size = 0

        def raise_first(count: int) -> list[Part | None] | None:
            nonlocal size
            for index in lower[len(made) : count]:
                size += self._skills[index].size
                if level == Level.FULL and size > room * _MAX_BYTES_PER_TOKEN:
                    return None
                made.append(make_part(self._skills[index], level, self._read, length))
            parts = self.parts.copy()
            for index, part in zip(lower[:count], made, strict=False):
                parts[index] = part
            return parts if self.fits(parts) else None

        count = self._keep_most(raise_first, len(lower))
        return count == len(lower)

    def _can_rise(self, index: int, level: Level) -> bool:
        part = self.parts[index]
        if part is None or part.level < level:
            return True
        return level == Level.SHORT == part.level  # its description may become longer

    def _lengthen(self, order: Sequence[int]) -> bool:
        """Lengthen all shortened descriptions to a common length. Return whether there is room for all of them."""
        shortened = [index for index in order if self._can_rise(index, Level.SHORT)]
        longest = max((len(self._skills[index].summary) for index in shortened), default=0)

        def lengthen_by(characters: int) -> list[Part | None] | None:
            parts = self.parts.copy()
            for index in shortened:
                parts[index] = make_part(self._skills[index], Level.SHORT, self._read, MIN_DESCRIPTION + characters)
            return parts if self.fits(parts) else None

        most = max(0, longest - MIN_DESCRIPTION)
        whole = lengthen_by(most)  # the note on what is missing goes with the last missing character
        if whole is not None:
            self.parts = whole
            return True
        characters = self._keep_most(lengthen_by, most)
        # What is left may do for one more character of some of them.
        self._raise_to(Level.SHORT, shortened, MIN_DESCRIPTION + characters + 1)
        return False

    def _keep_most(self, make_parts: Callable[[int], list[Part | None] | None], most: int) -> int:
        """Keep the parts for the largest number that fits, and return it. `make_parts` returns None if they don't fit.

        Which numbers are tried depends on the answers alone. So a larger budget never finds a smaller number, even if
        the count of tokens does not rise with every step.
        """
        kept = 0
        too_many = most + 1
        distance = 1
        while kept < most and too_many > kept + 1:
            if too_many > most:
                middle = min(kept + distance, most)
                distance *= 2
            else:
                middle = (kept + too_many) // 2
            parts = make_parts(middle)
            if parts is None:
                too_many = middle
            else:
                kept = middle
                self.parts = parts
        return kept


_LEVELS = {"catalog": Level.WHOLE, "full": Level.FULL}
"""What the forms without a budget show of every skill."""


class _Claim(IntEnum):
    """The right of a skill to be shown in full, the strongest first."""

    CHOSEN = 0
    """The user wants it in full."""
    ALWAYS = 1
    """Its author wants it shown always."""
    TOOLS = 2
    """It is a code skill with tools."""
    NONE = 3


def make_listing(
    catalog: Catalog,
    disclosure: str,
    budget: int,
    counter: Counter,
    read: ReadInstructions,
    ranking: Sequence[str] = (),
    choose: Callable[[SkillDescriptor], Choice | None] = lambda skill: None,
) -> Listing:
    """Return the section for a catalog.

    `read` returns a skill's instructions. `ranking` names skills, the most useful first: within the budget of `auto`
    they get their descriptions before the others are named. `choose` returns the user's choice for a skill, which
    counts in every form.
    """
    skills = [skill for skill in catalog.values() if skill.disclosure != "manual"]
    if not skills:
        return Listing("", 0)

    choices: dict[str, Choice] = {}
    for skill in skills:
        choice = choose(skill)
        if choice:
            choices[skill.name] = choice
    by_name_only = frozenset(name for name, choice in choices.items() if choice == "name")
    if disclosure in _LEVELS:
        levels = {"name": Level.NAME, "full": Level.FULL, None: _LEVELS[disclosure]}
        parts = [make_part(skill, levels[choices.get(skill.name)], read) for skill in skills]
        return finish_section(skills, parts, counter, by_name_only=by_name_only)
    if disclosure != "auto":
        raise ValueError(f"disclosure must be 'auto', 'catalog' or 'full', not {disclosure!r}")

    draft = _Draft(skills, budget, counter, read)
    if draft.fits(draft.parts):
        order = _find_order(catalog, skills, ranking, choices)
        draft.spend(order)
        claims = [skills[index].name for index in order.claims]
        described = [part for index, part in enumerate(draft.parts) if skills[index].name not in by_name_only]
        is_crowded = any(part is None or part.level < Level.SHORT for part in described)
        return replace(finish_section(skills, draft.parts, counter, claims, by_name_only), is_crowded=is_crowded)

    text = write_count(len(skills))
    if counter(text) > budget:
        text = ""
    omitted = tuple(Shortened(skill.name, "omitted") for skill in skills)
    return Listing(text, counter(text), omitted, introduction=text, is_crowded=True)


def _find_order(
    catalog: Catalog, skills: Sequence[SkillDescriptor], ranking: Sequence[str], choices: Mapping[str, Choice]
) -> _Order:
    """Order the skills for the budget.

    First those that the user wants in full, then `always` skills, then code skills, then the others; within each by
    the ranking. Skills that it does not name follow in the order of their sources. Within a source the cheapest come
    first, so that as many as possible keep their descriptions.
    """
    positions = {name: position for position, name in reversed(list(enumerate(ranking)))}
    unranked = len(ranking)

    kinds = [_find_claim(skill, choices.get(skill.name)) for skill in skills]

    def rank(index: int) -> tuple[int, int, int, int]:
        skill = skills[index]
        source = catalog.candidates(skill.name)[0].place.source
        characters = len(skill.name) + min(len(skill.description), MIN_DESCRIPTION)
        return kinds[index], positions.get(skill.name, unranked), source, characters

    order = sorted(range(len(skills)), key=rank)
    claims = [index for index in order if kinds[index] != _Claim.NONE]
    by_description = [index for index in order if choices.get(skills[index].name) != "name"]
    ranked = [index for index in by_description if skills[index].name in positions]
    by_instructions = by_description
    if not ranking:
        by_instructions = sorted(by_description, key=lambda index: skills[index].size)
    return _Order(claims, ranked, order, by_description, by_instructions)


def _find_claim(skill: SkillDescriptor, choice: Choice | None) -> _Claim:
    if choice == "full":
        return _Claim.CHOSEN
    if choice is None and skill.disclosure == "always":
        return _Claim.ALWAYS
    if choice is None and skill.tools:
        return _Claim.TOOLS
    return _Claim.NONE
