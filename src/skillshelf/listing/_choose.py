"""Choose how much of each skill the Available Skills section shows."""

from collections.abc import Sequence

from skillshelf.catalog import Catalog
from skillshelf.descriptor import SkillDescriptor
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


def make_listing(
    catalog: Catalog,
    disclosure: str,
    budget: int,
    counter: Counter,
    read: ReadInstructions,
    ranking: Sequence[str] = (),
) -> Listing:
    """Return the section for a catalog.

    `read` returns a skill's instructions. `ranking` names skills, the most useful first: within the budget of `auto`
    they come before the others.
    """
    skills = [skill for skill in catalog.values() if skill.disclosure != "manual"]
    if not skills:
        return Listing("", 0)

    if disclosure == "catalog":
        return finish_section(skills, [make_part(skill, Level.WHOLE, read) for skill in skills], counter)
    if disclosure == "full":
        return finish_section(skills, [make_part(skill, Level.FULL, read) for skill in skills], counter)
    if disclosure != "auto":
        raise ValueError(f"disclosure must be 'auto', 'catalog' or 'full', not {disclosure!r}")

    priorities = _set_priorities(catalog, skills, ranking)
    parts = spend(skills, priorities, budget, counter, read)
    if parts is not None:
        claims = [skills[index].name for index in priorities.claims]
        return finish_section(skills, parts, counter, claims)

    text = write_count(len(skills))
    if counter(text) > budget:
        text = ""
    omitted = tuple(Shortened(skill.name, "omitted") for skill in skills)
    return Listing(text, counter(text), omitted, introduction=text)


def _set_priorities(catalog: Catalog, skills: Sequence[SkillDescriptor], ranking: Sequence[str]) -> Priorities:
    """Order the skills for the budget.

    First the `always` skills, then code skills, then the others; within each by the ranking. Skills that it does not
    name follow in the order of their sources, and by name.
    """
    positions = {name: position for position, name in reversed(list(enumerate(ranking)))}
    unranked = len(ranking)

    def claim(index: int) -> int:
        skill = skills[index]
        if skill.disclosure == "always":
            return 0
        return 1 if skill.tools else 2

    def rank(index: int) -> tuple[int, int, int]:
        name = skills[index].name
        return claim(index), positions.get(name, unranked), catalog.candidates(name)[0].place.source

    order = sorted(range(len(skills)), key=rank)
    claims = [index for index in order if claim(index) < 2]
    if ranking:
        by_instructions = order
    else:
        by_instructions = sorted(order, key=lambda index: skills[index].size)
    return Priorities(claims, order, by_instructions)
