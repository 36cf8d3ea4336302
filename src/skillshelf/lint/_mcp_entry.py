"""The rules by which strict MCP hosts refuse a skill's entry in `skills/list`."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skillshelf.descriptor import MAX_DESCRIPTION, Diagnostic
from skillshelf.lint._fields import MAX_COMPATIBILITY
from skillshelf.lint._lines import find_field_line
from skillshelf.lint._skill_name import MAX_NAME, MAX_QUOTED
from skillshelf.skillmd import SkillText
from skillshelf.text import clip

_STRICT_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class EntryFault:
    """A reason why strict MCP hosts refuse a skill's entry in `skills/list`."""

    field: str
    """The field of the frontmatter that is at fault."""
    problem: str
    fix: str


def find_entry_faults(frontmatter: Mapping[str, Any]) -> list[EntryFault]:
    """Return every reason why strict hosts refuse an entry with this frontmatter, which is JSON.

    Such a host refuses the whole list because of one entry. Its rules are those of the open format, as the official
    TypeScript client (`@modelcontextprotocol/client` 2.4.0) has them.
    """
    faults = [
        _find_name_fault(frontmatter),
        _find_description_fault(frontmatter),
        _find_compatibility_fault(frontmatter),
        _find_metadata_fault(frontmatter),
    ]
    if "__proto__" in frontmatter:  # in JavaScript, this key sets the prototype of an object
        faults.append(EntryFault("__proto__", "there is a field named '__proto__'", "give the field another name"))
    return [fault for fault in faults if fault is not None]


def _find_name_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    name = frontmatter.get("name")
    if isinstance(name, str) and len(name) <= MAX_NAME and _STRICT_NAME.fullmatch(name):
        return None
    problem = f"the name is not {MAX_NAME} or fewer of a-z, 0-9 and single hyphens"
    return EntryFault("name", problem, "use a-z, 0-9 and single hyphens")


def _find_description_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    description = frontmatter.get("description")
    if not isinstance(description, str) or not description:
        return EntryFault("description", "there is no description", "say in a sentence when to use the skill")
    if len(description) > MAX_DESCRIPTION:
        problem = f"the description has {len(description):,} characters, and {MAX_DESCRIPTION:,} are allowed"
        return EntryFault("description", problem, "shorten it; the instructions have room for the rest")
    return None


def _find_compatibility_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    if "compatibility" not in frontmatter:
        return None
    compatibility = frontmatter["compatibility"]
    if compatibility in ("", None):
        return EntryFault("compatibility", "`compatibility` is empty", "say what the skill needs, or remove the field")
    if not isinstance(compatibility, str):
        return EntryFault("compatibility", "`compatibility` is not text", "write it as text, or leave it out")
    if len(compatibility) > MAX_COMPATIBILITY:
        problem = f"`compatibility` has {len(compatibility):,} characters, and {MAX_COMPATIBILITY} are allowed"
        return EntryFault("compatibility", problem, "name only what the skill needs")
    return None


def _find_metadata_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    if "metadata" not in frontmatter:
        return None
    metadata = frontmatter["metadata"]
    if not isinstance(metadata, dict):
        return EntryFault(
            "metadata", "`metadata` is not a mapping", "write `key: value` lines below it, or leave it out"
        )
    for key, value in metadata.items():
        if isinstance(value, str):
            continue
        shown_key = clip(str(key), MAX_QUOTED)
        fix = f'put it in quotes: `{shown_key}: "…"`'
        if isinstance(value, dict | list):
            fix = "write it as one text"
        return EntryFault("metadata", f"`metadata` has a value that is not text, {shown_key!r}", fix)
    return None


def check_entry(skill: SkillText, reported_fields: Collection[str]) -> Iterator[Diagnostic]:
    """Report why strict MCP hosts refuse the skill, except for fields that are reported already.

    `check_name` covers names that they refuse.
    """
    has_strict_fields = not skill.values.keys().isdisjoint({"metadata", "compatibility", "__proto__"})
    if not has_strict_fields and len(skill.description) < MAX_DESCRIPTION:
        return  # most skills; typed values cost a millisecond

    frontmatter = dict(skill.typed_values() or skill.values)
    if not isinstance(frontmatter.get("description"), str):
        frontmatter["description"] = skill.description
    for fault in find_entry_faults(frontmatter):
        if fault.field == "name" or fault.field in reported_fields:
            continue
        message = f"strict MCP hosts refuse the skill, and skills/list leaves it out: {fault.problem}"
        line = find_field_line(skill, fault.field)
        yield Diagnostic("warning", "mcp-withheld", message, line=line, fix=fault.fix)
