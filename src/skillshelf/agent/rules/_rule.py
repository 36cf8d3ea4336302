"""Approval rules: kinds of calls that the user allowed or denied for good."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from skillshelf.agent._tool_names import INSTALL_PACKAGES, READING, RUN_SCRIPT, SHELL, WRITING
from skillshelf.agent.rules._command import Words, find_commands, split_command
from skillshelf.agent.rules._programs import INTERPRETERS, find_escape, name_of_program, runs_any_command
from skillshelf.errors import SettingsError
from skillshelf.files import fold_name, is_at_or_inside, is_inside

Decision = Literal["allow", "deny"]

_WRITE = "write_file"
"""The name under which rules for files are kept. They hold for both tools that write."""
_ANY = "*"
_MAX_LETTERS = 20
"""How many short options are looked at in one word."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of calls, and whether they are allowed or denied.

    A command is compared word by word. A `*` as its last word stands for further words; without it, the command has
    these words and no others. It stands neither for files outside the workspace nor for arguments with which the
    program is known to run another one. A path is a pattern relative to the workspace, in which `**` stands for any
    folders. For other tools, the named arguments have to be equal, and the rest may be anything.
    """

    decision: Decision
    tool: str
    command: str = ""
    path: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    workspace: str = ""
    """The root of the workspace that the rule is for. Empty: everywhere."""

    def __post_init__(self) -> None:
        if self.tool in WRITING:
            object.__setattr__(self, "tool", _WRITE)
        check_rule(self)

    def __str__(self) -> str:
        return f"{self.decision} {self.target}"

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
    def warning(self) -> str:
        """What the user may not expect of this rule, or an empty string."""
        if self.decision != "allow" or self.tool != SHELL:
            return ""
        pattern = _parse_pattern(self.command)
        if not pattern.is_open:
            return ""
        program = name_of_program(pattern.words[0])
        if program in INTERPRETERS and len(pattern.words) == 1:
            return f"{program} runs the code it is given, so this rule allows any code. Name the script or task."
        if program == "git" and len(pattern.words) == 1:
            return "This rule covers every subcommand of git, such as push and reset. Name one: `git diff *`."
        return ""


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


def check_rule(rule: Rule) -> None:
    """Raise SettingsError for a rule that has no clear meaning, or that would allow more than it seems to."""
    if not rule.tool:
        raise SettingsError("A rule needs the name of a tool, such as run_command.")
    if rule.tool in READING:
        raise SettingsError(f"{rule.tool} only reads, which needs no approval, so there are no rules for it.")
    if rule.tool in (RUN_SCRIPT, INSTALL_PACKAGES) and rule.decision == "allow":
        raise SettingsError("Scripts of skills are approved by their content, so no rule can allow them.")
    if rule.tool == SHELL:
        _check_command(rule)
    elif rule.tool == _WRITE:
        _check_path(rule.path)
    elif rule.command or rule.path:
        raise SettingsError(f"A rule for {rule.tool} can have arguments, such as name=value, and nothing else.")


def _check_command(rule: Rule) -> None:
    pattern = _parse_pattern(rule.command)
    if rule.decision == "deny" or not pattern.is_open:
        return
    words = pattern.words
    if not runs_any_command(words):
        return

    spelled = " ".join(words)
    is_task_runner = len(words) > 2 and not runs_any_command(words[:1])
    if is_task_runner and _is_plain_program(words[2]):
        return
    raise SettingsError(
        f"{rule.command!r:.80} would allow every command, because {spelled!r:.80} runs what follows. Give the whole "
        "command without `*`."
    )


def _is_plain_program(word: str) -> bool:
    return not word.startswith("-") and not runs_any_command([word]) and name_of_program(word) not in INTERPRETERS


def _check_path(path: str) -> None:
    parts = path.split("/")
    if not path or path.startswith(("/", "~")) or ".." in parts or "." in parts:
        raise SettingsError(
            f"{path!r:.80} is not a path in the workspace. Give one relative to its root, such as src/** or docs/*.md."
        )


@dataclass(frozen=True, slots=True)
class _Pattern:
    words: Words
    is_open: bool
    """True if further words may follow."""

    def fits(self, words: Sequence[str]) -> bool:
        if self.is_open:
            return tuple(words[: len(self.words)]) == self.words
        return tuple(words) == self.words


@cache
def _parse_pattern(text: str) -> _Pattern:
    """Take a command pattern apart. Raises SettingsError if it is not one program with plain words."""
    plain = text.strip()
    is_open = plain == _ANY or plain.endswith((f" {_ANY}", f"\t{_ANY}"))
    if is_open:
        plain = plain.removesuffix(_ANY).strip()
    if is_open and not plain:
        raise SettingsError("`*` alone would allow every command. /approve yolo does that for this session.")
    words = split_command(plain)
    if words is None:
        raise SettingsError(
            f"{text!r:.80} is not one program with plain words. A rule cannot have `;`, `&`, `|`, `<`, `>`, `$`, "
            "backquotes, wildcards (but a `*` as the last word) or assignments: such commands are always asked about."
        )
    return _Pattern(words, is_open)


def find_ruling(rules: Sequence[Rule], call: RuledCall) -> Rule | None:
    """Return the rule that decides about a call, or None. A denial comes before everything else."""
    here = [rule for rule in rules if rule.workspace in ("", call.root)]
    for rule in here:
        if rule.decision == "deny" and _denies(rule, call):
            return rule
    for rule in here:
        if rule.decision == "allow" and _allows(rule, call):
            return rule
    return None


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
        if words is None:
            return False
        pattern = _parse_pattern(rule.command)
        if not pattern.fits(words):
            return False
        if not pattern.is_open:
            return True
        spelled = len(pattern.words)
        return not _escapes(words, spelled) and not any(_is_outside(word, call) for word in words[spelled:])
    if call.tool in WRITING and rule.tool == _WRITE:
        relative = _relative_path(call)
        return bool(relative) and _compile_path(rule.path).fullmatch(relative) is not None
    return rule.tool == call.tool and _has_arguments(rule, call)


def _escapes(words: Words, spelled: int) -> bool:
    if runs_any_command(words) and not runs_any_command(words[:1]) and spelled > 2:
        return bool(find_escape(words[2:], spelled - 2))
    return bool(find_escape(words, spelled))


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
        return any(pattern.fits(words) for words in find_commands(str(call.arguments.get("command", ""))))
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
