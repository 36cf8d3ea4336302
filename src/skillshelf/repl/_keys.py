"""The keys of the editor, and the user's own editor on Ctrl+G."""

import asyncio
import os
import shlex
import shutil
import tempfile
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyBindingsBase, KeyPressEvent
from prompt_toolkit.keys import Keys

from skillshelf.errors import SettingsError, SkillError
from skillshelf.repl._keyboard import Line
from skillshelf.text import clean, clean_line

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


_FALLBACKS = ("sensible-editor", "nano", "vi")


async def edit_line(footer: "Footer") -> None:
    """Open the text of the footer in the user's editor, and take it back as the editor saved it."""
    text = footer.pastes.unfold(footer.buffer.text)
    try:
        command = find_editor()
        async with footer.suspended():
            text = await asyncio.to_thread(edit_text, text, command)
    except SkillError as error:
        print(clean(str(error)))  # the footer shows it above itself
        return
    footer.buffer.document = Document(text)


def find_editor() -> list[str]:
    """Return the command of the user's editor: VISUAL, EDITOR, or a common one. Raises SettingsError."""
    for variable in ("VISUAL", "EDITOR"):
        value = os.environ.get(variable, "").strip()
        if not value:
            continue
        try:
            command = shlex.split(value)
        except ValueError:
            command = []
        if not command or shutil.which(command[0]) is None:
            raise SettingsError(f"{variable} is {clean_line(value)!r}, which is not a program here.")
        return command
    for name in _FALLBACKS:
        if shutil.which(name):
            return [name]
    raise SettingsError("There is no editor here. Name one in the environment variable EDITOR.")


def edit_text(text: str, command: list[str]) -> str:
    """Let the user edit a text with this command, on the terminal. Raises SkillError if that fails."""
    import subprocess

    with tempfile.TemporaryDirectory(prefix="skillshelf-") as folder:
        path = os.path.join(folder, "message.md")
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
        try:
            code = subprocess.call([*command, path])
        except OSError as error:
            raise SkillError(f"{command[0]} cannot be started: {error.strerror}. Your text is as it was.") from None
        if code:
            raise SkillError(f"{command[0]} ended with exit code {code}. Your text is as it was.")
        try:
            with open(path, encoding="utf-8") as file:
                return file.read().rstrip("\n")
        except (OSError, UnicodeDecodeError):
            raise SkillError(f"{command[0]} left no readable text. Your text is as it was.") from None
