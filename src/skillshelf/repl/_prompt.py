"""The line a person types in."""

import os
from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from skillshelf.files import make_private_folders, state_home


def prompt_session(completer: Completer, status: Callable[[], FormattedText]) -> PromptSession[str]:
    """With the lines of earlier sessions behind the arrow keys."""
    return PromptSession(history=_history(), completer=completer, key_bindings=bindings(), bottom_toolbar=status)


def _history() -> History:
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


def bindings() -> KeyBindings:
    """The keys that differ from what prompt_toolkit makes of them."""
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _break(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("tab")
    def _complete(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is None:
            buffer.start_completion(insert_common_part=True)
        elif len(state.completions) == 1 and state.complete_index == 0:
            buffer.complete_state = None  # taken already: the next in the circle would be what was typed before
        else:
            buffer.complete_next()

    return keys
