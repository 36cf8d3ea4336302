"""What the user types: lines that wait for their turn, keys that answer a question, and the terminal's modes."""

import asyncio
import os
import re
import select
import termios
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from shutil import get_terminal_size
from textwrap import wrap
from typing import Protocol

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase, KeyPressEvent
from prompt_toolkit.keys import Keys
from rich.console import Console, RenderableType

from skillshelf.files import make_private_folders, state_home
from skillshelf.text.rendering import Cleaned, show_in_pager

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<]*[ -/]*[@-~]|O.|[^\x1b])?", re.S)
_MAX_TYPEAHEAD = 64 * 1024
_MIN_COLUMNS = 20


@dataclass(eq=False)
class Question:
    """A question on the screen."""

    text: str
    answers: Mapping[str, str]
    """The answer for each key."""
    otherwise: str
    stopped: str
    is_open: bool
    """False until the user turns to it, because the keys are still meant for a message."""
    unread_until: float = 0.0
    """Before this time, a key is the start of a message: the user can't have read the question yet."""
    answer: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def give(self, answer: str) -> None:
        # Of two keys pressed at once, the first has answered.
        if not self.answer.done():
            self.answer.set_result(answer)


class QuestionScreen(Protocol):
    """The screen that questions appear on."""

    def is_user_typing(self) -> bool:
        """Take up the keys that were pressed so far. Return True if there is a message in the making."""

    def redraw(self) -> None:
        """Draw the question, soon."""

    def print_question(self, question: str) -> None:
        """Leave a question on the screen that has been answered."""

    def suspended(self) -> AbstractAsyncContextManager[None]:
        """Give the terminal to another application while the block runs."""


class Keyboard:
    """Asks questions that one key answers. The footer shows them, and gives the keys.

    If there is a message in the making when a question comes up, the keys go on to the message, and Tab turns to the
    question. If the prompt is empty, they answer the question.
    """

    seconds_to_read = 0.3
    """Grace period for a question that interrupts the user, who may be about to type a message."""

    def __init__(self) -> None:
        self.tty = Tty(get_app_session().input.fileno())
        self.question: Question | None = None
        self.screen: QuestionScreen | None = None
        self._turn = asyncio.Lock()
        self._is_closed = False

    def take_typeahead(self) -> str:
        """Return the text that was typed before the editor was there."""
        return keys_to_text(self.tty.read_pending())

    async def ask(
        self,
        question: str,
        answers: Mapping[str, str],
        otherwise: str,
        *,
        stopped: str | None = None,
        is_expected: bool = True,
    ) -> str:
        """Return the answer whose key is pressed from now on; other keys do nothing.

        Enter, Escape, Ctrl+D and a closed terminal give `otherwise`. Ctrl+C gives `stopped`, or `otherwise` if there is
        no such answer. `is_expected`: the user asked for something, and waits for this question.
        """
        async with self._turn:
            screen = self.screen
            if self._is_closed or screen is None:
                return otherwise
            if stopped is None:
                stopped = otherwise
            self.question = Question(question, answers, otherwise, stopped, is_open=not screen.is_user_typing())
            if not is_expected:
                self.question.unread_until = time.monotonic() + self.seconds_to_read
            screen.redraw()
            try:
                return await self.question.answer
            finally:
                self.question = None
                screen.print_question(question)

    async def read_secret(self, question: str) -> str:
        """Return a line that is typed unseen; empty if the user breaks off."""
        return await self._read_line(question, is_secret=True)

    async def ask_line(self, question: str) -> str:
        """Return a line that the user types. Escape, Ctrl+C, Ctrl+D and a closed terminal give an empty one."""
        line = await self._read_line(question, is_secret=False)
        return line.strip()

    async def _read_line(self, question: str, *, is_secret: bool) -> str:
        """Return a line that answers a question. The text in the editor stays there."""
        async with self._turn:
            if self._is_closed or self.screen is None:
                return ""
            async with self.screen.suspended():
                session: PromptSession[str] = PromptSession(
                    is_password=is_secret, key_bindings=_bind_line(), enable_suspend=True
                )
                try:
                    return await session.prompt_async(_wrap_question(question), handle_sigint=False)
                except EOFError:
                    return ""

    async def show_in_pager(self, console: Console, content: RenderableType) -> None:
        """Show a long text in the user's pager, also over a question."""
        if self._is_closed or self.screen is None:
            console.print(Cleaned(content))
            return
        async with self.screen.suspended():
            await asyncio.to_thread(show_in_pager, console, content)

    def close(self) -> None:
        """Answer this question and all later ones with what they take for no answer: there are no more keys."""
        self._is_closed = True
        if self.question:
            self.question.give(self.question.otherwise)

    def make_bindings(self) -> KeyBindingsBase:
        """Return the keys that work while a question is on the screen."""
        bindings = KeyBindings()
        is_open = Condition(lambda: self.question is not None and self.question.is_open)
        is_waiting = Condition(lambda: self.question is not None and not self.question.is_open)

        @bindings.add(Keys.Any, filter=is_open, eager=True)
        def press(event: KeyPressEvent) -> None:
            """Give the answer of this key. A key that is not an answer must not become one."""
            question = self.question
            if question and time.monotonic() < question.unread_until:
                question.is_open = False
                event.current_buffer.insert_text(event.data)
            elif question and event.data.lower() in question.answers:
                question.give(question.answers[event.data.lower()])

        @bindings.add("enter", filter=is_open, eager=True)
        @bindings.add("escape", filter=is_open, eager=True)
        @bindings.add("c-d", filter=is_open, eager=True)
        def decline(event: KeyPressEvent) -> None:
            if self.question:
                self.question.give(self.question.otherwise)

        @bindings.add("c-c", filter=is_open | is_waiting, eager=True)
        def stop(event: KeyPressEvent) -> None:
            if self.question:
                self.question.give(self.question.stopped)

        @bindings.add("tab", filter=is_waiting, eager=True)
        def open_question(event: KeyPressEvent) -> None:
            if self.question:
                self.question.is_open = True

        return bindings


class Tty:
    """The terminal device."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno

    @contextmanager
    def without_echo(self) -> Iterator[None]:
        """Keep keys from showing up outside of the editor. The old state comes back."""
        try:
            before = termios.tcgetattr(self._fileno)
        except termios.error:  # not a terminal: nothing is echoed
            yield
            return

        try:
            self._switch_echo_off()
            yield
        finally:
            with suppress(termios.error):  # it was closed
                termios.tcsetattr(self._fileno, termios.TCSANOW, before)

    def _switch_echo_off(self) -> None:
        with suppress(termios.error):
            mode = termios.tcgetattr(self._fileno)
            mode[3] = mode[3] & ~(termios.ECHO | termios.ICANON) | termios.ISIG
            mode[6][termios.VMIN] = 1
            mode[6][termios.VTIME] = 0
            termios.tcsetattr(self._fileno, termios.TCSANOW, mode)

    def is_open(self) -> bool:
        """Return False once the window is closed."""
        try:
            termios.tcgetattr(self._fileno)
        except termios.error:
            return False
        return True

    def has_job_control(self) -> bool:
        """Return True if this process is a job of a shell, which writes to the terminal when the job is stopped."""
        return os.getpgrp() != os.getsid(0)

    def make_restorer(self) -> Callable[[], None]:
        """Return a function that sets the device up as it is now."""
        try:
            mode = termios.tcgetattr(self._fileno)
        except termios.error:  # not a terminal
            return lambda: None

        def restore() -> None:
            with suppress(termios.error):
                termios.tcsetattr(self._fileno, termios.TCSANOW, mode)

        return restore

    def read_pending(self) -> str:
        """Read the keys that were pressed and not read yet, without waiting for more."""
        data = b""
        with suppress(OSError):  # it was closed
            while len(data) < _MAX_TYPEAHEAD and self._has_input():
                piece = os.read(self._fileno, 4096)
                if not piece:
                    break
                data += piece
        return data.decode(errors="ignore")

    def _has_input(self) -> bool:
        readable, _, _ = select.select([self._fileno], [], [], 0)
        return bool(readable)


def keys_to_text(keys: str) -> str:
    """Return the text that these keys would have typed.

    Arrows and other escape sequences are dropped, Backspace takes back, and the last Enter sends nothing.
    """
    text: list[str] = []
    for key in _ESCAPE_SEQUENCE.sub("", keys).replace("\r", "\n"):
        if key in "\x7f\b":
            del text[-1:]
        elif key.isprintable() or key == "\n":
            text.append(key)
    return "".join(text).strip("\n")


def _bind_line() -> KeyBindings:
    """Return the keys that give up typing a line."""
    bindings = KeyBindings()

    @bindings.add("escape", eager=True)
    @bindings.add("c-c", eager=True)
    @bindings.add("c-d", eager=True)
    def give_up(event: KeyPressEvent) -> None:
        # Of two keys pressed at once, the first has answered.
        if not event.app.is_done:
            event.app.exit(result="")

    return bindings


def _wrap_question(question: str) -> str:
    """Break the question between words."""
    columns = max(_MIN_COLUMNS, get_terminal_size().columns - 1)
    return "\n".join(wrap(question.strip(), columns)) + " "


MAX_PASTED_LINES = 20
"""A paste of more lines is folded in the editor."""

_FOLDED = re.compile(r"\[pasted [\d,]+ lines(?: #\d+)?\]")


@dataclass(frozen=True, slots=True)
class Line:
    """A message or command as the user sent it."""

    text: str
    shown: str
    """The text as the editor showed it: with folded pastes."""
    steers: bool = False
    """True if it may go to the model during the turn in progress."""


class LineQueue:
    """Lines that were sent and not answered yet, in order. Those that may go to the model in the turn come first."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque()
        self._changed = asyncio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(tuple(self._lines))

    def list_shown(self) -> list[str]:
        return [line.shown for line in self._lines]

    def put(self, line: Line) -> None:
        position = len(self._lines)
        if line.steers:
            position = sum(other.steers for other in self._lines)
        self._lines.insert(position, line)
        self._changed.set()

    def remove(self, line: Line) -> bool:
        """Remove a line, and return False if it is no longer there."""
        if line not in self._lines:
            return False
        self._lines.remove(line)
        return True

    @property
    def is_at_end(self) -> bool:
        """True if no line waits and no more will come."""
        return self._is_closed and not self._lines

    def close(self) -> None:
        """Let `take` return None once the queue is empty."""
        self._is_closed = True
        self._changed.set()

    async def take(self) -> Line | None:
        """Wait for the next line. Return None if no more will come."""
        while not self._lines:
            if self._is_closed:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._lines.popleft()

    def take_back_last(self) -> str:
        """Remove the last line, and return it as the editor showed it."""
        return self._lines.pop().shown

    def take_back_all(self) -> list[str]:
        """Remove all lines, and return them as the editor showed them."""
        shown = self.list_shown()
        self._lines.clear()
        return shown


class Pastes:
    """Long pastes and images, each behind the words that stand for it in the editor."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._images: dict[str, bytes] = {}

    def fold(self, text: str) -> str:
        """Return the text to insert for a paste: the paste itself, or the words that stand for a long one."""
        count = len(text.splitlines())
        if count <= MAX_PASTED_LINES:
            return text

        words = f"[pasted {count:,} lines]"
        number = 1
        while self._texts.get(words, text) != text:
            number += 1
            words = f"[pasted {count:,} lines #{number}]"
        self._texts[words] = text
        return words

    def fold_image(self, image: bytes) -> str:
        """Return the words to insert for an image."""
        words = f"[image #{len(self._images) + 1}]"
        self._images[words] = image
        return words

    def find_images(self, text: str) -> dict[str, bytes]:
        """Return the images that a text has the words for."""
        return {words: image for words, image in self._images.items() if words in text}

    def unfold(self, shown: str) -> str:
        """Return the text with every paste in full."""
        return _FOLDED.sub(lambda words: self._texts.get(words[0], words[0]), shown)

    def find_end(self, shown: str) -> str:
        """Return the words for a paste at the end of this text, or an empty string."""
        return next((words for words in (*self._texts, *self._images) if shown.endswith(words)), "")


def open_history() -> History:
    """Return the lines of earlier sessions."""
    home = state_home()
    if home is None:
        return InMemoryHistory()
    try:
        make_private_folders(home)
        path = os.path.join(home, "history")
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
