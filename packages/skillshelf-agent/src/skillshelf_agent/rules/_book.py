"""The user's approval rules in a file of their own, `rules.toml` beside the settings. A workspace has no say."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skillshelf.errors import SettingsError
from skillshelf.files import (
    LockTimeout,
    NotPlainFile,
    NotPrivate,
    config_home,
    hold_lock,
    is_at_or_inside,
    make_private_folders,
    read_private,
    replace_file,
)
from skillshelf.settings import read_toml
from skillshelf_agent.rules._rule import Decision, Rule, RuledCall, find_ruling

_VERSION = 1
_EXAMPLE = 'version = 1\n\n[[rule]]\ndecision = "allow"\ntool = "run_command"\ncommand = "git status"'
_HEADER = "# What the agent may or may not do without asking. /approve rules lists these in a chat.\n"
_BLOCK = re.compile(r"^[ \t]*\[\[[ \t]*rule[ \t]*\]\]", re.M)
_UNCONFIRMED = "confirmed = false\n"
# A process that dies releases the lock, and one that lives needs it for a moment.
_LOCK_SECONDS = 20.0


class _StoredRule(BaseModel):
    """A rule as the file holds it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    decision: Decision
    tool: str
    command: str = ""
    path: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    workspace: str = ""
    network: bool = False
    confirmed: bool = True


class RuleBook:
    """The rules that hold in one workspace. They are read again whenever a call is decided about."""

    def __init__(self, root: str, path: str | None = None, *, folder: str = "") -> None:
        """`root`: the root of the workspace. `path`: the user's file. `folder`: where commands start, if not there.

        Raises SettingsError for a wrong file.
        """
        self.root = os.path.realpath(root)
        self._folder = folder or self.root
        self._path = path or rules_file()
        self._rules: tuple[Rule, ...] = ()
        self._text = ""
        self.problem = ""
        """Why the file cannot be used now, in words. The rules read last stay in force."""
        self._rules = self._read()

    def refresh(self) -> Sequence[Rule]:
        """Return all rules as the file has them now, those of other workspaces included."""
        try:
            self._rules = self._read()
            self.problem = ""
        except SettingsError as error:
            self.problem = str(error)
        return self._rules

    def list(self) -> list[Rule]:
        """Return the rules that hold here."""
        return [rule for rule in self.refresh() if rule.workspace in ("", self.root)]

    def describe_call(
        self, tool: str, arguments: Mapping[str, Any], path: str = "", *, is_sandboxed: bool = False
    ) -> RuledCall:
        """Return a call in this workspace as rules see it. `path`: the real path of the file that would be written."""
        return RuledCall(tool, arguments, path, self.root, self._folder, is_sandboxed)

    def find_ruling(self, call: RuledCall) -> Rule | None:
        """Return the rule that decides about a call, or None."""
        rules = self.refresh()
        if self.is_in_workspace:
            rules = [rule for rule in rules if rule.decision == "deny"]
        return find_ruling(rules, call)

    @property
    def is_in_workspace(self) -> bool:
        """True if the file is in the workspace, where the agent could write it. Then no rule allows anything."""
        return self._path is not None and is_at_or_inside(os.path.realpath(self._path), self.root)

    def add(self, rule: Rule) -> bool:
        """Store a rule, or confirm a stored one. Return False if it was in force already. Raises SettingsError."""
        unconfirmed = replace(rule, confirmed=False)
        with _writing(self._path) as path:
            self._rules = self._read()
            if rule in self._rules:
                return False
            blocks = self._read_blocks()
            rules = [rule if other == unconfirmed else other for other in self._rules]
            if rule not in rules:
                rules.append(rule)
                blocks = [*blocks, f"\n{_write_rule(rule)}"]
            self._write(path, blocks, rules)
        return True

    def remove(self, rule: Rule) -> None:
        """Remove a rule. Comments and the other rules stay as they are. Raises SettingsError."""
        with _writing(self._path) as path:
            self._rules = self._read()
            head, *blocks = self._read_blocks()
            kept = [block for block, other in zip(blocks, self._rules, strict=False) if other != rule]
            self._write(path, [head, *kept], [other for other in self._rules if other != rule])

    def _read_blocks(self) -> Sequence[str]:
        """Return the text before the first rule, and then the text of each rule."""
        text = self._text or _HEADER
        if not text.endswith("\n"):
            text += "\n"
        starts = [match.start() for match in _BLOCK.finditer(text)]
        return [text[start:end] for start, end in pairwise([0, *starts, len(text)])]

    def _write(self, path: str, blocks: Sequence[str], rules: Sequence[Rule]) -> None:
        """Write the rules, with as much of the user's own layout as is right."""
        import tomllib

        head, *texts = blocks
        if "version" not in tomllib.loads(self._text):
            head = f"{head.rstrip()}\nversion = {_VERSION}\n\n"
        text = head + "".join(_mark(block, rule) for block, rule in zip(texts, rules, strict=False))
        try:
            is_right = _parse(tomllib.loads(text), path) == tuple(rules)
        except (tomllib.TOMLDecodeError, SettingsError):
            is_right = False
        if not is_right:  # the user has written the file in a way of their own: its meaning counts more than its layout
            text = f"{_HEADER}version = {_VERSION}\n" + "".join(f"\n{_write_rule(rule)}" for rule in rules)

        # The file may be a link into a folder of dotfiles, which stays one.
        replace_file(os.path.realpath(path), text.encode(), durable=True)
        self._rules = tuple(rules)
        self._text = text

    def _read(self) -> tuple[Rule, ...]:
        if self._path is None:
            return ()
        try:
            read_private(os.path.realpath(self._path), limit=0)
        except (FileNotFoundError, NotADirectoryError):
            self._text = ""
            return ()
        except (NotPrivate, NotPlainFile) as error:
            raise SettingsError(f"The rules in {self._path} are not used: {error}.") from None
        except OSError as error:
            raise SettingsError(f"{self._path} cannot be read: {error.strerror}.") from error

        file = read_toml(self._path, f"A rule looks like this:\n{_EXAMPLE}")
        if file is None:
            self._text = ""
            return ()
        if file.text == self._text:
            return self._rules
        rules = _parse(file.table, self._path)
        self._text = file.text
        return rules


def rules_file() -> str | None:
    """Return the path of the user's file, whether or not it exists, or None if this user has no home."""
    home = config_home()
    if home is None:
        return None
    return os.path.join(home, "rules.toml")


@contextmanager
def _writing(path: str | None) -> Iterator[str]:
    """Hold the lock of the file while the block lasts. Faults become SettingsError."""
    if path is None:
        raise SettingsError("There is no folder to keep rules in: this user has no home. Set XDG_CONFIG_HOME.")
    try:
        make_private_folders(os.path.dirname(path))
        with hold_lock(f"{path}.lock", timeout=_LOCK_SECONDS):
            yield path
    except LockTimeout:
        raise SettingsError(f"Another process is writing {path}. Try again.") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror or error}.") from error


def _parse(table: dict[str, Any], path: str) -> tuple[Rule, ...]:
    version = table.get("version")
    if "version" in table and (type(version) is not int or version != _VERSION):  # not isinstance: True is an int
        raise SettingsError(f"{path}: this skillshelf reads rules of version {_VERSION}, not {version!r:.20}.")
    others = [key for key in table if key not in ("rule", "version")]
    if others:
        raise SettingsError(f"{path}: {others[0]!r:.80} is not a rule. A rule looks like this:\n{_EXAMPLE}")
    entries = table.get("rule", [])
    if not isinstance(entries, list):
        raise SettingsError(f"{path}: write [[rule]], with two brackets, above each rule.")

    rules: list[Rule] = []
    for number, entry in enumerate(entries, 1):
        try:
            stored = _StoredRule.model_validate(entry)
            rule = Rule(**stored.model_dump())
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, fault["loc"]))
            raise SettingsError(f"{path}, rule {number}: {place!r}: {fault['msg']}.") from None
        except SettingsError as error:
            raise SettingsError(f"{path}, rule {number}: {error}") from None
        if version is None and rule.allows_prefix:
            # Before there were versions, `*` left out arguments that were known to run something else.
            rule = replace(rule, confirmed=False)
        rules.append(rule)
    return tuple(rules)


def _mark(block: str, rule: Rule) -> str:
    """Return the text of a rule, in which `confirmed` is as the rule has it."""
    plain = block.replace(_UNCONFIRMED, "")
    if rule.confirmed:
        return plain
    return plain.replace("]]\n", f"]]\n{_UNCONFIRMED}", 1)


def _write_rule(rule: Rule) -> str:
    lines = ["[[rule]]"]
    for name in ("decision", "tool", "command", "path", "workspace"):
        value = getattr(rule, name)
        if value:
            lines.append(f"{name} = {_write_value(value)}")
    if rule.network:
        lines.append("network = true")
    if not rule.confirmed:
        lines.append(_UNCONFIRMED.rstrip())
    if rule.arguments:
        named = [f"{_write_value(name)} = {_write_value(value)}" for name, value in rule.arguments.items()]
        lines.append(f"arguments = {{ {', '.join(named)} }}")
    return "\n".join(lines) + "\n"


def _write_value(value: Any) -> str:
    """Return a value as TOML. Its strings are JSON's, but for a character that JSON does not escape."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_write_value(name)} = {_write_value(item)}" for name, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_write_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
