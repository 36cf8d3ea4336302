"""The demonstration in the real interface: a scripted model answers, and a typist presses the keys for the user."""

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from skillshelf.agent import AgentCore, ChosenModel, ScriptedModel, read_script
from skillshelf.agent.events import Event
from skillshelf.demo import ANSWER, LINES, Frame, copy_workspace, script_path
from skillshelf.repl._footer import Footer
from skillshelf.repl._keyboard import Keyboard, Tty
from skillshelf.repl._start import TerminalChat
from skillshelf.repl._terminal import Terminal
from skillshelf.repl._views import format_status
from skillshelf.settings import Settings

_WINDOW = 16_000
"""A small window, so that the bar of /context has something to show."""
_RECORDED_COLUMNS = 78
_SECONDS_PER_KEY = 0.05
_SECONDS_BEFORE_TYPING = 0.8
_SECONDS_PER_QUESTION = 3.0
_SECONDS_OF_THINKING = 1.2
_SECONDS_PER_WORDS = 0.15
"""The model's answer arrives a few words at a time."""
_SECONDS_TO_READ = 3.0

Observer = Callable[[Frame], None]


def play_demo(console: Console, *, fast: bool) -> None:
    """Play the demonstration on this terminal. A key skips the pauses; `q` and Ctrl+C leave."""
    # The terminal would answer a question about the cursor with keys that the user did not press.
    os.environ["PROMPT_TOOLKIT_NO_CPR"] = "1"
    pace = Pace()
    if fast:
        pace.hurry()
    with copy_workspace() as workspace, create_pipe_input() as keys, create_app_session(input=keys):
        keyboard = _TypedKeyboard(keys, pace, ignore_frame, Tty(sys.stdin.fileno()))
        chat = _DemoChat(workspace, console, keyboard, pace, ignore_frame)
        asyncio.run(chat.run_with_keys(sys.stdin.fileno()))


def record_demo() -> list[Frame]:
    """Play the demonstration without a terminal and without pauses, and return what it showed."""
    frames: list[Frame] = []
    pace = Pace()
    pace.hurry()
    console = Console(
        file=_FrameFile(frames.append),
        width=_RECORDED_COLUMNS,
        color_system="standard",
        no_color=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with (
        copy_workspace() as workspace,
        create_pipe_input() as keys,
        create_app_session(input=keys, output=DummyOutput()),
    ):
        keyboard = _TypedKeyboard(keys, pace, frames.append, Tty(keys.fileno()))
        chat = _DemoChat(workspace, console, keyboard, pace, frames.append)
        asyncio.run(chat.run())
    return frames


def ignore_frame(frame: Frame) -> None:
    """Do nothing: the demonstration is played, not recorded."""


class Pace:
    """Pauses for the reader, until the reader is in a hurry."""

    def __init__(self) -> None:
        self._is_hurried = asyncio.Event()

    def hurry(self) -> None:
        self._is_hurried.set()

    async def pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_hurried.wait(), seconds)


class _PacedModel(ScriptedModel):
    """A scripted model that takes a moment before each answer, as a real one does."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(*read_script(script_path()))
        self._pace = pace

    @asynccontextmanager
    async def request_stream(self, *args: Any, **keywords: Any) -> AsyncIterator[Any]:
        await self._pace.pause(_SECONDS_OF_THINKING)
        async with super().request_stream(*args, **keywords) as response:
            yield response


class _TypedKeyboard(Keyboard):
    """A keyboard whose keys are pressed by the demonstration: questions are answered after a pause."""

    def __init__(self, keys: PipeInput, pace: Pace, observe: Observer, tty: Tty) -> None:
        super().__init__()
        self.tty = tty
        self._keys = keys
        self._pace = pace
        self._observe = observe

    async def ask(
        self, question: str, answers: Mapping[str, str], otherwise: str, *, stopped: str | None = None
    ) -> str:
        self._observe(Frame("asked", question))
        with _run_beside(self._press(ANSWER, _SECONDS_PER_QUESTION)):
            return await super().ask(question, answers, otherwise, stopped=stopped)

    def take_typeahead(self) -> str:
        """Return nothing: the user's keys are not for the editor."""
        return ""

    async def type_line(self, line: str) -> None:
        await self._pace.pause(_SECONDS_BEFORE_TYPING)
        for char in line:
            await self._press(char, _SECONDS_PER_KEY)
        await self._press("\r", _SECONDS_BEFORE_TYPING)

    async def _press(self, key: str, seconds: float) -> None:
        await self._pace.pause(seconds)
        self._keys.send_text(key)


class _DemoTerminal(Terminal):
    """The real interface, with a model that follows a script and lines that are typed for the user."""

    def __init__(
        self, core: AgentCore, console: Console, footer: Footer, keyboard: _TypedKeyboard, pace: Pace, observe: Observer
    ) -> None:
        super().__init__(core, Settings(), console, footer)
        self._typist = keyboard
        self._pace = pace
        self._observe = observe
        self._lines = iter(LINES)

    async def _read_line(self) -> str | None:
        line = next(self._lines, None)
        if line is None:
            await self._pace.pause(_SECONDS_TO_READ)
            return None
        self._observe(Frame("status", format_status(self.core, 0, _RECORDED_COLUMNS).strip()))
        with _run_beside(self._typist.type_line(line)):
            text = await super()._read_line()
        self._observe(Frame("typed", line))
        return text

    async def send(self, events: AsyncIterator[Event]) -> None:
        await super().send(self._slow_down(events))

    async def _slow_down(self, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            if event.kind == "text":
                await self._pace.pause(_SECONDS_PER_WORDS)
            yield event


class _DemoChat(TerminalChat):
    """The demonstration, from the first frame to the last."""

    def __init__(
        self, workspace: str, console: Console, keyboard: _TypedKeyboard, pace: Pace, observe: Observer
    ) -> None:
        def open_terminal(footer: Footer) -> Terminal:
            model = ChosenModel(_PacedModel(pace), "scripted", _WINDOW)
            return _DemoTerminal(AgentCore(model, workspace), console, footer, keyboard, pace, observe)

        super().__init__(open_terminal, keyboard)
        self._pace = pace

    async def run_with_keys(self, fileno: int) -> int:
        """Run, and listen to the keys of the user: any key skips the pauses, and `q` leaves."""
        loop = asyncio.get_running_loop()
        loop.add_reader(fileno, self._read_keys, fileno)
        try:
            return await self.run()
        finally:
            loop.remove_reader(fileno)

    def _read_keys(self, fileno: int) -> None:
        keys = os.read(fileno, 1024)
        self._pace.hurry()
        if not keys or b"q" in keys.lower():
            self._interrupt()

    def _interrupt(self) -> None:
        """Leave, whatever is going on."""
        if self._terminal:
            self._terminal.leave()
            self._terminal.core.cancel()
        if self._chat:
            self._chat.cancel()


class _FrameFile(io.StringIO):
    """A file for a console that turns each piece of output into a frame."""

    def __init__(self, observe: Observer) -> None:
        super().__init__()
        self._observe = observe

    def write(self, text: str) -> int:
        if text.strip():
            self._observe(Frame("shown", text))
        return len(text)


@contextmanager
def _run_beside(work: Any) -> Iterator[None]:
    """Run a coroutine while the block runs."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
