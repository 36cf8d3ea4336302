"""Find the conditions of a skill from its bytes and its place."""

import re
from collections.abc import Iterator

from skillshelf.lint._format import check_format
from skillshelf.lint.hosts._conditions import CONDITIONS
from skillshelf.lint.hosts._frontmatter import find_in_frontmatter
from skillshelf.skillmd import MAX_BLOCK, Notes, SkillText, Unreadable, decode, find_block, read
from skillshelf.text import find_hidden

# Codes of the reader and the format check that are conditions for hosts as well.
_SHARED_CODES = frozenset(
    "bom compatibility-too-long delimiter-spaces description-too-long instructions-missing name-characters "
    "name-mismatch name-not-ascii name-too-long name-uppercase".split()
)
# If the frontmatter is misplaced, no host reads its fields. For hosts a missing `---` is a missing frontmatter.
_MISPLACED_FRONTMATTER = {
    "frontmatter-missing": "frontmatter-missing",
    "frontmatter-not-first": "frontmatter-not-first",
    "frontmatter-unclosed": "frontmatter-unclosed",
    "frontmatter-undelimited": "frontmatter-missing",
    "frontmatter-unopened": "frontmatter-missing",
}


def find_conditions(
    data: bytes, folder: str, *, file: str = "SKILL.md", nested: bool = False, linked: bool = False
) -> list[str]:
    """Return the conditions that hold for a SKILL.md with these bytes, in a folder of that name."""
    place = {"file-lowercase": file != "SKILL.md", "folder-nested": nested, "folder-linked": linked}
    found = {code for code, holds in place.items() if holds} | set(_check_bytes(data, folder))
    return sorted(found & CONDITIONS.keys())


def _check_bytes(data: bytes, folder: str) -> Iterator[str]:
    try:
        text = decode(data)
    except Unreadable as fault:
        yield fault.diagnostic.code
        if fault.diagnostic.code not in ("cr-only", "nul-byte"):
            return
        text = data.decode().replace("\r", "\n").replace("\0", " ")  # some hosts read on
    notes = Notes()
    block = None
    skill = None
    try:
        block = find_block(text.removeprefix("\ufeff"), notes).block
        skill = read(text, folder)
    except Unreadable as fault:  # we refuse it; hosts may not
        yield fault.diagnostic.code
    if block is None:  # longer than we read: what a host makes of its beginning, it makes of the whole
        block = text[:MAX_BLOCK].partition("\n")[2].rpartition("\n")[0]
    # `read` reports other characters; a hidden one makes it refuse the skill.
    name = None if skill else re.search(r"^name:(.+)$", block, re.M)
    if name and any(find_hidden(name[1])):
        yield "name-characters"
    misplaced = [_MISPLACED_FRONTMATTER[note.code] for note in notes.items if note.code in _MISPLACED_FRONTMATTER]
    yield from misplaced
    if not misplaced:
        yield from find_in_frontmatter(block)
    if skill:
        yield from _check_skill(skill, folder)


def _check_skill(skill: SkillText, folder: str) -> Iterator[str]:
    yield from {note.code for note in check_format(skill, folder)} & _SHARED_CODES
    if "\r\n" in skill.text[: skill.body]:
        yield "crlf"
    if skill.text.endswith("\n---"):
        yield "frontmatter-last"
    if set("<&") & set(skill.description):
        yield "description-markup"
    # A host that does not parse YAML mistakes these quotes for the ones around a value.
    ends = re.search(r"""^description:[ \t]*(["'])[^\n]*\1[ \t]*$""", skill.text, re.M)
    if ends and skill.description[0] == skill.description[-1] == ends[1]:
        yield "description-quote-ends"
    name = str(skill.values.get("name", ""))
    if name.strip("-") != name:
        yield "name-hyphen-end"
    if "--" in name:
        yield "name-hyphens"
