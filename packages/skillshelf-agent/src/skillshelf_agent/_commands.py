"""Commands in a workspace, sandboxed as far as the system supports it: the agent's, and those of a program."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

from anyio import to_thread
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.sandbox import (
    GitGuard,
    Program,
    ProgramLimits,
    ProgramResult,
    Sandbox,
    SandboxError,
    TakeOutput,
    find_sandbox,
    run_program,
)
from skillshelf_agent._own_tools import make_tool

ReportOutput = Callable[[str], None]

_INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE")
_DEFAULT_SECONDS = 120.0
_MAX_SECONDS = 3_600.0
_MAX_OUTPUT_BYTES = 10 * 1024 * 1024
_MAX_MEMORY_MB = 8 * 1024
_MAX_PROCESSES = 1_000
_MAX_SHOWN = 50_000
"""Characters of output that the model gets: the last ones, because commands say at the end how they ended."""
_REPORT_SECONDS = 0.1
_MAX_REPORT_CHARACTERS = 8_000


class Shell:
    """The tool `run_command`. The gate runs the command that was allowed: by itself, the tool runs nothing."""

    def __init__(self, root: str, find_sandbox: Callable[[], Sandbox], git: GitGuard) -> None:
        """`git` protects the repositories of the workspace."""
        self._root = os.path.realpath(root)
        self._find_sandbox = find_sandbox
        self._git = git
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(self.run_command)])

    async def run_command(self, command: str, timeout_seconds: float | None = None, background: bool = False) -> str:
        """Execute a shell command and return its output, with the exit code if it is not 0.

        Args:
            command: The shell command to run.
            timeout_seconds: Maximum seconds to wait (default: 120).
            background: Go on while it runs, without a timeout: for servers and watchers.
        """
        raise ToolFailed("The command was not run: nothing has allowed it.")

    async def run(self, arguments: Mapping[str, Any], report: ReportOutput, *, network: bool) -> str:
        """Run the command of a call, report its output while it runs, and return the text for the model."""
        seconds = min(float(arguments.get("timeout_seconds") or _DEFAULT_SECONDS), _MAX_SECONDS)
        program = _make_program(self._root, str(arguments["command"]), self._scratch, network=network, git=self._git)
        reporter = OutputReporter(report)
        try:
            ended = await self._execute(program, seconds, reporter.add)
        finally:
            reporter.close()

        if ended.limit == "output":
            raise ToolFailed(
                "the output exceeded 10 MiB; redirect the command's output to a file and read part of it instead"
            )
        return _describe(ended, seconds, has_network=network or not self.has_sandbox)

    async def run_job(self, command: str, take_output: TakeOutput, *, network: bool) -> ProgramResult:
        """Run a command in the background to its end. Raises ToolFailed if it can't be started."""
        with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as scratch:
            program = _make_program(self._root, command, os.path.realpath(scratch), network=network, git=self._git)
            return await self._execute(replace(program, background=True), 0, take_output, merge=True)

    @property
    def has_sandbox(self) -> bool:
        return bool(self._find_sandbox())

    async def _execute(
        self, program: Program, seconds: float, take_output: TakeOutput, *, merge: bool = False
    ) -> ProgramResult:
        """Run a program. Raises ToolFailed if it can't be started."""
        sandbox = await to_thread.run_sync(self._find_sandbox)
        try:
            return await run_program(program, sandbox, _make_limits(seconds), take_output=take_output, merge=merge)
        except SandboxError as error:
            raise ToolFailed(f"The command was not run: its sandbox could not be set up ({error}).") from error
        except OSError as error:
            raise ToolFailed(f"The command could not be started: {error.strerror or error}.") from error
        except ValueError as error:  # a NUL or half of a character, which no argument of a program can have
            raise ToolFailed(f"The command could not be started with this text: {error}.") from error

    @cached_property
    def _scratch(self) -> str:
        """The temporary folder of all commands. It is made for the first, because most conversations run none."""
        self._temporary = tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)
        return os.path.realpath(self._temporary.name)


async def run_sandboxed(root: str, command: str, seconds: float) -> ProgramResult:
    """Run a shell command in a folder, sandboxed as the agent's commands are, with the network.

    Raises SandboxError or OSError if it cannot be started, and ValueError if no program can be given such a text.
    """
    root = os.path.realpath(root)
    with tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True) as scratch:
        program = _make_program(root, command, os.path.realpath(scratch), network=True, git=GitGuard(root))
        sandbox = await to_thread.run_sync(find_sandbox)
        return await run_program(program, sandbox, _make_limits(seconds))


def _make_program(root: str, command: str, scratch: str, *, network: bool, git: GitGuard) -> Program:
    environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    return Program(
        ["/bin/sh", "-c", command], root, environment, writable=[root], scratch=scratch, network=network, git=git
    )


def _make_limits(seconds: float) -> ProgramLimits:
    return ProgramLimits(seconds, _MAX_OUTPUT_BYTES, _MAX_MEMORY_MB, _MAX_PROCESSES)


def describe_end(ended: ProgramResult) -> str:
    """Return in words why a command ended, unless it succeeded."""
    if ended.limit == "memory":
        return f"it took more than {_MAX_MEMORY_MB:,} MiB of memory"
    if ended.limit == "processes":
        return f"it started more than {_MAX_PROCESSES:,} processes"
    return f"exit code {ended.exit_code}" if ended.exit_code else ""


def _describe(ended: ProgramResult, seconds: float, *, has_network: bool) -> str:
    """Return the output for the model, and how the command ended."""
    streams = [f"[{name}]\n{text}" for name, text in (("stdout", ended.stdout), ("stderr", ended.stderr)) if text]
    parts = streams or ["(no output)"]
    parts += [f"[{notice}]" for notice in ended.notices]
    if ended.limit == "seconds":
        parts.append(f"[Command timed out after {seconds:g}s]")
    elif ended.limit:
        parts.append(f"[Command was ended: {describe_end(ended)}]")
    elif ended.exit_code:
        parts.append(f"[exit code: {ended.exit_code}]")
    if ended.exit_code and not has_network:
        parts.append(
            "[It ran without the network, because the user was not asked about it. If it needs the network, tell the "
            "user, who can type: /approve allow run_command COMMAND --network]"
        )

    text = "\n".join(parts)
    if len(text) <= _MAX_SHOWN:
        return text
    return f"[… {len(text) - _MAX_SHOWN:,} characters are left out …]\n{text[-_MAX_SHOWN:]}"


class OutputReporter:
    """Reports output in pieces: at most ten a second, and of much output only the end."""

    def __init__(self, report: ReportOutput) -> None:
        self._report = report
        self._waiting = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        self._waiting = (self._waiting + text)[-_MAX_REPORT_CHARACTERS:]
        if self._timer is None and text:
            self._timer = asyncio.get_running_loop().call_later(_REPORT_SECONDS, self._send)

    def close(self) -> None:
        """Report the rest."""
        if self._timer:
            self._timer.cancel()
        self._send()

    def _send(self) -> None:
        self._timer = None
        if self._waiting:
            self._report(self._waiting)
            self._waiting = ""
