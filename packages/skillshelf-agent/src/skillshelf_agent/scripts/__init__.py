"""Scripts of skills: found on the skill's list, copied, and run with no more than they need."""

from skillshelf_agent.scripts._dependencies import (
    Dependencies,
    describe_packages,
    find_environment,
    find_uv,
    install_environment,
)
from skillshelf_agent.scripts._script import SkillScript, find_script, is_runnable

__all__ = [
    "Dependencies",
    "SkillScript",
    "describe_packages",
    "find_environment",
    "find_script",
    "find_uv",
    "install_environment",
    "is_runnable",
]
