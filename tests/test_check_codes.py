"""Test the table of diagnostic codes."""

import ast
import re
from collections.abc import Iterator

from repository import modules, parse
from skillshelf.lint import CODES

CODE = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# Calls that make a diagnostic, with the place of the code among their arguments.
MAKERS = {"Diagnostic": 1, "Unreadable": 0, "_note": 1, "add_note": 2, "warn": 0, "inform": 0, "warn_field": 1}


def test_every_code_is_explained() -> None:
    """Each code that any module can emit has a line in the table."""
    assert set(_emitted()) - set(CODES) == set()


def test_every_explained_code_is_emitted() -> None:
    """The table has no code that is no longer in use."""
    literals = {node.value for tree in _trees() for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert set(CODES) - literals == set()


def test_codes_are_words_and_explanations_one_line() -> None:
    """A code can be typed after --ignore; an explanation fits on a line of a table."""
    for code, text in CODES.items():
        assert CODE.fullmatch(code)
        assert 10 < len(text) < 120
        assert text.isprintable()


def _trees() -> Iterator[ast.Module]:
    for path in modules().values():
        if path.name != "_codes.py":
            yield parse(path)


def _emitted() -> Iterator[str]:
    for node in (node for tree in _trees() for node in ast.walk(tree)):
        if isinstance(node, ast.Call):
            yield from _code_of(node)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "code":
            yield from _constants(node.value)


def _code_of(call: ast.Call) -> Iterator[str]:
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    at = MAKERS.get(name)
    if at is not None and len(call.args) > at:
        yield from (word for word in _constants(call.args[at]) if CODE.fullmatch(word))


def _constants(node: ast.AST) -> Iterator[str]:
    """Yield the string itself, or both arms of `a if … else b`."""
    if isinstance(node, ast.IfExp):
        yield from _constants(node.body)
        yield from _constants(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
