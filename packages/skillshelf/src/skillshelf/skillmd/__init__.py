"""Read a SKILL.md as fields and instructions, repaired if need be, and write one. Text only."""

from skillshelf.skillmd._codes import READING
from skillshelf.skillmd._fields import FORMAT_KEYS, find_declared_variables
from skillshelf.skillmd._layout import Unreadable, decode, find_frontmatter
from skillshelf.skillmd._limits import MAX_FILE
from skillshelf.skillmd._read import SkillText, read, render_skill

__all__ = [
    "FORMAT_KEYS",
    "MAX_FILE",
    "READING",
    "SkillText",
    "Unreadable",
    "decode",
    "find_declared_variables",
    "find_frontmatter",
    "read",
    "render_skill",
]
