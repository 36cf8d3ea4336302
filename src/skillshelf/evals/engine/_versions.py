"""What a code skill, or a step that is a function, comes down to: another version of it is another case.

Hashed is what is written: the modules, and the references. What these import in turn is not; where a change there
changes what the model is asked, `paid` asks again.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import re
import secrets
import sys
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from skillshelf.errors import EvalError, SkillError
from skillshelf.evals._case import Case
from skillshelf.evals._code_skills import CodeSkill, code_source, made, named
from skillshelf.skill import BaseSkill
from skillshelf.sources import class_key

# References are read in pages; this is a large one.
_PAGE = 1 << 20
_LINE = re.compile(r":\d+$")
_as_imported: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def packed(skill: CodeSkill) -> list[str]:
    """What finds it in another process, and what tells another version from it.

    Raises TypeError where nothing finds it, EvalError where it cannot be made.
    """
    if not isinstance(skill, str):
        raise TypeError(f"a skill that a case made stays in its process: {skill!r:.80}")
    return [skill, version_of(skill)]


def version_of(skill: CodeSkill) -> str:
    """The same wherever the same is written. Raises EvalError for a skill that cannot be made."""
    one = made(skill)
    modules = {cls.__module__ for cls in _own_classes(type(one))}
    modules.add(_module_of(named(skill) if isinstance(skill, str) else skill))
    if isinstance(skill, str):
        modules.add(skill.partition(":")[0])
    parts = [f"{module} {source_of(module)}" for module in sorted(modules)]
    return _digest("\n".join([class_key(type(one)), *parts, *_references(one)]).encode())


def same_here(name: str, version: str) -> str:
    """The name of a code skill that is this version on this machine too. Raises EvalError where it is another."""
    if version_of(name) != version:
        raise EvalError(
            f"The code skill {name} is another version on {os.uname().nodename} than where the run was begun",
            "Install the same one on every worker, its references too, and start the worker again",
        )
    return name


def source_of(module: str) -> str:
    """The digest of a module as it was imported: a worker that runs for weeks has the old code after the file changed.

    One that cannot be known is never the same again.
    """
    found = sys.modules.get(module)
    if found not in _as_imported:
        try:
            text = inspect.getsource(found)  # type: ignore[arg-type]
        except (OSError, TypeError):
            return unknown()
        _as_imported[found] = _digest(text.encode("utf-8", "surrogatepass"))
    return _as_imported[found]


def version_of_step(step: Any) -> str:
    """Of a function in a script: by the module that it is written in."""
    return f"{getattr(step, '__qualname__', '')} {source_of(_module_of(step))}" if callable(step) else unknown()


def written(case: Case) -> str:
    """The digest of the file that a case is written in; it has what a skill that is made there is given."""
    try:
        with open(_LINE.sub("", case.location), "rb") as file:
            return _digest(file.read())
    except OSError:
        # A skill that is made already may have been given anything.
        stateful = any(isinstance(one, BaseSkill) for one in case.code_skills)
        return unknown() if stateful else ""


def unknown() -> str:
    return f"unknown {secrets.token_hex(16)}"


def _own_classes(cls: type[BaseSkill]) -> Iterator[type]:
    """The skill's class and what of it others share: not what comes with Python, which differs between machines."""
    home = cls.__module__.partition(".")[0]
    for one in cls.__mro__:
        if one is not BaseSkill and (issubclass(one, BaseSkill) or one.__module__.partition(".")[0] == home):
            yield one


def _references(skill: BaseSkill) -> Iterator[str]:
    """The digest of each, as the model would get it."""
    source, key = code_source([skill]), class_key(type(skill))
    source.refresh()
    descriptor = skill.descriptor(source.name)
    for path in descriptor.references:
        digest, at, size = hashlib.sha256(), 0, 1
        try:
            while at < size:
                page = source.reference(key, descriptor, path, at, _PAGE)
                digest.update(page.data)
                at, size = at + max(len(page.data), 1), page.size
            yield f"{path} {digest.hexdigest()}"
        except (SkillError, OSError) as error:  # it fails in a trial in the same way
            yield f"{path} {type(error).__name__}"


def _module_of(target: Any) -> str:
    while isinstance(target, functools.partial):
        target = target.func
    return str(getattr(target, "__module__", None) or type(target).__module__)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
