"""Commands of a program in a workspace, confined like those of the agent."""

from __future__ import annotations

import tempfile

from pydantic_ai.workspaces import CommandResult

from skillshelf.agent._loop import ConfinedBackend


async def run_confined(root: str, command: str, timeout: float) -> CommandResult:
    """Run a shell command in a folder, as far confined as the agent's commands and with the same environment.

    The processes that it leaves behind are ended with it, if the system has a level of confinement with a supervisor.
    Raises pydantic-ai's WorkspaceError: a WorkspaceTimeoutError or WorkspaceOutputLimitError after the command was
    stopped. Raises OSError if it cannot be started, and ValueError if no program can be given such a text.
    """
    with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as scratch:
        backend = ConfinedBackend(root, lambda: scratch, leaves_processes=False)
        return await backend.run(command, shell=True, timeout=timeout)
