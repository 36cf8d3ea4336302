"""Which line of a skill's file is to blame: of a SKILL.md, or of the module of a code skill."""

from __future__ import annotations

import ast
import os
import re
from contextlib import suppress

from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read

_DESCRIPTION = re.compile(r"\s*[\"']?description[\"']?\s*:", re.I)


class Lines:
    """Of one file. Line 1 where it is gone by now, or does not say."""

    def __init__(self, path: str, skill: str) -> None:
        self._text = _text(path)
        self._python = path.endswith(".py")
        self._class = _class(self._text, skill) if self._python else None

    @property
    def description(self) -> int:
        """What makes a model choose the skill."""
        if self._python:
            return self._assigned("description")
        head = self._text[: self._body()].splitlines()
        return next((at for at, line in enumerate(head, 1) if _DESCRIPTION.match(line)), 1)

    @property
    def instructions(self) -> int:
        """Where what the model should follow begins."""
        return self._assigned("instructions") if self._python else self._text.count("\n", 0, self._body()) + 1

    def reference(self, name: str) -> int:
        """Where the instructions name a reference, by its path or by its file name alone."""
        lines = self._text.splitlines()
        for wanted in (name, os.path.basename(name)):
            place = re.compile(rf"(?<![\w.-]){re.escape(wanted)}(?![\w-]|\.\w)")
            found = next((at for at, line in enumerate(lines, 1) if place.search(line)), 0)
            if found:
                return found
        return 1

    def _body(self) -> int:
        with suppress(Unreadable):
            return read(self._text).body
        return 0

    def _assigned(self, name: str) -> int:
        """The line of `name = …` in the class of the skill; of the class, where it has none."""
        if self._class is None:
            return 1
        return next((one.lineno for one in self._class.body if name in _targets(one)), self._class.lineno)


def _text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return decode(file.read(MAX_FILE + 1)).removeprefix("\ufeff")
    except (OSError, Unreadable):
        return ""


def _class(text: str, skill: str) -> ast.ClassDef | None:
    """The class that has this name for its skill; or else the first that is described."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    named = [one for one in classes if any("name" in _targets(line) and _value(line) == skill for line in one.body)]
    described = [one for one in classes if any("description" in _targets(line) for line in one.body)]
    return next(iter(named + described), None)


def _targets(node: ast.stmt) -> list[str]:
    given = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [one.id for one in given if isinstance(one, ast.Name)]


def _value(node: ast.stmt) -> object:
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    return value.value if isinstance(value, ast.Constant) else None
