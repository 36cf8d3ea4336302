from skillshelf.skills import BaseSkill


class HealthySkill(BaseSkill):
    name = "healthy"
    description = "Loads whatever happens to its neighbours."
