"""The keyboard: one key as an answer, and what was typed while nobody asked."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from skillshelf.repl._tty import Tty, as_text


class Keyboard:
    """What was typed before a question is no answer to it: it is kept for the next prompt."""

    def __init__(self) -> None:
        self._input = get_app_session().input
        self.tty = Tty(self._input.fileno())
        self._kept = ""

    def quiet(self) -> AbstractContextManager[None]:
        return self.tty.quiet()

    def take(self) -> str:
        """What was typed since the last prompt, and was no answer: the beginning of the next."""
        self._keep()
        text, self._kept = as_text(self._kept), ""
        return text

    async def ask(
        self, question: str, answers: Mapping[str, str], otherwise: str, *, stopped: str | None = None
    ) -> str:
        """The answer whose key is pressed from now on; other keys do nothing.

        Enter, Escape and Ctrl+D give `otherwise`, as does a terminal that was closed; Ctrl+C gives `stopped`.
        """
        bindings = KeyBindings()

        @bindings.add(Keys.Any)
        def _ignore(event: KeyPressEvent) -> None:
            """A key that is no answer must not become one."""

        for key, value in answers.items():
            bindings.add(key, eager=True)(_gives(value))
            bindings.add(key.upper(), eager=True)(_gives(value))
        for key in ("enter", "escape", "c-d"):
            bindings.add(key, eager=True)(_gives(otherwise))
        bindings.add("c-c", eager=True)(_gives(otherwise if stopped is None else stopped))
        session: PromptSession[str] = PromptSession(key_bindings=bindings)
        self._keep()
        try:
            # Not its own: afterwards it would leave none, and Ctrl+C could no longer stop the turn.
            return await session.prompt_async(_wrapped(question), handle_sigint=False)
        except EOFError:
            return otherwise

    def _keep(self) -> None:
        self._kept += "".join(press.data for press in get_typeahead(self._input)) + self.tty.take()


def _gives(value: str) -> Any:
    def accept(event: KeyPressEvent) -> None:
        # Two keys at once: the first has answered.
        if not event.app.is_done:
            event.app.exit(result=value)

    return accept


def _wrapped(question: str) -> str:
    """Broken between words: in the middle of `[n]o` it could not be read."""
    return "\n".join(wrap(question, max(20, get_terminal_size().columns - 1))) + " "
