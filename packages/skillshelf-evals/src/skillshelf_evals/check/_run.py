"""The check that runs a command in the workspace of a trial, to find out whether the agent's work works."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from skillshelf.errors import EvalError
from skillshelf.text import truncate
from skillshelf_evals._limits import MAX_COMMAND, MAX_COMMAND_SECONDS
from skillshelf_evals._text import MAX_QUOTED
from skillshelf_evals._trace import CommandRun, Trace
from skillshelf_evals.check._check import Check, NonEmpty, Verdict, built_in
from skillshelf_evals.check._search import Regex, search_text

DEFAULT_SECONDS = 60.0


def _check_command(command: str) -> str:
    if not command.strip() or "\0" in command or len(command) > MAX_COMMAND:
        raise EvalError(f"{truncate(command, 60)!r} cannot be run as a command", "Write it as you would in a shell")
    return command


CommandText = Annotated[NonEmpty, AfterValidator(_check_command)]
ExitCode = Annotated[int, Field(ge=0, le=255)]
Seconds = Annotated[float, Field(gt=0, le=MAX_COMMAND_SECONDS, allow_inf_nan=False)]


class ShellCommand(NamedTuple):
    """A command to run in the workspace of a trial."""

    text: str
    timeout: float


def _describe(
    command: str, exit_code: int | None, stdout: str | None, stdout_matches: str | None, timeout: float
) -> str:
    shown = [repr(truncate(command, 60))]
    if exit_code != 0:
        shown.append("with any exit code" if exit_code is None else f"with exit code {exit_code}")
    if stdout is not None:
        shown.append(f"prints {truncate(stdout, 40)!r}")
    if stdout_matches is not None:
        shown.append(f"prints a match of {truncate(stdout_matches, 40)!r}")
    return " ".join(shown)


@built_in(describe=_describe)
async def run(
    trace: Trace,
    command: CommandText,
    exit_code: ExitCode | None = 0,
    stdout: NonEmpty | None = None,
    stdout_matches: Regex | None = None,
    timeout: Seconds = DEFAULT_SECONDS,
) -> Verdict:
    """Check that a shell command, run in the workspace after the last turn, ends with this exit code.

    None is any exit code. `stdout` is a text that the command must print, and `stdout_matches` a pattern. A command
    that takes longer than `timeout` seconds is stopped with everything it started, and the check does not hold.
    """
    ended = _find_run(trace, ShellCommand(command, timeout))
    if ended is None:
        return Verdict(False, error="The command was not run with this trial.")
    if ended.error:
        return Verdict(False, error=f"The command could not be started: {truncate(ended.error, MAX_QUOTED)}")
    if ended.timed_out:
        return Verdict(False, f"stopped after {timeout:g} s; {_quote_output(ended)}")
    if ended.too_long:
        return Verdict(False, f"stopped because it printed too much; {_quote_output(ended)}")
    if exit_code not in (None, ended.exit_code):
        return Verdict(False, f"exit code {ended.exit_code}; {_quote_output(ended)}")

    note = f"exit code {ended.exit_code}; stdout{' ends with' if ended.cut else ''}"
    if stdout is not None and stdout not in ended.stdout:
        return Verdict(False, f"{note}: {truncate(ended.stdout, MAX_QUOTED)!r}")
    if stdout_matches is not None:
        return await search_text(stdout_matches, ended.stdout, note)
    return Verdict(True, f"exit code {ended.exit_code}")


def find_commands(checks: Iterable[Check]) -> tuple[ShellCommand, ...]:
    """Return the commands of `run` checks in their order. One that several checks look at is run once."""
    arguments = [check.arguments for check in checks if check.kind.name == "run"]
    return tuple(dict.fromkeys(ShellCommand(given["command"], given["timeout"]) for given in arguments))


def _find_run(trace: Trace, command: ShellCommand) -> CommandRun | None:
    for ended in trace.command_runs:
        if (ended.command, ended.timeout) == command:
            return ended
    return None


def _quote_output(ended: CommandRun) -> str:
    """Return the last line that a command printed, on stderr if there is one: that is where reasons are."""
    for name, text in (("stderr", ended.stderr), ("stdout", ended.stdout)):
        lines = text.strip().splitlines()
        if lines:
            return f"{name} ends with {truncate(lines[-1], MAX_QUOTED)!r}"
    return "it printed nothing"
