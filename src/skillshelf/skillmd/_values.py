"""What a reading of SKILL.md is made of."""

from typing import NamedTuple

from skillshelf.descriptor import Diagnostic, Severity

MAX_BLOCK = 256 * 1024
_MOST_SHOWN = 400


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
        # What an author wrote is quoted in it, and may be a quarter of a megabyte long.
        shown = message if len(message) <= _MOST_SHOWN else message[:_MOST_SHOWN] + "…"
        self.items.append(Diagnostic(severity, code, shown, line=line, fix=fix))


class Layout(NamedTuple):
    """Where the frontmatter lies in the text, and where the instructions begin."""

    block: str
    line: int
    """Of the block's first line in the file."""
    body: int
    """Index of the instructions' first character."""
    end: int | None = None
    """Index after their last, where something follows them that is not theirs."""
