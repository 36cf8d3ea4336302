"""A file of cases as plain values that know their lines, and typed access to its fields.

YAML files may use what JSON has: texts, numbers, true, false, null, lists and mappings. Nothing is constructed; `yes`,
dates and the like are texts.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from typing import Any

from skillshelf.agent import MODES
from skillshelf.errors import EvalError
from skillshelf.skillmd import Budget, ValueBuilder, YamlFault, compose, typed_scalar
from skillshelf.text import clip, closest_names

MAX_FILE = 1024 * 1024
MAX_VALUES = 100_000
MAX_VALUE_SHOWN = 60


def read_bytes(path: str, max_size: int = MAX_FILE) -> bytes:
    """Read a plain file of limited size. Raises EvalError."""
    try:
        # Without O_NONBLOCK, opening a named pipe would block forever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise EvalError("it is not a plain file", path=path)
            data = file.read(max_size + 1)
    except OSError as error:
        raise EvalError(f"it cannot be read: {error.strerror}", path=path) from None
    if len(data) > max_size:
        raise EvalError(f"it is larger than {max_size // 1024} KiB", "Split it", path)
    return data


def read_text(path: str) -> str:
    """Read a plain file of UTF-8 text. Raises EvalError."""
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EvalError("it is not UTF-8 text", "Save it as UTF-8", path, line) from None


class YamlMapping(dict[str, Any]):
    """A mapping, the line it begins on, and the line of each key."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def line_of(self, key: str) -> int:
        """Return the line of a key, or that of the mapping if the key is missing."""
        return self.lines.get(key, self.line)


class YamlList(list[Any]):
    """A list, and the line of each item."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []


def parse_document(text: str, path: str) -> Any:
    """Return the one document of a YAML text. Raises EvalError."""
    try:
        document = compose(text, Budget(MAX_VALUES, MAX_FILE))
        if document.next_document:
            raise EvalError("there is a second document", "Keep all cases in one", path, document.next_document)
        if document.tags:
            tag = document.tags[0]
            raise EvalError(f"the tag {tag.name!r} has no meaning here", "Remove it", path, tag.line)
        if document.root is None:
            return None
        return _LineBuilder(path).build(document.root)
    except YamlFault as fault:
        fix = "Indent with spaces; put texts with `: ` in quotes"
        raise EvalError(f"it cannot be read as YAML: {fault.problem}", fix, path, fault.line) from None


class _LineBuilder(ValueBuilder):
    """Builds values that know their lines, and refuses keys that are given twice."""

    def __init__(self, path: str) -> None:
        super().__init__(typed_scalar)
        self._path = path

    def build_list(self, node: Any) -> YamlList:
        items = YamlList()
        for item in node.value:
            items.lines.append(item.start_mark.line + 1)
            items.append(self.build(item))
        return items

    def make_mapping(self, node: Any) -> YamlMapping:
        return YamlMapping(node.start_mark.line + 1)

    def check_key(self, values: dict[str, Any], key: str, line: int) -> None:
        assert isinstance(values, YamlMapping)
        if key in values:
            raise EvalError(f"{key!r} is given twice", "Remove one of them", self._path, line)
        values.lines[key] = line


class Fields:
    """A mapping of known keys, with a fault that names the line for every value of the wrong type."""

    def __init__(self, value: Any, path: str, line: int, known: Iterable[str], subject: str) -> None:
        """`subject` names the mapping in messages. Raises EvalError if it is not a mapping or has an unknown key."""
        names = list(known)
        if not isinstance(value, YamlMapping):
            raise EvalError(
                f"{subject} is {show_value(value)}", f"It must be a mapping of {', '.join(names)}", path, line
            )

        self.path = path
        self.mapping = value
        for key in value:
            if key not in names:
                problem = f"{subject} has no key {show_value(key)}"
                raise EvalError(problem, _suggest_key(key, names), path, value.line_of(key))

    def __contains__(self, key: str) -> bool:
        return self.mapping.get(key) is not None

    def fault(self, key: str, problem: str, fix: str = "") -> EvalError:
        """Return a fault on the line of a key."""
        return EvalError(problem, fix, self.path, self.mapping.line_of(key))

    def text(self, key: str, default: str = "") -> str:
        value = self.mapping.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong_type(key, "It must be text: put it in quotes")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts. A single text stands for a list of one."""
        value = self.mapping.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong_type(key, "It must be a list of texts")
        return tuple(value)

    def flag(self, key: str) -> bool | None:
        value = self.mapping.get(key)
        if value is not None and not isinstance(value, bool):
            raise self._wrong_type(key, "It must be true or false")
        return value

    def items(self, key: str) -> list[tuple[Any, int]]:
        """Return the items of a list, each with its line."""
        value = self.mapping.get(key)
        if value is None:
            return []
        if not isinstance(value, YamlList):
            raise self._wrong_type(key, "It must be a list: lines that begin with `- `")
        return list(zip(value, value.lines, strict=True))

    def policy(self, default: str) -> str:
        policy = self.text("policy", default)
        if policy not in MODES:
            raise self.fault("policy", f"the policy is {show_value(policy)}", f"Choose one of {', '.join(MODES)}")
        return policy

    def _wrong_type(self, key: str, fix: str) -> EvalError:
        return self.fault(key, f"{key!r} is {show_value(self.mapping.get(key))}", fix)


def show_value(value: Any) -> str:
    """Return a value for a message, cut if it is long."""
    return clip(repr(value), MAX_VALUE_SHOWN)


def _suggest_key(key: str, known: Sequence[str]) -> str:
    suggestions = closest_names(key, known)
    if suggestions:
        return f"Did you mean {suggestions[0]!r}?"
    return f"Its keys: {', '.join(known)}"
