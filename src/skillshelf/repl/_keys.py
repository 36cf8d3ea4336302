"""The keys of the chat that differ from those of prompt_toolkit."""

from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase, KeyPressEvent
from prompt_toolkit.keys import Keys

from skillshelf.repl._editor import edit_line
from skillshelf.repl._lines import Line

if TYPE_CHECKING:
    from skillshelf.repl._footer import Footer

LEAVE_HINT = "Press Ctrl+C again to leave"
LEAVE = "/exit"


def make_bindings() -> KeyBindings:
    """Return the keys that edit the text."""
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def break_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("tab")
    def complete_word(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is None or not state.completions:
            _complete_at_once(buffer)
        elif len(state.completions) == 1 and state.complete_index == 0:
            # The only suggestion is taken already; the next in the circle would be the text typed before it.
            buffer.complete_state = None
        else:
            buffer.complete_next()

    return bindings


def _complete_at_once(buffer: Buffer) -> None:
    """Complete the word before the next key is read.

    The menu fills in the background, and what is typed in the meantime would cancel it.
    """
    buffer.cancel_completion()
    document = buffer.document
    found = list(buffer.completer.get_completions(document, CompleteEvent(completion_requested=True)))
    if len(found) == 1:
        buffer.apply_completion(found[0])
        return
    buffer.insert_text(get_common_complete_suffix(document, found))
    buffer.start_completion()


def make_footer_bindings(footer: "Footer") -> KeyBindingsBase:
    """Return the keys of the editor and of the work in progress."""
    bindings = KeyBindings()
    is_editing = ~is_searching
    is_empty = Condition(lambda: not footer.buffer.text)
    has_queue = Condition(lambda: len(footer.queue) > 0)
    ends_in_paste = Condition(lambda: bool(footer.pastes.find_end(footer.buffer.document.text_before_cursor)))

    @bindings.add("enter", filter=is_editing)
    def send(event: KeyPressEvent) -> None:
        footer.send(footer.buffer.text)

    @bindings.add("escape", filter=is_editing)
    def close_menu_or_stop(event: KeyPressEvent) -> None:
        if footer.buffer.complete_state:
            footer.close_menu()
        elif can_stop():
            stop_work()

    @bindings.add("c-c", filter=is_editing)
    def stop_or_clear_or_leave(event: KeyPressEvent) -> None:
        if can_stop():
            stop_work()
        elif footer.buffer.text:
            footer.buffer.reset()
        elif footer.hint == LEAVE_HINT:
            footer.queue.close()
        else:
            footer.show_hint(LEAVE_HINT)

    def can_stop() -> bool:
        # Lines wait without work if they were sent before the agent was there.
        return footer.is_working or len(footer.queue) > 0

    def stop_work() -> None:
        footer.return_queued()
        footer.stop()

    @bindings.add("c-d", filter=is_editing & is_empty)
    def leave(event: KeyPressEvent) -> None:
        if can_stop():
            footer.queue.put(Line(LEAVE, LEAVE))  # the user sees it there, and can take it back
        else:
            footer.queue.close()

    @bindings.add("c-z", eager=True)  # also at a question, which takes every other key
    def suspend(event: KeyPressEvent) -> None:
        event.app.create_background_task(footer.suspend_process())

    @bindings.add("c-g", filter=is_editing)
    def open_editor(event: KeyPressEvent) -> None:
        event.app.create_background_task(edit_line(footer))

    @bindings.add("c-o", eager=True)
    def unfold(event: KeyPressEvent) -> None:
        footer.unfold()

    @bindings.add("s-tab", filter=is_editing & ~has_completions)
    def change_policy(event: KeyPressEvent) -> None:
        footer.change_policy()

    @bindings.add("up", filter=is_editing & is_empty & has_queue)
    def take_back(event: KeyPressEvent) -> None:
        footer.buffer.document = Document(footer.queue.take_back_last())

    @bindings.add(Keys.BracketedPaste)
    def paste(event: KeyPressEvent) -> None:
        text = event.data.replace("\r\n", "\n").replace("\r", "\n")
        event.current_buffer.insert_text(footer.pastes.fold(text))

    @bindings.add("backspace", filter=is_editing & ends_in_paste)
    def remove_paste(event: KeyPressEvent) -> None:
        words = footer.pastes.find_end(footer.buffer.document.text_before_cursor)
        footer.buffer.delete_before_cursor(len(words))

    return bindings
