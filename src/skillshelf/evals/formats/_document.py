"""A file of cases as plain values that know their lines, read by the reader of SKILL.md.

Of YAML, what JSON has: texts, numbers, true, false, null, lists and mappings. Nothing is constructed; `yes`, dates and
the like are texts.
"""

import os
import stat
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.skillmd import Budget, YamlFault, compose, typed_scalar

MAX_FILE = 1024 * 1024
_MAX_VALUES = 100_000


class Table(dict[str, Any]):
    """A mapping, the line it begins on, and the line of each key."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}

    def at(self, key: str) -> int:
        return self.lines.get(key, self.line)


class Row(list[Any]):
    """A list, and the line of each item."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []


def read_bytes(path: str, largest: int = MAX_FILE) -> bytes:
    """The bytes of a plain file that is not too large. Raises EvalError."""
    try:
        # Without O_NONBLOCK a named pipe in its place would hold the program up for good.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            plain = stat.S_ISREG(os.fstat(descriptor).st_mode)
            data = file.read(largest + 1) if plain else b""
    except OSError as error:
        raise EvalError(f"it cannot be read: {error.strerror}", path=path) from None
    if not plain:
        raise EvalError("it is no plain file", path=path)
    if len(data) > largest:
        raise EvalError(f"it is larger than {largest // 1024} KiB", "Split it", path)
    return data


def read_text(path: str) -> str:
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise EvalError("it is not UTF-8 text", "Save it as UTF-8", path, line) from None


def parse_yaml(text: str, path: str) -> Any:
    """Return the one document of a YAML text. Raises EvalError."""
    try:
        document = compose(text, Budget(_MAX_VALUES, MAX_FILE))
        if document.next_document:
            raise EvalError("there is a second document", "Keep all cases in one", path, document.next_document)
        for tag, line in document.tags:
            raise EvalError(f"the tag {tag!r} has no meaning here", "Remove it", path, line)
        return None if document.root is None else _Builder(path).value(document.root)
    except YamlFault as fault:
        fix = "Indent with spaces; put texts with `: ` in quotes"
        raise EvalError(f"it cannot be read as YAML: {fault.problem}", fix, path, fault.line) from None


class _Builder:
    """Turns the nodes of a document into values that know their lines."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._built: dict[int, Row | Table] = {}
        """What stands behind several aliases is built once."""

    def value(self, node: Any) -> Any:
        if node.id == "scalar":
            return typed_scalar(node)
        if id(node) not in self._built:
            self._built[id(node)] = self._row(node) if node.id == "sequence" else self._table(node)
        return self._built[id(node)]

    def _row(self, node: Any) -> Row:
        row = Row()
        for item in node.value:
            row.lines.append(item.start_mark.line + 1)
            row.append(self.value(item))
        return row

    def _table(self, node: Any) -> Table:
        table = Table(node.start_mark.line + 1)
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.id != "scalar":
                raise EvalError("a key must be text", "Write `key: value`", self._path, line)
            if key.value in table:
                raise EvalError(f"{key.value!r} is given twice", "Remove one of them", self._path, line)
            table.lines[key.value] = line
            table[key.value] = self.value(value)
        return table
