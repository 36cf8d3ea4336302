"""Approval rules: kinds of calls that the user allowed or denied for good."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from skillshelf.errors import SettingsError
from skillshelf.files import fold_name, is_at_or_inside, is_inside
from skillshelf_agent._tool_names import INSTALL_PACKAGES, READING, RUN_SCRIPT, SHELL, WRITING
from skillshelf_agent.rules._command import Words, find_simple_commands, split_command

Decision = Literal["allow", "deny"]

_WRITE = "write_file"
"""The name under which rules for files are kept. They hold for both tools that write."""
_ANY = "*"
_MAX_LETTERS = 20
"""How many short options are looked at in one word."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of calls, and whether they are allowed or denied.

    A command is compared word by word: `git status` has these words and no others, `git diff *` begins with these
    words. A path is a pattern relative to the workspace, in which `**` stands for any folders. For other tools, the
    named arguments have to be equal, and the rest may be anything.
    """

    decision: Decision
    tool: str
    command: str = ""
    path: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    workspace: str = ""
    """The root of the workspace that the rule is for. Empty: everywhere."""
    network: bool = False
    """Whether an allowed command gets the network. Otherwise it has loopback of its own."""
    confirmed: bool = True
    """False if a version for which `*` meant something else stored it: such a rule allows nothing."""

    def __post_init__(self) -> None:
        if self.tool in WRITING:
            object.__setattr__(self, "tool", _WRITE)
        check_rule(self)

    def __str__(self) -> str:
        with_network = ", with the network" if self.network else ""
        return f"{self.decision} {self.target}{with_network}"

    @property
    def target(self) -> str:
        """The calls that the rule is about, as the user would type them."""
        if self.tool == SHELL:
            return f"{SHELL} {json.dumps(self.command, ensure_ascii=False)}"
        if self.tool == _WRITE:
            return f"{_WRITE} {json.dumps(self.path, ensure_ascii=False)}"
        named = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in self.arguments.items()]
        return " ".join([self.tool, *named])

    @property
    def allows_prefix(self) -> bool:
        """True if it allows every command that begins with its words."""
        return self.decision == "allow" and self.tool == SHELL and _parse_pattern(self.command).is_prefix


@dataclass(frozen=True, slots=True)
class RuledCall:
    """A call as rules see it."""

    tool: str
    arguments: Mapping[str, Any]
    path: str = ""
    """The real path of the file that would be written."""
    root: str = ""
    """The root of the workspace."""
    folder: str = ""
    """The folder that a command starts in."""
    is_sandboxed: bool = False
    """True if a command would run in the sandbox, without which a prefix allows nothing."""


def check_rule(rule: Rule) -> None:
    """Raise SettingsError for a rule that has no clear meaning."""
    if not rule.tool:
        raise SettingsError("A rule needs the name of a tool, such as run_command.")
    if rule.tool in READING:
        raise SettingsError(f"{rule.tool} only reads, which needs no approval, so there are no rules for it.")
    if rule.tool in (RUN_SCRIPT, INSTALL_PACKAGES) and rule.decision == "allow":
        raise SettingsError("Scripts of skills are approved by their content, so no rule can allow them.")
    if rule.network and (rule.tool != SHELL or rule.decision != "allow"):
        raise SettingsError(f"The network is for allowed commands, and this is a rule to {rule.decision} {rule.tool}.")
    if rule.tool == SHELL:
        _parse_pattern(rule.command)
    elif rule.tool == _WRITE:
        _check_path(rule.path)
    elif rule.command or rule.path:
        raise SettingsError(f"A rule for {rule.tool} can have arguments, such as name=value, and nothing else.")


def _check_path(path: str) -> None:
    parts = path.split("/")
    if not path or path.startswith(("/", "~")) or ".." in parts or "." in parts:
        raise SettingsError(
            f"{path!r:.80} is not a path in the workspace. Give one relative to its root, such as src/** or docs/*.md."
        )


@dataclass(frozen=True, slots=True)
class _Pattern:
    words: Words
    is_prefix: bool
    """True if further words may follow."""

    def fits(self, words: Sequence[str]) -> bool:
        if self.is_prefix:
            return tuple(words[: len(self.words)]) == self.words
        return tuple(words) == self.words


@cache
def _parse_pattern(text: str) -> _Pattern:
    """Take a command pattern apart. Raises SettingsError if it is not one program with plain words."""
    plain = text.strip()
    is_prefix = plain == _ANY or plain.endswith((f" {_ANY}", f"\t{_ANY}"))
    if is_prefix:
        plain = plain.removesuffix(_ANY).strip()
    if is_prefix and not plain:
        raise SettingsError("`*` alone is every command. Choose a policy for that: /approve yolo, or read-only.")

    words = split_command(plain)
    if words is None and _ANY in plain and split_command(plain.replace(_ANY, "")) is not None:
        raise SettingsError(
            f"{text!r:.80}: `*` can only be the last word, as in `git diff *`. It then stands for any further words."
        )
    if words is None:
        raise SettingsError(
            f"{text!r:.80} is not one program with plain words. A rule cannot have `;`, `&`, `|`, `<`, `>`, `$`, "
            "backquotes, wildcards or assignments: such commands are always asked about."
        )
    return _Pattern(words, is_prefix)


def find_ruling(rules: Sequence[Rule], call: RuledCall) -> Rule | None:
    """Return the rule that decides about a call, or None. A denial comes before everything else.

    Of several that allow it, it is one that grants the network: users add it when a command fails without.
    """
    here = [rule for rule in rules if rule.workspace in ("", call.root)]
    for rule in here:
        if rule.decision == "deny" and _denies(rule, call):
            return rule
    allowing = [rule for rule in here if rule.decision == "allow" and rule.confirmed and _allows(rule, call)]
    return max(allowing, key=lambda rule: rule.network, default=None)


def denies_every_call(rule: Rule, tool: str) -> bool:
    """Return True if a rule denies all calls of a tool, whatever their arguments. No rule is about every command."""
    if rule.decision != "deny" or tool == SHELL:
        return False
    if tool in WRITING:
        return rule.tool == _WRITE and rule.path == "**"
    return rule.tool == tool and not rule.arguments


def _allows(rule: Rule, call: RuledCall) -> bool:
    if call.tool == SHELL and rule.tool == SHELL:
        words = split_command(str(call.arguments.get("command", "")))
        pattern = _parse_pattern(rule.command)
        if words is None or not pattern.fits(words):
            return False
        if not pattern.is_prefix:
            return True
        further = words[len(pattern.words) :]
        return call.is_sandboxed and not any(_is_outside(word, call) for word in further)
    if call.tool in WRITING and rule.tool == _WRITE:
        relative = _relative_path(call)
        return bool(relative) and _compile_path(rule.path).fullmatch(relative) is not None
    return rule.tool == call.tool and _has_arguments(rule, call)


def _is_outside(word: str, call: RuledCall) -> bool:
    """Return True if a word, or the value of an option, names something that exists outside the workspace."""
    if not call.root:
        return False
    names = [word, word.partition("=")[2]]
    if word.startswith("-"):  # a value can be attached to short options that stand together: `-rf/etc/x`
        names += [word[start:] for start in range(2, min(len(word), _MAX_LETTERS))]
    for name in names:
        if not name or name == os.devnull:
            continue
        path = os.path.join(call.folder or call.root, name)
        if os.path.lexists(path) and not is_at_or_inside(os.path.realpath(path), call.root):
            return True
    return False


def _denies(rule: Rule, call: RuledCall) -> bool:
    if call.tool == SHELL and rule.tool == SHELL:
        pattern = _parse_pattern(rule.command)
        command = str(call.arguments.get("command", ""))
        # One word more than the pattern has shows whether further words follow.
        return any(pattern.fits(words) for words in find_simple_commands(command, len(pattern.words) + 1))
    if call.tool in WRITING and rule.tool == _WRITE:
        # On a disk that ignores case, both spellings are one file.
        return _compile_path(fold_name(rule.path)).fullmatch(fold_name(_relative_path(call))) is not None
    return rule.tool == call.tool and _has_arguments(rule, call)


def _has_arguments(rule: Rule, call: RuledCall) -> bool:
    """Compare as JSON: to Python, True is equal to 1."""
    for name, value in rule.arguments.items():
        if name not in call.arguments or _to_json(call.arguments[name]) != _to_json(value):
            return False
    return True


def _to_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _relative_path(call: RuledCall) -> str:
    """Return the path below the workspace's root, or an empty string for a file elsewhere."""
    if not call.path or not call.root or not is_inside(call.path, call.root):
        return ""
    return os.path.relpath(call.path, call.root)


@cache
def _compile_path(pattern: str) -> re.Pattern[str]:
    """Compile a path pattern: `*` and `?` stay within a name, `**` stands for any folders, a folder for all in it."""
    if pattern.endswith("/"):
        pattern += "**"
    names = pattern.split("/")
    expression = ""
    for index, name in enumerate(names):
        is_last = index == len(names) - 1
        if name == "**":
            expression += ".+" if is_last else "(?:[^/]+/)*"
            continue
        expression += "".join(_translate_piece(piece) for piece in re.split(r"([*?])", name))
        if not is_last:
            expression += "/"
    return re.compile(expression, re.S)


def _translate_piece(piece: str) -> str:
    if piece == "*":
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    return re.escape(piece)


def offer_rule(call: RuledCall) -> Rule | None:
    """Return a rule that allows this call in the workspace, or None if no rule can.

    For a command it is this very command, and for a file its folder.
    """
    try:
        if call.tool == SHELL:
            return _offer_for_command(call)
        if call.tool in WRITING:
            return _offer_for_file(call)
        return Rule("allow", call.tool, workspace=call.root)
    except SettingsError:  # the call cannot be written as a rule
        return None


def _offer_for_command(call: RuledCall) -> Rule | None:
    command = str(call.arguments.get("command", "")).strip()
    if split_command(command) is None:  # in a command, `*` stands for names of files
        return None
    return Rule("allow", SHELL, command=command, workspace=call.root)


def _offer_for_file(call: RuledCall) -> Rule | None:
    path = _relative_path(call)
    if not path or set(path) & set("*?"):
        return None
    folder = os.path.dirname(path)
    return Rule("allow", call.tool, path=f"{folder}/**" if folder else path, workspace=call.root)
