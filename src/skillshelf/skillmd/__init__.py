"""SKILL.md text <-> frontmatter and instructions: one bounded reader, repairs, and a writer. Pure text."""

from skillshelf.skillmd._fields import FORMAT_KEYS
from skillshelf.skillmd._layout import find_block
from skillshelf.skillmd._read import MAX_FILE, SkillText, decode, read, render
from skillshelf.skillmd._values import MAX_BLOCK, Notes, Unreadable, YamlFault
from skillshelf.skillmd._yaml import Budget, Document, ValueBuilder, compose, typed_scalar

__all__ = [
    "FORMAT_KEYS",
    "MAX_BLOCK",
    "MAX_FILE",
    "Budget",
    "Document",
    "Notes",
    "SkillText",
    "Unreadable",
    "ValueBuilder",
    "YamlFault",
    "compose",
    "decode",
    "find_block",
    "read",
    "render",
    "typed_scalar",
]
