"""Ctrl+G: the line being typed, in the user's own editor."""

import asyncio
import os
import shlex
import shutil
import tempfile
from typing import TYPE_CHECKING

from prompt_toolkit.document import Document

from skillshelf.errors import SettingsError, SkillError
from skillshelf.text import clean, clean_line

if TYPE_CHECKING:
    from skillshelf.repl._footer import Footer

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
