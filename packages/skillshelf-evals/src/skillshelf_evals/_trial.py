"""One trial: a fresh workspace, the agent as users run it, the turns of a case, and the trace of what happened."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.exceptions import (
    IncompleteToolCall,
    ModelContextWindowExceededError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.models import Model

from skillshelf.errors import (
    NotRecordedError,
    PolicyError,
    RepeatedCallError,
    SkillNotFoundError,
    SkillUnreadableError,
    error_code,
)
from skillshelf.files import NotPlainFile
from skillshelf.sandbox import SandboxError
from skillshelf.shelf import Shelf
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.sources import DirectorySource
from skillshelf_agent import AgentCore, ChosenModel, Policy, Retries, run_sandboxed
from skillshelf_agent.events import NOTHING_SPENT, Event, Failed, Finished
from skillshelf_evals._case import Case, Edit, Message, make_code_source
from skillshelf_evals._limits import MAX_OUTPUT_KEPT
from skillshelf_evals._model_calls import ModelCall, WatchedModel
from skillshelf_evals._trace import CommandRun, FileState, Trace
from skillshelf_evals._workspace import (
    change_file,
    find_changes,
    find_new_files,
    make_workspace,
    read_inputs,
    temporary_folder,
)
from skillshelf_evals.check import ShellCommand, find_commands

DEFAULT_TIMEOUT = 900
"""Seconds a trial may take: a provider that never answers must not hold up a run forever."""

# Errors that the skill, the case or the model's own behaviour caused. A trial that ends with one of them counts. Events
# name an error by its code.
_COUNTED_ERRORS = frozenset(
    error_code(error)
    for error in (
        SkillNotFoundError,
        PolicyError,
        RepeatedCallError,
        SkillUnreadableError,
        UsageLimitExceeded,
        UnexpectedModelBehavior,
        IncompleteToolCall,
        ModelContextWindowExceededError,
    )
)


class _ObservedModel(WatchedModel):
    """A model that keeps the system prompt of each call, for the checks."""

    def __init__(self, wrapped: Model[Any]) -> None:
        super().__init__(wrapped)
        self.systems: list[str] = []

    def before_call(self, call: ModelCall) -> None:
        self.systems.append(call.system)


async def run_trial(case: Case, model: ChosenModel, seconds: float = DEFAULT_TIMEOUT) -> Trace:
    """Run a case once, without the user's own skills and without any file outside a temporary folder.

    Raises EvalError for a code skill that cannot be made.
    """
    start = time.monotonic()
    observed = _ObservedModel(model.model)
    code_sources = [make_code_source(case.code_skills)] if case.code_skills else []
    # The engine makes its own retries, for all trials together.
    chosen = replace(model, model=observed)
    is_load_checked = case.should_trigger is not None or any(
        check.about.kind == "skill_loaded" for check in case.checks
    )

    record = _Record()
    spent = NOTHING_SPENT
    with temporary_folder() as root:
        try:
            # Not in a thread: a change of threads takes longer than most workspaces do.
            before = make_workspace(root, case)
            core = AgentCore(
                chosen,
                WorkspaceSkills(root, Shelf([*code_sources, DirectorySource(root, "project", cache=False)])),
                policy=Policy(case.policy),  # type: ignore[arg-type]
                retries=Retries(attempts=0),
                # A skill that is listed in full need not be loaded.
                disclosure="catalog" if is_load_checked else "auto",
            )
            try:
                async with core.jobs, asyncio.timeout(seconds):
                    await _take_turns(core, root, case, record)
            finally:
                spent = core.conversation.spent
            await _examine_workspace(root, case, before, record)
        except TimeoutError:
            record.error = f"The trial took longer than {seconds:g} seconds; --timeout gives it more"
        except (OSError, NotPlainFile) as fault:
            record.error = f"The workspace cannot be used: {fault}"

    failure = _find_infrastructure_failure(record.events)
    return Trace(
        events=tuple(record.events),
        answers=tuple(record.answers),
        systems=tuple(observed.systems),
        files=record.files,
        removed=record.removed,
        usage=spent,
        seconds=round(time.monotonic() - start, 3),
        error=failure.message if failure else record.error,
        unrecorded=failure is not None and failure.code == error_code(NotRecordedError),
        messages=tuple(turn.text for turn in case.turns if isinstance(turn, Message)),
        inputs=read_inputs(case.files),
        command_runs=record.command_runs,
    )


@dataclass(slots=True)
class _Record:
    """What has happened in a trial so far. A trial that is stopped keeps it."""

    events: list[Event] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    files: dict[str, FileState] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    command_runs: tuple[CommandRun, ...] = ()
    error: str = ""


async def _take_turns(core: AgentCore, root: str, case: Case, record: _Record) -> None:
    for turn in case.turns:
        if isinstance(turn, Edit):
            data = None if turn.text is None else turn.text.encode("utf-8", "surrogatepass")
            change_file(root, turn.path, data)
            continue
        async for event in core.process_message(turn.text):
            record.events.append(event)
        last = record.events[-1]
        record.answers.append(last.text if isinstance(last, Finished) else "")


async def _examine_workspace(root: str, case: Case, before: Mapping[str, str], record: _Record) -> None:
    """Record the files that the agent left, and run the commands of `run` checks."""
    record.files, record.removed = find_changes(root, before)
    commands = find_commands(case.checks)
    if commands and not _find_infrastructure_failure(record.events):
        record.command_runs = await run_commands(root, commands)
        # The agent's own files stay in the trace as it left them, whatever a command does to them.
        record.files |= find_new_files(root, record.files)


def _find_infrastructure_failure(events: list[Event]) -> Failed | None:
    """Return the first failure that keeps the trial from counting, if there is one."""
    for event in events:
        if isinstance(event, Failed) and event.code not in _COUNTED_ERRORS:
            return event
    return None


async def run_commands(root: str, commands: Iterable[ShellCommand]) -> tuple[CommandRun, ...]:
    """Run commands one after another, each in the workspace as the one before left it."""
    return tuple([await _run_command(root, command) for command in commands])


async def _run_command(root: str, command: ShellCommand) -> CommandRun:
    try:
        ended = await run_sandboxed(root, command.text, command.timeout)
    except (SandboxError, OSError, ValueError) as error:
        return CommandRun(command.text, command.timeout, error=str(error) or type(error).__name__)
    if ended.limit in ("memory", "processes"):
        return CommandRun(command.text, command.timeout, error=f"it exceeded the limit on {ended.limit}")

    stdout = ended.stdout[-MAX_OUTPUT_KEPT:]
    stderr = ended.stderr[-MAX_OUTPUT_KEPT:]
    return CommandRun(
        command.text,
        command.timeout,
        ended.exit_code,
        stdout,
        stderr,
        cut=len(ended.stdout) + len(ended.stderr) - len(stdout) - len(stderr),
        timed_out=ended.limit == "seconds",
        too_long=ended.limit == "output",
    )
