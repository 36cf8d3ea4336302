"""The skill `execution-debugging` for evals, on a machine with or without a sandbox."""

from skillshelf_skills.execution_debugging._results import Limits
from skillshelf_skills.execution_debugging.skill import ExecutionDebuggingSkill

TOOLS = ("execute_command", "execute_python", "read_output", "describe_sandbox")


def open_for_evals() -> ExecutionDebuggingSkill:
    """Return the skill in a temporary folder, without questions to the user and with little memory."""
    skill = ExecutionDebuggingSkill(limits=Limits(memory_mb=256), allow_unsandboxed=True)
    return skill.with_policy(dict.fromkeys(TOOLS, "safe"))
