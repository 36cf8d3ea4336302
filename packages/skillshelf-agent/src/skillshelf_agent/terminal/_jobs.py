"""`/jobs`: the commands that run in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from rich.text import Text

from skillshelf.errors import SkillError
from skillshelf.slash import Command, Commands, Suggestion
from skillshelf.text import clean, clean_line, without_colors
from skillshelf_agent import Job
from skillshelf_agent.filetools import show_path
from skillshelf_agent.terminal._face import ChatFace

_MAX_LINES = 30
"""Lines of output that `/jobs N` shows."""
_MAX_PATHS = 10
_NONE_YET = "No command runs in the background. The model starts one with run_command, for a server or a watcher."


def register_job_commands(commands: Commands[ChatFace], face: ChatFace) -> None:
    """Add `/jobs`, `/jobs N` and `/jobs kill N`."""

    def complete_any(_: str) -> Sequence[Suggestion]:
        return [Suggestion(str(job.number), meta=clean_line(job.command)) for job in face.core.jobs.all]

    def complete_running(_: str) -> Sequence[Suggestion]:
        return [Suggestion(str(job.number), meta=clean_line(job.command)) for job in face.core.jobs.running]

    commands.register(
        "", [Command("jobs", "the commands in the background, or one's output", _show, "[N]", complete_any)]
    )
    commands.register("jobs ", [Command("kill", "end a command in the background", _kill, "N", complete_running)])


def describe_ended_job(job: Job) -> Text:
    """Return a line for the user about a job that has ended."""
    style = "green" if job.has_succeeded else "yellow"
    words = f"job {job.number} ended: {clean_line(job.end)}  "
    command = (clean_line(job.command), "dim")
    return Text.assemble(("■ ", style), words, command, no_wrap=True, overflow="ellipsis")


async def _show(face: ChatFace, typed: str) -> None:
    if typed.strip():
        job = _find(face, typed)
        changes = await asyncio.to_thread(job.list_changes, face.core.jobs.access)
        face.print(*_view_job(job), *_view_changes(job, changes))
        return
    jobs = face.core.jobs.all
    if not jobs:
        face.print(_NONE_YET)
        return
    for job in jobs:
        face.print(_view_title(job))
        if job.last_line:
            face.print(_quote(job.last_line))
    if face.core.skills.is_own and face.core.jobs.running:
        face.print(Text("Skills that are edited while a job runs wait for your review: /skills trust", "yellow"))
    face.print(Text("/jobs N shows its output · /jobs kill N ends it", "dim"))


async def _kill(face: ChatFace, typed: str) -> None:
    job = _find(face, typed)
    if job.end:
        raise SkillError(f"Job {job.number} has ended already: {job.end}.")
    await face.core.jobs.stop(job, "stopped by the user")


def _find(face: ChatFace, typed: str) -> Job:
    """Return the job that the user means. Raises SkillError."""
    try:
        return face.core.jobs.find(int(typed))
    except ValueError:
        raise SkillError("Give the number of a job: /jobs lists them.") from None
    except LookupError as error:
        raise SkillError(str(error)) from None


def _view_title(job: Job) -> Text:
    state = f"since {job.started:%H:%M}" if not job.end else job.end
    command = (clean_line(job.command), "dim")
    return Text.assemble((f"{job.number}", "bold"), f"  {state}  ", command, no_wrap=True, overflow="ellipsis")


def _view_job(job: Job) -> Iterator[Text]:
    yield _view_title(job)
    lines = [line for line in without_colors(job.output).splitlines() if line.strip()]
    if len(lines) > _MAX_LINES:
        yield Text("  │ …", "dim")
    for line in lines[-_MAX_LINES:]:
        yield _quote(line)


def _view_changes(job: Job, changes: list[str] | None) -> Iterator[Text]:
    if changes is None:
        yield Text("Which files have changed since it began is not known.", "dim")
    elif changes:
        names = ", ".join(map(show_path, changes[:_MAX_PATHS]))
        more = f" and {len(changes) - _MAX_PATHS:,} more" if len(changes) > _MAX_PATHS else ""
        yield Text(
            f"Changed since it began, by it or by others: {names}{more}. /undo leaves what a job changed.", "dim"
        )


def _quote(line: str) -> Text:
    return Text(f"  │ {clean(line.rstrip())}", "dim", no_wrap=True, overflow="ellipsis")
