"""The tool with which the model runs a script of a skill."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.agent._output_reports import OutputReporter, find_output_report
from skillshelf.agent._tool_schemas import make_tool
from skillshelf.agent.scripts._run import Program, ProgramResult, RunLimits, TakeOutput, run_program
from skillshelf.agent.scripts._script import SkillScript, is_runnable
from skillshelf.catalog import Catalog
from skillshelf.shelf import Shelf
from skillshelf.text import hide_values

_MAX_SHOWN = 30_000
"""Characters of output that the model gets: the beginning and the end."""


@dataclass(frozen=True, slots=True)
class PermittedRun:
    """A script that the user allowed, and everything it gets."""

    script: SkillScript
    program: Program
    secrets: Mapping[str, str]
    """Values that must not appear in the result, by the names of their variables."""
    notes: tuple[str, ...] = ()
    """What the model should know about the circumstances."""


_permitted: ContextVar[PermittedRun | None] = ContextVar("skillshelf_permitted_run", default=None)


@contextmanager
def permit_run(run: PermittedRun) -> Iterator[None]:
    """Let the tool call inside the block run this script, and no other."""
    token = _permitted.set(run)
    try:
        yield
    finally:
        _permitted.reset(token)


class ScriptTool:
    """Offers `run_skill_script` if a skill on the shelf has a script. The gate decides about each call."""

    def __init__(self, get_shelf: Callable[[], Shelf], limits: RunLimits | None = None) -> None:
        self._get_shelf = get_shelf
        self._limits = limits or RunLimits()
        self._searched: Catalog | None = None
        self._found = False
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(self.run_skill_script, self._offer)])

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tool as the model gets it now; empty if no skill has a script."""
        if not self._has_scripts():
            return ()
        return tuple(tool.tool_def for tool in self.toolset.tools.values())

    async def _offer(self, ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        return definition if self._has_scripts() else None

    def _has_scripts(self) -> bool:
        """Return True if a skill has a script. A shelf of ten thousand skills is searched once, not for every call."""
        catalog = self._get_shelf().catalog
        if catalog is not self._searched:
            self._searched = catalog
            self._found = any(is_runnable(path) for skill in catalog.values() for path in skill.references)
        return self._found

    async def run_skill_script(
        self, skill: str, script: str, args: list[str] | None = None, network: bool = False
    ) -> str:
        """Run a script that is among a skill's references, such as scripts/convert.py.

        It starts in the working directory; its own files are those of the skill. It has no input and no network.

        Args:
            skill: The skill's name.
            script: The path of the script, as the skill lists it.
            args: Its arguments, one by one. There is no shell: nothing is expanded or split.
            network: Ask the user to let it use the network. Only if it needs to.
        """
        run = _permitted.get()
        if run is None:
            raise ToolFailed("The script was not run: nothing has allowed it.")
        try:
            with _reporting_lines(run.secrets) as take_output:
                result = await run_program(run.program, self._limits, take_output)
        except OSError as error:
            raise ToolFailed(f"The script could not be started: {error.strerror or error}.") from error
        except ValueError as error:  # a NUL or half of a character, which no argument of a program can have
            raise ToolFailed(f"The script could not be started with these arguments: {error}.") from error
        text = _describe_result(run, result)
        if result.exit_code != 0:
            raise ToolFailed(text)
        return text


@contextmanager
def _reporting_lines(secrets: Mapping[str, str]) -> Iterator[TakeOutput | None]:
    """Report the output of a script, if it was asked for: whole lines, so that no value of a variable is in pieces."""
    report = find_output_report()
    if report is None or any("\n" in value for value in secrets.values()):
        yield None
        return

    reporter = OutputReporter(report)
    unfinished = ""

    def take_output(text: str) -> None:
        nonlocal unfinished
        lines, newline, unfinished = (unfinished + text).rpartition("\n")
        reporter.add(hide_values(lines + newline, secrets))

    try:
        yield take_output
    finally:
        reporter.close()


def _describe_result(run: PermittedRun, result: ProgramResult) -> str:
    """Return the output for the model, how the script ended, and what to do if it failed."""
    parts = [_shorten(hide_values(result.output, run.secrets)).rstrip() or "[no output]"]
    if result.exit_code != 0:
        ending = f"exit code: {result.exit_code}" if not result.stopped else result.stopped
        parts.append(f"[{ending}]")
        if not run.program.network:
            parts.append(
                "[The script had no network. If it failed for that reason, call it again with network=true: the user "
                "is asked.]"
            )
    parts += [f"[{note}]" for note in run.notes]
    return "\n".join(parts)


def _shorten(text: str) -> str:
    if len(text) <= _MAX_SHOWN:
        return text
    half = _MAX_SHOWN // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are left out …]\n{text[-half:]}"
