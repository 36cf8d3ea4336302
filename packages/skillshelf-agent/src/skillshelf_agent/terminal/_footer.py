"""The bottom of the screen: what is being worked on, queued lines, the editor or a question, and the status line.

One prompt_toolkit application runs for the whole chat, so the user can type at any time. Whatever is printed meanwhile
appears above it.
"""

import asyncio
import io
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, redirect_stderr, redirect_stdout, suppress
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, DynamicCompleter
from prompt_toolkit.data_structures import Point
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, is_done, is_searching
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText, StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Container,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    VerticalAlign,
    VSplit,
    Window,
    to_container,
)
from prompt_toolkit.layout.processors import TabsProcessor
from prompt_toolkit.layout.screen import Screen
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import CPR_Support, Renderer
from prompt_toolkit.styles import BaseStyle, Style
from prompt_toolkit.widgets import SearchToolbar

from skillshelf.errors import SkillError
from skillshelf.settings import Settings
from skillshelf.text import clean, clean_line
from skillshelf.text.rendering import truncate_cells
from skillshelf_agent.terminal._alerts import Alerts
from skillshelf_agent.terminal._clipboard import read_image
from skillshelf_agent.terminal._keyboard import Keyboard, Line, LineQueue, Pastes
from skillshelf_agent.terminal._keys import edit_text, find_editor, make_bindings, take_completion

if TYPE_CHECKING:
    from skillshelf_agent.terminal._prompt import SlashCompleter

DrawLive = Callable[[int, int], str]
"""Draws the work in progress in so many columns and rows. The text holds the escapes of its colours."""
FormatStatus = Callable[[int], str]
"""Returns the status line for so many columns."""
ListTodos = Callable[[], Sequence[str]]
"""Returns the lines of the todo list. The first is what is being done."""

NOTHING_FOLDED = "There is no result and no reasoning yet"

_LEAVE_HINT = "Press Ctrl+C again to leave"
_REWIND_HINT = "Press Esc again to rewind"
_LEAVE = "/exit"
_STEERING_HINT = "Enter: next step · Tab: after the turn"

_PROMPT = "› "
_STARTING = " starting…"
_FRAMES_PER_SECOND = 30
_MAX_QUEUED_ROWS = 4
_MAX_MENU_ROWS = 8
_MIN_LIVE_ROWS = 3
_HINT_SECONDS = 2.0
# A terminal sends the bytes of one key together; a lone Escape is a key of its own after this time.
_ESCAPE_SECONDS = 0.1
# Between these, terminals that know them draw nothing, so that a frame appears as a whole.
_BEGIN_UPDATE = "\x1b[?2026h"
_END_UPDATE = "\x1b[?2026l"
# The terminal's own colours, without backgrounds: they are readable on dark and on light ones.
_STYLE = Style.from_dict(
    {
        "queued": "dim",
        "question": "bold",
        "hint": "dim",
        "status": "dim",
        "completion-menu": "fg:default bg:default",
        "completion-menu.completion": "fg:ansicyan bg:default",
        "completion-menu.completion.current": "fg:ansicyan bg:default bold reverse",
        "completion-menu.meta.completion": "fg:default bg:default dim",
        "completion-menu.meta.completion.current": "fg:ansicyan bg:default nodim reverse",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "fg:default bg:default dim reverse",
    }
)


class Footer:
    """The editor with everything around it. Its lines are taken with `next_line`.

    It can be used before the agent is there: what the user sends then waits in the queue. `connect` brings the rest.
    """

    def __init__(self, keyboard: Keyboard, history: History, settings: Settings) -> None:
        self.is_working = False
        """True while a line is being answered."""
        self.keyboard = keyboard
        self.queue = LineQueue()
        self.pastes = Pastes()
        self.stop: Callable[[], None] = lambda: None
        self.unfold: Callable[[], None] = lambda: self.show_hint(NOTHING_FOLDED)
        self.change_policy: Callable[[], None] = lambda: None
        self.rewind: Callable[[], None] = lambda: None
        self._workspace = os.getcwd()
        self._offered = ""
        self._taken = ""
        self._can_steer: Callable[[str], bool] = lambda text: False
        self._completer: SlashCompleter | None = None
        self._draw_live: DrawLive = lambda columns, rows: ""
        self._format_status: FormatStatus = lambda columns: truncate_cells(_STARTING, columns)
        self._list_todos: ListTodos = lambda: ()
        self._hint = ""
        self._first_frame = asyncio.Event()
        self._output = PrintedOutput(self.redraw)
        self._restore_tty: Callable[[], None] = lambda: None
        self._is_own_stop = False

        self.buffer = Buffer(
            completer=DynamicCompleter(lambda: self._completer),
            complete_while_typing=True,
            history=history,
            multiline=True,
            tempfile_suffix=".md",
        )
        self._app: Application[None] = Application(
            layout=self._make_layout(),
            key_bindings=merge_key_bindings([make_bindings(), self._make_bindings(), keyboard.make_bindings()]),
            style=_STYLE,
            erase_when_done=True,
            min_redraw_interval=1 / _FRAMES_PER_SECOND,
        )
        self.alerts = Alerts(self._app.output, settings)
        self._app.ttimeoutlen = _ESCAPE_SECONDS
        self._app.timeoutlen = 0.0  # the keys of one sequence arrive together: Escape and then `t` are two keys
        renderer = self._app.renderer
        self._renderer = FooterRenderer(renderer.style, renderer.output, self._app.layout)
        self._app.renderer = self._renderer
        self._app.before_render += self._begin_frame
        self._app.after_render += self._end_frame
        keyboard.screen = self

    # -- for the chat -------------------------------------------------------------------------------------------------

    def connect(
        self,
        completer: "SlashCompleter",
        *,
        draw_live: DrawLive,
        format_status: FormatStatus,
        list_todos: ListTodos,
        stop: Callable[[], None],
        unfold: Callable[[], None],
        change_policy: Callable[[], None],
        rewind: Callable[[], None],
        can_steer: Callable[[str], bool],
        workspace: str,
    ) -> None:
        """Connect the agent.

        `stop` ends the work in progress, `unfold` shows results and reasoning in full, `change_policy` goes on to the
        next policy, and `rewind` offers the earlier messages. `can_steer` returns True if a line can go to the model
        now, during a turn.
        """
        self.stop = stop
        self.unfold = unfold
        self.change_policy = change_policy
        self.rewind = rewind
        self._can_steer = can_steer
        self._workspace = workspace
        self._completer = completer
        self._draw_live = draw_live
        self._format_status = format_status
        self._list_todos = list_todos
        if self.buffer.text:  # the menu was asked for when there was none
            self.buffer.start_completion()
        self.redraw()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Show the footer, then run the block. `queue` is closed if the terminal is."""
        self.buffer.text = self.keyboard.take_typeahead()
        self.buffer.cursor_position = len(self.buffer.text)
        task = asyncio.create_task(self._app.run_async(handle_sigint=False, set_exception_handler=False))
        task.add_done_callback(self._end)
        with self._output.capture():
            try:
                await self._first_frame.wait()
                self._restore_tty = self.keyboard.tty.make_restorer()
                yield
            finally:
                if self._app.is_running and not self._app.is_done:
                    self._app.exit()
                elif not task.done():
                    task.cancel()  # it has not begun
                with suppress(EOFError, asyncio.CancelledError):
                    await task
                self._output.flush_rest()

    async def next_line(self) -> str | None:
        """Return the next line that the user sends, and leave it on the screen. Return None at the end of the input."""
        line = await self.queue.take()
        if line is None:
            return None
        self.is_working = True
        self._taken = line.shown
        self.echo(line)
        return line.text

    def echo(self, line: Line) -> None:
        """Leave a line on the screen as the user sent it."""
        shown = clean(line.shown).replace("\n", "\n  ")
        self._output.write(f"\x1b[1m{_PROMPT}\x1b[0m{shown}\n")

    def redraw(self) -> None:
        self._app.invalidate()

    def is_user_typing(self) -> bool:
        """Take up the keys that were pressed so far. Return True if there is a message in the making."""
        if self._renderer.is_suspended:
            return True
        if self._app.is_running and not self._app.is_done:
            keys = [*self._app.input.read_keys(), *self._app.input.flush_keys()]
            self._app.key_processor.feed_multiple(keys)
            self._app.key_processor.process_keys()
        return bool(self.buffer.text)

    def print_question(self, question: str) -> None:
        """Leave a question on the screen that has been answered, as it was drawn."""
        self._output.write(f"{self._break_question(question)}\n")

    @asynccontextmanager
    async def suspended(self) -> AsyncIterator[None]:
        """Give the terminal to another program or application while the block runs.

        Output is held back meanwhile, and keys do not reach the editor.
        """
        async with in_terminal():
            self._write_waiting_output()
            self._renderer.is_suspended = True
            try:
                yield
            finally:
                self._renderer.is_suspended = False

    def offer(self, text: str) -> None:
        """Put a text into the editor, unless the user is typing another one, and open the menu behind it."""
        if not self.buffer.text:
            self.buffer.insert_text(text)

    def offer_menu(self, command: str) -> None:
        """Offer what can follow a command. Escape closes the menu without a trace."""
        self._offered = command
        self.offer(command)

    def give_back(self) -> None:
        """Put the line that was taken last back into the editor: nobody could do anything with it."""
        self.offer(self._taken)

    def stop_work(self) -> None:
        """Stop the work in progress, and give the lines that wait back to the user."""
        self.return_queued()
        self.stop()

    def return_queued(self) -> None:
        """Put the queued lines back into the editor, before the text in it."""
        lines = self.queue.take_back_all()
        if lines:
            text = "\n".join([*lines, self.buffer.text]).rstrip("\n")
            self.buffer.document = Document(text)

    def show_hint(self, hint: str) -> None:
        """Show a hint in place of the status line for a moment."""
        self._hint = hint
        self.redraw()

        def remove() -> None:
            if self._hint == hint:
                self._hint = ""
                self.redraw()

        asyncio.get_running_loop().call_later(_HINT_SECONDS, remove)

    @property
    def is_suspended(self) -> bool:
        """True while another program has the terminal."""
        return self._renderer.is_suspended

    def take_terminal_back(self) -> None:
        """Set the terminal up again after the process was stopped and another one had it."""
        if self._is_own_stop:
            self._is_own_stop = False  # `suspended` does it
        elif self._app.is_running:
            self._restore_tty()
            if not self._renderer.is_suspended:
                if self.keyboard.tty.has_job_control():
                    self._renderer.begin_anew()
                else:
                    self._renderer.erase()
                self.redraw()

    # -- drawing ------------------------------------------------------------------------------------------------------

    def _make_layout(self) -> Layout:
        is_asking = Condition(lambda: self.keyboard.question is not None)
        is_answering = Condition(lambda: self.keyboard.question is not None and self.keyboard.question.is_open)
        is_live = Condition(lambda: self.is_working) & ~is_asking
        has_queue = Condition(lambda: len(self.queue) > 0)
        has_todos = Condition(lambda: len(self._list_todos()) > 0)

        search = SearchToolbar()
        editor = Window(
            BufferControl(
                self.buffer,
                input_processors=[TabsProcessor(tabstop=4, char1=" ", char2=" ")],
                search_buffer_control=search.control,
                preview_search=True,
            ),
            height=lambda: Dimension(min=1, max=self._max_editor_rows()),
            get_line_prefix=_prefix_line,
            wrap_lines=True,
            dont_extend_height=True,
        )
        menu = VSplit(
            [CompletionsMenu(max_height=_MAX_MENU_ROWS, scroll_offset=1), Window()],
            height=lambda: Dimension.exact(self._count_menu_rows()),
        )
        rows: list[Container] = [
            ConditionalContainer(_make_text_window(self._draw_work), is_live),
            ConditionalContainer(_make_text_window(self._draw_todos), has_todos & ~is_asking),
            ConditionalContainer(_make_text_window(self._draw_queue), has_queue),
            ConditionalContainer(_make_text_window(self._draw_question), is_asking),
            ConditionalContainer(editor, ~is_answering),
            to_container(search),
            ConditionalContainer(menu, has_completions & ~is_answering & ~is_done),
            Window(FormattedTextControl(self._draw_status), height=1, style="class:status"),
        ]
        return Layout(HSplit(rows, align=VerticalAlign.TOP), focused_element=editor)

    def _draw_work(self) -> AnyFormattedText:
        size = self._app.output.get_size()
        editor_rows = min(self._max_editor_rows(), self.buffer.document.line_count)
        others = (
            editor_rows + len(self._list_todos()) + min(_MAX_QUEUED_ROWS, len(self.queue)) + self._count_menu_rows() + 1
        )
        live = self._draw_live(size.columns, max(_MIN_LIVE_ROWS, size.rows - others - 1))
        return ANSI(live)

    def _draw_todos(self) -> AnyFormattedText:
        columns = self._app.output.get_size().columns
        first, *others = (f"  {truncate_cells(clean_line(line), columns - 2)}" for line in self._list_todos())
        return [("", first), ("class:hint", "".join(f"\n{line}" for line in others))]

    def _draw_queue(self) -> AnyFormattedText:
        columns = self._app.output.get_size().columns
        shown = [f"  {'steering' if line.steers else 'queued'}: {clean_line(line.shown)}" for line in self.queue]
        hidden = len(shown) - (_MAX_QUEUED_ROWS - 1)
        if len(shown) > _MAX_QUEUED_ROWS:
            shown = [f"  … {hidden} more queued", *shown[hidden:]]
        return [("class:queued", "\n".join(truncate_cells(line, columns) for line in shown))]

    def _draw_question(self) -> AnyFormattedText:
        question = self.keyboard.question
        if question is None:
            return ""
        text: StyleAndTextTuples = [("class:question", self._break_question(question.text))]
        if not question.is_open:
            reason = "; you are still typing a message" if self.buffer.text else ""
            text.append(("class:hint", f"\n{self._break_question(f'Tab answers the question{reason}.')}"))
        return text

    def _break_question(self, question: str) -> str:
        """Break text between words: `[n]o` broken in the middle could not be read."""
        columns = max(20, self._app.output.get_size().columns - 1)
        return "\n".join(wrap(question, columns))

    def _draw_status(self) -> AnyFormattedText:
        columns = self._app.output.get_size().columns
        hint = self._hint
        if not hint and self.keyboard.question is None and self._can_steer(self.buffer.text):
            hint = _STEERING_HINT
        return truncate_cells(f" {hint}", columns) if hint else self._format_status(columns)

    def _max_editor_rows(self) -> int:
        return max(3, self._app.output.get_size().rows // 3)

    def _count_menu_rows(self) -> int:
        state = self.buffer.complete_state
        return min(_MAX_MENU_ROWS, len(state.completions)) if state else 0

    def _mark_first(self) -> None:
        """Mark the first entry of the menu if the user has begun to type it: Enter takes it."""
        state = self.buffer.complete_state
        if state is None or not state.completions or state.complete_index is not None:
            return
        if self._completer and self._completer.marks_first(state.original_document.text, state.completions[0].text):
            state.complete_index = 0

    def _begin_frame(self, _: Any) -> None:
        self._mark_first()
        self._app.output.write_raw(_BEGIN_UPDATE)
        if self._output.has_lines:
            self._renderer.erase()
            self._write_waiting_output()

    def _end_frame(self, _: Any) -> None:
        self._app.output.write_raw(_END_UPDATE)
        self._app.output.flush()
        self._first_frame.set()

    def _write_waiting_output(self) -> None:
        self._app.output.write_raw(self._output.take_lines())
        self._app.output.flush()

    # -- keys ---------------------------------------------------------------------------------------------------------

    def _make_bindings(self) -> KeyBindingsBase:
        """Return the keys of the editor and of the work in progress."""
        bindings = KeyBindings()
        is_editing = ~is_searching
        is_empty = Condition(lambda: not self.buffer.text)
        is_last_marked = Condition(self._is_last_marked)
        has_queue = Condition(lambda: len(self.queue) > 0)
        can_queue = Condition(self._can_queue)
        ends_in_backslash = Condition(lambda: self.buffer.document.text_before_cursor.endswith("\\"))
        ends_in_paste = Condition(lambda: bool(self.pastes.find_end(self.buffer.document.text_before_cursor)))

        @bindings.add("enter", filter=is_editing)
        def take_or_send(event: KeyPressEvent) -> None:
            if not self._take_marked():
                self._send(self.buffer.text)

        @bindings.add("enter", filter=is_editing & ends_in_backslash)
        def break_line(event: KeyPressEvent) -> None:
            self.buffer.delete_before_cursor()
            self.buffer.insert_text("\n")

        @bindings.add("tab", filter=is_editing & can_queue)
        def queue(event: KeyPressEvent) -> None:
            self._send(self.buffer.text, at_end=True)

        @bindings.add("escape", filter=is_editing)
        def close_menu_or_stop_or_rewind(event: KeyPressEvent) -> None:
            if self.buffer.complete_state:
                self.buffer.cancel_completion()
                if self.buffer.text == self._offered:
                    self.buffer.reset()
            elif can_stop():
                self.stop_work()
            elif self._hint == _REWIND_HINT:
                self._hint = ""
                self.rewind()
            elif not self.buffer.text:
                self.show_hint(_REWIND_HINT)

        @bindings.add("c-c", filter=is_editing)
        def stop_or_clear_or_leave(event: KeyPressEvent) -> None:
            if can_stop():
                self.stop_work()
            elif self.buffer.text:
                self.buffer.reset()
            elif self._hint == _LEAVE_HINT:
                self.queue.close()
            else:
                self.show_hint(_LEAVE_HINT)

        def can_stop() -> bool:
            # Lines wait without work if they were sent before the agent was there.
            return self.is_working or len(self.queue) > 0

        @bindings.add("c-d", filter=is_editing & is_empty)
        def leave(event: KeyPressEvent) -> None:
            if can_stop():
                self.queue.put(Line(_LEAVE, _LEAVE))  # the user sees it there, and can take it back
            else:
                self.queue.close()

        @bindings.add("c-z", eager=True)  # also at a question, which takes every other key
        def suspend(event: KeyPressEvent) -> None:
            event.app.create_background_task(self._suspend_process())

        @bindings.add("c-g", filter=is_editing)
        def open_editor(event: KeyPressEvent) -> None:
            event.app.create_background_task(self._edit())

        @bindings.add("c-o", eager=True)
        def unfold(event: KeyPressEvent) -> None:
            self.unfold()

        @bindings.add("s-tab", filter=is_editing & ~has_completions)
        def change_policy(event: KeyPressEvent) -> None:
            self.change_policy()

        @bindings.add("down", filter=is_editing & is_last_marked)
        def choose_first(event: KeyPressEvent) -> None:
            """Wrap around to the first entry, even if it is the only one; Escape goes back to the typed text."""
            self.buffer.go_to_completion(0)

        @bindings.add("up", filter=is_editing & is_empty & has_queue)
        def take_back(event: KeyPressEvent) -> None:
            self.buffer.document = Document(self.queue.take_back_last())

        @bindings.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            text = event.data.replace("\r\n", "\n").replace("\r", "\n")
            event.current_buffer.insert_text(self.pastes.fold(text))

        @bindings.add("c-v", filter=is_editing)
        def paste_image(event: KeyPressEvent) -> None:
            event.app.create_background_task(self._paste_image())

        @bindings.add("backspace", filter=is_editing & ends_in_paste)
        def remove_paste(event: KeyPressEvent) -> None:
            words = self.pastes.find_end(self.buffer.document.text_before_cursor)
            self.buffer.delete_before_cursor(len(words))

        return bindings

    def _take_marked(self) -> bool:
        """Insert the marked entry of the menu. Return True if the user goes on typing after it."""
        state = self.buffer.complete_state
        completion = state.current_completion if state else None
        if completion is None:
            return False
        is_name = completion.text.startswith("/")
        needs_arguments = bool(self._completer and self._completer.needs_arguments(completion.text))
        is_whole = not completion.text.startswith("@") and not (is_name and needs_arguments)
        take_completion(self.buffer, completion)
        return not is_whole

    def _is_last_marked(self) -> bool:
        state = self.buffer.complete_state
        return state is not None and state.complete_index == len(state.completions) - 1

    def _can_queue(self) -> bool:
        """Return True if Tab queues a message for the end of the turn: there is nothing that it could complete."""
        if self.keyboard.question or self._completer is None or not self._can_steer(self.buffer.text):
            return False
        return not any(self._completer.get_completions(self.buffer.document, CompleteEvent()))

    def _send(self, shown: str, *, at_end: bool = False) -> None:
        """Queue the text of the editor, and clear it. During a turn, a message waits for the end only if asked to."""
        text = self.pastes.unfold(shown)
        if text.strip():
            self.buffer.history.append_string(text)
            self.queue.put(Line(text, shown, steers=not at_end and self._can_steer(text)))
        self.buffer.reset()

    async def _suspend_process(self) -> None:
        """Stop the process and all others of its job, as Ctrl+Z does in other programs."""
        async with self.suspended():
            self._is_own_stop = True
            os.kill(0, signal.SIGTSTP)

    async def _paste_image(self) -> None:
        try:
            image = await asyncio.to_thread(read_image, self._workspace)
        except SkillError as error:
            print(self._break_question(str(error)))  # the footer shows it above itself
        else:
            self.buffer.insert_text(self.pastes.fold_image(image))

    async def _edit(self) -> None:
        """Open the text in the user's editor, and take it back as the editor saved it."""
        text = self.pastes.unfold(self.buffer.text)
        try:
            command = find_editor()
            async with self.suspended():
                text = await asyncio.to_thread(edit_text, text, command)
        except SkillError as error:
            print(clean(str(error)))  # the footer shows it above itself
            return
        self.buffer.document = Document(text)

    def _end(self, _: asyncio.Task[None]) -> None:
        """Unblock everything that waits for keys: there are no more."""
        self.keyboard.close()
        self.queue.close()
        self._first_frame.set()


def _prefix_line(line: int, wrapped: int) -> AnyFormattedText:
    if line == 0 and wrapped == 0:
        return [("bold", _PROMPT)]
    return " " * len(_PROMPT)


def _make_text_window(draw: Callable[[], AnyFormattedText]) -> Window:
    return Window(FormattedTextControl(draw), dont_extend_height=True)


class FooterRenderer(Renderer):
    """Draws the footer, and finds all of it again to erase it.

    When a window gets narrower, most terminals break the lines on the screen anew, so that the footer takes more rows
    than it was drawn on. A renderer that does not know this leaves the first ones behind as a copy.
    """

    def __init__(self, style: BaseStyle, output: Output, layout: Layout) -> None:
        super().__init__(style, output)
        # The footer needs no more room than its lines, and the answer to such a query could be taken for keys.
        self.cpr_support = CPR_Support.NOT_SUPPORTED
        self.is_suspended = False
        """True while another program has the terminal: what is on the screen is not ours to erase."""
        self._layout = layout
        self._breaks_lines = breaks_lines_anew(os.environ)
        self._breaks_blanks = "TMUX" in os.environ
        """True if cells that were drawn on break with their line, even if they are blank again."""
        self._drawn_columns = 0
        self._widths: dict[int, int] = {}
        """The cells of each row that break with it."""

    def render(self, app: Application[Any], layout: Layout, is_done: bool = False) -> None:
        columns = self.output.get_size().columns
        if columns != self._drawn_columns:
            self.erase(leave_alternate_screen=False)
        super().render(app, layout, is_done)
        self._drawn_columns = columns
        drawn = self.last_rendered_screen
        if drawn is not None and self._breaks_lines:
            for row in range(drawn.height):
                before = self._widths.get(row, 0) if self._breaks_blanks else 0
                self._widths[row] = max(before, _find_width(drawn, row))

    def erase(self, leave_alternate_screen: bool = True) -> None:
        if self.is_suspended:
            return
        screen = self.last_rendered_screen
        if screen is None:
            super().erase(leave_alternate_screen)
            return

        cursor = screen.get_cursor_position(self._layout.current_window)
        self.output.cursor_backward(cursor.x)
        self.output.cursor_up(cursor.y + self._count_added_rows(cursor))
        # The first row by itself: tmux keeps a copy of a screen that is cleared from its first cell on.
        self.output.erase_end_of_line()
        self.output.cursor_down(1)
        self.output.erase_down()
        self.output.cursor_up(1)
        self.output.reset_attributes()
        self.output.enable_autowrap()
        self.output.flush()
        self.reset(leave_alternate_screen=leave_alternate_screen)

    def reset(self, _scroll: bool = False, leave_alternate_screen: bool = True) -> None:
        super().reset(_scroll, leave_alternate_screen)
        self._widths = {}  # the rows are drawn on blank ones

    def begin_anew(self) -> None:
        """Draw the next frame from the cursor's line on, because another program has moved the cursor."""
        self.output.write_raw("\r")
        self.output.erase_down()
        self.output.reset_attributes()
        self.reset()

    def _count_added_rows(self, cursor: Point) -> int:
        """Return how many rows more than when they were drawn the lines above the cursor take now."""
        columns = self.output.get_size().columns
        if columns >= self._drawn_columns or not self._breaks_lines:
            return 0
        widths = [self._widths.get(row, 0) for row in range(cursor.y)]
        return sum((width - 1) // columns for width in widths if width) + cursor.x // columns


def breaks_lines_anew(environment: Mapping[str, str]) -> bool:
    """Return True if the terminal breaks lines on the screen anew when it gets narrower, as nearly all of them do."""
    if "TMUX" in environment:
        return True  # it draws the screen itself, whatever it runs in
    cuts_lines = "STY" in environment or "XTERM_VERSION" in environment
    return not cuts_lines and not environment.get("TERM", "").startswith(("rxvt", "st-", "linux"))


def _find_width(screen: Screen, row: int) -> int:
    """Return the number of cells from the left to the last one that is not blank."""
    cells = screen.data_buffer[row]
    return max((column + cell.width for column, cell in cells.items() if cell.char.strip()), default=0)


class PrintedOutput(io.TextIOBase):
    """Text printed while the footer is on the screen. The footer draws it above itself."""

    def __init__(self, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._pieces: list[str] = []
        self._lock = threading.Lock()  # libraries may log from a thread
        self._stdout = sys.stdout

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Take over what is printed by Python code while the block runs."""
        self._stdout = sys.stdout
        with redirect_stdout(self), redirect_stderr(self):
            yield

    def write(self, text: str) -> int:
        with self._lock:
            self._pieces.append(text)
        self._announce()
        return len(text)

    @property
    def has_lines(self) -> bool:
        return any("\n" in piece for piece in self._pieces)

    def take_lines(self) -> str:
        """Return the whole lines that were written; the rest of a line waits for its end."""
        with self._lock:
            text = "".join(self._pieces)
            lines, newline, rest = text.rpartition("\n")
            self._pieces = [rest] if rest else []
        return lines + newline

    def flush_rest(self) -> None:
        """Write what is left: the footer is gone."""
        rest = "".join(self._pieces)
        self._pieces = []
        with suppress(OSError, ValueError):  # the terminal was closed
            self._stdout.write(rest)
            self._stdout.flush()

    def isatty(self) -> bool:
        return self._stdout.isatty()

    def fileno(self) -> int:
        return self._stdout.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stdout.encoding
