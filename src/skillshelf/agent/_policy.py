"""What the agent may do without asking. Only the person sets this: nothing in a workspace or a skill can."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from skillshelf.agent._confinement import Confinement
from skillshelf.errors import SettingsError
from skillshelf.files import fold_name
from skillshelf.trust import UnreviewedFile

Mode = Literal["ask", "read-only", "auto-edit", "yolo"]
Answer = Literal["yes", "no", "always"]
MODES: tuple[Mode, ...] = get_args(Mode)

READING = frozenset({"read_file", "list_directory", "find_files", "search_files"})
WRITING = frozenset({"write_file", "edit_file"})
SHELL = "run_command"
# What the agent itself obeys: changing one changes what it will do. In the form of `fold_name`.
_OBEYED = ("skill.md", "agents.md")


@dataclass(frozen=True, slots=True)
class Approval:
    """What the person is asked about: one call of one tool."""

    tool: str
    arguments: dict[str, Any]
    diff: str = ""
    """What a write would change, as a unified diff."""
    confinement: Confinement | None = None
    """How far a command is confined; None for other tools."""
    unreviewed: tuple[UnreviewedFile, ...] = ()
    """Files of skills that a command mentions and that the user has not approved as they are now."""
    path: str = ""
    """The real path of the file that a write changes."""
    old_sha256: str = ""
    """The hash of the content that a write replaces; empty for a new file. Only this version is replaced."""
    repeated: bool = False
    """The same call was allowed, but the file has changed since, so it is asked about again."""

    def as_json(self) -> dict[str, Any]:
        """Return the question for programs."""
        return {
            "tool": self.tool,
            "arguments": self.arguments,
            "diff": self.diff,
            "path": self.path,
            "old_sha256": self.old_sha256,
            "repeated": self.repeated,
            "confinement": None if self.confinement is None else self.confinement.as_json(),
            "unreviewed": [file.as_json() for file in self.unreviewed],
        }


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

    def allow_always(self, tool: str, command: str = "") -> None:
        """The person allows all further calls of a tool; of the shell, this very command and no other."""
        self.always.add(_key(tool, command))

    def decide(self, tool: str, path: str = "", command: str = "") -> Literal["allow", "ask", "refuse"]:
        """For a call of one of the agent's own tools, or of a code skill's that wants to be asked about.

        `path`: the real one of the file that a write means. `command`: what the shell would run.
        """
        if tool in READING or self.mode == "yolo":
            return "allow"
        if self.mode == "read-only":
            return "refuse"
        if fold_name(os.path.basename(path)) in _OBEYED:
            return "ask"
        if _key(tool, command) in self.always or (self.mode == "auto-edit" and tool in WRITING):
            return "allow"
        return "ask"


def _key(tool: str, command: str) -> str:
    return f"{tool}: {command}" if tool == SHELL else tool
