from skillshelf.skills import BaseSkill


class NamelessSkill(BaseSkill):
    description = "Its author forgot the name."
