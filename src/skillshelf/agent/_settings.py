"""What the person chose for the agent: flags over the environment over the user's file. The workspace has no say."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal, get_args
from urllib.parse import urlsplit

from skillshelf.agent._policy import MODES, Mode
from skillshelf.errors import SettingsError
from skillshelf.files import config_home
from skillshelf.text import closest_names
from skillshelf.tokens import DEFAULT_BUDGET

Tools = Literal["auto", "on", "off"]
_CHOICES: dict[str, tuple[str, ...]] = {"policy": MODES, "tools": get_args(Tools)}
_LEAST = {"budget": 1, "window": 0}
# A person writes ten lines. What is larger is something else.
_LARGEST = 256 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """What the person chose for the agent."""

    model: str = ""
    """`provider:model`, the name a server at `base_url` gives its model, or `local`; empty where none was chosen."""
    base_url: str = ""
    """Where an OpenAI-shaped server answers."""
    policy: Mode = "ask"
    tools: Tools = "auto"
    """`off`: the model gets no tools; the shelf finds the skill and puts it before the model."""
    budget: int = DEFAULT_BUDGET
    """Tokens that the listing takes at most."""
    window: int = 0
    """Tokens the model can hold; 0: known from the model, or a default."""
    weights: str = ""
    """A GGUF file for `local`, in place of the small model's own."""


NAMES = tuple(field.name for field in fields(Settings))


def load_settings(flags: Mapping[str, object]) -> Settings:
    """The settings in force. A flag that is None was not given; flags of other names are not looked at."""
    chosen = dict(_from_file())
    for name in NAMES:
        variable = f"SKILLSHELF_{name.upper()}"
        if text := os.environ.get(variable):
            chosen[name] = _checked(name, text, f"The environment variable {variable}")
        if (flag := flags.get(name)) is not None:
            chosen[name] = _checked(name, flag, f"The option --{name.replace('_', '-')}")
    return Settings(**chosen)  # type: ignore[arg-type]  # each was checked by name


def settings_file() -> str | None:
    """Where the user's file is, or would be; None where this user has no home."""
    home = config_home()
    return os.path.join(home, "config.toml") if home else None


def _from_file() -> dict[str, str | int]:
    path = settings_file()
    text = _read(path) if path else None
    if path is None or text is None:
        return {}
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, error) from error
    chosen = {}
    for key, value in table.items():
        where = f"{path}, line {_line(text, key)}: {key!r}"
        if key not in NAMES:
            raise SettingsError(f"{where} is no setting. {_nearest(key)}")
        chosen[key] = _checked(key, value, where, from_file=True)
    return chosen


def _read(path: str) -> str | None:
    """The text of the file; None where there is none."""
    try:
        # Without O_NONBLOCK a named pipe in its place would hold the program up for good.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = os.read(descriptor, _LARGEST + 1) if plain else b""
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
    if not plain:
        raise SettingsError(f"{path} is no plain file. The settings are read from a TOML file of that name.")
    if len(data) > _LARGEST:
        raise SettingsError(f"{path} is larger than {_LARGEST // 1024} KiB, which settings never are.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}, line {line}: not UTF-8 text. Save the file as UTF-8.") from error


def _not_toml(path: str, error: tomllib.TOMLDecodeError) -> SettingsError:
    what, at, where = str(error).partition(" (at ")
    place = f", {where.rstrip(')')}" if at else ""
    return SettingsError(f'{path}{place}: not TOML: {what}. A setting looks like this: model = "openai:gpt-6.1-sol"')


def _checked(name: str, value: object, where: str, *, from_file: bool = False) -> str | int:
    """The value as the setting takes it, or a SettingsError that says what is right."""
    if name in _LEAST:
        return _number(name, value, where)
    if not isinstance(value, str):
        raise SettingsError(f"{where} must be text, not {value!r:.80}.")
    text = value.strip()
    if name in _CHOICES and text not in _CHOICES[name]:
        raise SettingsError(f"{where} is {value!r:.80}; it must be one of {', '.join(_CHOICES[name])}.")
    if name == "base_url" and text:
        return _address(text, where)
    if name == "weights" and text:
        return _path(text, where, from_file)
    return text


def _number(name: str, value: object, where: str) -> int:
    least = _LEAST[name]
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if type(value) is not int or value < least:  # not isinstance: True is an int
        raise SettingsError(f"{where} is {value!r:.80}; it must be a whole number of tokens, {least} or more.")
    return value


def _address(text: str, where: str) -> str:
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or True)
    except ValueError:
        usable = None
    if not usable:  # not echoed: an address may hold a password
        raise SettingsError(f"{where} is no http(s) address. It looks like this: http://localhost:11434/v1")
    return text.rstrip("/")


def _path(text: str, where: str, from_file: bool) -> str:
    path = os.path.expanduser(text)
    if from_file and not os.path.isabs(path):
        # Else the folder the program happens to be started in would decide which weights run.
        raise SettingsError(f"{where} is {text!r:.200}; in the file it must begin with / or ~/.")
    return os.path.abspath(path)


def _line(text: str, key: str) -> int:
    """The line a top-level key is on: TOML's reader does not tell."""
    found = re.search(rf"^[ \t]*\[*[ \t]*[\"']?{re.escape(key)}\b", text, re.M)
    return text.count("\n", 0, found.start()) + 1 if found else 1


def _nearest(key: str) -> str:
    close = closest_names(key, NAMES, limit=1)
    return f"Did you mean {close[0]!r}?" if close else f"Settings: {', '.join(NAMES)}."
