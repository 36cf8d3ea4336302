"""Skills whose text speaks only of what their setting offers."""

import re
from collections.abc import Collection
from typing import TypeVar

from skillshelf.skills import BaseSkill

Skill = TypeVar("Skill", bound=BaseSkill)

_ITEM = re.compile(r"(?m)^- .*(?:\n  .*)*\n?")


def narrow(skill: Skill, *, without: Collection[str]) -> Skill:
    """Leave out the items of its instructions that name one of these tools or references, and those references."""

    def keep(item: re.Match[str]) -> str:
        return "" if any(word in item[0] for word in without) else item[0]

    # Not by assignment: to a type checker these belong to the class.
    vars(skill)["instructions"] = _ITEM.sub(keep, skill.instructions).rstrip()
    vars(skill)["references"] = tuple(path for path in skill.references if path.rpartition("/")[2] not in without)
    return skill
