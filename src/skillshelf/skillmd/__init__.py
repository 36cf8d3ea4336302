"""SKILL.md text <-> frontmatter and instructions: one bounded reader, repairs, and a writer. Pure text."""

from skillshelf.skillmd._read import MAX_FILE, SkillText, decode, read, render
from skillshelf.skillmd._yaml import Budget, Document, compose, typed_scalar
from skillshelf.skillmd.fields import FORMAT_KEYS
from skillshelf.skillmd.layout import find_block
from skillshelf.skillmd.values import MAX_BLOCK, MAX_DESCRIPTION, Notes, Unreadable, YamlFault

__all__ = [
    "FORMAT_KEYS",
    "MAX_BLOCK",
    "MAX_DESCRIPTION",
    "MAX_FILE",
    "Budget",
    "Document",
    "Notes",
    "SkillText",
    "Unreadable",
    "YamlFault",
    "compose",
    "decode",
    "find_block",
    "read",
    "render",
    "typed_scalar",
]
