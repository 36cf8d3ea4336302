"""Scripts of skills: found on the skill's list, copied, and run with no more than they need."""

from typing import TYPE_CHECKING

from skillshelf._lazy import export_lazily
from skillshelf.agent._tool_names import RUN_SCRIPT
from skillshelf.agent.scripts._dependencies import (
    Dependencies,
    describe_packages,
    find_environment,
    find_uv,
    install_environment,
)
from skillshelf.agent.scripts._programs import CleanPath
from skillshelf.agent.scripts._run import Program, RunLimits, run_program
from skillshelf.agent.scripts._script import SkillScript, find_script
from skillshelf.agent.scripts._variables import AskVariable, VariableRequest, VariableStore

if TYPE_CHECKING:
    from skillshelf.agent.scripts._tool import PermittedRun, ScriptTool, permit_run

__all__ = [
    "RUN_SCRIPT",
    "AskVariable",
    "CleanPath",
    "Dependencies",
    "PermittedRun",
    "Program",
    "RunLimits",
    "ScriptTool",
    "SkillScript",
    "VariableRequest",
    "VariableStore",
    "describe_packages",
    "find_environment",
    "find_script",
    "find_uv",
    "install_environment",
    "permit_run",
    "run_program",
]

# The tool stands on pydantic-ai, which takes seconds to import. The policy knows scripts without it.
__getattr__ = export_lazily(__name__, {"_tool": ["PermittedRun", "ScriptTool", "permit_run"]}, extra="chat")
