"""The scripts of skills: the tool with which the model runs one, and what a script gets when it runs."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from anyio import to_thread
from pydantic_ai.exceptions import ToolFailed

from skillshelf.explain import describe_outdated
from skillshelf.files import cache_home, is_at_or_inside
from skillshelf.sandbox import (
    CleanPath,
    GitGuard,
    Program,
    ProgramLimits,
    ProgramResult,
    Sandbox,
    SandboxError,
    TakeOutput,
    run_program,
)
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.text import count_noun, hide_values, truncate_middle
from skillshelf.trust import ScriptFolders
from skillshelf_agent._commands import OutputReporter, ReportOutput
from skillshelf_agent._own_tools import ToolForSkills
from skillshelf_agent._policy import Approval
from skillshelf_agent._tool_names import INSTALL_PACKAGES
from skillshelf_agent.scripts import (
    SkillScript,
    describe_packages,
    find_environment,
    find_script,
    find_uv,
    install_environment,
    is_runnable,
)

_MAX_SHOWN = 30_000
"""Characters of output that the model gets: the beginning and the end."""
_LIMITS = ProgramLimits(seconds=120.0, output_bytes=1024 * 1024, memory_mb=8 * 1024, processes=1_000)
_MISSING_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]+)'", re.M)
_MAX_VALUE = 32 * 1024
"""Characters of the value of a variable."""


@dataclass(frozen=True, slots=True)
class VariableRequest:
    """A question to the user for the value of an environment variable."""

    name: str
    skill: str
    in_environment: bool
    """True if the agent's own environment has the variable, so that a yes is enough."""


AskVariable = Callable[[VariableRequest], Awaitable[str | None]]
"""Returns the value, or None if the user does not give one."""


class _GivenVariables(NamedTuple):
    """The variables that a script gets."""

    values: dict[str, str]
    missing: list[str]
    """The names of declared variables that the user did not give."""


class _VariableStore:
    """The values that the user gave in this session. They are in memory only."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str, str], str] = {}

    async def collect(self, skill: str, tree: str, names: tuple[str, ...], ask: AskVariable | None) -> _GivenVariables:
        """Return the variables for a skill with this content.

        Each is asked for once. Other content of the same skill is asked about again.
        """
        values: dict[str, str] = {}
        missing: list[str] = []
        for name in names:
            key = (skill, tree, name)
            if key not in self._values and ask is not None:
                value = await ask(VariableRequest(name, skill, name in os.environ))
                if value and len(value) <= _MAX_VALUE and "\0" not in value:
                    self._values[key] = value
            if key in self._values:
                values[name] = self._values[key]
            else:
                missing.append(name)
        return _GivenVariables(values, missing)


@dataclass(frozen=True, slots=True)
class PreparedScript:
    """A script that the user allowed, and everything it gets."""

    script: SkillScript
    program: Program
    sandbox: Sandbox
    secrets: Mapping[str, str]
    """Values that must not appear in the result, by the names of their variables."""
    notes: tuple[str, ...] = ()
    """What the model should know about the circumstances."""


class Scripts(ToolForSkills):
    """Offers `run_skill_script` if a skill has a script, and runs one that was allowed.

    It keeps the values that the user gave for variables of scripts in this session.
    """

    def __init__(
        self,
        skills: WorkspaceSkills,
        find_sandbox: Callable[[], Sandbox],
        git: GitGuard,
        ask_variable: AskVariable | None = None,
    ) -> None:
        """`ask_variable` asks the user for a value. Without it, scripts get no variables."""
        super().__init__(
            skills.shelf, self.run_skill_script, lambda skill: any(map(is_runnable, skill.main_references))
        )
        self.ask_variable = ask_variable
        self._skills = skills
        self._find_sandbox = find_sandbox
        self._git = git
        self._variables = _VariableStore()
        self._workspace = os.path.realpath(skills.folder)
        self._temporary: list[tempfile.TemporaryDirectory[str]] = []
        """Folders that go with this object."""

    async def run_skill_script(
        self, skill_name: str, script: str, args: list[str] | None = None, network: bool = False
    ) -> str:
        """Run a script that is among a skill's references, such as scripts/convert.py.

        It starts in the working directory; its own files are those of the skill. It has no input and no network.

        Args:
            skill_name: The skill's name.
            script: The path of the script, as the skill lists it.
            args: Its arguments, one by one. There is no shell: nothing is expanded or split.
            network: Ask the user to let it use the network. Only if it needs to.
        """
        raise ToolFailed("The script was not run: nothing has allowed it.")  # the gate runs what was allowed

    def find(self, arguments: Mapping[str, Any]) -> SkillScript:
        """Return the script that a call of the tool means, as it would run now. Raises SkillError."""
        return find_script(
            self._skills.shelf,
            self._folders,
            self._programs,
            skill=arguments["skill_name"],
            script=arguments["script"],
            arguments=arguments.get("args") or (),
            network=bool(arguments.get("network")),
        )

    def needs_packages(self, script: SkillScript) -> bool:
        """Return True if packages must be installed first. Raises SkillError if there is no way to do that."""
        if script.dependencies is None or find_environment(script.dependencies, self._home):
            return False
        find_uv(self._programs)
        return True

    def make_packages_question(self, script: SkillScript) -> Approval:
        """Return the question whether the packages that a script declares may be installed."""
        assert script.dependencies is not None
        shown = {"skill_name": script.skill, "script": script.path, **describe_packages(script.dependencies)}
        return Approval(INSTALL_PACKAGES, shown)

    async def prepare(self, script: SkillScript) -> PreparedScript:
        """Install the packages of a script and collect its variables. Raises SkillError.

        Also if the copy that the user was asked about is no longer what it was.
        """
        sandbox = await to_thread.run_sync(self._find_sandbox)
        interpreter = script.interpreter
        if script.dependencies is not None:
            environment = find_environment(script.dependencies, self._home)
            interpreter = environment or await install_environment(
                script.dependencies, self._home, self._programs, sandbox, self._scratch
            )
        await to_thread.run_sync(self._folders.verify, script.tree)
        given = await self._variables.collect(script.skill, script.tree, script.variables, self.ask_variable)

        variables = {"SKILL_DIR": script.folder, "PYTHONDONTWRITEBYTECODE": "1", **given.values}
        program = Program(
            [interpreter, script.file, *script.arguments],
            folder=self._workspace,
            environment=self._programs.make_environment(variables),
            writable=[self._workspace],
            readable=[self._home, os.path.dirname(interpreter)],
            scratch=self._scratch,
            network=script.network,
            git=self._git,
        )
        return PreparedScript(script, program, sandbox, given.values, tuple(self._list_notes(script, given.missing)))

    async def run(self, prepared: PreparedScript, report: ReportOutput) -> str:
        """Run a script, report its output while it runs, and return the text for the model. Raises ToolFailed."""
        try:
            with _reporting_lines(report, prepared.secrets) as take_output:
                result = await run_program(
                    prepared.program, prepared.sandbox, _LIMITS, take_output=take_output, merge=True
                )
        except SandboxError as error:
            raise ToolFailed(f"The script was not run: its sandbox could not be set up ({error}).") from error
        except OSError as error:
            raise ToolFailed(f"The script could not be started: {error.strerror or error}.") from error
        except ValueError as error:  # a NUL or half of a character, which no argument of a program can have
            raise ToolFailed(f"The script could not be started with these arguments: {error}.") from error
        text = _describe_result(prepared, result)
        if result.exit_code != 0:
            raise ToolFailed(text)
        return text

    def _list_notes(self, script: SkillScript, missing: list[str]) -> list[str]:
        notes = []
        if missing:
            names = ", ".join(missing)
            notes.append(f"The user has not given the script a value for {names}.")
        if any(pending.name == script.skill for pending in self._skills.pending):
            notes.append(describe_outdated("The skill", whose="the user's") + ".")
        return notes

    @cached_property
    def _folders(self) -> ScriptFolders:
        return ScriptFolders(f"{self._home}/runs")

    @cached_property
    def _programs(self) -> CleanPath:
        return CleanPath(self._skills.root)

    @cached_property
    def _home(self) -> str:
        """The folder for packages and copies, which no script can change."""
        home = cache_home()
        if home is None or is_at_or_inside(os.path.realpath(home), os.path.realpath(self._skills.root)):
            return self._make_temporary_folder()
        return os.path.join(os.path.realpath(home), "scripts")

    @cached_property
    def _scratch(self) -> str:
        """The temporary folder that scripts can write to."""
        return self._make_temporary_folder()

    def _make_temporary_folder(self) -> str:
        folder = tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)
        self._temporary.append(folder)
        return os.path.realpath(folder.name)


@contextmanager
def _reporting_lines(report: ReportOutput, secrets: Mapping[str, str]) -> Iterator[TakeOutput | None]:
    """Report the output of a script in whole lines, so that no value of a variable is in pieces."""
    if any("\n" in value for value in secrets.values()):
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


def _describe_result(run: PreparedScript, result: ProgramResult) -> str:
    """Return the output for the model, how the script ended, and what to do if it failed."""
    parts = [truncate_middle(hide_values(result.stdout, run.secrets), _MAX_SHOWN).rstrip() or "[no output]"]
    if result.exit_code != 0:
        parts.append(f"[{_describe_ending(result)}]")
        missing = _MISSING_MODULE.findall(result.stdout)
        if missing:
            parts.append(f"[{_explain_missing_module(run.script, missing[-1])}]")
        elif not run.program.network:
            parts.append(
                "[The script had no network. If it failed for that reason, call it again with network=true: the user "
                "is asked.]"
            )
    parts += [f"[{note}]" for note in (*run.notes, *result.notices)]
    return "\n".join(parts)


def _explain_missing_module(script: SkillScript, module: str) -> str:
    """Say how a script gets a Python module that it lacks."""
    package = module.partition(".")[0]
    return (
        f"Python has no module {package!r} here. Tell the user: install it with `{script.interpreter} -m pip install "
        f"{package}`, or declare it at the top of {script.path}, so that it is installed after a question: "
        f"`# /// script`, `# dependencies = [{package!r}]`, `# ///`."
    )


def _describe_ending(result: ProgramResult) -> str:
    match result.limit:
        case None:
            return f"exit code: {result.exit_code}"
        case "seconds":
            return f"it was ended after {count_noun(round(_LIMITS.seconds), 'second')}"
        case "output":
            return f"it was ended after {_LIMITS.output_bytes:,} bytes of output"
        case "memory":
            return f"it was ended: it took more than {_LIMITS.memory_mb:,} MiB of memory"
        case "processes":
            return f"it was ended: it started more than {_LIMITS.processes:,} processes"
