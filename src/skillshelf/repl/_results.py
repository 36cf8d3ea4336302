"""The results of tool calls, folded to a line on the screen and shown in full on a screen of their own."""

from collections.abc import Sequence
from dataclasses import dataclass

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import TabsProcessor

from skillshelf.rendering import cut
from skillshelf.text import clean, clean_line

_ESCAPE_SECONDS = 0.1
_KEYS = "Ctrl+O earlier · → later · ↑↓ PgUp PgDn scroll · q closes"


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool call."""

    title: str
    text: str


class ResultViewer:
    """Shows results in full, the last one first."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = results
        self._index = len(results) - 1
        self._buffer = Buffer(read_only=True)
        self._app: Application[None] = Application(
            layout=self._make_layout(), key_bindings=self._make_bindings(), full_screen=True
        )
        self._app.ttimeoutlen = _ESCAPE_SECONDS
        self._app.timeoutlen = 0.0
        self._show(self._index)

    async def run(self) -> None:
        """Show them until the user closes the screen."""
        await self._app.run_async(handle_sigint=False)

    def _show(self, index: int) -> None:
        self._index = max(0, min(index, len(self._results) - 1))
        text = clean(self._results[self._index].text).rstrip("\n")
        self._buffer.set_document(Document(text, 0), bypass_readonly=True)

    def _make_layout(self) -> Layout:
        text = BufferControl(self._buffer, input_processors=[TabsProcessor(tabstop=4, char1=" ", char2=" ")])
        return Layout(
            HSplit(
                [
                    Window(FormattedTextControl(self._draw_heading), height=1),
                    Window(text, wrap_lines=True),
                    Window(FormattedTextControl(self._draw_keys), height=1, style="reverse"),
                ]
            )
        )

    def _draw_heading(self) -> StyleAndTextTuples:
        place = f"({self._index + 1} of {len(self._results)}) "
        columns = self._app.output.get_size().columns
        title = cut(clean_line(self._results[self._index].title), max(1, columns - len(place)))
        return [("", place), ("bold", title)]

    def _draw_keys(self) -> StyleAndTextTuples:
        return [("", cut(f" {_KEYS}", self._app.output.get_size().columns))]

    def _make_bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("c-o")
        @bindings.add("left")
        def show_earlier(event: KeyPressEvent) -> None:
            self._show(self._index - 1)

        @bindings.add("right")
        def show_later(event: KeyPressEvent) -> None:
            self._show(self._index + 1)

        @bindings.add("q")
        @bindings.add("enter")
        @bindings.add("escape")
        @bindings.add("c-c")
        @bindings.add("c-d")
        def close(event: KeyPressEvent) -> None:
            # Of two keys pressed at once, the first has closed it.
            if not event.app.is_done:
                event.app.exit()

        return bindings
