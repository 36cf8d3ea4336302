"""The message that `/skills:<name>` becomes, built so that no skill and no argument can close the block it stands in.

Instructions hold code that the model must see unchanged. Only text that could be taken for this message's own tags is
escaped, and `read_message` undoes that exactly.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.descriptor import SkillDescriptor
from skillshelf.text import clean_line
from skillshelf.turn import list_references

_OWN_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?skill_(?:instructions|references|arguments)\b)|&(?=(?:lt|amp);)", re.I)
_ESCAPED = re.compile(r"&(lt|amp);")
_PATH_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", "\r": "&#13;", "\n": "&#10;"})
# Each block ends at its first closing tag, because no text inside can have one: so nothing is tried twice.
_MESSAGE = re.compile(
    r'Apply Skill "(?P<name>[^\n]*)"\n\n<skill_instructions>\n(?>(?P<instructions>.*?)\n</skill_instructions>\n)'
    r"(?>\n[^\n]*\n<skill_references>\n.*?\n</skill_references>\n)?+"
    r"(?>\n<skill_arguments>\n(?P<arguments>.*?)\n</skill_arguments>\n)?+",
    re.S,
)
# A backslash before a letter is part of a Windows path. An apostrophe inside a word opens no quotation.
_WORD_PIECE = re.compile(
    r"""(?P<space>\s++) | "(?P<double>(?:[^"\\]|\\.)*+)" | (?<![^\s"'])'(?P<single>[^']*+)'
      | \\(?P<escaped>["'\\\s]) | (?P<plain>[^\s"'\\]++|.)""",
    re.S | re.X,
)
_QUOTED_ESCAPE = re.compile(r'\\(["\\])')
# A megabyte of placeholders, each filled with a pasted text, would be gigabytes.
_MAX_FILLED = 1_000_000


class AppliedSkill(NamedTuple):
    """The content of an Apply Skill message."""

    name: str
    instructions: str
    arguments: str
    """Empty if the arguments were put into the instructions."""


def apply_message(descriptor: SkillDescriptor, instructions: str, arguments: str, *, reach: str = "") -> str:
    """Return the message that a user sends to the model by invoking a skill.

    Placeholders are replaced only if the skill declares arguments; arguments without a place of their own follow the
    instructions. Commands inside the text stay text. `reach` is the name that leads to a shadowed skill.
    """
    if descriptor.arguments or descriptor.argument_hint:
        filled = fill_placeholders(instructions, arguments, descriptor.arguments)
        instructions = filled.text
        if filled.is_complete:
            arguments = ""

    name = clean_line(reach or descriptor.name)
    message = f'Apply Skill "{name}"\n\n{_make_block("instructions", instructions)}'
    if descriptor.references:
        message += f"\n{_make_references_block(name, descriptor.references)}"
    if arguments:
        message += f"\n{_make_block('arguments', arguments)}"
    return message


def read_message(text: str) -> AppliedSkill | None:
    """Take an Apply Skill message apart, exactly as it was put together. Return None for any other message."""
    match = _MESSAGE.fullmatch(text)
    if not match:
        return None
    return AppliedSkill(match["name"], _unescape(match["instructions"]), _unescape(match["arguments"] or ""))


class FilledText(NamedTuple):
    """A text with its placeholders replaced."""

    text: str
    is_complete: bool
    """True if every argument was put into the text."""


def fill_placeholders(text: str, arguments: str, names: Sequence[str]) -> FilledText:
    """Replace `$ARGUMENTS`, `$1`, `$2` … and `$name` in one pass: placeholders inside an argument are left alone."""
    words = split_words(arguments)
    index_of = {
        name: index for index, name in enumerate(names) if name and name != "ARGUMENTS" and not name.isdecimal()
    }
    # `$1.50` is money.
    alternatives = "".join(f"|{re.escape(name)}" for name in sorted(index_of, key=len, reverse=True))
    pattern = re.compile(rf"\$(ARGUMENTS|[1-9][0-9]?{alternatives})(?!\w|\.\d)")
    used: set[int] = set()
    room = _MAX_FILLED

    def replace(match: re.Match[str]) -> str:
        nonlocal room
        name = match[1]
        if name == "ARGUMENTS":
            value = arguments
            indexes = range(len(words))
        else:
            index = index_of[name] if name in index_of else int(name) - 1
            value = words[index] if index < len(words) else ""
            indexes = range(index, index + 1)

        room -= len(value)
        if room < 0:
            return match[0]
        used.update(indexes)
        return value

    filled = pattern.sub(replace, text)
    return FilledText(filled, used.issuperset(range(len(words))))


def split_words(arguments: str) -> list[str]:
    """Split arguments as a shell does, except that a quote that nothing closes is an ordinary character."""
    words: list[str] = []
    inside_word = False
    for piece in _WORD_PIECE.finditer(arguments):
        kind = piece.lastgroup or "plain"
        if kind == "space":
            inside_word = False
            continue

        text = piece[kind]
        if kind == "double":
            text = _QUOTED_ESCAPE.sub(r"\1", text)
        if inside_word:
            words[-1] += text
        else:
            words.append(text)
            inside_word = True
    return words


def _make_references_block(name: str, references: Sequence[str]) -> str:
    how_to_load = f'References of this skill: load one with load_skill_instructions(skill_name="{name}", reference=…).'
    listed = "\n".join(list_references([path.translate(_PATH_ESCAPES) for path in references]))
    return f"{how_to_load}\n<skill_references>\n{listed}\n</skill_references>\n"


def _make_block(tag: str, text: str) -> str:
    escaped = _OWN_TAG.sub(lambda match: "&lt;" if match[0] == "<" else "&amp;", text)
    return f"<skill_{tag}>\n{escaped}\n</skill_{tag}>\n"


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: "<" if match[1] == "lt" else "&", text)
