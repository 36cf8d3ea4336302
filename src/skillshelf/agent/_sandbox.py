"""The workspace as commands see it: they write in it and nowhere else, as far as the system can see to that."""

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
from pydantic_ai.workspaces import CommandResult, LocalWorkspaceBackend, WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.protocol import WorkspaceCommand

from skillshelf.agent._confinement import find_confinement, launch_command
from skillshelf.agent._repositories import find_repositories


@dataclass
class ConfinedWorkspace(LocalWorkspace[Any]):
    """A local workspace whose commands write below it and in a temporary folder of their own."""

    def get_workspace(self, ctx: RunContext[Any], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        backend = _Confined(str(self.working_dir), lambda: self._scratch.name)
        return None if ref is not None and ref != backend.ref else backend

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        """Made for the first command: most conversations run none."""
        return tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)


class _Confined(LocalWorkspaceBackend):
    def __init__(self, root: str, scratch: Callable[[], str]) -> None:
        super().__init__(root)
        self._root = os.path.realpath(root)
        self._scratch = scratch

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

        program = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        scratch = os.path.realpath(self._scratch())
        repositories = []
        if confinement.level == "mounted":
            repositories = await to_thread.run_sync(find_repositories, self._root)
        confined = launch_command(confinement.level, program, writable=[self._root, scratch], repositories=repositories)
        # Compilers and package managers keep caches, by default in a home they cannot write to here.
        places = {"TMPDIR": scratch, "XDG_CACHE_HOME": f"{scratch}/cache"}
        return await super().run(confined, env={**places, **(env or {})}, timeout=timeout)
