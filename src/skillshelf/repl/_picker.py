"""A list to choose from: arrow keys move, typing filters, Enter takes, Escape leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, VSplit, Window
from prompt_toolkit.utils import get_cwidth
from rich.cells import set_cell_size

from skillshelf.agent.sessions import SessionInfo
from skillshelf.rendering import truncate_cells
from skillshelf.text import clean_line, count_noun

_MAX_ROWS = 12
_ESCAPE_SECONDS = 0.05
"""How long an Escape may be the beginning of another key."""
_MIN_TITLE_CELLS = 20
_MAX_MODEL_CELLS = 30


@dataclass(frozen=True, slots=True)
class Choice:
    """A line of the list."""

    key: str
    title: str
    details: str = ""
    """Shown behind the title as far as there is room."""

    def fits(self, words: Sequence[str]) -> bool:
        """Return True if every typed word occurs in the line."""
        text = f"{self.title} {self.details} {self.key}".casefold()
        return all(word in text for word in words)


class Picker:
    """A list on the screen. It disappears when something was chosen."""

    def __init__(self, heading: str, choices: Sequence[Choice]) -> None:
        self._heading = heading
        self._choices = choices
        self._index = 0
        self._filter = Buffer(multiline=False, on_text_changed=lambda _: self._reset())

    async def run(self) -> str | None:
        """Return the key of the chosen line, or None if the user left the list."""
        app: Application[str | None] = Application(
            layout=self._make_layout(), key_bindings=self._make_bindings(), erase_when_done=True
        )
        app.ttimeoutlen = _ESCAPE_SECONDS
        # prompt_toolkit's own handler of Ctrl+C would leave none behind for the chat.
        return await app.run_async(handle_sigint=False)

    @property
    def _matching(self) -> list[Choice]:
        words = self._filter.text.casefold().split()
        return [choice for choice in self._choices if choice.fits(words)]

    def _reset(self) -> None:
        self._index = 0

    def _move(self, step: int) -> None:
        last = max(0, len(self._matching) - 1)
        self._index = min(last, max(0, self._index + step))

    def _make_layout(self) -> Layout:
        typed = VSplit(
            [
                Window(FormattedTextControl([("bold", f"{self._heading} ")]), dont_extend_width=True, height=1),
                Window(BufferControl(self._filter), height=1),
            ]
        )
        rows = Window(FormattedTextControl(self._render_rows), dont_extend_height=True, wrap_lines=False)
        hint = Window(FormattedTextControl(self._render_hint), height=1)
        return Layout(HSplit([typed, rows, hint]))

    def _render_rows(self) -> StyleAndTextTuples:
        matching = self._matching
        if not matching:
            return [("fg:ansibrightblack", "  nothing fits\n")]

        first = max(0, min(self._index - _MAX_ROWS // 2, len(matching) - _MAX_ROWS))
        columns = _columns()
        fragments: StyleAndTextTuples = []
        for position, choice in enumerate(matching[first : first + _MAX_ROWS], first):
            is_chosen = position == self._index
            mark = "❯ " if is_chosen else "  "
            details = choice.details
            room = columns - 3 - get_cwidth(details) - 2
            if room < _MIN_TITLE_CELLS:
                details = ""
                room = columns - 3
            title = set_cell_size(truncate_cells(choice.title, room), room)
            fragments.append(("bold" if is_chosen else "", f"{mark}{title}"))
            fragments.append(("fg:ansibrightblack", f"  {details}\n" if details else "\n"))
        return fragments

    def _render_hint(self) -> StyleAndTextTuples:
        count = len(self._matching)
        hint = f"  {count} of {len(self._choices)} · ↑↓ move · type to filter · Enter opens · Esc leaves"
        return [("fg:ansibrightblack", truncate_cells(hint, _columns() - 1))]

    def _make_bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -_MAX_ROWS, "pagedown": _MAX_ROWS}
        for key, step in steps.items():
            self._bind_move(bindings, key, step)

        @bindings.add("enter", eager=True, filter=Condition(lambda: bool(self._matching)))
        def take(event: KeyPressEvent) -> None:
            _exit(event, self._matching[self._index].key)

        @bindings.add("c-z", eager=True)
        def suspend(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        @bindings.add("escape", eager=True)
        @bindings.add("c-c", eager=True)
        @bindings.add("c-d", eager=True)
        def leave(event: KeyPressEvent) -> None:
            _exit(event, None)

        return bindings

    def _bind_move(self, bindings: KeyBindings, key: str, step: int) -> None:
        @bindings.add(key, eager=True)
        def move(event: KeyPressEvent) -> None:
            self._move(step)


def _exit(event: KeyPressEvent, result: str | None) -> None:
    # Of two keys pressed at once, the first has answered.
    if not event.app.is_done:
        event.app.exit(result=result)


def _columns() -> int:
    from prompt_toolkit.application import get_app

    return get_app().output.get_size().columns


async def pick_session(sessions: Sequence[SessionInfo]) -> str | None:
    """Let the user choose a session, and return its id; None if they leave the list."""
    choices = [_describe_session(session) for session in sessions if not session.problem]
    return await Picker("Sessions:", choices).run()


def _describe_session(session: SessionInfo) -> Choice:
    changed = session.changed.astimezone()
    details = [f"{changed:%Y-%m-%d %H:%M}", count_noun(session.messages, "message")]
    if session.model:
        details.append(truncate_cells(clean_line(session.model), _MAX_MODEL_CELLS))
    title = clean_line(session.title) or session.id
    return Choice(session.id, title, " · ".join(details))
