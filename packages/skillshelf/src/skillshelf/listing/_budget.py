"""Choose how much of each skill the section shows, by spending a budget of tokens skill by skill.

First come the claims: skills that should be shown in full. Skills that were put ahead get their whole descriptions.
Then every skill gets its name, then a shortened description, then the whole one with the names of its references, then
its instructions. Each time the skills come in their order of priority, and the first step that does not fit ends the
spending. So no more is left over than the next step costs, and a larger budget takes the same steps and then more. A
claim that does not fit is skipped instead: one skill with long instructions must not empty the section.

A counter need not be additive: its counts are rounded, and tokens merge. So sums of counts only guide the search, and
the counts of whole sections decide.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from skillshelf.listing._section import (
    Level,
    Listing,
    Part,
    ReadInstructions,
    Shortened,
    finish_section,
    make_part,
    measure_longest_ending,
    write_count,
    write_section,
)
from skillshelf.skills import Catalog, Choice, SkillDescriptor
from skillshelf.text.tokens import Counter

# By the estimate the cheapest byte costs a sixteenth of a token. Instructions that cannot fit at that price are not
# even read.
_MAX_BYTES_PER_TOKEN = 16


@dataclass(frozen=True, slots=True)
class Priorities:
    """The order in which skills get their share of the budget, as indexes of the list of skills."""

    claims: Sequence[int]
    """Skills to be shown in full before anything else."""
    ahead: Sequence[int]
    """Skills to be shown with their whole descriptions before the others are named."""
    by_name: Sequence[int]
    """All skills."""
    by_description: Sequence[int]
    """The skills that may be shown with more than their name."""
    by_instructions: Sequence[int]
    """The same skills in the order in which they get their instructions."""


def spend(
    skills: Sequence[SkillDescriptor],
    priorities: Priorities,
    budget: int,
    counter: Counter,
    read: ReadInstructions,
) -> list[Part | None] | None:
    """Return the part of each skill, None for a skill that is left out. None if not even the introduction fits."""
    draft = _Draft(skills, budget, counter, read)
    if not draft.fits():
        return None

    draft.grant_claims(priorities.claims)
    for level, order in (
        (Level.NAME, priorities.ahead),
        (Level.SHORT, priorities.ahead),
        (Level.WHOLE, priorities.ahead),
        (Level.NAME, priorities.by_name),
        (Level.SHORT, priorities.by_description),
        (Level.WHOLE, priorities.by_description),
        (Level.FULL, priorities.by_instructions),
    ):
        if not draft.raise_all(level, order):
            break
    return draft.parts


@dataclass(frozen=True, slots=True)
class _BudgetStep:
    """A skill is raised to a higher level."""

    index: int
    before: Part | None
    after: Part


class _Draft:
    """A section in the making: the steps that lead to it, and how many of them are taken."""

    def __init__(
        self, skills: Sequence[SkillDescriptor], budget: int, counter: Counter, read: ReadInstructions
    ) -> None:
        self.parts: list[Part | None] = [None] * len(skills)
        self._skills = skills
        self._budget = budget
        self._counter = counter
        self._read = read
        self._steps: list[_BudgetStep] = []
        self._taken = 0

    def count(self) -> int:
        return self._counter(write_section(self.parts))

    def fits(self) -> bool:
        return self.count() <= self._budget

    def grant_claims(self, claims: Sequence[int]) -> None:
        """Show these skills in full, or at least with their whole description, as far as there is room."""
        room = self._budget - self.count()
        for index in claims:
            chosen: Part | None = None
            cost = 0
            for level in (Level.WHOLE, Level.FULL):
                if not self._may_fit(index, level, room):
                    break
                part = make_part(self._skills[index], level, self._read)
                tokens = self._counter(part.text)
                if tokens > room:
                    break
                chosen = part
                cost = tokens
            if chosen is not None:
                self._add(index, chosen)
                room -= cost

        self._go_to(len(self._steps))
        if not self.fits():
            self._go_back_until_it_fits(least=0)

    def raise_all(self, level: Level, order: Sequence[int]) -> bool:
        """Raise skills that are below a level to it, in this order. Return whether there was room for all."""
        start = self._taken
        tokens = self.count()
        # At the end of a level the section may lose its notes on what is missing, and fit again.
        limit = self._budget + measure_longest_ending(self._counter)
        is_complete = True

        for index in order:
            before = self.parts[index]
            if before is not None and before.level >= level:
                continue
            if not self._may_fit(index, level, limit - tokens):
                is_complete = False
                break

            part = make_part(self._skills[index], level, self._read)
            self._add(index, part)
            tokens += self._counter(part.text)
            if before is not None:
                tokens -= self._counter(before.text)
            if tokens > limit:
                # Each count is rounded, which adds up over hundreds of them.
                self._go_to(len(self._steps))
                tokens = self.count()
                if tokens > limit:
                    is_complete = False
                    break

        self._go_to(len(self._steps))
        if self.fits():
            return is_complete
        self._go_back_until_it_fits(least=start)
        return False

    def _may_fit(self, index: int, level: Level, room: int) -> bool:
        return level < Level.FULL or self._skills[index].size <= room * _MAX_BYTES_PER_TOKEN

    def _add(self, index: int, part: Part) -> None:
        self._steps.append(_BudgetStep(index, self.parts[index], part))

    def _go_to(self, taken: int) -> None:
        """Take steps, or undo them, until this many are taken."""
        for step in self._steps[self._taken : taken]:
            self.parts[step.index] = step.after
        for step in reversed(self._steps[taken : self._taken]):
            self.parts[step.index] = step.before
        self._taken = taken

    def _go_back_until_it_fits(self, least: int) -> None:
        """Keep as many steps as fit; the first `least` are known to."""
        too_many = len(self._steps)
        distance = 1
        most = too_many
        while most > least:
            most = max(least, too_many - distance)
            self._go_to(most)
            if self.fits():
                break
            too_many = most
            distance *= 2

        while too_many - most > 1:
            middle = (most + too_many) // 2
            self._go_to(middle)
            if self.fits():
                most = middle
            else:
                too_many = middle
        self._go_to(most)
        del self._steps[most:]


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

    priorities = _set_priorities(catalog, skills, ranking, choices)
    fitted = spend(skills, priorities, budget, counter, read)
    if fitted is not None:
        claims = [skills[index].name for index in priorities.claims]
        described = [part for index, part in enumerate(fitted) if skills[index].name not in by_name_only]
        is_crowded = any(part is None or part.level < Level.WHOLE for part in described)
        return replace(finish_section(skills, fitted, counter, claims, by_name_only), is_crowded=is_crowded)

    text = write_count(len(skills))
    if counter(text) > budget:
        text = ""
    omitted = tuple(Shortened(skill.name, "omitted") for skill in skills)
    return Listing(text, counter(text), omitted, introduction=text, is_crowded=True)


def _set_priorities(
    catalog: Catalog, skills: Sequence[SkillDescriptor], ranking: Sequence[str], choices: Mapping[str, Choice]
) -> Priorities:
    """Order the skills for the budget.

    First those that the user wants in full, then `always` skills, then code skills, then the others; within each by
    the ranking. Skills that it does not name follow in the order of their sources, and by name.
    """
    positions = {name: position for position, name in reversed(list(enumerate(ranking)))}
    unranked = len(ranking)

    kinds = [_find_claim(skill, choices.get(skill.name)) for skill in skills]

    def rank(index: int) -> tuple[int, int, int]:
        name = skills[index].name
        return kinds[index], positions.get(name, unranked), catalog.candidates(name)[0].place.source

    order = sorted(range(len(skills)), key=rank)
    claims = [index for index in order if kinds[index] != _Claim.NONE]
    by_description = [index for index in order if choices.get(skills[index].name) != "name"]
    ahead = [index for index in by_description if skills[index].name in positions]
    by_instructions = by_description
    if not ranking:
        by_instructions = sorted(by_description, key=lambda index: skills[index].size)
    return Priorities(claims, ahead, order, by_description, by_instructions)


def _find_claim(skill: SkillDescriptor, choice: Choice | None) -> _Claim:
    if choice == "full":
        return _Claim.CHOSEN
    if choice is None and skill.disclosure == "always":
        return _Claim.ALWAYS
    if choice is None and skill.tools:
        return _Claim.TOOLS
    return _Claim.NONE
