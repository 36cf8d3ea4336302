"""Cases in Python: a module with `CASES`, or with a function `cases()`, of Case objects.

    from skillshelf.evals import Case, Message, check

    CASES = [Case("greets", (Message("Hello"),), (check.response_contains("Hello"),))]

The module is run to have its cases, once the user agreed to that. A listing of cases reads its source instead.
"""

from __future__ import annotations

import ast
import hashlib
import os
import sys
import traceback
import types
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Edit, Message
from skillshelf.evals._code_skills import code_source
from skillshelf.evals._paths import workspace_path
from skillshelf.evals.check import Check, Golden, custom, trigger
from skillshelf.evals.formats._document import read_text
from skillshelf.evals.formats._fields import Home, bounded, folders_of, only_skill
from skillshelf.evals.formats._outline import outline, registered_checks

_NAMES = ("CASES", "cases")
_RIGHT = "Define CASES, or a function cases(), with Case objects"


def read_python(home: Home) -> tuple[list[Case], list[EvalError]]:
    """The cases of a module, and the faults in those that are none. Raises EvalError for a module that raises."""
    source = read_text(home.path)
    tree = _tree(source, home.path)
    if not _definitions(tree):
        raise EvalError("it has no cases", _RIGHT, home.path, 1)
    if home.listing:
        home.listing.checks |= registered_checks(tree)
        return outline(tree, home), []
    found = _run(source, home.path)
    cases, faults = [], []
    for number, item in enumerate(found, 1):
        line = _line(tree, item)
        try:
            cases.append(_settled(item, number, home, line))
        except EvalError as fault:
            faults.append(EvalError(fault.problem, fault.fix, home.path, line))
    return cases, faults


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """Whether a module is meant as one of cases, told without running it: graders and helpers lie beside them.

    `anywhere`, modules of all kinds do: one of cases imports what they are made of.
    """
    tree = _tree(read_text(path), path)
    return bool(_definitions(tree)) and (not anywhere or any(map(_is_ours, ast.walk(tree))))


def _is_ours(node: ast.AST) -> bool:
    """An import of skillshelf."""
    names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
    names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
    return any(name.split(".")[0] == "skillshelf" for name in names)


def _tree(source: str, path: str) -> ast.Module:
    try:
        return ast.parse(source, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise EvalError(f"it is not Python: {error}", path=path, line=getattr(error, "lineno", None) or 1) from None


def _definitions(tree: ast.Module) -> dict[str, int]:
    """The lines of the names that hold cases."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found[node.name] = node.lineno
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update({one.id: node.lineno for one in targets if isinstance(one, ast.Name)})
    return {name: line for name, line in found.items() if name in _NAMES}


def _run(source: str, path: str) -> list[Any]:
    # Neither on sys.path nor compiled to a file: the skill's folder is not ours to change, nor to import from.
    module = types.ModuleType(f"skillshelf_cases_{hashlib.sha256(os.path.abspath(path).encode()).hexdigest()[:12]}")
    module.__file__ = os.path.abspath(path)
    sys.modules[module.__name__] = module  # a dataclass looks its module up
    try:
        exec(compile(source, path, "exec"), module.__dict__)
        made = module.__dict__.get("CASES")
        made = module.__dict__["cases"]() if made is None else made
        if not isinstance(made, Iterable) or isinstance(made, str | bytes):
            raise EvalError(f"its cases are {type(made).__name__}", _RIGHT, path, 1)
        return list(made)
    except EvalError as error:
        raise EvalError(error.problem, error.fix, path, error.line or _raised(error, path)) from error
    except (Exception, SystemExit) as error:  # the module is anybody's code
        sentence = f"it raises {type(error).__name__}: {error}"[:300]
        raise EvalError(
            sentence, "Run it with python to see the whole traceback", path, _raised(error, path)
        ) from error


def _raised(error: BaseException, path: str) -> int:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] or 1 if lines else 1


def _line(tree: ast.Module, item: Any) -> int:
    """Where a case is written: the call with its name, or else what holds them all."""
    name = getattr(item, "name", None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            values = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "name")]
            if any(isinstance(value, ast.Constant) and value.value == name for value in values):
                return node.lineno
    return min(_definitions(tree).values(), default=1)


def _settled(item: Any, number: int, home: Home, line: int) -> Case:
    """The case with what goes without saying in its file."""
    if not isinstance(item, Case):
        raise EvalError(f"case {number} is {type(item).__name__}", _RIGHT)
    if not item.turns:
        raise EvalError(f"nothing is said in {item.name!r}", "Give it turns: (Message(…),)")
    turns = (item.turns,) if isinstance(item.turns, str) else item.turns
    if not item.checks and item.should_trigger is None:
        raise EvalError(f"{item.name!r} checks nothing", "Give it checks, or should_trigger")
    skills = folders_of(item.skills, home)
    if not isinstance(item.code_skills, tuple | list):
        raise EvalError(f"code_skills of {item.name!r} is {type(item.code_skills).__name__}", "Write (RagSkill,)")
    code_source(item.code_skills)  # what is wrong with one is told here, and not by every trial
    skill = item.skill or home.skill or only_skill(skills, item.code_skills)
    return replace(
        item,
        turns=tuple(_turn(turn) for turn in turns),
        checks=(*trigger(skill, item.should_trigger), *(_check(check, home) for check in item.checks)),
        skill=skill,
        files=bounded({workspace_path(path): _bytes(path, data) for path, data in item.files.items()}),
        skills=skills or ((home.folder,) if home.folder else ()),
        location=item.location or f"{home.path}:{line}",
    )


def _turn(turn: Any) -> Message | Edit:
    if isinstance(turn, Edit):
        return Edit(workspace_path(turn.path), turn.text)
    if isinstance(turn, Message | str):
        return Message(turn) if isinstance(turn, str) else turn
    raise EvalError(f"a turn is {type(turn).__name__}", "It is a Message or an Edit")


def _bytes(path: str, data: Any) -> bytes:
    if not isinstance(data, bytes | str):
        raise EvalError(f"the file {path!r:.60} is {type(data).__name__}", "It is bytes or text")
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data


def _check(check: Any, home: Home) -> Check:
    if isinstance(check, Golden):
        return check.below(home.base, home.root)
    if isinstance(check, Check):
        return check
    if callable(check):
        return custom(check)
    raise EvalError(f"a check is {type(check).__name__}", "It is a Check, or a function Trace -> Verdict")
