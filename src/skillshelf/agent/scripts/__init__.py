"""Scripts of skills: found on the skill's list, copied, and run with no more than they need."""

from skillshelf.agent.scripts._dependencies import (
    Dependencies,
    describe_packages,
    find_environment,
    find_uv,
    install_environment,
)
from skillshelf.agent.scripts._programs import CleanPath
from skillshelf.agent.scripts._run import Program, ProgramResult, RunLimits, TakeOutput, run_program
from skillshelf.agent.scripts._script import SkillScript, find_script, is_runnable

__all__ = [
    "CleanPath",
    "Dependencies",
    "Program",
    "ProgramResult",
    "RunLimits",
    "SkillScript",
    "TakeOutput",
    "describe_packages",
    "find_environment",
    "find_script",
    "find_uv",
    "install_environment",
    "is_runnable",
    "run_program",
]
