"""What the agent may do without asking. Only the user sets this: nothing in a workspace or a skill can."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from skillshelf.agent._confinement import Confinement
from skillshelf.agent.scripts import RUN_SCRIPT, SkillScript
from skillshelf.errors import SettingsError
from skillshelf.files import fold_name
from skillshelf.settings import MODES, Mode
from skillshelf.trust import UnreviewedFile

Answer = Literal["yes", "reviewed", "no", "always"]
"""`reviewed`: yes, with the whole of `Approval.diff` in the user's sight, so that a skill's new content is approved."""

READING = frozenset({"read_file", "list_directory", "find_files", "search_files"})
WRITING = frozenset({"write_file", "edit_file"})
SHELL = "run_command"
INSTALL_PACKAGES = "install_packages"
"""Not a tool of the model, but a question of its own: may packages be installed for a script?"""
OWN_TOOLS = READING | WRITING | {SHELL, RUN_SCRIPT, INSTALL_PACKAGES}
"""The agent's own tools. The gate goes by these names, so no tool of a code skill may have one of them."""
# The agent itself obeys these files: changing one changes what it will do. In the form of `fold_name`.
_INSTRUCTION_NAMES = ("skill.md", "agents.md")


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to the user about one call of one tool."""

    tool: str
    arguments: dict[str, Any]
    diff: str = ""
    """The change that a write would make, as a unified diff."""
    confinement: Confinement | None = None
    """How far a command is confined; None for other tools."""
    unreviewed: tuple[UnreviewedFile, ...] = ()
    """Files of skills that a command mentions and that the user has not approved as they are now."""
    path: str = ""
    """The real path of the file that a write changes."""
    old_sha256: str = ""
    """The hash of the content that a write replaces; empty for a new file. Only this version is replaced."""
    repeated: bool = False
    """True if the same call was allowed, but the file has changed since."""
    reviewed: bool = False
    """True if the user has allowed the call with the whole diff in sight."""
    script: SkillScript | None = None
    """The script of a skill that would run, as it would run."""

    @property
    def subject(self) -> str:
        """The text that a lasting permission is for: a command, or a script with its content; empty for other tools."""
        if self.script is not None:
            return self.script.content_key
        return str(self.arguments.get("command", "")) if self.tool == SHELL else ""

    @property
    def can_be_lasting(self) -> bool:
        """True if the user may allow further calls with this one."""
        return not self.changes_instructions and self.tool != INSTALL_PACKAGES

    @property
    def changes_instructions(self) -> bool:
        """True if the call writes a file that the agent itself obeys. No lasting permission covers such a write."""
        return is_instruction_file(self.path)

    def as_json(self) -> dict[str, Any]:
        """Return the question for programs."""
        return {
            "tool": self.tool,
            "arguments": self.arguments,
            "diff": self.diff,
            "path": self.path,
            "old_sha256": self.old_sha256,
            "repeated": self.repeated,
            "confinement": self.confinement.as_json() if self.confinement is not None else None,
            "unreviewed": [file.as_json() for file in self.unreviewed],
            "script": self.script.as_json() if self.script is not None else None,
        }


Approve = Callable[[Approval], Awaitable[Answer]]


@dataclass(slots=True)
class Policy:
    """The mode, and the calls that the user allowed for the rest of the session."""

    mode: Mode = "ask"
    always: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.set(self.mode)

    def set(self, mode: str) -> None:
        """Change the mode, and forget what was allowed. Raises SettingsError for an unknown mode."""
        if mode not in MODES:
            raise SettingsError(f"Unknown policy {mode!r}. Choose one of: {', '.join(MODES)}.")
        self.mode = mode
        self.always.clear()

    def allow_always(self, tool: str, subject: str = "") -> None:
        """Allow all further calls of a tool, or all further runs of exactly this command or script."""
        self.always.add(_key(tool, subject))

    def decide(self, tool: str, path: str = "", subject: str = "") -> Literal["allow", "ask", "refuse"]:
        """Decide about a call of one of the agent's own tools, or of a code skill's tool that needs approval.

        `path`: the real path of the file that would be written. `subject`: the command or the script that would run.
        """
        if tool in READING or self.mode == "yolo":
            return "allow"
        if self.mode == "read-only":
            return "refuse"
        if is_instruction_file(path):
            return "ask"
        if _key(tool, subject) in self.always or (self.mode == "auto-edit" and tool in WRITING):
            return "allow"
        return "ask"


def is_instruction_file(path: str) -> bool:
    """Return True for a file that the agent obeys: a SKILL.md or an AGENTS.md, however its name is spelled."""
    return fold_name(os.path.basename(path)) in _INSTRUCTION_NAMES


def _key(tool: str, subject: str) -> str:
    return f"{tool}: {subject}" if tool in (SHELL, RUN_SCRIPT) else tool
