"""What a reading of SKILL.md is made of."""

from dataclasses import dataclass, field
from typing import Any

from skillshelf.descriptor import Diagnostic, Severity

MAX_BLOCK = 256 * 1024
MAX_DESCRIPTION = 1024


class Unreadable(Exception):
    """This text cannot become a skill; the diagnostic says what to change."""

    def __init__(self, code: str, message: str, fix: str, line: int = 1) -> None:
        self.diagnostic = Diagnostic("error", code, message, line=line, fix=fix)
        super().__init__(message)


class YamlFault(Exception):
    """The block is not YAML, or more of it than a frontmatter needs."""

    def __init__(self, problem: str, line: int) -> None:
        self.problem, self.line = problem, line
        super().__init__(problem)


class Notes:
    """Diagnostics gathered while reading one file."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def add(self, severity: Severity, code: str, message: str, line: int = 1, fix: str = "") -> None:
        self.items.append(Diagnostic(severity, code, message, line=line, fix=fix))


@dataclass(slots=True)
class Layout:
    """Where the frontmatter lies in the text, and where the instructions begin."""

    block: str
    line: int
    """Of the block's first line in the file."""
    body: int
    """Index of the instructions' first character."""


@dataclass(slots=True)
class Parsed:
    """A frontmatter block as a mapping of texts, lists and mappings of texts."""

    values: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)
    """Of each top-level key, counted from 1 within the block; empty when nothing is to be said."""
