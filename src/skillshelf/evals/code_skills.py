"""Code skills on the shelf of a case: by `module:name`, or in Python as the class, or as a skill that is made already.

    code_skills: [my_company.skills.rag.skill:RagSkill, my_company.testing:report_skill]

The name is that of a class that is made without arguments, or of a function that makes the skill: with what it needs,
and with its policy where it is raw. Importing runs the author's code, as a case in Python does.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from skillshelf.errors import EvalError, SkillError
from skillshelf.skill import BaseSkill
from skillshelf.sources.modules import ImportFailed, imported
from skillshelf.sources.package import ObjectSource

CodeSkill: TypeAlias = str | Callable[[], BaseSkill] | BaseSkill
_NAMED = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_RIGHT = "Name a class, or a function that makes a skill, as in `my_company.skills.rag.skill:RagSkill`"


def code_source(skills: Iterable[CodeSkill]) -> ObjectSource:
    """The skills, made anew: what one trial leaves in them is not there for the next. Raises EvalError."""
    made = [_made(skill) for skill in skills]
    try:
        return ObjectSource(made)
    except SkillError as error:  # a raw skill without a policy, say
        raise EvalError(str(error).rstrip("."), "Name a function that makes the skill as it should be") from error


def code_skill_name(skill: CodeSkill) -> str:
    return _made(skill).descriptor("app").name


def written_in(skill: CodeSkill) -> str:
    """The file that its class is written in."""
    return inspect.getsourcefile(type(_made(skill))) or ""


def packed(skill: CodeSkill) -> list[str]:
    """What finds it in another process, and what tells another version from it. Raises TypeError where nothing does."""
    if not isinstance(skill, str):
        raise TypeError(f"a skill that a case made stays in its process: {skill!r:.80}")
    with open(written_in(skill), "rb") as file:
        return [skill, hashlib.sha256(file.read()).hexdigest()]


def _made(given: CodeSkill) -> BaseSkill:
    target = _named(given) if isinstance(given, str) else given
    if isinstance(target, BaseSkill):
        return target
    try:
        skill = target() if callable(target) else target
    except Exception as error:  # anybody's code
        raise EvalError(f"{given!s:.80} cannot be made: {type(error).__name__}: {error}"[:300], _RIGHT) from error
    if not isinstance(skill, BaseSkill):
        raise EvalError(f"{given!s:.80} is {type(skill).__name__}, which is no code skill", _RIGHT)
    return skill


def _named(given: str) -> Any:
    if not _NAMED.fullmatch(given):
        raise EvalError(f"{given!r:.80} names no code skill", _RIGHT)
    module, _, name = given.partition(":")
    try:
        found = imported(partial(importlib.import_module, module), module)
    except ImportFailed as fault:
        fix = "Install the package that has it, or put its folder in PYTHONPATH"
        raise EvalError(f"{given}: {fault.diagnostic.message}", fix) from fault
    if not hasattr(found, name):
        raise EvalError(f"the module {module} has no {name!r}", _RIGHT)
    return getattr(found, name)
