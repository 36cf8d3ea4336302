"""The agent in a terminal."""

import asyncio
import os
import shlex
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from rich.console import Group, RenderableType
from rich.text import Text

from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.settings import Mode
from skillshelf.slash import UnknownCommand, complete
from skillshelf.text import clean, clean_line
from skillshelf_agent import AgentCore, Attachment, FoundAttachments, Job, Settings, SteeringMessage
from skillshelf_agent.events import NOTHING_SPENT, Event, Finished, SideStarted, SkillsReloaded, Steered, ToolCalled
from skillshelf_agent.sessions import SentMessage, SessionInfo
from skillshelf_agent.terminal._alerts import DONE
from skillshelf_agent.terminal._approval import Questions
from skillshelf_agent.terminal._commands import LEAVING_WORDS, find_new_problems, make_commands, run_command
from skillshelf_agent.terminal._face import NO_OPTIONS, clean_output, describe_attachments
from skillshelf_agent.terminal._footer import NOTHING_FOLDED, Footer
from skillshelf_agent.terminal._jobs import describe_ended_job
from skillshelf_agent.terminal._keyboard import Line
from skillshelf_agent.terminal._prompt import SlashCompleter, list_workspace_files
from skillshelf_agent.terminal._review import Reviewer
from skillshelf_agent.terminal._screen import view_resumed
from skillshelf_agent.terminal._shell import parse_shell_line, run_shell_line
from skillshelf_agent.terminal._views import count_skills, describe_usage, format_status, list_open_todos

_FRAMES_PER_SECOND = 10
_LONG_SECONDS = 10.0
"""The user is called to the end of a turn that took longer."""
_POLICIES_IN_TURN: tuple[Mode, ...] = ("ask", "auto-edit", "read-only")
"""The policies that a key goes through. `yolo` is not among them: no key pressed by mistake allows everything."""


class Terminal:
    """A conversation on a screen: one line after the other is answered, while the user can type the next ones."""

    def __init__(
        self,
        core: AgentCore,
        settings: Settings,
        questions: Questions,
        footer: Footer,
        options: Mapping[str, object] = NO_OPTIONS,
    ) -> None:
        """`questions` are what the core asks the user with."""
        self.core = core
        self.settings = settings
        self.options = options
        self.questions = questions
        self.screen = questions.screen
        self.console = questions.screen.console
        self.footer = footer

        self.commands = make_commands(self)
        self._keyboard = footer.keyboard
        self._reviewer = Reviewer(core, self.console, self._keyboard)
        self._is_leaving = False
        self._is_interrupted = False
        self._reported_problems: set[tuple[str, str]] = set()
        self._line: asyncio.Task[None] | None = None
        """The command or message that is running."""
        self._is_idle = False
        """True while the next line is waited for."""
        self._viewer: asyncio.Task[None] | None = None
        self._began: float | None = None
        """When the work in progress began, if lines were sent meanwhile that are part of it."""
        self._in_turn = False
        self._is_finished = False
        """True if the last turn came to its end."""
        self._used: set[str] = set()
        """The tools that the model called in the last turn, and the skills that ran apart."""
        self._mentioned: set[tuple[str, str]] = set()
        """The skills that were named as unused, each with the conversation."""
        self._steering: deque[tuple[Line, Sequence[str]]] = deque()
        """What the model gets during the turn, with lines about attached files, until it is on the screen."""
        core.take_steering = self._take_steering

    def print(self, *parts: RenderableType) -> None:
        self.console.print(*clean_output(parts), sep="\n")

    def print_diff(self, title: Text, diff: str) -> None:
        self.screen.show_diff(title, diff)

    def write_escape(self, sequence: str) -> None:
        self.console.file.write(sequence)

    def leave(self) -> None:
        self._is_leaving = True

    @property
    def is_answering(self) -> bool:
        """True while a command or message is running."""
        return self._line is not None

    async def run(self) -> None:
        """Answer one line after the other until the user leaves or the terminal is closed."""
        folder = self.core.skills.folder
        self.footer.connect(
            SlashCompleter(self.commands, lambda path: list_workspace_files(folder, path)),
            draw_live=self.screen.draw_live,
            format_status=self._format_status,
            list_todos=lambda: list_open_todos(self.core.conversation.todos),
            stop=self.interrupt,
            unfold=self._unfold,
            change_policy=self._change_policy,
            rewind=self._offer_rewind,
            can_steer=self._can_steer,
            workspace=self.core.skills.root,
        )
        self.core.jobs.on_end = self._announce_ended_job
        self._greet()
        with self._watch_skills():
            await self._reviewer.ask_at_start()
            await self._answer_lines()

    def say_goodbye(self) -> None:
        """Say what the chat has cost, and how to go on with its session."""
        spent = self.core.spent
        if spent != NOTHING_SPENT:
            self.console.print(Text(f"Spent: {describe_usage(spent)}", "dim"))
        conversation = self.core.conversation
        if conversation.session and conversation.messages:
            name = f" ({clean_line(conversation.session.name)})" if conversation.session.name else ""
            words = ["skillshelf", "chat"]
            if conversation.session.workspace != os.getcwd():
                words += ["-C", conversation.session.workspace]
            command = shlex.join([*words, "--resume", conversation.id])
            hint = f"To go on with this session{name}: {clean_line(command)}"
            self.console.print(Text(hint, "dim"), soft_wrap=True)  # so that it can be copied as one line

    async def _answer_lines(self) -> None:
        while not self._is_leaving:
            self._announce_changes()
            await asyncio.to_thread(self._prepare_completion)
            self._report_problems()
            text = await self._read_line()
            if text is None:
                break
            await self.say(text)

    async def _read_line(self) -> str | None:
        """Return the next line that the user sent, or None at the end of the input."""
        self.footer.is_working = False
        self._is_idle = True
        self.footer.redraw()
        try:
            return await self.footer.next_line()
        finally:
            self._is_idle = False

    async def say(self, text: str) -> None:
        """Run a command or send a message. Escape and Ctrl+C stop it."""
        self.footer.alerts.clear()
        self.screen.begin()
        self._is_interrupted = False
        began = self._began or time.monotonic()
        self._line = asyncio.create_task(self._run_line(text))
        animation = asyncio.create_task(self._animate())
        await asyncio.wait([self._line])
        animation.cancel()
        self.screen.pause()
        if self._line.cancelled():
            self.console.print(Text("■ stopped", "yellow"))
        else:
            self._line.result()
        self._line = None
        self._began = began if self.footer.queue else None
        is_long = time.monotonic() - began > _LONG_SECONDS
        if is_long and not (self._is_interrupted or self._is_leaving or self.footer.queue):
            self.footer.alerts.call(DONE)

    async def _animate(self) -> None:
        """Draw the work in progress again and again: its time passes, and its text grows."""
        while True:
            self.footer.redraw()
            await asyncio.sleep(1 / _FRAMES_PER_SECOND)

    async def _run_line(self, text: str) -> None:
        try:
            shell_line = parse_shell_line(text)
            if shell_line is not None:
                await run_shell_line(self, shell_line)
            elif text.rstrip() in LEAVING_WORDS:
                self.leave()
            elif not await run_command(self, self.commands, text):
                await self._answer(text)
        except SkillError as error:
            self.screen.pause()
            self.console.print(Text(clean(str(error)), "red"))
            if isinstance(self.commands.find(text), UnknownCommand):
                self.footer.give_back()

    async def _answer(self, text: str) -> None:
        """Send a message, and name the skill that fits it if the model left it unused."""
        turn = self.send(self.core.process_message(text, await self.attach(text)))
        # Beside the model's work: the first search takes a third of a second, to import what compares meanings.
        match, _ = await asyncio.gather(asyncio.to_thread(self.core.find_clear_match, text), turn)
        if match is None or not self._is_finished or not self.core.is_left_out(match, self._used):
            return
        mention = (self.core.conversation.id, match.name)
        if mention not in self._mentioned:
            self._mentioned.add(mention)
            self.print(Text(f"{match.name} matched ({match.score:.2f}) but wasn't used · /why-not", "dim"))

    async def attach(self, text: str) -> Sequence[Attachment]:
        found = await self._find_attachments(text)
        for line in describe_attachments(self.core, found):
            self.print(Text(line, "dim"))
        return found.attachments

    async def send(self, events: AsyncIterator[Event]) -> None:
        self._in_turn = True
        self._is_finished = False
        self._used.clear()
        try:
            self.screen.show_waiting()
            async for event in events:
                self._note(event)
                async with self.questions.lock:
                    self.screen.show(event)
                    if isinstance(event, Steered):
                        self._show_steering()
        finally:
            self._in_turn = False
            self.screen.pause()

    def _note(self, event: Event) -> None:
        match event:
            case ToolCalled(name=name) | SideStarted(skill=name):
                self._used.add(name)
            case Finished(stopped=is_stopped):
                self._is_finished = not is_stopped

    def _can_steer(self, text: str) -> bool:
        """Return True if a line is a message, and the model can get it during the turn in progress."""
        is_command = self.commands.find(text) is not None or parse_shell_line(text) is not None
        return self._in_turn and bool(text.strip()) and not is_command and text.rstrip() not in LEAVING_WORDS

    async def _take_steering(self) -> Sequence[SteeringMessage]:
        """Return what the user has sent to the model during the turn, and remove it from the queue."""
        found = [(line, await self._find_attachments(line.text)) for line in self.footer.queue if line.steers]
        # From here on, no Escape comes in between: a line is either in the queue or on its way to the model.
        messages = []
        for line, attached in found:
            if self.footer.queue.remove(line):  # the user may have taken it back meanwhile
                self._steering.append((line, list(describe_attachments(self.core, attached))))
                messages.append(SteeringMessage(line.text, attached.attachments))
        return messages

    async def _find_attachments(self, text: str) -> FoundAttachments:
        images = self.footer.pastes.find_images(text)
        return await asyncio.to_thread(self.core.find_attachments, text, dropped=True, pasted=images)

    def _show_steering(self) -> None:
        line, notes = self._steering.popleft()
        self.footer.echo(line)
        for note in notes:
            self.print(Text(note, "dim"))

    @contextmanager
    def waiting(self, activity: str) -> Iterator[None]:
        self.screen.show_waiting(activity)
        try:
            yield
        finally:
            self.screen.pause()

    async def review(self) -> None:
        async with self.questions.lock:
            await self._reviewer.review()

    async def confirm(self, question: str) -> bool:
        async with self.questions.lock:
            answers = {"y": "yes", "n": "no"}
            answer = await self._keyboard.ask(f"{question} [y]es [n]o", answers, "no", stopped="stop")
            if answer == "stop":
                self.footer.return_queued()
                raise asyncio.CancelledError
            self.print(Text(answer, "dim"))
        return answer == "yes"

    def offer_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        for session in sessions:
            if session.problem:  # the menu has only those that can be opened
                self.print(Text(f"{session.id}: {session.problem}", "red"))
        self.footer.offer_menu("/resume ")

    def offer_messages(self, messages: Sequence[SentMessage]) -> None:
        self.footer.offer_menu("/rewind ")

    def offer_text(self, text: str) -> None:
        self.footer.offer(text)

    def offer_models(self, names: Sequence[str]) -> None:
        self.footer.offer("/model ")  # the menu has them

    async def declare_mine(self) -> None:
        async with self.questions.lock:
            await self._reviewer.declare_mine_if_sure()

    def note_pending_shown(self) -> None:
        self._reviewer.skip_announcements()

    def interrupt(self) -> None:
        """Stop the command or message that is running."""
        self._is_interrupted = True
        if self._in_turn:
            self.core.cancel()  # the turn ends by itself and keeps the conversation so far
        elif self._line:
            self._line.cancel()

    def _unfold(self) -> None:
        """Show the results of tools, and reasoning, in full. The turn goes on meanwhile."""
        if not self.screen.list_folded():
            self.footer.show_hint(NOTHING_FOLDED)
        elif self._viewer is None or self._viewer.done():
            self._viewer = asyncio.create_task(self._view_folded())

    def _change_policy(self) -> None:
        """Go on to the next policy, as other agents do at Shift+Tab. The status line names it."""
        policy = self.core.gate.policy
        position = _POLICIES_IN_TURN.index(policy.mode) + 1 if policy.mode in _POLICIES_IN_TURN else 0
        policy.set(_POLICIES_IN_TURN[position % len(_POLICIES_IN_TURN)])
        self.footer.redraw()

    def _offer_rewind(self) -> None:
        messages = self.core.list_sent()
        if messages:
            self.offer_messages(messages)
        else:
            self.footer.show_hint("Nothing was said yet")

    async def _view_folded(self) -> None:
        newest_first = [folded.content for folded in self.screen.list_folded()]
        await self._keyboard.show_in_pager(self.console, Group(*newest_first))

    def _greet(self) -> None:
        model = self.core.model
        line = Text.assemble(
            ("skillshelf", "bold"), f"  {clean_line(model.name)}  {count_skills(self.core)}  ", ("/help", "dim")
        )
        if self.core.skills.is_own:
            line.append("  your own repository: its skills apply as they change", "dim")
        self.print(line, Text(model.note, "dim") if model.note else "")
        if self.core.conversation.messages:
            self.print(*view_resumed(self.core))
        self._reviewer.announce_notices()

    def _announce_ended_job(self, job: Job, notices: Sequence[str]) -> None:
        self.print(describe_ended_job(job), *(Text(f"! {notice}", "yellow") for notice in notices))
        self.footer.redraw()

    def _report_problems(self) -> None:
        for problem in find_new_problems(self.commands, self._reported_problems):
            self.console.print(Text(clean(problem), "yellow"))

    def _format_status(self, columns: int) -> str:
        return format_status(self.core, self._reviewer.pending_count, columns)

    def _prepare_completion(self) -> None:
        """Build the index of names and words now, so that the first key does not wait for it."""
        complete(self.commands, "/skills:qxzqxz")

    def _watch_skills(self) -> AbstractContextManager[object]:
        loop = asyncio.get_running_loop()

        def note_change() -> None:
            self._prepare_completion()
            loop.call_soon_threadsafe(announce_if_idle)

        def announce_if_idle() -> None:
            if self._is_idle:  # otherwise when the line in progress has ended
                self._announce_changes()
                self.footer.redraw()

        with suppress(MissingExtraError):
            if not self.core.skills.frozen:
                return self.core.skills.watch(note_change)
        return nullcontext()  # each turn sweeps the folders anyway

    def _announce_changes(self) -> None:
        delta = self.core.skills.take_watched()
        if delta:
            self.screen.show(SkillsReloaded(delta.added, delta.changed, delta.removed))
        self._reviewer.announce_changes()
