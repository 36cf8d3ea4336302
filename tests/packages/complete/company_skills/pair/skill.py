from skillshelf.skills import BaseSkill


class LeftSkill(BaseSkill):
    name = "left"
    description = "The left one."
    instructions = "See left.md."
    references = ("references/left.md",)


class RightSkill(BaseSkill):
    name = "right"
    description = "The right one."
    instructions = "See right.md."
    references = ("references/right.md",)
