"""A chat in a terminal from its first frame to its exit code. The prompt appears first, and the agent behind it.

Importing the agent takes a second, so this module and everything it imports must do without it.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.output import ColorDepth

from skillshelf.text.streams import discard_output
from skillshelf_agent.terminal._face import OpenedAgent, call_on_end_signal
from skillshelf_agent.terminal._footer import Footer
from skillshelf_agent.terminal._keyboard import Keyboard, Line, open_history

if TYPE_CHECKING:
    from rich.console import Console

    from skillshelf.settings import Settings
    from skillshelf.skills import AskUser
    from skillshelf_agent import Approve, AskVariable
    from skillshelf_agent.terminal._terminal import Terminal


class User(NamedTuple):
    """The user at the terminal, for an agent that is being opened."""

    approve: "Approve"
    ask_variable: "AskVariable"
    ask_line: "AskUser"
    send: Callable[[str], None]
    """Sends a line as if the user had typed it. May be called in any thread."""


OpenAgent = Callable[[User], OpenedAgent]

_SECONDS_TO_END = 5.0
"""How long a running turn may take to end when the program must."""


async def run_terminal(open_agent: OpenAgent, console: "Console", settings: "Settings", first_message: str = "") -> int:
    """Chat until the user leaves or the terminal is closed. Return the exit code.

    `open_agent` is called in a thread once the prompt is on the screen. Its errors end the chat. `first_message` is
    answered before the first line that the user sends. `settings` are those of the user, whatever session they resume.
    """
    loop = asyncio.get_running_loop()
    # Ctrl+Z reaches a program that is being started too. With vfork(), it would stop before it is one, and this process
    # could never stop while it waits for it: the shell would wait for both. Python documents this switch.
    subprocess._USE_VFORK = False  # type: ignore[misc]
    if console.no_color:  # for the footer, and for every list and question that takes its place
        os.environ["PROMPT_TOOLKIT_COLOR_DEPTH"] = ColorDepth.DEPTH_1_BIT.value

    def open_terminal(footer: Footer) -> "Terminal":
        from skillshelf_agent.terminal._approval import Questions
        from skillshelf_agent.terminal._screen import Screen
        from skillshelf_agent.terminal._terminal import Terminal

        def send(text: str) -> None:
            loop.call_soon_threadsafe(footer.queue.put, Line(text, text))

        questions = Questions(Screen(console), footer)
        user = User(questions.approve, questions.ask_variable, questions.ask_line, send)
        opened = open_agent(user)
        return Terminal(opened.core, opened.settings, questions, footer, opened.options)

    return await TerminalChat(open_terminal, settings).run(first_message)


class TerminalChat:
    """The user's terminal during a chat: its prompt, its signals and its end."""

    def __init__(
        self, open_terminal: Callable[[Footer], "Terminal"], settings: "Settings", keyboard: Keyboard | None = None
    ) -> None:
        """`open_terminal` is called in a thread, with the prompt on the screen."""
        self._open_terminal = open_terminal
        self._keyboard = keyboard or Keyboard()
        self._footer = Footer(self._keyboard, open_history(), settings)
        self._terminal: Terminal | None = None
        self._streams = (sys.stdout, sys.stderr)
        self._chat: asyncio.Task[None] | None = None
        self._exit_code = 0

    async def run(self, first_message: str = "") -> int:
        """Chat until the user leaves or the terminal is closed. Return the exit code."""
        if first_message.strip():
            self._footer.queue.put(Line(first_message, first_message))
        loop = asyncio.get_running_loop()
        with self._keyboard.tty.without_echo():
            self._chat = asyncio.create_task(self._run_behind_prompt())
            # For good: a handler that comes and goes leaves moments in which the signal ends the program.
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
            loop.add_signal_handler(signal.SIGCONT, self._footer.take_terminal_back)
            call_on_end_signal(self._close)
            await asyncio.wait([self._chat])

        if not self._chat.cancelled() and not self._exit_code:
            self._chat.result()
        if self._terminal and self._keyboard.tty.is_open():
            self._terminal.say_goodbye()
        return self._exit_code

    async def _run_behind_prompt(self) -> None:
        async with self._footer.running():
            self._terminal = await asyncio.to_thread(self._open_terminal, self._footer)
            if not self._footer.queue.is_at_end:  # the user left already
                async with self._terminal.core.servers, self._terminal.core.jobs:
                    await self._terminal.run()
                self._footer.alerts.clear()
        if not self._exit_code and not self._keyboard.tty.is_open():  # the signal that says so is on its way
            self._close(128 + signal.SIGHUP)

    def _interrupt(self) -> None:
        """Stop the command or message that is running, unless the user's pager or editor has the terminal."""
        if self._terminal and not self._footer.is_suspended:
            self._terminal.interrupt()

    def _close(self, exit_code: int) -> None:
        """End the turn and the commands it runs, then the chat. The session is kept."""
        self._exit_code = exit_code
        if not self._keyboard.tty.is_open():
            discard_output(*self._streams)

        assert self._chat is not None
        if self._terminal and self._terminal.is_answering:
            self._terminal.leave()
            self._terminal.interrupt()
            asyncio.get_running_loop().call_later(_SECONDS_TO_END, self._chat.cancel)
        else:
            self._chat.cancel()
