from failing_skills.healthy.skill import HealthySkill  # noqa: F401
