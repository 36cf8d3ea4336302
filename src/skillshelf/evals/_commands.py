"""The commands of `run` checks: run in a trial's workspace after the last turn, in the sandbox of the agent."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic_ai.workspaces import WorkspaceError, WorkspaceOutputLimitError, WorkspaceTimeoutError

from skillshelf.agent import run_confined
from skillshelf.evals._trace import CommandRun
from skillshelf.evals.check import Command

MAX_OUTPUT_KEPT = 20_000
"""Characters of stdout, and of stderr, that a trace keeps of one command."""


async def run_commands(root: str, commands: Iterable[Command]) -> tuple[CommandRun, ...]:
    """Run commands one after another, each in the workspace as the one before left it."""
    return tuple([await _run_command(root, command) for command in commands])


async def _run_command(root: str, command: Command) -> CommandRun:
    try:
        ended = await run_confined(root, command.text, command.timeout)
    except WorkspaceTimeoutError as stop:
        return _describe(command, None, stop.stdout, stop.stderr, timed_out=True)
    except WorkspaceOutputLimitError as stop:
        return _describe(command, None, stop.stdout, stop.stderr, too_long=True)
    except (WorkspaceError, OSError, ValueError) as error:
        return CommandRun(command.text, command.timeout, error=str(error) or type(error).__name__)
    return _describe(command, ended.exit_code, ended.stdout, ended.stderr)


def _describe(
    command: Command,
    exit_code: int | None,
    stdout: str,
    stderr: str,
    *,
    timed_out: bool = False,
    too_long: bool = False,
) -> CommandRun:
    kept_stdout = stdout[-MAX_OUTPUT_KEPT:]
    kept_stderr = stderr[-MAX_OUTPUT_KEPT:]
    return CommandRun(
        command.text,
        command.timeout,
        exit_code,
        kept_stdout,
        kept_stderr,
        cut=len(stdout) + len(stderr) - len(kept_stdout) - len(kept_stderr),
        timed_out=timed_out,
        too_long=too_long,
    )
