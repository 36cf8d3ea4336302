"""The workspace as commands see it: where the system can do it, they write in it and nowhere else."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import LocalWorkspace
from pydantic_ai.workspaces import CommandResult, LocalWorkspaceBackend, WorkspaceBackend, WorkspaceRef
from pydantic_ai.workspaces.protocol import WorkspaceCommand

_LAUNCHER = os.path.join(os.path.dirname(__file__), "confined.py")


def can_confine() -> bool:
    """Whether this system has Landlock, and the library that uses it is installed."""
    try:
        from sandlock import landlock_abi_version, min_landlock_abi
    except (ImportError, OSError):
        return False
    return bool(landlock_abi_version() >= min_landlock_abi())


@dataclass
class ConfinedWorkspace(LocalWorkspace[Any]):
    """A local workspace whose commands write below it and in a temporary folder of their own."""

    def get_workspace(self, ctx: RunContext[Any], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        backend = _Confined(str(self.working_dir), lambda: self._scratch.name)
        return None if ref is not None and ref != backend.ref else backend

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        """Made for the first command: most conversations run none."""
        return tempfile.TemporaryDirectory(prefix="skillshelf-")


class _Confined(LocalWorkspaceBackend):
    def __init__(self, root: str, scratch: Callable[[], str]) -> None:
        super().__init__(root)
        self._root, self._scratch = os.path.realpath(root), scratch

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> CommandResult:
        program = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        scratch = self._scratch()
        # -I: neither the workspace nor the environment chooses what Python imports before it is confined.
        confined = [sys.executable, "-I", _LAUNCHER, self._root, scratch, "--", *program]
        # Compilers and package managers keep caches, by default in a home they cannot write to here.
        places = {"TMPDIR": scratch, "XDG_CACHE_HOME": f"{scratch}/cache"}
        return await super().run(confined, env={**places, **(env or {})}, timeout=timeout)
