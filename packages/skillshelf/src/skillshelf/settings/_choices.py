"""The user's choices about single skills: shown in full, by name, hidden from the model, or off.

They are in a file of the user's own, `skills.toml` beside the settings, which `skillshelf set` writes and which may be
edited by hand. A workspace has no say.
"""

import os
import re
from collections.abc import Mapping
from typing import NamedTuple, get_args

from skillshelf.errors import SettingsError
from skillshelf.files import LockTimeout, config_home, hold_lock, make_private_folders
from skillshelf.settings._settings import find_line, read_toml
from skillshelf.skills import Choice

CHOICES: tuple[Choice, ...] = get_args(Choice)

_EXAMPLE = 'A choice looks like this: pdf-forms = "full"'
_HEADER = "# What you chose for single skills: full, name, manual or off. `skillshelf set NAME auto` removes a line.\n"
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# A process that dies releases the lock, and one that lives needs it for a moment.
_LOCK_SECONDS = 20.0


def describe_choice(choice: Choice) -> str:
    """Return what the user's choice for a skill does."""
    if choice == "full":
        return "its instructions are in the listing, before those of other skills"
    if choice == "name":
        return "the listing shows its name only"
    if choice == "manual":
        return "the model doesn't see it, only you can invoke it"
    return "it isn't on the shelf"


def choices_file() -> str | None:
    """Return the path of the user's file, whether or not it exists, or None if this user has no home."""
    home = config_home()
    if home is None:
        return None
    return os.path.join(home, "skills.toml")


def load_choices() -> dict[str, Choice]:
    """Return the user's choices by name or `name@source`. Raises SettingsError, with the line, for a wrong file."""
    path = choices_file()
    if path is None:
        return {}
    return _read(path).choices


def save_choice(name: str, choice: Choice | None) -> dict[str, Choice]:
    """Store a choice, or remove it if it is None, and return all choices. The rest of the file stays as it is.

    Raises SettingsError if the file cannot be read or written.
    """
    path = choices_file()
    if path is None:
        raise SettingsError("There is no folder to keep choices in: this user has no home. Set XDG_CONFIG_HOME.")

    from skillshelf.files import replace_file

    try:
        make_private_folders(os.path.dirname(path))
        with hold_lock(f"{path}.lock", timeout=_LOCK_SECONDS):
            stored = _read(path)
            choices = {key: value for key, value in stored.choices.items() if key != name}
            if choice is not None:
                choices[name] = choice
            if choices != stored.choices:
                text = _edit(stored.text, name, choice, choices)
                # The file may be a link into a folder of dotfiles, which stays one.
                replace_file(os.path.realpath(path), text.encode(), durable=True)
    except LockTimeout:
        raise SettingsError(f"Another process is writing {path}. Try again.") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}.") from error
    return choices


class _Stored(NamedTuple):
    """The file as it is: its text, and the choices in it."""

    text: str
    choices: dict[str, Choice]


def _read(path: str) -> _Stored:
    file = read_toml(path, _EXAMPLE)
    if file is None:
        return _Stored("", {})

    choices: dict[str, Choice] = {}
    for key, value in file.table.items():
        if value not in CHOICES:
            raise SettingsError(
                f"{path}, line {find_line(file.text, key)}: {key!r:.80} is {value!r:.80}; "
                f"it must be one of {', '.join(CHOICES)}. {_EXAMPLE}"
            )
        choices[key] = value
    return _Stored(file.text, choices)


def _edit(text: str, name: str, choice: Choice | None, choices: Mapping[str, Choice]) -> str:
    """Return the text with one choice changed. Comments and the order of the lines stay."""
    lines = [line for line in text.splitlines(keepends=True) if _key_of(line) != name]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if choice is not None:
        lines.append(_write_line(name, choice))
    edited = "".join(lines) if text else _HEADER + "".join(lines)

    import tomllib

    try:
        if tomllib.loads(edited) == choices:
            return edited
    except tomllib.TOMLDecodeError:
        pass
    # A choice is spread over several lines. Its meaning counts more than its layout.
    return _HEADER + "".join(_write_line(key, value) for key, value in choices.items())


def _key_of(line: str) -> str | None:
    """Return the key if the line holds one choice and nothing else."""
    import tomllib

    try:
        table = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    return next(iter(table), None)


def _write_line(name: str, choice: Choice) -> str:
    import json

    key = name
    if not _BARE_KEY.fullmatch(name):
        # TOML's quoted strings are JSON's, but for a character that JSON does not escape.
        key = json.dumps(name, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f'{key} = "{choice}"\n'
