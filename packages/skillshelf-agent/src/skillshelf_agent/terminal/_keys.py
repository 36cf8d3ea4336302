"""The keys that edit the text, and the user's own editor."""

import os
import shlex
import shutil
import tempfile

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completion, get_common_complete_suffix
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from skillshelf.errors import SettingsError, SkillError
from skillshelf.text import clean_line

# Shift+Enter, Alt+Enter and both, from terminals that report them: in the forms of CSI u and of modifyOtherKeys.
# prompt_toolkit takes Shift+Enter for Enter.
for _modifiers in (2, 3, 4):
    for _sequence in (f"\x1b[13;{_modifiers}u", f"\x1b[27;{_modifiers};13~"):
        ANSI_SEQUENCES[_sequence] = (Keys.Escape, Keys.Enter)

_FALLBACKS = ("sensible-editor", "nano", "vi")


def make_bindings() -> KeyBindings:
    """Return the keys that edit the text."""
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    @bindings.add("c-j")
    def break_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("tab")
    def complete_word(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is None or not state.completions:
            _complete_at_once(buffer)
            return
        marked = state.current_completion
        if marked and marked.text.startswith("/"):
            take_completion(buffer, marked)
        elif len(state.completions) == 1:
            take_completion(buffer, state.completions[0])
        else:
            buffer.complete_next()

    return bindings


def take_completion(buffer: Buffer, completion: Completion) -> None:
    """Insert a suggestion and close the menu. The name of a command and of a file gets a space, to go on after it."""
    buffer.apply_completion(completion)
    is_name = completion.text.startswith(("/", "@")) and not completion.text.endswith("/")
    if is_name and not buffer.document.current_char.isspace():
        buffer.insert_text(" ")


def _complete_at_once(buffer: Buffer) -> None:
    """Complete the word before the next key is read.

    The menu fills in the background, and what is typed in the meantime would cancel it.
    """
    buffer.cancel_completion()
    document = buffer.document
    found = list(buffer.completer.get_completions(document, CompleteEvent(completion_requested=True)))
    if len(found) == 1:
        take_completion(buffer, found[0])
        return
    buffer.insert_text(get_common_complete_suffix(document, found))
    buffer.start_completion()


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
