"""A file of cases as plain values that know their lines, read as carefully as a SKILL.md.

Of YAML, what JSON has: texts, numbers, true, false, null, lists and mappings. Nothing is constructed; `yes`, dates and
the like are texts; an alias counts as many values as it stands for, so a bomb runs into the limit while it is small.
"""

import os
import re
import stat
from typing import Any

from skillshelf.errors import EvalError

MAX_FILE = 1024 * 1024
_MAX_DEPTH, _MAX_VALUES = 64, 100_000
_PLAIN = {"": None, "~": None, "null": None, "true": True, "false": False}
_INTEGER = re.compile(r"-?[0-9]{1,300}")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,4})?")


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
    """The one document of a YAML text. Raises EvalError."""
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        return _Reader(loader(text), yaml.events, path).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        fault = str(error.problem or error.context), mark.line + 1 if mark else 1
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        fault = str(error).splitlines()[0] if str(error) else type(error).__name__, 1
    raise EvalError(f"it is not YAML: {fault[0]}", "Indent with spaces; put texts with `: ` in quotes", path, fault[1])


class _Reader:
    def __init__(self, loader: Any, kinds: Any, path: str) -> None:
        self.next, self.kinds, self.path = loader.get_event, kinds, path
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.count = 0

    def document(self) -> Any:
        self.next()  # the stream's start
        if type(self.next()) is self.kinds.StreamEndEvent:
            return None
        value = self.value(self.next(), 1)
        self.next()  # the document's end
        event = self.next()
        if type(event) is not self.kinds.StreamEndEvent:
            raise self.fault("there is a second document", "Keep all cases in one", event)
        return value

    def value(self, event: Any, depth: int) -> Any:
        if type(event) is self.kinds.AliasEvent:
            return self.alias(event)
        self.counted(1, event)
        if depth > _MAX_DEPTH:
            raise self.fault(f"it is nested deeper than {_MAX_DEPTH} levels", "Make it flatter", event)
        if event.tag not in (None, "!"):
            raise self.fault(f"the tag {event.tag!r} has no meaning here", "Remove it", event)
        before = self.count
        if type(event) is self.kinds.ScalarEvent:
            value = _scalar(event.value) if event.implicit[0] else event.value
        elif type(event) is self.kinds.SequenceStartEvent:
            value = self.row(depth)
        else:
            value = self.table(event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = value, self.count - before + 1
        return value

    def alias(self, event: Any) -> Any:
        if event.anchor not in self.anchors:
            raise self.fault(f"the alias {event.anchor!r} names nothing", "Write the value out", event)
        value, size = self.anchors[event.anchor]
        self.counted(size, event)
        return value

    def row(self, depth: int) -> Row:
        items = Row()
        while type(event := self.next()) is not self.kinds.SequenceEndEvent:
            items.lines.append(event.start_mark.line + 1)
            items.append(self.value(event, depth + 1))
        return items

    def table(self, start: Any, depth: int) -> Table:
        table = Table(start.start_mark.line + 1)
        while type(event := self.next()) is not self.kinds.MappingEndEvent:
            if type(event) is not self.kinds.ScalarEvent:
                raise self.fault("a key must be text", "Write `key: value`", event)
            self.counted(1, event)
            if event.value in table:
                raise self.fault(f"{event.value!r} is given twice", "Remove one of them", event)
            table.lines[event.value] = event.start_mark.line + 1
            table[event.value] = self.value(self.next(), depth + 1)
        return table

    def counted(self, values: int, event: Any) -> None:
        self.count += values
        if self.count > _MAX_VALUES:
            raise self.fault(f"it has more than {_MAX_VALUES} values", "Split it", event)

    def fault(self, problem: str, fix: str, event: Any) -> EvalError:
        return EvalError(problem, fix, self.path, event.start_mark.line + 1)


def _scalar(text: str) -> Any:
    """What a plain scalar means to JSON; anything else is a text."""
    if text in _PLAIN:
        return _PLAIN[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
