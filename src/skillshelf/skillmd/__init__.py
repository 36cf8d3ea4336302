"""Read a SKILL.md as fields and instructions, with one bounded YAML reader and repairs, and write one. Text only."""

from skillshelf.skillmd._codes import READING
from skillshelf.skillmd._frontmatter import FORMAT_KEYS
from skillshelf.skillmd._layout import MAX_FILE, Unreadable, decode, find_frontmatter
from skillshelf.skillmd._read import SkillText, read, render_skill
from skillshelf.skillmd._variables import find_declared_variables
from skillshelf.skillmd._yaml import MAX_BLOCK, Budget, Document, ValueBuilder, YamlFault, compose, typed_scalar

__all__ = [
    "FORMAT_KEYS",
    "MAX_BLOCK",
    "MAX_FILE",
    "READING",
    "Budget",
    "Document",
    "SkillText",
    "Unreadable",
    "ValueBuilder",
    "YamlFault",
    "compose",
    "decode",
    "find_declared_variables",
    "find_frontmatter",
    "read",
    "render_skill",
    "typed_scalar",
]
