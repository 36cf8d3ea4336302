"""A case file as plain values that know their lines, and models of its parts.

YAML files may use what JSON has: texts, numbers, true, false, null, lists and mappings. Nothing is constructed; `yes`,
dates and the like are texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from skillshelf.errors import EvalError
from skillshelf.skillmd.bounded_yaml import Budget, ValueBuilder, YamlFault, compose, typed_scalar
from skillshelf.text import closest_names
from skillshelf_evals._folders import read_start
from skillshelf_evals._limits import MAX_CASE_FILE, MAX_CASE_VALUES
from skillshelf_evals._text import explain_expected, show_value

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def read_bytes(path: str, max_size: int = MAX_CASE_FILE) -> bytes:
    """Read a plain file of limited size. Raises EvalError."""
    try:
        data = read_start(path, max_size)
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
        document = compose(text, Budget(MAX_CASE_VALUES, MAX_CASE_FILE))
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


Values = TypeVar("Values", bound=BaseModel)


class DocumentModel(BaseModel):
    """The keys of a mapping and their types. A key without a value counts as missing."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _remove_empty(cls, given: Any) -> Any:
        if not isinstance(given, YamlMapping):
            return given
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class YamlEntry(Generic[Values]):
    """A mapping of a document: its values, and the lines for faults that only its meaning shows."""

    values: Values
    mapping: YamlMapping
    path: str

    def __contains__(self, key: str) -> bool:
        return self.mapping.get(key) is not None

    def fault(self, key: str, problem: str, fix: str = "") -> EvalError:
        """Return a fault on the line of a key."""
        return EvalError(problem, fix, self.path, self.mapping.line_of(key))

    def items(self, key: str) -> list[tuple[Any, int]]:
        """Return the items of a list, each with its line."""
        value = self.mapping.get(key)
        return list(zip(value, value.lines, strict=True)) if isinstance(value, YamlList) else []


def read_entry(model: type[Values], value: Any, path: str, line: int, subject: str) -> YamlEntry[Values]:
    """Read a part of a document. Raises EvalError on the line of its first fault. `subject` names the part."""
    try:
        return YamlEntry(model.model_validate(value), value, path)
    except ValidationError as fault:
        raise _explain_fault(fault.errors()[0], model, value, path, line, subject) from None


def read_list(model: type[Values], path: str, subject: str, fix: str) -> list[tuple[Values, int]]:
    """Read a file that is a list of mappings, each with its line. Raises EvalError. `subject` names an item."""
    items = parse_document(read_text(path), path)
    if not isinstance(items, YamlList):
        raise EvalError(f"it is not a list of {subject}s", fix, path, 1)
    return [
        (read_entry(model, item, path, line, f"the {subject}").values, line)
        for item, line in zip(items, items.lines, strict=True)
    ]


def _explain_fault(
    error: ErrorDetails, model: type[BaseModel], value: Any, path: str, line: int, subject: str
) -> EvalError:
    known = list(model.model_fields)
    if not isinstance(value, YamlMapping):
        return EvalError(f"{subject} is {show_value(value)}", f"It must be a mapping of {', '.join(known)}", path, line)
    key = str(error["loc"][0])
    line = value.line_of(key)
    if error["type"] == "missing":
        return EvalError(f"{subject} has no `{key}`", f"Its keys: {', '.join(known)}", path, line)
    if error["type"] == "extra_forbidden":
        return EvalError(f"{subject} has no key {show_value(key)}", _suggest_key(key, known), path, line)
    return EvalError(f"{key!r} is {show_value(value.get(key))}", explain_expected(error), path, line)


def _suggest_key(key: str, known: Sequence[str]) -> str:
    suggestions = closest_names(key, known)
    if suggestions:
        return f"Did you mean {suggestions[0]!r}?"
    return f"Its keys: {', '.join(known)}"
