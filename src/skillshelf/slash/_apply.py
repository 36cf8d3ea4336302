"""The message that `/skills:<name>` becomes, so that no skill and no argument can close the block it stands in.

Instructions hold code that the model must see as it is, so in them only what could be taken for this message's own
tags is escaped; `read_message` undoes it exactly.
"""

import re
from typing import NamedTuple

from skillshelf.descriptor import SkillDescriptor
from skillshelf.slash._words import fill
from skillshelf.text import clean_line
from skillshelf.turn import MAX_LISTED_REFERENCES

_OWN_TAG = re.compile(r"<(?=\s*+(?:/\s*+)?skill_(?:instructions|references|arguments)\b)|&(?=(?:lt|amp);)", re.I)
_ESCAPED = re.compile(r"&(lt|amp);")
_PATH = str.maketrans({"&": "&amp;", "<": "&lt;", "\r": "&#13;", "\n": "&#10;"})
# Each block ends at its first closing tag, because no text inside can have one: so nothing is tried twice.
_MESSAGE = re.compile(
    r'Apply Skill "(?P<name>[^\n]*)"\n\n<skill_instructions>\n(?>(?P<instructions>.*?)\n</skill_instructions>\n)'
    r"(?>\n[^\n]*\n<skill_references>\n.*?\n</skill_references>\n)?+"
    r"(?>\n<skill_arguments>\n(?P<arguments>.*?)\n</skill_arguments>\n)?+",
    re.S,
)


class Applied(NamedTuple):
    """What an Apply Skill message holds."""

    name: str
    instructions: str
    arguments: str
    """Empty where they have their places in the instructions."""


def apply_message(descriptor: SkillDescriptor, instructions: str, arguments: str, *, reach: str = "") -> str:
    """What a person who invokes a skill says to the model. `reach`: the name that leads to a shadowed skill.

    Placeholders are replaced only where the skill declares arguments; arguments without a place of their own follow
    the instructions. Commands inside the text stay text.
    """
    if descriptor.arguments or descriptor.argument_hint:
        instructions, complete = fill(instructions, arguments, descriptor.arguments)
        arguments = "" if complete else arguments
    name = clean_line(reach or descriptor.name)
    message = f'Apply Skill "{name}"\n\n{_block("instructions", instructions)}'
    if descriptor.references:
        names = "\n".join(f"- {path.translate(_PATH)}" for path in descriptor.references[:MAX_LISTED_REFERENCES])
        more = len(descriptor.references) - MAX_LISTED_REFERENCES
        rest = f"\n… and {more} more, whose names the instructions give" if more > 0 else ""
        how = f'References of this skill: load one with load_skill_instructions(skill_name="{name}", reference=…).'
        message += f"\n{how}\n<skill_references>\n{names}{rest}\n</skill_references>\n"
    return f"{message}\n{_block('arguments', arguments)}" if arguments else message


def read_message(text: str) -> Applied | None:
    """An Apply Skill message taken apart, exactly as it was put together; None for any other."""
    found = _MESSAGE.fullmatch(text)
    if not found:
        return None
    return Applied(found["name"], _unescape(found["instructions"]), _unescape(found["arguments"] or ""))


def _block(tag: str, text: str) -> str:
    escaped = _OWN_TAG.sub(lambda match: "&lt;" if match[0] == "<" else "&amp;", text)
    return f"<skill_{tag}>\n{escaped}\n</skill_{tag}>\n"


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: "<" if match[1] == "lt" else "&", text)
