"""Choose how much of each skill the Available Skills section shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

from skillshelf.catalog import Catalog
from skillshelf.descriptor import Choice, SkillDescriptor
from skillshelf.listing._budget import Priorities, spend
from skillshelf.listing._section import (
    Level,
    Listing,
    ReadInstructions,
    Shortened,
    finish_section,
    make_part,
    write_count,
)
from skillshelf.tokens import Counter

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
