"""Code skills on the shelf of a case: by `module:name`, or in Python as the class, or as a skill that is made already.

    code_skills: [my_company.skills.rag.skill:RagSkill, my_company.testing:report_skill]

The name is that of a class that is made without arguments, or of a function that makes the skill: with what it needs,
and with its policy where it is raw. Importing runs the author's code, as a case in Python does.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from skillshelf.errors import EvalError, SkillError
from skillshelf.skill import BaseSkill
from skillshelf.sources import ImportFailed, ObjectSource, import_guarded

CodeSkill: TypeAlias = str | Callable[[], BaseSkill] | BaseSkill
_NAMED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_RIGHT = "Name a class, or a function that makes a skill, as in `my_company.skills.rag.skill:RagSkill`"


def code_source(skills: Iterable[CodeSkill]) -> ObjectSource:
    """The skills, made anew: what one trial leaves in them is not there for the next. Raises EvalError."""
    every = [made(skill) for skill in skills]
    try:
        return ObjectSource(every)
    except SkillError as error:  # a raw skill without a policy, say
        raise EvalError(str(error).rstrip("."), "Name a function that makes the skill as it should be") from error


def code_skill_name(skill: CodeSkill) -> str:
    return made(skill).descriptor("app").name


def made(given: CodeSkill) -> BaseSkill:
    """The skill, made where it is not yet. Raises EvalError."""
    skill = _called(named(given) if isinstance(given, str) else given, given)
    if not isinstance(skill, BaseSkill):
        raise EvalError(f"{given!s:.80} is {type(skill).__name__}, which is no code skill", _RIGHT)
    if isinstance(given, str) and not _file_of(type(skill)):
        raise EvalError(
            f"{given:.80} makes a {type(skill).__name__} that is written in no file, so that no other version could be "
            "told from it",
            "Write the class in a module",
        )
    return skill


def _called(target: Any, given: CodeSkill) -> Any:
    if isinstance(target, BaseSkill) or not callable(target):
        return target
    try:
        return target()
    except (Exception, SystemExit) as error:  # anybody's code
        reason = f"{type(error).__name__}: {error}"[:300].rstrip(": ")
        raise EvalError(f"{given!s:.80} cannot be made: {reason}", _RIGHT) from error


def written_in(skill: CodeSkill) -> str:
    """The file that its class is written in; empty for a class that a case made of nothing."""
    return _file_of(type(made(skill)))


def _file_of(cls: type) -> str:
    try:
        return inspect.getsourcefile(cls) or ""
    except (TypeError, OSError):  # its module is none, as that of what `exec` makes
        return ""


def named(given: str) -> Any:
    """The class or the function. Raises EvalError."""
    if not _NAMED.fullmatch(given):
        raise EvalError(f"{given!r:.80} names no code skill", _RIGHT)
    module, _, name = given.partition(":")
    try:
        found = import_guarded(partial(importlib.import_module, module), module)
    except ImportFailed as fault:
        fix = "Install the package that has it, or put its folder in PYTHONPATH"
        raise EvalError(f"{given}: {fault.diagnostic.message}", fix) from fault
    if not hasattr(found, name):
        raise EvalError(f"the module {module} has no {name!r}", _RIGHT)
    return getattr(found, name)
