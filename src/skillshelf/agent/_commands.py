"""Commands in a workspace, confined as far as the system supports it: the agent's, and those of a program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from anyio import to_thread
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.workspaces import CommandResult, WorkspaceOutputLimitError, WorkspaceTimeoutError

from skillshelf.agent._confinement import find_confinement, find_repositories
from skillshelf.agent._own_tools import make_tool
from skillshelf.agent._processes import ReportOutput, run_process
from skillshelf.agent.launcher import launch_command, open_plan

_INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE")
_DEFAULT_SECONDS = 120.0
_MAX_SHOWN = 50_000
"""Characters of output that the model gets: the last ones, because commands say at the end how they ended."""


class Shell:
    """The tool `run_command`. The gate runs the command that was allowed: by itself, the tool runs nothing."""

    def __init__(self, root: str, *, sandbox: bool) -> None:
        self._root = os.path.realpath(root)
        self._sandbox = sandbox
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(self.run_command)])

    async def run_command(self, command: str, timeout_seconds: float | None = None) -> str:
        """Execute a shell command and return its output, with the exit code if it is not 0.

        Args:
            command: The shell command to run.
            timeout_seconds: Maximum seconds to wait (default: 120).
        """
        raise ToolFailed("The command was not run: nothing has allowed it.")

    async def run(self, arguments: Mapping[str, Any], report: ReportOutput) -> str:
        """Run the command of a call, report its output while it runs, and return the text for the model."""
        command = str(arguments["command"])
        seconds = arguments.get("timeout_seconds") or _DEFAULT_SECONDS
        try:
            if self._sandbox:
                result = await _run_confined(self._root, command, self._scratch.name, seconds, report)
            else:
                result = await _run_shell(self._root, command, seconds, report)
        except WorkspaceTimeoutError as stop:
            return _describe(stop.stdout, stop.stderr, f"[Command timed out after {seconds:g}s]")
        except WorkspaceOutputLimitError as stop:
            raise ToolFailed(str(stop)) from stop
        except OSError as error:
            raise ToolFailed(f"The command could not be started: {error.strerror or error}.") from error
        except ValueError as error:  # a NUL or half of a character, which no argument of a program can have
            raise ToolFailed(f"The command could not be started with this text: {error}.") from error
        ending = f"[exit code: {result.exit_code}]" if result.exit_code else ""
        return _describe(result.stdout, result.stderr, ending)

    @cached_property
    def _scratch(self) -> tempfile.TemporaryDirectory[str]:
        """The temporary folder of all commands. It is made for the first, because most conversations run none."""
        return tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)


async def run_confined(root: str, command: str, timeout: float) -> CommandResult:
    """Run a shell command in a folder, confined as the agent's commands are and with the same environment.

    The processes that it leaves behind are ended with it, if the system has a level of confinement with a supervisor.
    Raises pydantic-ai's WorkspaceTimeoutError or WorkspaceOutputLimitError after the command was stopped, OSError if it
    cannot be started, and ValueError if no program can be given such a text.
    """
    with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as scratch:
        root = os.path.realpath(root)
        return await _run_confined(root, command, scratch, timeout, lambda text: None, leaves_processes=False)


async def _run_confined(
    root: str, command: str, scratch: str, seconds: float, report: ReportOutput, *, leaves_processes: bool = True
) -> CommandResult:
    """Run a command that writes only below a folder and in a temporary one."""
    confinement = await to_thread.run_sync(find_confinement)
    if not confinement:
        return await _run_shell(root, command, seconds, report)

    scratch = os.path.realpath(scratch)
    repositories: list[str] = []
    if confinement.level == "mounted":
        repositories = await to_thread.run_sync(find_repositories, root)
    # Compilers and package managers keep caches, by default in a home they cannot write to here.
    places = {"TMPDIR": scratch, "XDG_CACHE_HOME": f"{scratch}/cache"}
    with open_plan(
        confinement.level, writable=[root, scratch], repositories=repositories, leaves_processes=leaves_processes
    ) as plan:
        program = launch_command(["/bin/sh", "-c", command], plan)
        return await run_process(program, root, _make_environment() | places, seconds, report)


async def _run_shell(root: str, command: str, seconds: float, report: ReportOutput) -> CommandResult:
    return await run_process(["/bin/sh", "-c", command], root, _make_environment(), seconds, report)


def _make_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}


def _describe(stdout: str, stderr: str, ending: str) -> str:
    """Return the output for the model, and how the command ended."""
    streams = [f"[{name}]\n{text}" for name, text in (("stdout", stdout), ("stderr", stderr)) if text]
    text = "\n".join([*(streams or ["(no output)"]), *([ending] if ending else [])])
    if len(text) <= _MAX_SHOWN:
        return text
    return f"[… {len(text) - _MAX_SHOWN:,} characters are left out …]\n{text[-_MAX_SHOWN:]}"
