"""Background commands: `run_command` starts one, `check_job` reads its output, and the session's end ends it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from itertools import count
from typing import Any

from anyio import to_thread
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import FunctionToolset

from skillshelf.sandbox import GitGuard
from skillshelf.text import clean_line, count_noun, quote_for_model, truncate, without_colors
from skillshelf_agent._commands import Shell, describe_end
from skillshelf_agent._own_tools import make_tool
from skillshelf_agent.checkpoints import Sweep, TooManyFiles, find_changed_paths, sweep
from skillshelf_agent.filetools import FileAccess

AtWork = Callable[[], AbstractAsyncContextManager[None]]
"""Has the user review what an agent changes in a repository of their own while the block runs."""

_MAX_KEPT = 100_000
"""Characters of a job's output that are kept, the last ones."""
_MAX_SHOWN = 20_000
"""Characters of them that the model gets at once."""
_FIRST_SECONDS = 1.0
"""How long a start is watched: a command that can't work ends at once, and a server says where it listens."""
_MAX_WAIT = 600.0
_MAX_COMMAND = 80
_STOPPED = "stopped"
_WITH_SESSION = "stopped at the end of its session"


class Job:
    """A command that runs in the background, or has ended."""

    def __init__(self, number: int, command: str) -> None:
        self.number = number
        self.command = command
        self.end = ""
        """How it ended, in words; empty while it runs."""
        self.has_succeeded = False
        self.is_told = False
        """Whether the model knows how it ended."""
        self.task: asyncio.Task[None] | None = None
        self.failure: ToolFailed | None = None
        """Set if it was never started."""
        self.output = ""
        """The end of its output."""
        self.before: Sweep | None = None
        """The files before it, if they could be listed."""
        self.after: Sweep | None = None
        self.started = datetime.now()
        self._began = time.monotonic()
        self._ended: float | None = None
        self._unread = 0
        """How many characters of the output the model has not read."""

    @property
    def title(self) -> str:
        """The number and the beginning of the command."""
        return f"job {self.number} ({truncate(clean_line(self.command), _MAX_COMMAND)})"

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (self._ended or time.monotonic()) - self._began

    @property
    def last_line(self) -> str:
        lines = without_colors(self.output[-_MAX_SHOWN:]).split("\n")
        return next((line for line in reversed(lines) if line.strip()), "")

    def add_output(self, text: str) -> None:
        self.output += text
        dropped = max(0, len(self.output) - _MAX_KEPT)
        self.output = self.output[dropped:]
        self._unread += len(text)

    def take_output(self) -> str:
        """Return what the model has not read yet, for the model: the end of it if that is much."""
        unread = self._unread
        self._unread = 0
        if not unread:
            return "(no new output)"
        text = self.output[-min(unread, _MAX_SHOWN) :]
        if len(text) < unread:
            return f"[… {unread - len(text):,} characters are left out …]\n{text}"
        return text

    def finish(self, end: str) -> None:
        self.end = self.end or end
        self._ended = time.monotonic()

    def list_changes(self, access: FileAccess) -> list[str] | None:
        """Return the files that have changed since it began, by it or by others; None if that is not known."""
        after = self.after if self.end else _sweep(access)
        if self.before is None or after is None:
            return None
        return find_changed_paths(self.before, after)


class Jobs:
    """The background commands of a session. They end with it: use this as a context manager, or call `end_all`.

    They run in the event loop that they were started in, and end at its end, too.
    """

    def __init__(self, shell: Shell, git: GitGuard, access: FileAccess) -> None:
        self.all: list[Job] = []
        self.on_end: Callable[[Job, Sequence[str]], None] | None = None
        """Is called when a job has ended, with sentences about what it did to Git repositories."""
        self.access = access
        self._shell = shell
        self._git = git
        self._numbers = count(1)
        self.toolset: FunctionToolset[Any] = FunctionToolset([make_tool(self.check_job, self._offer)])

    @property
    def running(self) -> list[Job]:
        return [job for job in self.all if not job.end]

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tool as the model gets it now."""
        return tuple(tool.tool_def for tool in self.toolset.tools.values()) if self.all else ()

    async def _offer(self, ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
        return definition if self.all else None

    async def check_job(self, job: int, wait_seconds: float = 0, stop: bool = False) -> str:
        """Return what a background command has printed since the last check, and how it ended.

        Args:
            job: Its number.
            wait_seconds: Wait so long for its end first.
            stop: End it.
        """
        try:
            found = self.find(job)
        except LookupError as error:
            raise ToolFailed(str(error)) from None
        if stop:
            await self.stop(found)
        elif found.task is not None:
            await asyncio.wait([found.task], timeout=min(max(0.0, wait_seconds), _MAX_WAIT))
        return self._describe(found)

    async def start(self, command: str, *, network: bool, at_work: AtWork) -> str:
        """Start a command, and return the text for the model. Raises ToolFailed."""
        job = Job(next(self._numbers), command)
        self.all.append(job)
        job.task = asyncio.create_task(self._run(job, network, at_work))
        try:
            await asyncio.wait([job.task], timeout=_FIRST_SECONDS)
        except asyncio.CancelledError:  # the user stopped the turn
            job.task.cancel()
            raise
        if job.failure is not None:
            self.all.remove(job)
            raise job.failure

        about = (
            f"Job {job.number} was started in the background. check_job reads its output and stops it. It ends with "
            "the session. Git directories are read-only to it."
        )
        if self._shell.has_sandbox:
            about += " Other commands reach its ports on localhost only if they, too, have the network."
            if not network:
                about += (
                    " It has none, because the user was not asked about it. They can type: /approve allow run_command "
                    "COMMAND --network"
                )
        return f"{self._describe(job)}\n[{about}]"

    async def stop(self, job: Job, end: str = _STOPPED) -> None:
        """End a job and everything that it started."""
        if job.task is not None and not job.end:
            job.end = end
            job.task.cancel()
        if job.task is not None:
            await asyncio.wait([job.task])

    def find(self, number: int) -> Job:
        """Return a job. Raises LookupError."""
        for job in self.all:
            if job.number == number:
                return job
        raise LookupError(
            f"There is no job {number}. Jobs: {', '.join(str(job.number) for job in self.all) or 'none'}."
        )

    def end_all(self) -> None:
        """Begin to end all jobs, because their session ends."""
        for job in self.running:
            job.end = _WITH_SESSION
            job.is_told = True
            if job.task is not None:
                job.task.cancel()

    def take_note(self) -> str:
        """Return what the model must know about jobs that have ended since it looked, or nothing."""
        ended = [job for job in self.all if job.end and not job.is_told]
        for job in ended:
            job.is_told = True
        if not ended:
            return ""
        texts = [f"{quote_for_model(job.title)} has ended: {job.end}." for job in ended]
        return f"[Note from the application, not a request: {' '.join(texts)}]"

    async def __aenter__(self) -> Jobs:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end_all()
        tasks = [job.task for job in self.all if job.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, job: Job, network: bool, at_work: AtWork) -> None:
        end = _STOPPED
        try:
            async with at_work():
                job.before = await to_thread.run_sync(_sweep, self.access)
                ended = await self._shell.run_job(job.command, job.add_output, network=network)
            problem = describe_end(ended)
            job.has_succeeded = not problem
            end = problem or "exit code 0"
        except ToolFailed as error:
            job.failure = error
            end = str(error)
        finally:
            if job.end != _WITH_SESSION:
                job.after = await to_thread.run_sync(_sweep, self.access)
            job.finish(end)
            if self.on_end is not None and job.failure is None:
                self.on_end(job, self._git.take_notices())

    def _describe(self, job: Job) -> str:
        state = f"runs, {count_noun(round(job.seconds), 'second')} so far"
        if job.end:
            job.is_told = True
            state = f"ended: {job.end}"
        return f"{job.take_output().rstrip()}\n[job {job.number} {state}]"


def _sweep(access: FileAccess) -> Sweep | None:
    try:
        return sweep(access)
    except (OSError, TooManyFiles):
        return None
