"""The user's settings: options over the environment over the user's file. The workspace has no say."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, get_args

from skillshelf.errors import SettingsError
from skillshelf.files import config_home
from skillshelf.skills import ListingForm
from skillshelf.text import closest_names
from skillshelf.text.tokens import DEFAULT_BUDGET

Mode = Literal["ask", "read-only", "auto-edit", "yolo"]
"""What the agent may do without asking."""
MODES: tuple[Mode, ...] = get_args(Mode)

_ALLOWED: dict[str, tuple[str, ...]] = {
    "policy": MODES,
    "disclosure": get_args(ListingForm),
}
_RETIRED = ("tools", "weights")
"""Settings of earlier versions. A file that has them is still read."""
_SWITCHES = {"true": True, "false": False}
Value = str | int | bool | tuple[str, ...]
_MINIMUM = {"budget": 1, "window": 0}
_MAX_FILE = 256 * 1024
"""A user writes ten lines. A larger file is something else."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings."""

    model: str = ""
    """`provider:model`, or a server's own name for its model if there is a `base_url`. Empty: not chosen."""
    base_url: str = ""
    """The address of an OpenAI-compatible server."""
    policy: Mode = "ask"
    budget: int = DEFAULT_BUDGET
    """The most tokens that the listing may take."""
    window: int = 0
    """The tokens that the model can hold. 0: the model's own number, or a default."""
    disclosure: ListingForm = "auto"
    packages: tuple[str, ...] = ()
    """Installed packages of code skills. They are imported, so only the user names them."""
    bell: bool = True
    """Whether the chat rings when a question waits or a long turn has ended."""
    title: bool = True
    """Whether the chat says so in the window's title."""


NAMES = tuple(field.name for field in fields(Settings))
SERVERS_SECTION = "mcp"
"""The section of the file with the agent's MCP servers, which the agent reads itself."""


class ChosenValue(NamedTuple):
    """The value of a setting, and what chose it."""

    value: Value
    origin: str
    """The settings file, an environment variable or an option, by name; or `default`."""


def load_settings(flags: Mapping[str, object]) -> Settings:
    """Return the settings in force. A flag that is None was not given; flags of other names are ignored."""
    values = {name: chosen.value for name, chosen in trace_settings(flags).items()}
    return Settings(**values)  # type: ignore[arg-type]  # each was checked by name


def trace_settings(flags: Mapping[str, object]) -> dict[str, ChosenValue]:
    """Return every setting with its origin, by name. Takes the same flags as `load_settings`."""
    defaults = Settings()
    traced = {name: ChosenValue(getattr(defaults, name), "default") for name in NAMES}
    for name, value in _read_file().items():
        traced[name] = ChosenValue(value, "the settings file")
    for name in NAMES:
        variable = f"SKILLSHELF_{name.upper()}"
        text = os.environ.get(variable)
        if text:
            traced[name] = ChosenValue(_check(name, text, f"The environment variable {variable}"), variable)
        flag = flags.get(name)
        if flag is not None:
            option = f"--{name.replace('_', '-')}"
            traced[name] = ChosenValue(_check(name, flag, f"The option {option}"), option)
    return traced


def settings_file() -> str | None:
    """Return the path of the user's file, whether or not it exists, or None if this user has no home."""
    home = config_home()
    if home is None:
        return None
    return os.path.join(home, "config.toml")


def _read_file() -> dict[str, Value]:
    path = settings_file()
    if path is None:
        return {}
    file = read_toml(path, 'A setting looks like this: model = "openai:gpt-6.1-sol"')
    if file is None:
        return {}

    chosen: dict[str, Value] = {}
    for key, value in file.table.items():
        if key == SERVERS_SECTION or key in _RETIRED:
            continue
        where = f"{path}, line {find_line(file.text, key)}: {key!r}"
        if key not in NAMES:
            raise SettingsError(f"{where} is not a setting. {_suggest(key)}")
        chosen[key] = _check(key, value, where)
    return chosen


class TomlFile(NamedTuple):
    """A file of the user's: its text and the table in it."""

    text: str
    table: dict[str, Any]


def read_toml(path: str, example: str) -> TomlFile | None:
    """Read a file of the user's, or return None if it does not exist.

    Raises SettingsError with the place of a mistake; `example` says what the file looks like.
    """
    text = _read_text(path)
    if text is None:
        return None

    import tomllib  # takes 5 ms, which only users with a file pay

    try:
        return TomlFile(text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise _describe_bad_toml(path, str(error), example) from error


def _read_text(path: str) -> str | None:
    """Return the text of the file, or None if it does not exist."""
    try:
        # Without O_NONBLOCK a named pipe in its place would block the program for good.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            is_plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = os.read(descriptor, _MAX_FILE + 1) if is_plain else b""
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error

    if not is_plain:
        raise SettingsError(f"{path} is not a plain file. The settings are read from a TOML file of that name.")
    if len(data) > _MAX_FILE:
        raise SettingsError(f"{path} is larger than {_MAX_FILE // 1024} KiB, which settings never are.")

    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{path}, line {line}: not UTF-8 text. Save the file as UTF-8.") from error


def _describe_bad_toml(path: str, message: str, example: str) -> SettingsError:
    # Python 3.11 to 3.13 give the place in the message alone: "Invalid value (at line 1, column 9)".
    reason, _, place = message.partition(" (at ")
    where = path
    if place:
        where = f"{path}, {place.rstrip(')')}"
    return SettingsError(f"{where}: not TOML: {reason}. {example}")


def _check(name: str, value: object, where: str) -> Value:
    """Return the value as the setting takes it. Raises a SettingsError that says what is right."""
    if name in _MINIMUM:
        return _check_number(value, _MINIMUM[name], where)
    if name == "packages":
        return _check_packages(value, where)
    if name in ("bell", "title"):
        return _check_switch(value, where)
    if not isinstance(value, str):
        raise SettingsError(f"{where} must be text, not {value!r:.80}.")

    text = value.strip()
    if name in _ALLOWED and text not in _ALLOWED[name]:
        raise SettingsError(f"{where} is {value!r:.80}; it must be one of {', '.join(_ALLOWED[name])}.")
    if name == "base_url" and text:
        return _check_address(text, where)
    return text


def _check_number(value: object, minimum: int, where: str) -> int:
    number = value
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        number = int(value)
    if type(number) is not int or number < minimum:  # not isinstance: True is an int
        raise SettingsError(f"{where} is {value!r:.80}; it must be a whole number of tokens, {minimum} or more.")
    return number


def _check_switch(value: object, where: str) -> bool:
    switch = _SWITCHES.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(switch, bool):
        raise SettingsError(f"{where} is {value!r:.80}; it must be true or false.")
    return switch


def _check_packages(value: object, where: str) -> tuple[str, ...]:
    """Return the names in a list, or in text that separates them by commas, as an environment variable does."""
    names = value
    if isinstance(value, str):
        names = [name.strip() for name in value.split(",") if name.strip()]
    if not isinstance(names, list | tuple):
        raise SettingsError(f'{where} is {value!r:.80}; it must be a list of packages, such as ["my_skills"].')
    for name in names:
        if not isinstance(name, str) or not all(part.isidentifier() for part in name.split(".")):
            raise SettingsError(
                f"{where} names {name!r:.80}, which cannot be imported. Give the name that `import` takes, not a path."
            )
    return tuple(names)


def _check_address(text: str, where: str) -> str:
    from urllib.parse import urlsplit  # takes 5 ms

    try:
        parts = urlsplit(text)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises ValueError if it is not a port
    except ValueError:
        is_usable = False
    if not is_usable:  # not echoed: an address may hold a password
        raise SettingsError(f"{where} is not an http(s) address. It looks like this: http://localhost:11434/v1")
    return text.rstrip("/")


def without_secrets(url: str) -> str:
    """Return an address without the user, the password and the query, each of which may hold a key."""
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    host = parts.hostname or ""
    if ":" in host:
        host = f"[{host}]"
    if parts.port:
        host += f":{parts.port}"
    return f"{parts.scheme}://{host}{parts.path}"


def find_line(text: str, key: str) -> int:
    """Return the line of a top-level key, which tomllib does not report."""
    match = re.search(rf"^[ \t]*\[*[ \t]*[\"']?{re.escape(key)}\b", text, re.M)
    if match is None:
        return 1
    return text.count("\n", 0, match.start()) + 1


def _suggest(key: str) -> str:
    closest = closest_names(key, NAMES, limit=1)
    if closest:
        return f"Did you mean {closest[0]!r}?"
    return f"Settings: {', '.join(NAMES)}."
