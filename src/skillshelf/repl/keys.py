"""One key as an answer."""

from collections.abc import Mapping
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys


async def ask_key(question: str, answers: Mapping[str, str], otherwise: str) -> str:
    """The answer whose key was pressed. Enter, Escape, Ctrl+C and Ctrl+D give `otherwise`; other keys do nothing."""
    bindings = KeyBindings()

    def answer(value: str) -> Any:
        def accept(event: KeyPressEvent) -> None:
            event.app.exit(result=value)

        return accept

    @bindings.add(Keys.Any)
    def _ignore(event: KeyPressEvent) -> None:
        """A key that is no answer must not become one."""

    for key, value in answers.items():
        bindings.add(key, eager=True)(answer(value))
        bindings.add(key.upper(), eager=True)(answer(value))
    for key in ("enter", "escape", "c-c", "c-d"):
        bindings.add(key, eager=True)(answer(otherwise))
    session: PromptSession[str] = PromptSession(key_bindings=bindings)
    return await session.prompt_async(question)
