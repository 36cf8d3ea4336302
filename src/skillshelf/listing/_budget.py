"""Spend a budget of tokens on the skills of a section, skill by skill.

First come the claims: skills that should be shown in full. Skills that were put ahead get their whole descriptions.
Then every skill gets its name, then a shortened description, then the whole one with the names of its references, then
its instructions. Each time the skills come in their order of priority, and the first step that does not fit ends the
spending. So no more is left over than the next step costs, and a larger budget takes the same steps and then more. A
claim that does not fit is skipped instead: one skill with long instructions must not empty the section.

A counter need not be additive: its counts are rounded, and tokens merge. So sums of counts only guide the search, and
the counts of whole sections decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from skillshelf.descriptor import SkillDescriptor
from skillshelf.listing._section import Level, Part, ReadInstructions, make_part, measure_longest_ending, write_section
from skillshelf.tokens import Counter

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
class _Step:
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
        self._steps: list[_Step] = []
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
        self._steps.append(_Step(index, self.parts[index], part))

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
