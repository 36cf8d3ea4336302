"""The fields of a case: each read as what it is, or a fault that says where, what, and what would be right."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillshelf.agent import MODES
from skillshelf.errors import EvalError
from skillshelf.evals._code_skills import CodeSkill, code_skill_name
from skillshelf.evals._folders import is_skill, skill_name, skills_in
from skillshelf.evals._paths import inside, workspace_path
from skillshelf.evals.formats._document import Table, read_bytes
from skillshelf.text import closest_names

MAX_WORKSPACE = 16 * 1024 * 1024
_SHOWN = 60


@dataclass(slots=True)
class Listing:
    """Set while cases are listed and nothing of theirs may be imported or run."""

    checks: set[str] = field(default_factory=set)
    """Names of the checks that files of Python register, as far as their source tells."""


@dataclass(frozen=True, slots=True)
class Home:
    """Where cases are written, and the skill they belong to, if they do."""

    path: str
    """Of the file of cases."""
    skill: str = ""
    folder: str = ""
    """Of the skill."""
    listing: Listing | None = None

    @property
    def base(self) -> str:
        """What paths in the file are relative to."""
        return os.path.dirname(os.path.abspath(self.path))

    @property
    def root(self) -> str:
        """What the file's cases may read of: the skill, or the folder of the suite."""
        return self.folder or self.base


def home_of(path: str, listing: Listing | None = None) -> Home:
    """A file in `<skill>/evals/` belongs to that skill; any other is a suite."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    inside = os.path.basename(os.path.dirname(os.path.abspath(path))) == "evals"
    if inside and is_skill(folder):
        return Home(path, skill_name(folder), folder, listing)
    return Home(path, listing=listing)


def folders_of(paths: Sequence[str], home: Home) -> tuple[str, ...]:
    """Folders of skills, from where the cases are written. Raises EvalError."""
    folders = tuple(os.path.normpath(os.path.join(home.base, path)) for path in paths)
    taken: dict[str, str] = {}
    for folder in folders:
        if not os.path.isdir(folder):
            raise EvalError(f"there is no folder {folder}", "Paths are relative to this file")
        for skill in skills_in(folder):
            first = taken.setdefault(os.path.basename(os.path.abspath(skill)), skill)
            if first != skill:
                raise EvalError(f"{skill} and {first} would be one folder of the workspace", "Leave one of them out")
    return folders


def only_skill(skills: Sequence[str], code_skills: Sequence[CodeSkill]) -> str:
    """The skill under test, where the shelf has no other."""
    if len(skills) == 1 and not code_skills:
        return skill_name(skills[0]) if is_skill(skills[0]) else ""
    return code_skill_name(code_skills[0]) if len(code_skills) == 1 and not skills else ""


class Fields:
    """A mapping of known keys in a file."""

    def __init__(self, value: Any, path: str, line: int, known: Iterable[str], what: str) -> None:
        self.path = path
        if not isinstance(value, Table):
            raise EvalError(f"{what} is {_shown(value)}", f"It is a mapping of {', '.join(known)}", path, line)
        self.table = value
        names = list(known)
        for key in value:
            if key not in names:
                raise EvalError(f"{what} has no key {_shown(key)}", nearest(key, names), path, value.at(key))

    def __contains__(self, key: str) -> bool:
        return self.table.get(key) is not None

    def fault(self, key: str, problem: str, fix: str = "") -> EvalError:
        return EvalError(problem, fix, self.path, self.table.at(key))

    def text(self, key: str, otherwise: str = "") -> str:
        value = self.table.get(key)
        if value is None:
            return otherwise
        if not isinstance(value, str):
            raise self.fault(key, f"{key!r} is {_shown(value)}", "It must be text: put it in quotes")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text is a list of one."""
        value = self.table.get(key)
        items = [] if value is None else [value] if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise self.fault(key, f"{key!r} is {_shown(value)}", "It must be a list of texts")
        return tuple(items)

    def flag(self, key: str) -> bool | None:
        value = self.table.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.fault(key, f"{key!r} is {_shown(value)}", "It must be true or false")
        return value

    def items(self, key: str) -> list[tuple[Any, int]]:
        """The items of a list, each with its line."""
        value = self.table.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.fault(key, f"{key!r} is {_shown(value)}", "It must be a list: lines that begin with `- `")
        lines: Sequence[int] = getattr(value, "lines", ())
        return [(item, lines[at] if at < len(lines) else self.table.at(key)) for at, item in enumerate(value)]

    def policy(self, otherwise: str) -> str:
        policy = self.text("policy", otherwise)
        if policy not in MODES:
            raise self.fault("policy", f"the policy is {_shown(policy)}", f"It is one of {', '.join(MODES)}")
        return policy


def copied(home: Home, source: str, target: str) -> dict[str, bytes]:
    """The files of `source`, a file or a folder beside the cases, under their paths in the workspace."""
    whole = inside(home.root, home.base, source)
    if not os.path.exists(whole):
        raise EvalError(f"there is no file {source!r:.80}", f"Paths in `from:` are relative to {home.base}")
    if not os.path.isdir(whole):
        return {workspace_path(target): read_bytes(whole, MAX_WORKSPACE)}
    below = "" if target == "." else f"{workspace_path(target)}/"
    found = {}
    for folder, _, names in os.walk(whole):
        for name in names:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                found[below + os.path.relpath(path, whole)] = read_bytes(path, MAX_WORKSPACE)
    return found


def bounded(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    size = sum(map(len, files.values()))
    if size > MAX_WORKSPACE:
        raise EvalError(f"the files are {size // 1024} KiB", f"At most {MAX_WORKSPACE // 1024} KiB are put there")
    return files


def nearest(key: str, known: Sequence[str]) -> str:
    close = closest_names(str(key), known, limit=1)
    return f"Did you mean {close[0]!r}?" if close else f"Its keys: {', '.join(known)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
