"""The agent in a terminal."""

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console, RenderableType
from rich.text import Text

from skillshelf.agent import AgentCore, Answer, Approval, Settings, VariableRequest
from skillshelf.agent.events import Event
from skillshelf.agent.sessions import SessionInfo
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.repl._approval import STOP, ask_approval
from skillshelf.repl._commands import LEAVING_WORDS, find_new_problems, make_commands, run_command
from skillshelf.repl._face import call_on_end_signal, clean_output
from skillshelf.repl._keyboard import Keyboard
from skillshelf.repl._picker import pick_session
from skillshelf.repl._prompt import SlashCompleter, list_workspace_files, make_prompt
from skillshelf.repl._replay import view_resumed
from skillshelf.repl._review import Reviewer
from skillshelf.repl._screen import Screen
from skillshelf.repl._variables import ask_variable
from skillshelf.repl._views import count_skills, format_status
from skillshelf.slash import complete
from skillshelf.streams import discard_output
from skillshelf.text import clean, clean_line

_MIN_PREPARED = 100
"""Skills whose index is built before it is needed. Fewer take a tenth of a second."""
_SECONDS_TO_END = 5.0
"""How long a running turn may take to end when the program must."""


class Terminal:
    """A conversation on a screen: one prompt after the other."""

    def __init__(self, core: AgentCore, settings: Settings, console: Console, keyboard: Keyboard | None = None) -> None:
        self.core = core
        self.settings = settings
        self.console = console
        core.approve = self.approve
        core.ask_variable = self.ask_variable

        self.screen = Screen(console)
        self.commands = make_commands(self)
        self._keyboard = keyboard or Keyboard()
        self._reviewer = Reviewer(core, console, self._keyboard)
        completer = SlashCompleter(self.commands, lambda path: list_workspace_files(core.skills.folder, path))
        self._prompt = make_prompt(completer, self._format_status)

        self._first_message = ""
        self._is_leaving = False
        self._exit_code = 0
        self._reported_problems: set[tuple[str, str]] = set()
        self._chat: asyncio.Task[None] | None = None
        self._line: asyncio.Task[None] | None = None
        """The command or message that is running."""
        self._in_turn = False
        self._question = asyncio.Lock()
        """Held while a question is on the screen: nothing else may be printed or asked."""

    def print(self, *parts: RenderableType) -> None:
        self.console.print(*clean_output(parts), sep="\n")

    def write_escape(self, sequence: str) -> None:
        self.console.file.write(sequence)

    def leave(self) -> None:
        self._is_leaving = True

    async def run(self, first_message: str = "") -> int:
        """Chat until the user leaves or the terminal is closed. Return the exit code.

        `first_message` is answered before the first prompt.
        """
        self._first_message = first_message
        loop = asyncio.get_running_loop()
        with self._keyboard.tty.without_echo():
            self._chat = asyncio.create_task(self._run_prompts())
            # For good: a handler that comes and goes leaves moments in which Ctrl+C ends the program.
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
            loop.add_signal_handler(signal.SIGCONT, self._continue)
            call_on_end_signal(self._close)
            await asyncio.wait([self._chat])

        if not self._chat.cancelled() and not self._exit_code:
            self._chat.result()
        self._say_how_to_resume()
        return self._exit_code

    def _say_how_to_resume(self) -> None:
        conversation = self.core.conversation
        if conversation.session and conversation.messages and self._keyboard.tty.is_open():
            self.console.print(Text(f"To go on with this session: skillshelf chat --resume {conversation.id}", "dim"))

    async def _run_prompts(self) -> None:
        self._greet()
        with self._watch_skills():
            await self._reviewer.ask_at_start()
            with self._preparing_search():
                await self._answer_lines()

    async def _answer_lines(self) -> None:
        if self._first_message.strip():
            self.console.print(Text.assemble(("› ", "bold"), clean(self._first_message)))
            await self.say(self._first_message)
        while not self._is_leaving:
            self._reviewer.announce_changes()
            await asyncio.to_thread(self._prepare_completion)
            self._report_problems()
            text = await self._read_line()
            if text is None:
                break
            if text.strip():
                await self.say(text)

    async def _read_line(self) -> str | None:
        """Return what the user typed, or None at the end of the input."""
        try:
            with patch_stdout():
                return await self._prompt.prompt_async(
                    [("bold", "› ")], default=self._keyboard.take_typeahead(), handle_sigint=False
                )
        except KeyboardInterrupt:
            return ""
        except EOFError:
            if not self._keyboard.tty.is_open():  # the signal that says so is on its way
                self._close(128 + signal.SIGHUP)
            return None

    async def say(self, text: str) -> None:
        """Run a command or send a message. Ctrl+C stops it."""
        self._line = asyncio.create_task(self._run_line(text))
        await asyncio.wait([self._line])
        self.screen.pause()
        if self._line.cancelled():
            self.console.print(Text("■ stopped", "yellow"))
        else:
            self._line.result()
        self._line = None

    async def _run_line(self, text: str) -> None:
        try:
            if text.rstrip() in LEAVING_WORDS:
                self.leave()
            elif not await run_command(self, self.commands, text):
                await self.send(self.core.process_message(text))
        except SkillError as error:
            self.screen.pause()
            self.console.print(Text(clean(str(error)), "red"))

    async def send(self, events: AsyncIterator[Event]) -> None:
        self._in_turn = True
        try:
            self.screen.show_waiting()
            async for event in events:
                async with self._question:
                    self.screen.show(event)
        finally:
            self._in_turn = False
            self.screen.pause()

    @contextmanager
    def waiting(self, activity: str) -> Iterator[None]:
        self.screen.show_waiting(activity)
        try:
            yield
        finally:
            self.screen.pause()

    async def approve(self, approval: Approval) -> Answer:
        """Ask in the middle of a turn whether a tool may run."""
        async with self._question:
            self.screen.pause()
            answer = await ask_approval(approval, self.console, self._keyboard)
            if answer == STOP:
                self.core.cancel()
                return "no"
            self.screen.show_waiting()
        return answer  # type: ignore[return-value]  # one of the answers

    async def ask_variable(self, request: VariableRequest) -> str | None:
        """Ask in the middle of a turn for a variable of a script."""
        async with self._question:
            self.screen.pause()
            value = await ask_variable(request, self.console, self._keyboard)
            self.screen.show_waiting()
        return value

    async def review(self) -> None:
        async with self._question:
            await self._reviewer.review()

    async def choose_session(self, sessions: Sequence[SessionInfo]) -> str | None:
        for session in sessions:
            if session.problem:  # the list has only those that can be opened
                self.print(Text(f"{session.id}: {session.problem}", "red"))
        async with self._question:
            return await pick_session(sessions)

    async def declare_mine(self) -> None:
        async with self._question:
            await self._reviewer.declare_mine_if_sure()

    def note_pending_shown(self) -> None:
        self._reviewer.skip_announcements()

    def _interrupt(self) -> None:
        if self._in_turn:
            self.core.cancel()  # the turn ends by itself and keeps the conversation so far
        elif self._line:
            self._line.cancel()

    def _close(self, exit_code: int) -> None:
        """End the turn and the commands it runs, then the chat. The session is kept."""
        self._is_leaving = True
        self._exit_code = exit_code
        if not self._keyboard.tty.is_open():
            discard_output(sys.stdout, sys.stderr)

        assert self._chat is not None
        if self._line:
            self._interrupt()
            asyncio.get_running_loop().call_later(_SECONDS_TO_END, self._chat.cancel)
        else:
            self._chat.cancel()

    def _continue(self) -> None:
        """Take the terminal back after Ctrl+Z: the shell has set it up for itself. A prompt does this on its own."""
        if self._line and not self._question.locked():
            self._keyboard.tty.switch_echo_off()

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

    def _report_problems(self) -> None:
        for problem in find_new_problems(self.commands, self._reported_problems):
            self.console.print(Text(clean(problem), "yellow"))

    def _format_status(self) -> FormattedText:
        return FormattedText([("", format_status(self.core, self._reviewer.pending_count, self.console.width))])

    def _prepare_completion(self) -> None:
        """Build the index of names and words now, so that the first key does not wait for it."""
        complete(self.commands, "/skills:qxzqxz")

    @contextmanager
    def _preparing_search(self) -> Iterator[None]:
        """Build the index of search in a thread, so that the first message does not wait for it."""
        if len(self.core.shelf.catalog) < _MIN_PREPARED:
            yield
            return
        stop = threading.Event()
        # Not a daemon: an end of the process in the middle of a library in Rust would be a crash.
        threading.Thread(target=self._prepare_search, args=[stop]).start()
        try:
            yield
        finally:
            stop.set()

    def _prepare_search(self, stop: threading.Event) -> None:
        with suppress(Exception):  # the first search fails in the same way, and reports it
            self.core.shelf.prepare_search(stop=stop)

    def _watch_skills(self) -> AbstractContextManager[object]:
        with suppress(MissingExtraError):
            if not self.core.skills.frozen:
                return self.core.skills.watch(self._prepare_completion)
        return nullcontext()  # each turn sweeps the folders anyway
