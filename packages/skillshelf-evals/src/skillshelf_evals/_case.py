"""A case: a workspace, the messages of the user, and what must be true afterwards.

Code skills are on its shelf by `module:name`, or in Python as the class, or as a skill object:

    code_skills: [my_company.skills.rag.skill:RagSkill, my_company.testing:report_skill]

The name is that of a class that needs no arguments, or of a function that returns the skill, with its policy if it is
raw. Importing it runs the author's code, as a case in Python does.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from skillshelf.errors import EvalError, SkillError
from skillshelf.skills import BaseSkill
from skillshelf.sources import ImportFailed, ObjectSource, import_guarded
from skillshelf_evals.check import Check

CodeSkill: TypeAlias = str | Callable[[], BaseSkill] | BaseSkill
_MODULE_AND_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_HOW_TO_NAME = "Name a class, or a function that returns a skill, as in `my_company.skills.rag.skill:RagSkill`"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of the user. It may be a `/skills:` command."""

    text: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file by another program, between two messages. The text None removes the file."""

    path: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Case:
    """Something that a skill should, or should not, make happen."""

    name: str
    turns: tuple[Message | Edit, ...]
    checks: tuple[Check, ...] = ()
    skill: str = ""
    """The skill under test, if the case belongs to one."""
    should_trigger: bool | None = None
    """Whether the skill should be loaded; None for a case that is not about that."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files of the workspace, by path."""
    skills: tuple[str, ...] = ()
    """The folders on the shelf: skills, or folders of skills."""
    code_skills: tuple[CodeSkill, ...] = ()
    """The code skills on the shelf."""
    script: tuple[Any, ...] | None = None
    """The steps of a scripted model; None if the model of the run answers."""
    policy: str = "yolo"
    tags: tuple[str, ...] = ()
    location: str = ""
    """Where the case is written, as `path:line`."""
    model: str = ""
    """The model that the case is for, as `--model` takes it; empty for the model of the run."""
    is_named: bool = True
    """False if the author gave the case no name, so that only its prompt tells a reader what it is about."""

    @property
    def id(self) -> str:
        """The case's name, unique in a run and the same in every run."""
        return f"{self.skill}/{self.name}" if self.skill else self.name

    @property
    def is_live(self) -> bool:
        """True if a model answers or judges. A case with a script and without a judge ends the same way every time."""
        return self.script is None or any(check.is_judge for check in self.checks)

    @property
    def prompt(self) -> str:
        """The first message."""
        return next((turn.text for turn in self.turns if isinstance(turn, Message)), "")

    @property
    def turns_digest(self) -> str:
        """A digest of the messages and edits. Results of different ones cannot be compared, whatever their names."""
        turns = [[turn.text] if isinstance(turn, Message) else [turn.path, turn.text] for turn in self.turns]
        return digest_text(json.dumps(turns))


def digest_text(text: str) -> str:
    """Return a short digest that tells the texts of one suite apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def make_code_source(skills: Iterable[CodeSkill]) -> ObjectSource:
    """Return a source of newly made skills: no trial sees the state that another one left in them. Raises EvalError."""
    made = [make_code_skill(skill) for skill in skills]
    try:
        return ObjectSource(made)
    except SkillError as error:  # such as a raw skill without a policy
        raise EvalError(str(error).rstrip("."), "Name a function that returns the skill as it should be") from error


def code_skill_name(skill: CodeSkill) -> str:
    """Return the name of a code skill. Raises EvalError if the skill cannot be made."""
    return make_code_skill(skill).descriptor("app").name


def code_skill_file(skill: CodeSkill) -> str:
    """Return the file with the class of a code skill; empty for a class that is not in a file."""
    return _source_file(type(make_code_skill(skill)))


def make_code_skill(given: CodeSkill) -> BaseSkill:
    """Return the skill that a case names, makes or gives. Raises EvalError."""
    target = import_code_skill(given) if isinstance(given, str) else given
    skill = _call(target, given)
    if not isinstance(skill, BaseSkill):
        raise EvalError(f"{given!s:.80} is {type(skill).__name__}, which is not a code skill", _HOW_TO_NAME)
    if isinstance(given, str) and not _source_file(type(skill)):
        raise EvalError(
            f"{given:.80} returns a {type(skill).__name__} whose class is not in a file, so its version is unknown",
            "Write the class in a module",
        )

    return skill


def import_code_skill(given: str) -> Any:
    """Return the class or function that `module:name` means. Raises EvalError."""
    if not _MODULE_AND_NAME.fullmatch(given):
        raise EvalError(f"{given!r:.80} does not name a code skill", _HOW_TO_NAME)
    module_name, _, name = given.partition(":")
    try:
        module = import_guarded(partial(importlib.import_module, module_name), module_name)
    except ImportFailed as fault:
        fix = "Install the package that has it, or put its folder in PYTHONPATH"
        raise EvalError(f"{given}: {fault.diagnostic.message}", fix) from fault

    if not hasattr(module, name):
        raise EvalError(f"the module {module_name} has no {name!r}", _HOW_TO_NAME)
    return getattr(module, name)


def _call(target: Any, given: CodeSkill) -> Any:
    if isinstance(target, BaseSkill) or not callable(target):
        return target
    try:
        return target()
    except (Exception, SystemExit) as error:  # the author's code may raise anything
        reason = f"{type(error).__name__}: {error}"[:300].rstrip(": ")
        raise EvalError(f"{given!s:.80} cannot be made: {reason}", _HOW_TO_NAME) from error


def _source_file(cls: type) -> str:
    try:
        return inspect.getsourcefile(cls) or ""
    except (TypeError, OSError):  # its module has no file, like that of a class made by `exec`
        return ""
