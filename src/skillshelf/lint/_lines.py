"""Find the lines of a SKILL.md that diagnostics point to."""

import re

from skillshelf.skillmd import SkillText


def find_field_line(skill: SkillText, field: str) -> int:
    """Return the line of a field in the file, or 1 if the field is not found."""
    frontmatter = skill.text[: skill.body_start]
    match = re.search(rf"^[\"']?{re.escape(field)}[\"']?[ \t]*:", frontmatter, re.M)
    if match is None:
        return 1
    return frontmatter.count("\n", 0, match.start()) + 1


def find_nested_line(skill: SkillText, field: str, key: str) -> int:
    """Return the line of a key below a field, or the line of the field if the key is not found there."""
    line = find_field_line(skill, field)
    lines = skill.text[: skill.body_start].split("\n")
    is_key = re.compile(rf"[ \t]+[\"']?{re.escape(key)}[\"']?[ \t]*:").match
    for number, text in enumerate(lines[line:], line + 1):
        if is_key(text):
            return number
    return line


def find_instructions_line(skill: SkillText) -> int:
    """Return the line of the file that the instructions begin on."""
    return skill.text.count("\n", 0, skill.body_start) + 1
