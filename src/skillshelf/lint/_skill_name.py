"""The rules of the format for a skill's name, and names that cause trouble although the format allows them."""

import re
import unicodedata
from collections.abc import Iterator

from skillshelf.descriptor import Diagnostic
from skillshelf.lint._lines import find_field_line
from skillshelf.skillmd import SkillText
from skillshelf.text import clip, skeleton

MAX_NAME = 64
MAX_QUOTED = 80
"""Characters of an author's text that a message repeats."""
# skillshelf's own commands, and the device names of Windows, which no file or folder can have there.
RESERVED_NAMES = frozenset(
    ["reload", "list", "help", "show", "new", "con", "prn", "aux", "nul"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in range(10)]
)


def check_name(written: str, line: int = 0) -> list[Diagnostic]:
    """Return an error for each rule that a name breaks, and a warning for each trouble that it may cause."""
    name = unicodedata.normalize("NFKC", written.strip())
    if not name:
        return [Diagnostic("error", "name-missing", "the name is blank", line=line, fix="write `name: my-skill`")]
    fix = f"write `name: {suggest_name(name)}`"
    return [*_find_broken_name_rules(name, line, fix), *_find_troublesome_names(name, line, fix)]


def suggest_name(name: str) -> str:
    """Return the closest name that every reader of the format accepts."""
    hyphenated = re.sub("[^a-z0-9]+", "-", skeleton(name))
    suggestion = hyphenated[:MAX_NAME].strip("-")
    if not suggestion:
        return "my-skill"
    if suggestion in RESERVED_NAMES:
        return f"{suggestion}-skill"
    return suggestion


def _find_broken_name_rules(name: str, line: int, fix: str) -> Iterator[Diagnostic]:
    quoted = repr(clip(name, MAX_QUOTED))
    if len(name) > MAX_NAME:
        message = f"the name exceeds the {MAX_NAME} character limit ({len(name)} characters)"
        yield Diagnostic("error", "name-too-long", message, line=line, fix=fix)
    if name != name.lower():
        yield Diagnostic("error", "name-uppercase", f"the name {quoted} must be lowercase", line=line, fix=fix)
    if name.startswith("-") or name.endswith("-"):
        message = f"the name {quoted} cannot start or end with a hyphen"
        yield Diagnostic("error", "name-hyphens", message, line=line, fix=fix)
    if "--" in name:
        message = f"the name {quoted} cannot have consecutive hyphens"
        yield Diagnostic("error", "name-hyphens", message, line=line, fix=fix)
    if not all(char.isalnum() or char == "-" for char in name):
        message = f"the name {quoted} has invalid characters: letters, digits and hyphens are allowed"
        yield Diagnostic("error", "name-characters", message, line=line, fix=fix)


def _find_troublesome_names(name: str, line: int, fix: str) -> Iterator[Diagnostic]:
    if name.casefold() in RESERVED_NAMES:
        message = f"{name!r} is a command of skillshelf or a device name of Windows"
        yield Diagnostic("warning", "name-reserved", message, line=line, fix="choose another name")
    if name.isascii():
        return
    lookalike = skeleton(name)
    if lookalike.isascii():
        message = f"the name {name!r} looks like {lookalike!r} but is spelled with other letters"
        yield Diagnostic("warning", "name-lookalike", message, line=line, fix=fix)
    else:
        message = f"the name {name!r} has letters outside a-z: some tools refuse it, and many users cannot type it"
        fix = "use a-z, 0-9 and hyphens if others should be able to use the skill"
        yield Diagnostic("warning", "name-not-ascii", message, line=line, fix=fix)


def check_written_name(skill: SkillText, folder: str) -> Iterator[Diagnostic]:
    """Check the name that a SKILL.md has, by itself and against the name of its folder."""
    written = skill.values.get("name")
    if not isinstance(written, str) or not written.strip():
        return  # the reader reports it
    line = find_field_line(skill, "name")
    yield from check_name(written, line)

    name = unicodedata.normalize("NFKC", written.strip())
    folder_name = unicodedata.normalize("NFKC", folder)
    if name != folder_name:
        message = (
            f"the folder's name {clip(folder_name, MAX_QUOTED)!r} must match skill name {clip(name, MAX_QUOTED)!r}"
        )
        yield Diagnostic("error", "name-mismatch", message, line=line, fix="rename the folder, or change `name:`")
