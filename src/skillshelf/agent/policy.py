"""What the agent may do without asking. Only the person sets this: nothing in a workspace or a skill can."""

import difflib
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from skillshelf.errors import SettingsError

Mode = Literal["ask", "read-only", "auto-edit", "yolo"]
Answer = Literal["yes", "no", "always"]
MODES: tuple[Mode, ...] = get_args(Mode)

READING = frozenset({"read_file", "list_directory", "find_files", "search_files"})
WRITING = frozenset({"write_file", "edit_file"})
SHELL = "run_command"
# What the agent itself obeys: changing one changes what it will do.
_OBEYED = ("SKILL.md", "AGENTS.md")


@dataclass(frozen=True, slots=True)
class Approval:
    """What the person is asked about: one call of one tool."""

    tool: str
    arguments: dict[str, Any]
    diff: str = ""
    """What a write would change, as a unified diff."""


Approve = Callable[[Approval], Awaitable[Answer]]


@dataclass(slots=True)
class Policy:
    """The mode, and what the person allowed for the rest of the session."""

    mode: Mode = "ask"
    always: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.set(self.mode)

    def set(self, mode: str) -> None:
        """Raises SettingsError for a mode that is none."""
        if mode not in MODES:
            raise SettingsError(f"{mode!r} is no policy. Use one of: {', '.join(MODES)}.")
        self.mode = mode
        self.always.clear()

    def decide(self, tool: str, arguments: dict[str, Any]) -> Literal["allow", "ask", "refuse"]:
        """For a call of one of the agent's own tools, or of a code skill's that wants to be asked about."""
        if tool in READING or self.mode == "yolo":
            return "allow"
        if self.mode == "read-only":
            return "refuse"
        if tool in self.always:
            return "allow"
        if self.mode == "auto-edit" and tool in WRITING and not _is_obeyed(arguments):
            return "allow"
        return "ask"


def _is_obeyed(arguments: dict[str, Any]) -> bool:
    return os.path.basename(str(arguments.get("path", ""))) in _OBEYED


def preview(root: str, tool: str, arguments: dict[str, Any]) -> str:
    """The change that a write would make, as a diff; empty where it cannot be told."""
    if tool not in WRITING:
        return ""
    path = str(arguments.get("path", ""))
    old = _current(os.path.join(root, path))
    new = arguments.get("content") if tool == "write_file" else _edited(old, arguments)
    if not isinstance(new, str):
        return ""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", lineterm="")
    return "\n".join(lines)


def _current(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(1_000_000)
    except OSError:
        return ""


def _edited(text: str, arguments: dict[str, Any]) -> str | None:
    pairs = arguments.get("replacements") or [arguments]
    for pair in pairs:
        get = pair.get if isinstance(pair, dict) else lambda key, pair=pair: getattr(pair, key, None)
        old, new = get("old_text"), get("new_text")
        if not isinstance(old, str) or not isinstance(new, str) or text.count(old) != 1:
            return None
        text = text.replace(old, new)
    return text
