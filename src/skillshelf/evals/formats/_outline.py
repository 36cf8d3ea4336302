"""Cases of a file of Python as far as its source tells, for a listing: nothing is run."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from skillshelf.evals._case import Case, Message
from skillshelf.evals._trace import Trace
from skillshelf.evals.check import Check, Verdict, trigger
from skillshelf.evals.formats._fields import Home

NOT_EVALUATED = "(not evaluated)"
_FIELDS = [field.name for field in dataclasses.fields(Case)]


def outline(tree: ast.Module, home: Home) -> list[Case]:
    """Return a case for every `Case(…)` in the source; one without a name if there is none."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called_name(node) == "Case"]
    calls.sort(key=lambda call: (call.lineno, call.col_offset))
    if not calls:
        calls = [ast.Call(ast.Name("Case"), [], [], lineno=1)]
    return [_case(call, number, home) for number, call in enumerate(calls, 1)]


def registered_checks(tree: ast.Module) -> set[str]:
    """Return the names in calls such as `check.register("name", …)`."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called_name(node) == "register")
    names = (_literal(call.args[0]) for call in calls if call.args)
    return {name for name in names if isinstance(name, str)}


def not_evaluated(name: str) -> Check:
    """Return a check that a listing can name and nobody can make."""

    def look(trace: Trace) -> Verdict:
        return Verdict(False, error=f"The check {name} was listed and not evaluated.")

    return Check(name, look)


def _case(call: ast.Call, number: int, home: Home) -> Case:
    given: dict[str, ast.expr] = dict(zip(_FIELDS, call.args, strict=False))
    given |= {word.arg: word.value for word in call.keywords if word.arg}
    name = _text(given.get("name"))
    should_trigger = _literal(given.get("should_trigger"))
    skill = _text(given.get("skill")) or home.skill
    checks = tuple(not_evaluated(_check_name(one)) for one in _items(given.get("checks")))
    if isinstance(should_trigger, bool):
        checks = (*(trigger(skill, should_trigger) if skill else ()), *checks)
    else:
        should_trigger = None
    return Case(
        name=name or f"case {number} {NOT_EVALUATED}",
        turns=tuple(Message(_prompt(turn)) for turn in _items(given.get("turns")) if not _is_edit(turn)),
        checks=checks,
        skill=skill,
        should_trigger=should_trigger,
        # What is on the shelf is not shown; that something is tells a suite from cases without a skill.
        skills=(NOT_EVALUATED,) if home.folder or {"skills", "code_skills", "files"} & given.keys() else (),
        script=() if "script" in given else None,
        tags=tuple(_text(tag) or NOT_EVALUATED for tag in _items(given.get("tags"))),
        location=f"{home.path}:{call.lineno}",
        model=_text(given.get("model")),
    )


def _called_name(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _items(node: ast.expr | None) -> list[ast.expr]:
    """Return the items of a tuple or list that is written out; the expression itself if it is computed."""
    if node is None:
        return []
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]


def _is_edit(turn: ast.expr) -> bool:
    return isinstance(turn, ast.Call) and _called_name(turn) == "Edit"


def _prompt(turn: ast.expr) -> str:
    if isinstance(turn, ast.Call) and _called_name(turn) == "Message":
        values = [*turn.args[:1], *(word.value for word in turn.keywords if word.arg == "text")]
        turn = values[0] if values else turn
    return _text(turn) or NOT_EVALUATED


def _check_name(node: ast.expr) -> str:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return f"not {_check_name(node.operand)}"
    name = _called_name(node) if isinstance(node, ast.Call) else ""
    return name or NOT_EVALUATED


def _text(node: ast.expr | None) -> str:
    value = _literal(node)
    return value if isinstance(value, str) else ""


def _literal(node: ast.expr | None) -> Any:
    """Return the value of a constant; None for anything that would have to be computed."""
    return node.value if isinstance(node, ast.Constant) else None
