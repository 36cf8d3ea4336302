"""What other hosts make of a skill: from its text and its place to a verdict for each. Pure; the table was measured.

`hosts.json` holds what each host's own loader did with one file for each condition here. `benchmarks/portability.py`
writes it anew.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

from skillshelf.lint.format import check_format
from skillshelf.skillmd import SkillText, Unreadable, decode, read

Makes = Literal["loads", "warns", "truncates", "corrupts", "drops", "drops-silently", "crashes"]
WORDS: tuple[Makes, ...] = get_args(Makes)
"""From the best to the worst."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Something about a skill that hosts do not agree on."""

    says: str
    fix: str = ""
    """Empty where every host copes."""


_NAME = "use 1 to 64 lower-case letters a-z, digits and single hyphens, for the folder too"
_FRONT = "begin the file with `---`, the fields, and `---` again"
_QUOTE = "write it as one plain line, or in quotes without escapes"
CONDITIONS: dict[str, Condition] = {
    "allowed-tools-list": Condition("`allowed-tools` is a list", "write the tools in one line, with spaces between"),
    "bom": Condition("the file begins with a byte order mark", "save it as UTF-8 without BOM"),
    "comment-cuts-value": Condition("a value has ` #`, where YAML begins a comment", "put the value in quotes"),
    "compatibility-too-long": Condition("`compatibility` has more than 500 characters", "shorten it"),
    "cr-only": Condition("the lines end in CR alone", "save it with LF line endings"),
    "crlf": Condition("the lines end in CR LF"),
    "dashes-in-frontmatter": Condition("there is `---` inside the frontmatter", "write another dash"),
    "delimiter-spaces": Condition("a `---` line has spaces after it", "remove them"),
    "description-block": Condition("the description is a block (`>` or `|`)"),
    "description-escaped": Condition("the description is quoted and has escapes", _QUOTE),
    "description-markup": Condition("the description has `<` or `&`"),
    "description-missing": Condition("there is no description", "write what the skill does and when to use it"),
    "description-too-long": Condition("the description has more than 1,024 characters", "shorten it"),
    "description-wrapped": Condition("the description goes on in the next line"),
    "empty": Condition("the file is empty", _FRONT),
    "field-extension": Condition("fields of some hosts only, such as `argument-hint`", "move them under `metadata:`"),
    "file-lowercase": Condition("the file is called `skill.md`", "call it `SKILL.md`"),
    "folder-linked": Condition("the skill's folder is a symlink", "put the folder itself there"),
    "folder-nested": Condition("the skill lies more than one folder below `skills`", "move it directly below `skills`"),
    "frontmatter-last": Condition("the file ends right after the closing `---`", "write instructions below it"),
    "frontmatter-missing": Condition("there is no frontmatter", _FRONT),
    "frontmatter-not-first": Condition("the frontmatter is not the first thing in the file", _FRONT),
    "frontmatter-unclosed": Condition("the frontmatter has no closing `---`", _FRONT),
    "instructions-missing": Condition("there are no instructions"),
    "metadata-nested": Condition("`metadata` holds lists or mappings", "write each value as text on one line"),
    "metadata-number": Condition("`metadata` holds a number, a date or a yes/no"),
    "name-characters": Condition("the name has other characters than letters, digits and hyphens", _NAME),
    "name-hyphens": Condition("the name has a hyphen at an end, or two in a row", _NAME),
    "name-mismatch": Condition("the name differs from the folder's", "give both the same name"),
    "name-missing": Condition("there is no name", "write `name:` with the folder's name"),
    "name-not-ascii": Condition("the name has letters outside a-z", _NAME),
    "name-too-long": Condition("the name has more than 64 characters", _NAME),
    "name-uppercase": Condition("the name has capital letters", _NAME),
    "not-utf8": Condition("the file is not UTF-8", "save it as UTF-8"),
    "unexpected-fields": Condition("fields that the format does not know", "move them under `metadata:`"),
    "yaml-duplicate-key": Condition("a field is given twice", "keep one"),
    "yaml-repaired": Condition("a value is not valid YAML, such as `Use when: asked`", "put the value in quotes"),
}

_LISTED = re.compile(r"^metadata:[ \t]*\n((?:[ \t]+[^\n]*\n)+)", re.M)
_NO_TEXT = re.compile(
    r"^[^\n:]+:[ \t]*(?:[-+]?\d[\d_]*(?:\.\d*)?|\d{4}-\d\d-\d\d|true|false|yes|no|null|~)[ \t]*$", re.M | re.I
)


def _nested(skill: SkillText) -> bool:
    metadata = skill.values.get("metadata")
    return isinstance(metadata, dict) and any(isinstance(value, list | dict) for value in metadata.values())


def _number(skill: SkillText) -> bool:
    return any(_NO_TEXT.search(match[1]) for match in _LISTED.finditer(_front(skill)))


def _matches(pattern: str) -> Callable[[SkillText], bool]:
    compiled = re.compile(pattern, re.M)
    return lambda skill: bool(compiled.search(_front(skill)))


def _front(skill: SkillText) -> str:
    return skill.text[: skill.body].replace("\r\n", "\n")


# What a diagnostic does not say already.
_SEEN: dict[str, Callable[[SkillText], bool]] = {
    "allowed-tools-list": lambda skill: isinstance(skill.values.get("allowed-tools"), list),
    "crlf": lambda skill: "\r\n" in skill.text[: skill.body],
    "dashes-in-frontmatter": _matches(r"^(?!---[ \t]*$)[^\n]*---"),
    "description-block": _matches(r"^description:[ \t]*[|>]"),
    "description-escaped": _matches(r"""^description:[ \t]*(?:"[^\n]*\\|'[^\n]*'')"""),
    "description-markup": lambda skill: bool(set("<&") & set(skill.description)),
    "description-wrapped": _matches(r"^description:[ \t]*[^\s|>#][^\n]*\n[ \t]+[^\s#]"),
    "frontmatter-last": lambda skill: skill.text.endswith("\n---"),
    "metadata-nested": _nested,
    "metadata-number": _number,
}


def conditions(
    data: bytes, folder: str, *, file: str = "SKILL.md", nested: bool = False, linked: bool = False
) -> list[str]:
    """What of the conditions holds for a SKILL.md with these bytes, in a folder of that name."""
    place = {"file-lowercase": file != "SKILL.md", "folder-nested": nested, "folder-linked": linked}
    found = {code for code, holds in place.items() if holds} | set(_of_text(data, folder))
    return sorted(found & CONDITIONS.keys())


def _of_text(data: bytes, folder: str) -> Iterator[str]:
    try:
        skill = read(decode(data), folder)
    except Unreadable as fault:
        yield fault.diagnostic.code
        return
    yield from (note.code for note in check_format(skill, folder))
    yield from (code for code, holds in _SEEN.items() if holds(skill))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one host makes of a skill."""

    host: str
    version: str
    makes: Makes
    because: tuple[str, ...] = ()
    """The conditions that make it no better; empty where it loads."""


def judge(found: Sequence[str]) -> list[Verdict]:
    """A verdict for each host. Of several conditions, the one that it copes with worst counts."""
    verdicts = []
    for host, measured in table().items():
        made = {code: measured["makes"][code] for code in found}
        worst = max(made.values(), key=WORDS.index, default=WORDS[0])
        because = tuple(code for code in found if made[code] == worst != WORDS[0])
        verdicts.append(Verdict(host, measured["version"], worst, because))
    return verdicts


@cache
def table() -> dict[str, dict[str, Any]]:
    """What was measured: for each host its version, its loader, and what it made of each condition."""
    text = files("skillshelf.lint").joinpath("hosts.json").read_text(encoding="utf-8")
    read_back: dict[str, dict[str, Any]] = json.loads(text)
    return read_back
