"""A skill's name, as the open format wants it."""

import re
import unicodedata
from collections.abc import Iterator

from skillshelf.descriptor import Diagnostic
from skillshelf.text import skeleton

MAX_NAME = 64
# Our own commands, and the devices of Windows, which no file or folder there can be called.
RESERVED = frozenset(
    ["reload", "list", "help", "show", "new", "con", "prn", "aux", "nul"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in range(10)]
)


def check_name(written: str, line: int = 0) -> list[Diagnostic]:
    """Return what is wrong with a name, and what is unwise about it."""
    name = unicodedata.normalize("NFKC", written.strip())
    if not name:
        return [Diagnostic("error", "name-missing", "the name is blank", line=line, fix="write `name: my-skill`")]
    fix = f"write `name: {suggest_name(name)}`"
    faults = [Diagnostic("error", code, message, line=line, fix=fix) for code, message in _faults(name)]
    return faults + [
        Diagnostic("warning", code, message, line=line, fix=fix) for code, message, fix in _doubts(name, fix)
    ]


def suggest_name(name: str) -> str:
    """The nearest name that every reader of the format takes."""
    near = re.sub("[^a-z0-9]+", "-", skeleton(name))[:MAX_NAME].strip("-") or "my-skill"
    return f"{near}-skill" if near in RESERVED else near


def _faults(name: str) -> Iterator[tuple[str, str]]:
    shown = repr(name if len(name) <= 80 else name[:80] + "…")
    if len(name) > MAX_NAME:
        yield "name-too-long", f"the name exceeds the {MAX_NAME} character limit ({len(name)} characters)"
    if name != name.lower():
        yield "name-uppercase", f"the name {shown} must be lowercase"
    if name[0] == "-" or name[-1] == "-":
        yield "name-hyphens", f"the name {shown} cannot start or end with a hyphen"
    if "--" in name:
        yield "name-hyphens", f"the name {shown} cannot have consecutive hyphens"
    if not all(char.isalnum() or char == "-" for char in name):
        yield "name-characters", f"the name {shown} has invalid characters: letters, digits and hyphens are allowed"


def _doubts(name: str, fix: str) -> Iterator[tuple[str, str, str]]:
    if name.casefold() in RESERVED:
        message = f"{name!r} is one of skillshelf's own commands or a device of Windows"
        yield "name-reserved", message, "choose another name"
    if name.isascii():
        return
    if skeleton(name).isascii():
        message = f"the name {name!r} looks like {skeleton(name)!r} but is spelt with other letters"
        yield "name-lookalike", message, fix
    else:
        message = f"the name {name!r} has letters outside a-z: some tools refuse it, and it is hard to type for many"
        yield "name-not-ascii", message, "use a-z, 0-9 and hyphens if people elsewhere are to use the skill"
