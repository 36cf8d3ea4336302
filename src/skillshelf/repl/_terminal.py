"""The agent in a terminal."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console, RenderableType
from rich.text import Text

from skillshelf.agent import AgentCore, Answer, Approval, Settings
from skillshelf.agent.events import Event
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.repl._approval import STOP, ask_approval
from skillshelf.repl._commands import fresh_problems, make_commands, run_command
from skillshelf.repl._complete import SlashCompleter, workspace_files
from skillshelf.repl._ending import on_end, write_nowhere
from skillshelf.repl._host import shown
from skillshelf.repl._keys import Keyboard
from skillshelf.repl._prompt import prompt_session
from skillshelf.repl._review import Reviews
from skillshelf.repl._show import Screen
from skillshelf.repl._status import count_skills, status_line
from skillshelf.repl._views import resumed_view
from skillshelf.slash import complete
from skillshelf.text import clean, clean_line

_PATIENCE = 5.0
"""Seconds that a turn has to end when the program must."""


class Terminal:
    """A conversation on a screen: one prompt after the other."""

    def __init__(self, core: AgentCore, settings: Settings, console: Console) -> None:
        self.core, self.settings, self.console = core, settings, console
        core.approve = self.approve
        self.screen = Screen(console)
        self.commands = make_commands(self)
        self._keyboard = Keyboard()
        self._reviews = Reviews(core, console, self._keyboard)
        completer = SlashCompleter(self.commands, lambda path: workspace_files(core.skills.root, path))
        self._prompt = prompt_session(completer, self._status)
        self._left, self._code = False, 0
        self._told: set[tuple[str, str]] = set()
        self._running: asyncio.Task[None] | None = None
        """All of it."""
        self._doing: asyncio.Task[None] | None = None
        """The line that is being done."""
        self._in_turn = False
        self._asking = asyncio.Lock()
        """Held while a question is on the screen: nothing else may be printed, and no other asked."""

    def print(self, *what: RenderableType) -> None:
        self.console.print(*shown(what), sep="\n")

    def leave(self) -> None:
        self._left = True

    async def run(self) -> int:
        """Until the person leaves, or the terminal goes: the exit code."""
        loop = asyncio.get_running_loop()
        with self._keyboard.quiet():
            self._running = asyncio.create_task(self._run())
            # For good: a handler that comes and goes leaves moments in which Ctrl+C ends the program.
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
            loop.add_signal_handler(signal.SIGCONT, self._continue)
            on_end(self._close)
            await asyncio.wait([self._running])
        if not self._running.cancelled() and (error := self._running.exception()) and not self._code:
            raise error
        return self._code

    async def _run(self) -> None:
        self._greet()
        with self._watching():
            await self._reviews.ask_at_start()
            while not self._left:
                self._reviews.tell_changes()
                await asyncio.to_thread(self._warm)
                self._tell_problems()
                text = await self._read()
                if text is None:
                    break
                if text.strip():
                    await self.say(text)

    async def _read(self) -> str | None:
        """What the person typed; None at the end of the input."""
        try:
            with patch_stdout():
                return await self._prompt.prompt_async(
                    [("bold", "› ")], default=self._keyboard.take(), handle_sigint=False
                )
        except KeyboardInterrupt:
            return ""
        except EOFError:
            if not self._keyboard.tty.is_open():  # the signal that tells it is on its way
                self._close(128 + signal.SIGHUP)
            return None

    async def say(self, text: str) -> None:
        """What a person does with a line: a command, or a message. Ctrl+C stops it."""
        self._doing = asyncio.create_task(self._do(text))
        await asyncio.wait([self._doing])
        self.screen.pause()
        if self._doing.cancelled():
            self.console.print(Text("■ stopped", "yellow"))
        elif error := self._doing.exception():
            raise error
        self._doing = None

    async def _do(self, text: str) -> None:
        try:
            if not await run_command(self, self.commands, text):
                await self.send(self.core.process_message(text))
        except SkillError as error:
            self.screen.pause()
            self.console.print(Text(clean(str(error)), "red"))

    def _interrupt(self) -> None:
        if self._in_turn:
            self.core.cancel()  # it ends by itself, and what was said is kept
        elif self._doing:
            self._doing.cancel()

    def _close(self, code: int) -> None:
        """The turn ends first, and what it runs with it; its session is kept."""
        self._left, self._code = True, code
        if not self._keyboard.tty.is_open():
            write_nowhere()
        assert self._running is not None
        if self._doing:
            self._interrupt()
            asyncio.get_running_loop().call_later(_PATIENCE, self._running.cancel)
        else:
            self._running.cancel()

    def _continue(self) -> None:
        """After Ctrl+Z: the shell has set the terminal as it likes it. A prompt sees to itself."""
        if self._doing and not self._asking.locked():
            self._keyboard.tty.hush()

    async def send(self, events: AsyncIterator[Event]) -> None:
        self._in_turn = True
        try:
            self.screen.waiting()
            async for event in events:
                async with self._asking:
                    self.screen.show(event)
        finally:
            self._in_turn = False
            self.screen.pause()

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        self.screen.waiting(what)
        try:
            yield
        finally:
            self.screen.pause()

    async def approve(self, approval: Approval) -> Answer:
        """Asked in the middle of a turn."""
        async with self._asking:
            self.screen.pause()
            answer = await ask_approval(approval, self.console, self._keyboard)
            if answer == STOP:
                self.core.cancel()
                return "no"
            self.screen.waiting()
        return answer  # type: ignore[return-value]  # one of them

    async def review(self) -> None:
        async with self._asking:
            await self._reviews.review()

    def _tell_problems(self) -> None:
        for problem in fresh_problems(self.commands, self._told):
            self.console.print(Text(clean(problem), "yellow"))

    def _greet(self) -> None:
        core = self.core
        line = Text.assemble(
            ("skillshelf", "bold"), f"  {clean_line(core.model.name)}  {count_skills(core)}  ", ("/help", "dim")
        )
        self.print(line, Text(core.model.note, "dim") if core.model.note else "")
        if core.conversation.messages:
            self.print(*resumed_view(core))

    def _status(self) -> FormattedText:
        return FormattedText([("", status_line(self.core, self._reviews.pending, self.console.width))])

    def _warm(self) -> None:
        """Prepare what the first key would wait for: names and words of a shelf that changed."""
        complete(self.commands, "/skills:qxzqxz")

    def _watching(self) -> AbstractContextManager[object]:
        with suppress(MissingExtraError):
            if not self.core.skills.frozen:
                return self.core.skills.watch(self._warm)
        return nullcontext()  # the sweep of each turn sees what changed
