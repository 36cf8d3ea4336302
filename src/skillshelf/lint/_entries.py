"""The rules of MCP hosts for an entry of `skills/list`. They refuse the whole list for one entry that breaks a rule.

The rules are those of the open format, as the official TypeScript client (`@modelcontextprotocol/client` 2.4.0) has
them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from skillshelf.descriptor import MAX_DESCRIPTION

MAX_NAME = 64
MAX_COMPATIBILITY = 500
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class EntryFault:
    """A reason why hosts refuse an entry."""

    field: str
    """The field of the frontmatter that is at fault."""
    problem: str
    fix: str


def find_entry_faults(frontmatter: Mapping[str, Any]) -> list[EntryFault]:
    """Return every reason why hosts refuse an entry with this frontmatter, which is JSON."""
    return [
        *_check_name(frontmatter.get("name")),
        *_check_description(frontmatter.get("description")),
        *_check_compatibility(frontmatter),
        *_check_metadata(frontmatter),
        *_check_keys(frontmatter),
    ]


def _check_name(name: Any) -> Iterator[EntryFault]:
    if isinstance(name, str) and len(name) <= MAX_NAME and _NAME.fullmatch(name):
        return
    fix = "use a-z, 0-9 and single hyphens"
    yield EntryFault("name", f"the name is not {MAX_NAME} or fewer of a-z, 0-9 and single hyphens", fix)


def _check_description(description: Any) -> Iterator[EntryFault]:
    if not isinstance(description, str) or not description:
        yield EntryFault("description", "there is no description", "say in a sentence when to use the skill")
    elif len(description) > MAX_DESCRIPTION:
        problem = f"the description has {len(description):,} characters, and {MAX_DESCRIPTION:,} are allowed"
        yield EntryFault("description", problem, "shorten it; the instructions have room for the rest")


def _check_compatibility(frontmatter: Mapping[str, Any]) -> Iterator[EntryFault]:
    if "compatibility" not in frontmatter:
        return
    value = frontmatter["compatibility"]
    if not isinstance(value, str) or not value:
        yield EntryFault("compatibility", "`compatibility` is not text", "write it as text, or leave it out")
    elif len(value) > MAX_COMPATIBILITY:
        problem = f"`compatibility` has {len(value):,} characters, and {MAX_COMPATIBILITY} are allowed"
        yield EntryFault("compatibility", problem, "name only what the skill needs")


def _check_metadata(frontmatter: Mapping[str, Any]) -> Iterator[EntryFault]:
    if "metadata" not in frontmatter:
        return
    metadata = frontmatter["metadata"]
    if not isinstance(metadata, dict):
        yield EntryFault(
            "metadata", "`metadata` is not a mapping", "write `key: value` lines below it, or leave it out"
        )
        return
    for key, value in metadata.items():
        if isinstance(value, str):
            continue
        problem = f"`metadata` has a value that is not text, {str(key)[:80]!r}"
        if isinstance(value, dict | list):
            fix = "write it as one text"
        else:
            fix = f'put it in quotes: `{str(key)[:80]}: "…"`'
        yield EntryFault("metadata", problem, fix)
        return


def _check_keys(frontmatter: Mapping[str, Any]) -> Iterator[EntryFault]:
    # JavaScript sets an object's prototype with it.
    if "__proto__" in frontmatter:
        yield EntryFault("__proto__", "there is a field named '__proto__'", "give the field another name")
