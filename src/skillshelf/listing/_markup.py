"""How an entry is written, so that no skill can close its block or imitate another, and how it is read back.

Names, descriptions and references are escaped as XML. Instructions hold code that the model must see as it is, so in
them only what could be taken for this section's own tags is escaped; `parse` undoes both exactly.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillshelf.descriptor import SkillDescriptor

OPENING, CLOSING = "<available_skills>", "</available_skills>"
# A bar inside a name is escaped, so this separates them without doubt.
_BAR = " | "
_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_ATTRIBUTE = _TEXT | str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "|": "&#124;"})
_OWN_TAG = re.compile(
    r"<(?=\s*+(?:/\s*+)?(?:available_skills|skill|skill_names|instructions)\b)|&(?=(?:lt|amp);)", re.I
)
_ESCAPED = re.compile(r"&(lt|amp);")
_ENTRY = re.compile(
    r'<skill name="([^"]*)"(?: references="([^"]*)")?(?: more="(\d+)")?>'
    r"([^<]*)(?:<instructions>\n(.*?)\n</instructions>\n)?</skill>\n",
    re.S,
)
_NAMES = re.compile(r"^<skill_names>([^<]*)</skill_names>$", re.M)


@dataclass(frozen=True, slots=True)
class Entry:
    """One skill as the section shows it."""

    name: str
    description: str
    """Empty where there is room for names only."""
    references: tuple[str, ...] = ()
    more: int = 0
    """References that are not named here."""
    instructions: str | None = None
    """In full, or None where they are to be loaded."""

    def render(self) -> str:
        names = _BAR.join(path.translate(_ATTRIBUTE) for path in self.references)
        references = f' references="{names}"' if self.references else ""
        more = f' more="{self.more}"' if self.more else ""
        body = ""
        if self.instructions is not None:
            body = f"<instructions>\n{_OWN_TAG.sub(_escape_one, self.instructions)}\n</instructions>\n"
        text = self.description.translate(_TEXT)
        return f'<skill name="{self.name.translate(_ATTRIBUTE)}"{references}{more}>{text}{body}</skill>\n'


def escaped(name: str) -> str:
    """A name outside an entry, so that it can neither close the block nor begin a line."""
    return name.translate(_ATTRIBUTE)


def render(entries: Sequence[Entry]) -> str:
    """The block. Skills of which only the name is shown share one element: many names in few tokens."""
    whole = "".join(entry.render() for entry in entries if entry.description)
    names = _BAR.join(entry.name.translate(_ATTRIBUTE) for entry in entries if not entry.description)
    return f"{OPENING}\n{whole}{f'<skill_names>{names}</skill_names>{chr(10)}' if names else ''}{CLOSING}\n"


def parse(section: str) -> list[Entry]:
    """The entries of a section, exactly as they went in."""
    from html import unescape  # 4 ms that only a reader of sections pays

    start, end = section.find(OPENING), section.rfind(CLOSING)
    entries = []
    for match in _ENTRY.finditer(section, start, end) if start >= 0 else ():
        name, references, more, description, body = match.groups()
        names = tuple(map(unescape, references.split(_BAR))) if references is not None else ()
        instructions = None if body is None else _ESCAPED.sub(lambda one: "<" if one[1] == "lt" else "&", body)
        entries.append(Entry(unescape(name), unescape(description), names, int(more or 0), instructions))
    bare = _NAMES.search(section, start, end) if start >= 0 else None
    entries += [Entry(unescape(name), "") for name in bare[1].split(_BAR)] if bare else []
    return entries


def to_xml(skills: Iterable[SkillDescriptor]) -> str:
    """The rendering of the format's own reference library: name, description and location of each skill."""
    lines = [OPENING]
    for skill in skills:
        lines.append("<skill>")
        for tag, value in (("name", skill.name), ("description", skill.description), ("location", skill.location)):
            lines += f"<{tag}>", value.translate(_TEXT), f"</{tag}>"
        lines.append("</skill>")
    return "\n".join((*lines, CLOSING))


def _escape_one(match: re.Match[str]) -> str:
    return "&lt;" if match[0] == "<" else "&amp;"
