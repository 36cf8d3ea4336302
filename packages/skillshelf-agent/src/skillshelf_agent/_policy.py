"""What the agent may do without asking. Only the user sets this: nothing in a workspace or a skill can."""

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from skillshelf.errors import SettingsError
from skillshelf.files import fold_name
from skillshelf.sandbox import Sandbox
from skillshelf.settings import MODES, Mode
from skillshelf.trust import UnreviewedFile
from skillshelf_agent._repetition import Repetition
from skillshelf_agent._tool_names import INSTALL_PACKAGES, READING, SHELL, WRITING
from skillshelf_agent.rules import Rule, RuleBook, denies_every_call
from skillshelf_agent.scripts import SkillScript


@dataclass(frozen=True, slots=True)
class Refusal:
    """No, with a reason that the model gets: `Refusal("use pnpm instead")`."""

    reason: str


Answer = Literal["yes", "reviewed", "no", "always", "rule"] | Refusal
"""The user's answer to a question.

`reviewed`: yes, with the whole of `Approval.diff` in the user's sight, so that a skill's new content is approved.
`always`: yes, and for the rest of the session. `rule`: yes, and `Approval.offered_rule` holds from now on.
"""

# The agent itself obeys these files: changing one changes what it will do. In the form of `fold_name`.
_INSTRUCTION_NAMES = ("skill.md", "agents.md", "claude.md")


@dataclass(frozen=True, slots=True)
class Approval:
    """A question to the user about one call of one tool."""

    tool: str
    arguments: dict[str, Any]
    diff: str = ""
    """The change that a write would make, as a unified diff."""
    sandbox: Sandbox | None = None
    """What a command would run in; None for other tools."""
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
    server: str = ""
    """The MCP server that the tool comes from."""
    offered_rule: Rule | None = None
    """The rule that the answer `rule` makes; None if no rule can cover the call."""
    repetition: Repetition | None = None
    """Set if the question is not whether the call may run, but whether the model may go on repeating it."""
    script: SkillScript | None = None
    """The script of a skill that would run, as it would run."""

    @property
    def subject(self) -> str:
        """What a lasting permission is for: a command, a script with its content, or the arguments of a call.

        Empty for writes of files, which are all allowed together.
        """
        if self.script is not None:
            return self.script.content_key
        if self.tool == SHELL:
            return str(self.arguments.get("command", ""))
        if self.tool in WRITING:
            return ""
        return json.dumps(self.arguments, sort_keys=True, default=str)

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
            "sandbox": self.sandbox.as_json() if self.sandbox is not None else None,
            "unreviewed": [file.as_json() for file in self.unreviewed],
            "script": self.script.as_json() if self.script is not None else None,
            "server": self.server,
            "offered_rule": str(self.offered_rule) if self.offered_rule is not None else None,
            "repetition": asdict(self.repetition) if self.repetition is not None else None,
        }


Approve = Callable[[Approval], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class PolicyDecision:
    """What the policy says about a call, and the user's rule if one decided."""

    decision: Literal["allow", "ask", "refuse"]
    rule: Rule | None = None
    network: bool = False
    """Whether a command that is allowed without a question gets the network."""


@dataclass(slots=True)
class Policy:
    """The mode, the calls that the user allowed for the rest of the session, and the rules that last."""

    mode: Mode = "ask"
    always: set[str] = field(default_factory=set)
    rules: RuleBook | None = None

    def __post_init__(self) -> None:
        self.set(self.mode)

    def set(self, mode: str) -> None:
        """Change the mode, and forget what was allowed. Raises SettingsError for an unknown mode."""
        if mode not in MODES:
            raise SettingsError(f"Unknown policy {mode!r}. Choose one of: {', '.join(MODES)}.")
        self.mode = mode
        self.always.clear()

    def allow_always(self, tool: str, subject: str = "") -> None:
        """Allow all further calls of a tool with this subject; all calls if it has none, as for writes of files."""
        self.always.add(_key(tool, subject))

    def find_blocked(self, decided: Iterable[str], unasked: Iterable[str]) -> frozenset[str]:
        """Return those of these tools of which every call is refused, whatever its arguments.

        `decided`: the tools that `decide` decides about. `unasked`: tools that need no approval, which only a rule can
        block.
        """
        decided = frozenset(decided) - READING
        rules = self.rules.list() if self.rules is not None else []
        denied = {name for name in {*decided, *unasked} if any(denies_every_call(rule, name) for rule in rules)}
        return decided | denied if self.mode == "read-only" else frozenset(denied)

    def find_denial(self, tool: str, arguments: Mapping[str, Any]) -> Rule | None:
        """Return the rule that denies a call, even of a tool that needs no approval. None denies reading."""
        rule = self._find_ruling(tool, arguments)
        return rule if rule is not None and rule.decision == "deny" else None

    def decide(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        path: str = "",
        subject: str = "",
        *,
        is_sandboxed: bool = False,
    ) -> PolicyDecision:
        """Decide about a call of one of the agent's own tools, or of another tool that needs approval.

        `path`: the real path of the file that would be written. `subject`: the command or the script that would run.
        `is_sandboxed`: whether it would run in the sandbox. A rule that denies a call comes first, even in `yolo`. A
        rule that allows one counts for nothing in `read-only`, and for no file that the agent obeys.
        """
        if tool in READING:
            return PolicyDecision("allow")
        rule = self._find_ruling(tool, arguments, path, is_sandboxed=is_sandboxed)
        if rule is not None and rule.decision == "deny":
            return PolicyDecision("refuse", rule)

        if self.mode == "yolo":
            return PolicyDecision("allow", network=True)
        if self.mode == "read-only":
            return PolicyDecision("refuse")
        if is_instruction_file(path):
            return PolicyDecision("ask")
        if rule is not None:
            return PolicyDecision("allow", rule, rule.network)
        if _key(tool, subject) in self.always:  # the question for this very command has said that it gets the network
            return PolicyDecision("allow", network=True)
        if self.mode == "auto-edit" and tool in WRITING:
            return PolicyDecision("allow")
        return PolicyDecision("ask")

    def _find_ruling(
        self, tool: str, arguments: Mapping[str, Any], path: str = "", *, is_sandboxed: bool = False
    ) -> Rule | None:
        if self.rules is None or tool in READING:
            return None
        return self.rules.find_ruling(self.rules.describe_call(tool, arguments, path, is_sandboxed=is_sandboxed))


def is_instruction_file(path: str) -> bool:
    """Return True for a file that the agent obeys: a SKILL.md, AGENTS.md or CLAUDE.md, however its name is spelled."""
    return fold_name(os.path.basename(path)) in _INSTRUCTION_NAMES


def _key(tool: str, subject: str) -> str:
    if tool in WRITING:
        return " and ".join(sorted(WRITING))
    return f"{tool}: {subject}" if subject else tool
