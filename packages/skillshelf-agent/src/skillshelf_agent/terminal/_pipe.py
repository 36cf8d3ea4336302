"""The agent without a terminal: one message in, the answer out, as text or as one JSON line per event."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console, RenderableType
from rich.text import Text

from skillshelf.errors import SkillError, error_code
from skillshelf.text import clean, clean_line, to_json
from skillshelf.text.rendering import truncate_cells
from skillshelf.text.streams import keep_output_clean
from skillshelf_agent import AgentCore, Attachment, Job, Settings
from skillshelf_agent import events as on
from skillshelf_agent.sessions import SentMessage, SessionInfo
from skillshelf_agent.terminal._commands import find_new_problems, make_commands, run_command
from skillshelf_agent.terminal._face import NO_OPTIONS, call_on_end_signal, clean_output, describe_attachments
from skillshelf_agent.terminal._jobs import describe_ended_job
from skillshelf_agent.terminal._quotes import Diff, count_changed_lines
from skillshelf_agent.terminal._screen import describe_call, describe_reload, describe_retry
from skillshelf_agent.terminal._views import view_messages, view_sessions


class Pipe:
    """Writes the answer to standard output, and what happened on the way to standard error."""

    def __init__(
        self, core: AgentCore, settings: Settings, *, as_json: bool, options: Mapping[str, object] = NO_OPTIONS
    ) -> None:
        self.core = core
        self.settings = settings
        self.options = options
        self._as_json = as_json
        self._exit_code = 0
        self._typed = ""
        self._output = sys.stdout
        self._console = Console(file=self._output, markup=False, emoji=False, highlight=False)
        self._at_line_start = True
        self.commands = make_commands(self)

    async def run(self, text: str, notices: Sequence[str] = (), *, typed: str = "") -> int:
        """Answer a message, after these notices. `typed` is the part of it that the user wrote on the command line.

        Return the exit code: 0, 1 if the turn failed, or the code of the signal that ended it.
        """
        with keep_output_clean():
            return await self._answer(text, notices, typed)

    async def _answer(self, text: str, notices: Sequence[str], typed: str) -> int:
        self._typed = typed
        call_on_end_signal(self._close)
        self.core.jobs.on_end = self._announce_ended_job
        for notice in (*notices, *self.core.skills.take_notices()):
            self._show(on.Notice(notice))
        try:
            if not await run_command(self, self.commands, text):
                await self.send(self.core.process_message(text, await self.attach(text)))
        except SkillError as error:
            self._show(on.Failed(error_code(type(error)), str(error)))

        for problem in find_new_problems(self.commands, reported=set()):
            self._show(on.Notice(problem))
        return self._exit_code

    def print(self, *parts: RenderableType) -> None:
        if not self._as_json:
            self._console.print(*clean_output(parts), sep="\n")
            return

        with self._console.capture() as capture:
            self._console.print(*clean_output(parts), sep="\n")
        self._show(on.Notice(capture.get().strip()))

    def print_diff(self, title: Text, diff: str) -> None:
        self.print(title, Diff(clean(diff)))

    def write_escape(self, sequence: str) -> None:
        raise SkillError("This needs a terminal: the output goes elsewhere.")

    async def attach(self, text: str) -> Sequence[Attachment]:
        """Read the files that the message mentions, if the user typed it: piped text may be the work of others."""
        found = await asyncio.to_thread(self.core.find_attachments, self._typed)
        for line in describe_attachments(self.core, found):
            self._show(on.Notice(line))
        return found.attachments

    async def send(self, events: AsyncIterator[on.Event]) -> None:
        try:
            async for event in events:
                self._show(event)
        except BrokenPipeError:  # nobody reads any more: end the turn, and let it keep what it has
            self.core.cancel()
            async for _ in events:
                pass
            raise

    def waiting(self, activity: str) -> AbstractContextManager[None]:
        return nullcontext()

    async def review(self) -> None:
        raise SkillError("A review needs a terminal to ask in. Run `skillshelf trust` in one.")

    async def confirm(self, question: str) -> bool:
        return False

    def offer_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        self.print(view_sessions(sessions))

    def offer_messages(self, messages: Sequence[SentMessage]) -> None:
        self.print(view_messages(messages))

    def offer_text(self, text: str) -> None:
        self.print(Text(text))

    def offer_models(self, names: Sequence[str]) -> None:
        self.print(*(f"{name}, in use" if name == self.core.model.name else name for name in names))

    async def declare_mine(self) -> None:
        raise SkillError("This needs a terminal to ask in. Run `skillshelf trust --mine` in one.")

    def note_pending_shown(self) -> None:
        """Do nothing: a pipe shows them once."""

    def leave(self) -> None:
        """Do nothing: a pipe runs a single command."""

    def _close(self, exit_code: int) -> None:
        self._exit_code = exit_code
        self.core.cancel()  # the commands of the turn end with it

    def _announce_ended_job(self, job: Job, notices: Sequence[str]) -> None:
        for notice in (describe_ended_job(job).plain, *notices):
            self._show(on.Notice(notice))

    def _show(self, event: on.Event) -> None:
        if isinstance(event, on.Failed) and not self._exit_code:
            self._exit_code = 1

        if self._as_json:
            self._output.write(to_json(event.as_json()) + "\n")
        elif isinstance(event, on.Text):
            self._output.write(clean(event.text))
            self._at_line_start = event.text.endswith("\n")
        else:
            self._show_aside(event)
        self._output.flush()

    def _show_aside(self, event: on.Event) -> None:
        if not self._at_line_start:
            self._output.write("\n")
            self._at_line_start = True

        line = _describe(event)
        if line:
            self._output.flush()
            sys.stderr.write(clean_line(line) + "\n")


def _describe(event: on.Event) -> str:
    """Return a line for standard error, or nothing for an event that needs none."""
    match event:
        case on.ToolCalled():
            return f"[{describe_call(event).plain}]"
        case on.FileWritten(path=path, diff=diff):
            return f"[{path}: {count_changed_lines(diff)}]"
        case on.SkillLoaded(skill=skill, by=by):
            return f"[skill {skill} loaded by the {by}]"
        case on.ReferenceLoaded(skill=skill, reference=reference, by=by):
            return f"[reference {skill}/{reference} loaded by the {by}]"
        case on.LoadRepeated(skill=skill, reference=reference, by=by):
            return f"[{f'{skill}/{reference}'.rstrip('/')} loaded again by the {by}]"
        case on.SideStarted(skill=skill, model=model):
            return f"[skill {skill} runs in a conversation of its own, with {model}]"
        case on.SkillsReloaded():
            return f"[{describe_reload(event)}]"
        case on.Notice(text=text):
            return text
        case on.Retrying():
            return f"[{describe_retry(event)}]"
        case on.ServerAwaited(server=server, over=False):
            return f"[waiting for the MCP server {server}]"
        case on.Failed(message=message):
            return f"skillshelf: {message}"
        case on.ToolReturned(name=name, ok=False, text=text):
            line = " ".join(text.split())
            return f"[{name}: {truncate_cells(line, 200)}]"
    return ""
