"""Commands in a workspace, confined as far as the system supports it: the agent's, and those of a program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from anyio import to_thread
from pydantic_ai import RunContext
from pydantic_ai.capabilities import LocalWorkspace
from pydantic_ai.workspaces import CommandResult, WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.protocol import WorkspaceCommand

from skillshelf.agent._confinement import find_confinement, find_repositories
from skillshelf.agent._processes import StreamingBackend
from skillshelf.agent.launcher import launch_command, open_plan


@dataclass
class ConfinedWorkspace(LocalWorkspace[Any]):
    """A local workspace whose commands write only below it and in a temporary folder of their own."""

    def get_workspace(self, ctx: RunContext[Any], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        backend = ConfinedBackend(str(self.working_dir), lambda: self._scratch.name)
        if ref is not None and ref != backend.ref:
            return None
        return backend

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        """The temporary folder. It is made for the first command, because most conversations run none."""
        return tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)


class ConfinedBackend(StreamingBackend):
    """Runs commands in a folder, confined as far as the system supports it."""

    def __init__(self, root: str, scratch: Callable[[], str], *, leaves_processes: bool = True) -> None:
        """`scratch` returns the temporary folder. Without `leaves_processes`, what a command started ends with it."""
        super().__init__(root)
        self._root = os.path.realpath(root)
        self._scratch = scratch
        self._leaves_processes = leaves_processes

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        confinement = await to_thread.run_sync(find_confinement)
        if not confinement:
            return await super().run(command, shell=shell, env=env, timeout=timeout)

        scratch = os.path.realpath(self._scratch())
        repositories: list[str] = []
        if confinement.level == "mounted":
            repositories = await to_thread.run_sync(find_repositories, self._root)
        # Compilers and package managers keep caches, by default in a home they cannot write to here.
        places = {"TMPDIR": scratch, "XDG_CACHE_HOME": f"{scratch}/cache"}
        program = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        with open_plan(
            confinement.level,
            writable=[self._root, scratch],
            repositories=repositories,
            leaves_processes=self._leaves_processes,
        ) as plan:
            confined = launch_command(program, plan)
            return await super().run(confined, env={**places, **(env or {})}, timeout=timeout)


async def run_confined(root: str, command: str, timeout: float) -> CommandResult:
    """Run a shell command in a folder, confined as the agent's commands are and with the same environment.

    The processes that it leaves behind are ended with it, if the system has a level of confinement with a supervisor.
    Raises pydantic-ai's WorkspaceError: a WorkspaceTimeoutError or WorkspaceOutputLimitError after the command was
    stopped. Raises OSError if it cannot be started, and ValueError if no program can be given such a text.
    """
    with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as scratch:
        backend = ConfinedBackend(root, lambda: scratch, leaves_processes=False)
        return await backend.run(command, shell=True, timeout=timeout)
