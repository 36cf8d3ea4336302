"""The keyboard: one key as an answer, and the keys pressed while nothing was being asked."""

import os
import re
import select
import termios
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from textwrap import wrap

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?<]*[ -/]*[@-~]|O.|[^\x1b])?", re.S)
_MAX_TYPEAHEAD = 64 * 1024
_MIN_COLUMNS = 20


class Keyboard:
    """Asks questions that one key answers.

    Keys pressed before a question appeared are not an answer to it: they become the beginning of the next prompt.
    """

    def __init__(self) -> None:
        self._input = get_app_session().input
        self._typeahead = ""
        self.tty = Tty(self._input.fileno())

    def take_typeahead(self) -> str:
        """Return the text that was typed since the last prompt and answered no question."""
        self._collect_typeahead()
        text = keys_to_text(self._typeahead)
        self._typeahead = ""
        return text

    async def ask(
        self, question: str, answers: Mapping[str, str], otherwise: str, *, stopped: str | None = None
    ) -> str:
        """Return the answer whose key is pressed from now on; other keys do nothing.

        Enter, Escape, Ctrl+D and a closed terminal give `otherwise`. Ctrl+C gives `stopped`, or `otherwise` if there is
        no such answer.
        """
        session: PromptSession[str] = PromptSession(key_bindings=_bind_answers(answers, otherwise, stopped))
        self._collect_typeahead()
        try:
            # prompt_toolkit's own handler of Ctrl+C would leave none behind, and Ctrl+C could no longer stop the turn.
            return await session.prompt_async(_wrap_question(question), handle_sigint=False)
        except EOFError:
            return otherwise

    async def read_secret(self, question: str) -> str:
        """Return a line that is typed unseen; empty if the user breaks off."""
        session: PromptSession[str] = PromptSession(is_password=True)
        self._collect_typeahead()
        try:
            return await session.prompt_async(question, handle_sigint=False)
        except (EOFError, KeyboardInterrupt):
            return ""

    async def ask_line(self, question: str) -> str:
        """Return a line that the user types. Escape, Ctrl+C, Ctrl+D and a closed terminal give an empty one."""
        session: PromptSession[str] = PromptSession(key_bindings=_bind_line())
        try:
            line = await session.prompt_async(_wrap_question(question), handle_sigint=False)
        except EOFError:
            return ""
        return line.strip()

    def _collect_typeahead(self) -> None:
        for press in get_typeahead(self._input):
            self._typeahead += press.data
        self._typeahead += self.tty.read_pending()


class Tty:
    """The terminal device between two prompts."""

    def __init__(self, fileno: int) -> None:
        self._fileno = fileno

    @contextmanager
    def without_echo(self) -> Iterator[None]:
        """Keep keys from showing up in the middle of an answer. Ctrl+C still works, and the old state comes back."""
        try:
            before = termios.tcgetattr(self._fileno)
        except termios.error:  # not a terminal: nothing is echoed
            yield
            return

        try:
            self.switch_echo_off()
            yield
        finally:
            with suppress(termios.error):  # it was closed
                termios.tcsetattr(self._fileno, termios.TCSANOW, before)

    def switch_echo_off(self) -> None:
        """Do this again after a shell had the terminal in between."""
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
    for key in ("escape", "c-c", "c-d"):
        bindings.add(key, eager=True)(_accept(""))
    return bindings


def _bind_answers(answers: Mapping[str, str], otherwise: str, stopped: str | None) -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add(Keys.Any)
    def ignore(event: KeyPressEvent) -> None:
        """Do nothing: a key that is not an answer must not become one."""

    for key, answer in answers.items():
        bindings.add(key, eager=True)(_accept(answer))
        bindings.add(key.upper(), eager=True)(_accept(answer))
    for key in ("enter", "escape", "c-d"):
        bindings.add(key, eager=True)(_accept(otherwise))
    bindings.add("c-c", eager=True)(_accept(otherwise if stopped is None else stopped))
    return bindings


def _accept(answer: str) -> Callable[[KeyPressEvent], None]:
    def accept(event: KeyPressEvent) -> None:
        # Of two keys pressed at once, the first has answered.
        if not event.app.is_done:
            event.app.exit(result=answer)

    return accept


def _wrap_question(question: str) -> str:
    """Break the question between words: `[n]o` broken in the middle could not be read."""
    columns = max(_MIN_COLUMNS, get_terminal_size().columns - 1)
    return "\n".join(wrap(question, columns)) + " "
