"""Cases in Python: a module with `CASES`, or with a function `cases()`, of Case objects.

    from skillshelf_evals import Case, Message, check

    CASES = [Case("greets", (Message("Hello"),), (check.response_contains("Hello"),))]

The module is run for its cases, once the user has agreed to that. A listing of cases reads its source instead, and
shows values that would have to be computed as "not evaluated".
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import os
import sys
import traceback
import types
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from skillshelf.errors import EvalError
from skillshelf_evals._case import Case, Edit, Message, make_code_source
from skillshelf_evals._folders import check_workspace_path
from skillshelf_evals._trace import Trace
from skillshelf_evals.check import Check, Verdict, custom, trigger
from skillshelf_evals.formats._document import read_text
from skillshelf_evals.formats._home import FileContent, Home, check_size, find_only_skill, resolve_skill_folders

NOT_EVALUATED = "(not evaluated)"
_CASE_NAMES = ("CASES", "cases")
_HOW_TO_DEFINE = "Define CASES, or a function cases(), with Case objects"
_CASE_FIELDS = [field.name for field in dataclasses.fields(Case)]


def read_python(home: Home) -> FileContent:
    """Return the cases of a module, and the faults in those that cannot be used.

    Raises EvalError for a module that has no cases or raises.
    """
    source = read_text(home.path)
    tree = _parse(source, home.path)
    if not _find_definitions(tree):
        raise EvalError("it has no cases", _HOW_TO_DEFINE, home.path, 1)
    if home.listing:
        home.listing.checks |= _find_registered_checks(tree)
        return FileContent(_outline_cases(tree, home))

    content = FileContent()
    for number, item in enumerate(_run_module(source, home.path), 1):
        line = _find_line(tree, item)
        try:
            content.cases.append(_complete_case(item, number, home, line))
        except EvalError as fault:
            content.add_fault(fault, home.path, line)
    return content


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """True if a module is meant to hold cases, judged by its source: graders and helpers may be beside it.

    `anywhere` says that modules of all kinds may be beside it. One with cases then imports skillshelf.
    """
    tree = _parse(read_text(path), path)
    if not _find_definitions(tree):
        return False
    return not anywhere or any(_imports_skillshelf(node) for node in ast.walk(tree))


def _imports_skillshelf(node: ast.AST) -> bool:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or ""]
    return any(name.split(".")[0] in ("skillshelf", "skillshelf_agent", "skillshelf_evals") for name in names)


def _parse(source: str, path: str) -> ast.Module:
    try:
        return ast.parse(source, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise EvalError(f"it is not Python: {error}", path=path, line=line) from None


def _find_definitions(tree: ast.Module) -> dict[str, int]:
    """Return the lines that define `CASES` or `cases`."""
    lines = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names = _assigned_names(node)
        else:
            continue
        for name in names:
            if name in _CASE_NAMES:
                lines[name] = node.lineno
    return lines


def _assigned_names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _run_module(source: str, path: str) -> list[Any]:
    """Run a module and return its cases. Raises EvalError."""
    # Neither on sys.path nor compiled to a file: the skill's folder is not ours to change, nor to import from.
    digest = hashlib.sha256(os.path.abspath(path).encode()).hexdigest()[:12]
    module = types.ModuleType(f"skillshelf_cases_{digest}")
    module.__file__ = os.path.abspath(path)
    sys.modules[module.__name__] = module  # a dataclass looks its module up
    try:
        exec(compile(source, path, "exec"), module.__dict__)
        cases = module.__dict__.get("CASES")
        if cases is None:
            cases = module.__dict__["cases"]()
        if not isinstance(cases, Iterable) or isinstance(cases, str | bytes):
            raise EvalError(f"its cases are {type(cases).__name__}", _HOW_TO_DEFINE, path, 1)
        return list(cases)
    except EvalError as error:
        raise EvalError(error.problem, error.fix, path, error.line or _line_of_error(error, path)) from error
    except (Exception, SystemExit) as error:  # the author's code may raise anything
        problem = f"it raises {type(error).__name__}: {error}"[:300]
        fix = "Run it with python to see the whole traceback"
        raise EvalError(problem, fix, path, _line_of_error(error, path)) from error


def _line_of_error(error: BaseException, path: str) -> int:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return (lines[-1] if lines else None) or 1


def _find_line(tree: ast.Module, item: Any) -> int:
    """Return the line of the call that has the case's name, or else of the definition of all cases."""
    name = getattr(item, "name", None)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and name and _text_of(_find_argument(node, "name")) == name:
            return node.lineno
    return min(_find_definitions(tree).values(), default=1)


def _complete_case(item: Any, number: int, home: Home, line: int) -> Case:
    """Return a case with the values that its file implies. Raises EvalError."""
    if not isinstance(item, Case):
        raise EvalError(f"case {number} is {type(item).__name__}", _HOW_TO_DEFINE)
    if not item.turns:
        raise EvalError(f"{item.name!r} has no message", "Give it turns: (Message(…),)")
    turns = (item.turns,) if isinstance(item.turns, str) else item.turns
    if not item.checks and item.should_trigger is None:
        raise EvalError(f"{item.name!r} checks nothing", "Give it checks, or should_trigger")
    if not isinstance(item.code_skills, tuple | list):
        raise EvalError(f"code_skills of {item.name!r} is {type(item.code_skills).__name__}", "Write (RagSkill,)")

    skills = resolve_skill_folders(item.skills, home)
    make_code_source(item.code_skills)  # so that its faults are reported here, once, and not by every trial
    skill = item.skill or home.skill or find_only_skill(skills, item.code_skills)
    if not skills and home.folder:
        skills = (home.folder,)
    files = {check_workspace_path(path): _to_bytes(path, data) for path, data in item.files.items()}
    case = replace(
        item,
        turns=tuple(_complete_turn(turn) for turn in turns),
        checks=(*trigger(skill, item.should_trigger), *(_complete_check(check, home) for check in item.checks)),
        skill=skill,
        files=check_size(files),
        skills=skills,
        location=item.location or f"{home.path}:{line}",
    )
    home.check_subjects(case)
    return case


def _complete_turn(turn: Any) -> Message | Edit:
    if isinstance(turn, Edit):
        return Edit(check_workspace_path(turn.path), turn.text)
    if isinstance(turn, Message):
        return turn
    if isinstance(turn, str):
        return Message(turn)
    raise EvalError(f"a turn is {type(turn).__name__}", "It must be a Message or an Edit")


def _to_bytes(path: str, data: Any) -> bytes:
    if isinstance(data, str):
        return data.encode("utf-8", "surrogatepass")
    if isinstance(data, bytes):
        return data
    raise EvalError(f"the file {path!r:.60} is {type(data).__name__}", "It must be bytes or text")


def _complete_check(check: Any, home: Home) -> Check:
    if isinstance(check, Check):
        return check.below(home.base, home.root)
    if callable(check):
        return custom(check)
    raise EvalError(f"a check is {type(check).__name__}", "It must be a Check, or a function Trace -> Verdict")


def make_listed_check(name: str) -> Check:
    """Return a check that a listing can show and that cannot be made."""

    def look(trace: Trace) -> Verdict:
        return Verdict(False, error=f"The check {name} was listed and not evaluated.")

    return custom(look, name)


def _outline_cases(tree: ast.Module, home: Home) -> list[Case]:
    """Return a case for every `Case(…)` in the source; one without a name if there is none."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called_name(node) == "Case"]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    if not calls:
        calls = [ast.Call(ast.Name("Case"), [], [], lineno=1)]
    return [_outline_case(call, number, home) for number, call in enumerate(calls, 1)]


def _find_registered_checks(tree: ast.Module) -> set[str]:
    """Return the names of functions below `@check.register`."""
    names = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if any(_name_of(decorator) == "register" for decorator in node.decorator_list):
            names.add(node.name)
    return names


def _outline_case(call: ast.Call, number: int, home: Home) -> Case:
    given: dict[str, ast.expr] = dict(zip(_CASE_FIELDS, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    skill = _text_of(given.get("skill")) or home.skill
    should_trigger = _constant_of(given.get("should_trigger"))
    if not isinstance(should_trigger, bool):
        should_trigger = None
    triggers = trigger(skill, should_trigger) if skill else ()
    checks = [make_listed_check(_outline_check(check)) for check in _items_of(given.get("checks"))]
    prompts = [_outline_prompt(turn) for turn in _items_of(given.get("turns")) if _called_name(turn) != "Edit"]
    # The skills on the shelf are not shown. That there are some tells a suite from cases without a skill.
    has_skills = bool(home.folder) or bool({"skills", "code_skills", "files"} & given.keys())
    return Case(
        name=_text_of(given.get("name")) or f"case {number} {NOT_EVALUATED}",
        turns=tuple(Message(prompt) for prompt in prompts),
        checks=(*triggers, *checks),
        skill=skill,
        should_trigger=should_trigger,
        skills=(NOT_EVALUATED,) if has_skills else (),
        script=() if "script" in given else None,
        tags=tuple(_text_of(tag) or NOT_EVALUATED for tag in _items_of(given.get("tags"))),
        location=f"{home.path}:{call.lineno}",
        model=_text_of(given.get("model")),
    )


def _outline_prompt(turn: ast.expr) -> str:
    if isinstance(turn, ast.Call) and _called_name(turn) == "Message":
        return _text_of(_find_argument(turn, "text")) or NOT_EVALUATED
    return _text_of(turn) or NOT_EVALUATED


def _outline_check(node: ast.expr) -> str:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return f"not {_outline_check(node.operand)}"
    return _called_name(node) or NOT_EVALUATED


def _called_name(node: ast.AST) -> str:
    return _name_of(node.func) if isinstance(node, ast.Call) else ""


def _find_argument(call: ast.Call, name: str) -> ast.expr | None:
    """Return the first argument of a call, or the one of this name."""
    named = [keyword.value for keyword in call.keywords if keyword.arg == name]
    return next(iter([*call.args, *named]), None)


def _name_of(node: ast.expr) -> str:
    """Return the last part of a dotted name; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Name):
        return node.id
    return ""


def _items_of(node: ast.expr | None) -> list[ast.expr]:
    """Return the items of a tuple or list that is written out; the expression itself if it is computed."""
    if node is None:
        return []
    if isinstance(node, ast.Tuple | ast.List):
        return node.elts
    return [node]


def _text_of(node: ast.expr | None) -> str:
    value = _constant_of(node)
    return value if isinstance(value, str) else ""


def _constant_of(node: ast.expr | None) -> Any:
    """Return the value of a constant; None for anything that would have to be computed."""
    return node.value if isinstance(node, ast.Constant) else None
