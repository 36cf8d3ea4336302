"""Write entries so that no skill can close its block or imitate another, and read them back.

Names, descriptions and references are escaped as XML. Instructions hold code that the model must see as it is, so only
text in them that could be taken for this section's own tags is escaped. `parse` undoes both exactly.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillshelf.skills import SkillDescriptor

OPENING = "<available_skills>"
CLOSING = "</available_skills>"

# A bar inside a name is escaped, so this separates names without doubt.
_BAR = " | "
_TEXT_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_ATTRIBUTE_ESCAPES = _TEXT_ESCAPES | str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;", "|": "&#124;"})
_OWN_TAG = re.compile(
    r"<(?=\s*+(?:/\s*+)?(?:available_skills|skill|skill_names|instructions)\b)|&(?=(?:lt|amp);)", re.I
)
_ESCAPED = re.compile(r"&(lt|amp);")
_ENTRY = re.compile(
    r'<skill name="([^"]*)"(?: context="(fork)")?(?: references="([^"]*)")?(?: more="(\d+)")?>'
    r"([^<]*)(?:<instructions>\n(.*?)\n</instructions>\n)?</skill>\n",
    re.S,
)
_NAMES = re.compile(r"^<skill_names>([^<]*)</skill_names>$", re.M)


@dataclass(frozen=True, slots=True)
class Entry:
    """A skill as the section shows it."""

    name: str
    description: str
    """Empty if there is room for the name only."""
    references: tuple[str, ...] = ()
    more: int = 0
    """The number of references that are not named here."""
    instructions: str | None = None
    """None if the model has to load them."""
    runs_apart: bool = False
    """True if the skill asks for a conversation of its own."""

    @property
    def is_bare(self) -> bool:
        """True if there is room for the name only."""
        return not (self.description or self.references or self.more) and self.instructions is None

    def render(self) -> str:
        """Return the entry's part of the block: an element of its own, or one name among others."""
        if self.is_bare:
            return _BAR + escape_name(self.name)

        attributes = f'name="{escape_name(self.name)}"'
        if self.runs_apart:
            attributes += ' context="fork"'
        if self.references:
            attributes += f' references="{_BAR.join(map(escape_name, self.references))}"'
        if self.more:
            attributes += f' more="{self.more}"'

        body = self.description.translate(_TEXT_ESCAPES)
        if self.instructions is not None:
            body += f"<instructions>\n{_OWN_TAG.sub(_escape, self.instructions)}\n</instructions>\n"
        return f"<skill {attributes}>{body}</skill>\n"


def escape_name(name: str) -> str:
    """Escape a name so that it can neither close the block nor begin a line."""
    return name.translate(_ATTRIBUTE_ESCAPES)


def render(entries: Sequence[Entry]) -> str:
    """Return the block with these entries."""
    elements = [entry.render() for entry in entries if not entry.is_bare]
    return join_block(elements, [entry.name for entry in entries if entry.is_bare])


def join_block(elements: Sequence[str], bare_names: Sequence[str]) -> str:
    """Return the block. Skills that are shown by name alone share one element: many names in few tokens."""
    parts = [f"{OPENING}\n", *elements]
    if bare_names:
        parts.append(f"<skill_names>{_BAR.join(map(escape_name, bare_names))}</skill_names>\n")
    parts.append(f"{CLOSING}\n")
    return "".join(parts)


def parse(section: str) -> list[Entry]:
    """Return the entries of a section's text, exactly as they went in."""
    start = section.find(OPENING)
    end = section.rfind(CLOSING)
    if start < 0:
        return []

    entries = [_read_entry(match) for match in _ENTRY.finditer(section, start, end)]
    bare_names = _NAMES.search(section, start, end)
    if bare_names:
        entries += [Entry(name, "") for name in _split_names(bare_names[1])]
    return entries


def _read_entry(match: re.Match[str]) -> Entry:
    from html import unescape  # takes 4 ms, which only a reader of sections pays

    name, context, references, more, description, instructions = match.groups()
    if instructions is not None:
        instructions = _ESCAPED.sub(_unescape, instructions)
    return Entry(
        name=unescape(name),
        description=unescape(description),
        references=_split_names(references) if references is not None else (),
        more=int(more or 0),
        instructions=instructions,
        runs_apart=context is not None,
    )


def _split_names(escaped: str) -> tuple[str, ...]:
    from html import unescape

    return tuple(unescape(name) for name in escaped.split(_BAR))


def _escape(match: re.Match[str]) -> str:
    return "&lt;" if match[0] == "<" else "&amp;"


def _unescape(match: re.Match[str]) -> str:
    return "<" if match[1] == "lt" else "&"


def to_xml(skills: Iterable[SkillDescriptor]) -> str:
    """Return skills as the format's own reference library renders them: name, description and location of each."""
    lines = [OPENING]
    for skill in skills:
        lines.append("<skill>")
        for tag, value in (("name", skill.name), ("description", skill.description), ("location", skill.location)):
            lines += [f"<{tag}>", value.translate(_TEXT_ESCAPES), f"</{tag}>"]
        lines.append("</skill>")
    lines.append(CLOSING)
    return "\n".join(lines)
