"""Which conditions hold for a skill: from its bytes and its place."""

import re
from collections.abc import Iterator

from skillshelf.lint._format import check_format
from skillshelf.lint.hosts._conditions import CONDITIONS
from skillshelf.lint.hosts._frontmatter import of_frontmatter
from skillshelf.skillmd import MAX_BLOCK, Notes, SkillText, Unreadable, decode, find_block, read
from skillshelf.text import find_hidden

# What the reader and the check of the format say of the text as a whole and of the name, as hosts see it too.
_AS_READ = frozenset(
    "bom compatibility-too-long delimiter-spaces description-too-long instructions-missing name-characters "
    "name-mismatch name-not-ascii name-too-long name-uppercase".split()
)
# Where the frontmatter is not where it should be, no host reads fields. To hosts it is the same where `---` is missing.
_NO_FIELDS = {
    "frontmatter-missing": "frontmatter-missing",
    "frontmatter-not-first": "frontmatter-not-first",
    "frontmatter-unclosed": "frontmatter-unclosed",
    "frontmatter-undelimited": "frontmatter-missing",
    "frontmatter-unopened": "frontmatter-missing",
}


def find_conditions(
    data: bytes, folder: str, *, file: str = "SKILL.md", nested: bool = False, linked: bool = False
) -> list[str]:
    """What of the conditions holds for a SKILL.md with these bytes, in a folder of that name."""
    place = {"file-lowercase": file != "SKILL.md", "folder-nested": nested, "folder-linked": linked}
    found = {code for code, holds in place.items() if holds} | set(_of_bytes(data, folder))
    return sorted(found & CONDITIONS.keys())


def _of_bytes(data: bytes, folder: str) -> Iterator[str]:
    try:
        text = decode(data)
    except Unreadable as fault:
        yield fault.diagnostic.code
        if fault.diagnostic.code not in ("cr-only", "nul-byte"):
            return
        text = data.decode().replace("\r", "\n").replace("\0", " ")  # some hosts read on
    notes, block, skill = Notes(), None, None
    try:
        block = find_block(text.removeprefix("\ufeff"), notes).block
        skill = read(text, folder)
    except Unreadable as fault:  # we refuse it; hosts may not
        yield fault.diagnostic.code
    if block is None:  # longer than we read: what a host makes of its beginning, it makes of the whole
        block = text[:MAX_BLOCK].partition("\n")[2].rpartition("\n")[0]
    # Where it hides nothing, `read` has told of it.
    name = None if skill else re.search(r"^name:(.+)$", block, re.M)
    if name and any(find_hidden(name[1])):
        yield "name-characters"
    misplaced = [_NO_FIELDS[note.code] for note in notes.items if note.code in _NO_FIELDS]
    yield from misplaced
    if not misplaced:
        yield from of_frontmatter(block)
    if skill:
        yield from _of_skill(skill, folder)


def _of_skill(skill: SkillText, folder: str) -> Iterator[str]:
    yield from {note.code for note in check_format(skill, folder)} & _AS_READ
    if "\r\n" in skill.text[: skill.body]:
        yield "crlf"
    if skill.text.endswith("\n---"):
        yield "frontmatter-last"
    if set("<&") & set(skill.description):
        yield "description-markup"
    # A host that reads no YAML takes these quotes for such as are around a value.
    ends = re.search(r"""^description:[ \t]*(["'])[^\n]*\1[ \t]*$""", skill.text, re.M)
    if ends and skill.description[0] == skill.description[-1] == ends[1]:
        yield "description-quote-ends"
    name = str(skill.values.get("name", ""))
    if name.strip("-") != name:
        yield "name-hyphen-end"
    if "--" in name:
        yield "name-hyphens"
