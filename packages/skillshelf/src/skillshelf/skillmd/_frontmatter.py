"""The values of a frontmatter: parsed, and repaired if it is not YAML.

The commonest fault is an unquoted colon in a description. A fault in one field never costs another.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillshelf.skillmd._fields import FORMAT_KEYS
from skillshelf.skillmd._layout import DiagnosticCollector
from skillshelf.skillmd._limits import MAX_REPAIRED_FIELDS, MAX_REPAIRED_LEVELS
from skillshelf.skillmd.bounded_yaml import (
    Budget,
    ValueBuilder,
    YamlDocument,
    YamlFault,
    compose,
    text_scalar,
    typed_scalar,
)
from skillshelf.text import truncate

if TYPE_CHECKING:
    from yaml.nodes import ScalarNode

# `description: # text`, or ` #` in a plain value.
_COMMENTED_FIELD = re.compile(
    r"^(?P<key>name|description)[ \t]*+:[ \t]*+(?![\"'|>])(?P<before>[^\n]*?)(?<![^ \t])#[ \t]*(?P<comment>[^\n]*)$",
    re.M,
)


def read_values(diagnostics: DiagnosticCollector) -> dict[str, Any]:
    """Return the fields of the frontmatter as texts, and as lists and mappings of texts."""
    block = diagnostics.layout.block
    values = _parse_or_repair(block, diagnostics)
    _restore_comments(block, values, diagnostics)
    _lower_keys(values, diagnostics)
    return values


def parse_block(
    block: str, diagnostics: DiagnosticCollector, first_line: int, budget: Budget | None = None
) -> dict[str, Any]:
    """Return the block's mapping as PyYAML's BaseLoader does: all scalars are texts. Raises YamlFault.

    `first_line` is the line of the block in its file. There are no diagnostics if it raises.
    """
    document = compose(block, budget)
    found = DiagnosticCollector()
    for tag in document.tags:
        message = f"the tag {tag.name!r} is ignored; the value is read as text"
        found.warn("yaml-tag", message, first_line + tag.line - 1, fix="remove the tag")
    values = _FrontmatterBuilder(text_scalar, found, first_line).build_root(document)
    if document.next_document:
        message = "only the first YAML document of the frontmatter is read"
        line = first_line + document.next_document - 1
        found.warn("yaml-second-document", message, line, fix="keep all fields in one block")
    diagnostics.items += found.items
    return values


def parse_typed_block(block: str) -> dict[str, Any]:
    """Return the block's mapping as JSON has it, with plain scalars typed as in YAML 1.2. Raises YamlFault."""
    return _FrontmatterBuilder(typed_scalar, DiagnosticCollector(), 1).build_root(compose(block))


class _NotAMapping(YamlFault):
    """The block is YAML, but not a mapping."""

    def __init__(self, line: int) -> None:
        super().__init__("frontmatter must be a YAML mapping: lines such as `name: my-skill`", line)


class _FrontmatterBuilder(ValueBuilder):
    """Builds the mapping of a frontmatter, and reports keys that the author should change."""

    def __init__(
        self, read_scalar: "Callable[[ScalarNode], Any]", diagnostics: DiagnosticCollector, first_line: int
    ) -> None:
        super().__init__(read_scalar)
        self._diagnostics = diagnostics
        self._first_line = first_line

    def build_root(self, document: YamlDocument) -> dict[str, Any]:
        root: Any = document.root
        if root is None:
            return {}
        if root.id != "mapping":
            raise _NotAMapping(root.start_mark.line + 1)
        return self.build_mapping(root)

    def check_key(self, values: dict[str, Any], key: str, line: int) -> None:
        line_in_file = self._first_line + line - 1
        if key in values:
            _warn_duplicate(key, line_in_file, self._diagnostics)
        if key == "<<":
            message = "a merge key (<<) is not merged"
            self._diagnostics.warn("yaml-merge-key", message, line_in_file, fix="write the fields out")


def _parse_or_repair(block: str, diagnostics: DiagnosticCollector) -> dict[str, Any]:
    first_line = diagnostics.layout.first_line
    budget = Budget()
    try:
        return parse_block(block, diagnostics, first_line, budget)
    except _NotAMapping as fault:
        line = fault.line
        message = fault.problem
    except YamlFault as fault:
        line = fault.line
        message = f"Invalid YAML: {fault.problem}"

    count = len(diagnostics.items)
    values = _Repair(diagnostics, budget).read_fields(block.expandtabs(2), first_line)
    if len(diagnostics.items) == count:  # no repair was reported
        fix = "indent with spaces, and write one `key: value` per line"
        diagnostics.warn("yaml-invalid", message, first_line + line - 1, fix=fix)
    return values


def _restore_comments(block: str, values: dict[str, Any], diagnostics: DiagnosticCollector) -> None:
    """Use or report text that YAML takes for a comment."""
    for match in _COMMENTED_FIELD.finditer(block):
        key = match["key"]
        before = match["before"].strip()
        comment = match["comment"].strip()
        if not comment:
            continue
        if values.get(key) == "" and not before:
            values[key] = comment
            message = f"{key!r} begins with #, which starts a comment in YAML; the text is used"
            diagnostics.warn_field(key, "comment-as-value", message, fix="put the value in quotes")
        elif values.get(key) == before:
            message = f"{key!r} ends before ` #`: YAML reads the rest as a comment"
            diagnostics.warn_field(key, "comment-cuts-value", message, fix="put the value in quotes")


def _lower_keys(values: dict[str, Any], diagnostics: DiagnosticCollector) -> None:
    """Read `Description:` as `description:`."""
    capitalised = [key for key in values if key.lower() in FORMAT_KEYS and key.lower() not in values]
    for key in capitalised:
        lower = key.lower()
        values[lower] = values.pop(key)
        message = f"{key!r} is read as {lower!r}: field names are lowercase"
        diagnostics.warn_field(key, "field-invalid", message, fix=f"write `{lower}:`")


def _warn_duplicate(key: str, line: int, diagnostics: DiagnosticCollector) -> None:
    message = f"{key!r} is given twice; the last value counts"
    diagnostics.warn("yaml-duplicate-key", message, line, fix="remove one of them")


# -- blocks that are not YAML -----------------------------------------------------------------------------------------

_MAX_QUOTED = 60
_FIELD = re.compile(
    r"(?P<key>[A-Za-z_][\w .-]{0,99}?|\"[^\"\n]{1,99}\"|'[^'\n]{1,99}')[ \t]*:"
    r"(?=[ \t\u00a0]|$)[ \t\u00a0]*(?P<value>.*)"
)
_FIELD_WITHOUT_SPACE = re.compile(r"(?P<key>name|description|license):(?P<value>\S.*)")
# One of the format's own fields behind a stray space, after a field that has its value already.
_INDENTED_FIELD = re.compile(
    r"[ \u00a0]+(?P<key>name|description|license|compatibility|allowed-tools|metadata)[ \t]*:[ \u00a0]+(?P<value>\S.*)"
)
# `description: > text on the same line`
_BLOCK_MARK = re.compile(r"[>|][+-]?[1-9]?[+-]?[ \t]+(?=\S)")


@dataclass(slots=True)
class _RawField:
    """The lines of one field."""

    key: str
    line: int
    """Counted from 1 within the block."""
    value: str
    """The text on the line of the key."""
    first: str
    """The line of the key."""
    below: list[str] = field(default_factory=list)
    """The lines after it, up to the next field."""


class _Repair:
    """Reads a block field by field: a field that is not YAML becomes text. All fields share one budget."""

    def __init__(self, diagnostics: DiagnosticCollector, budget: Budget) -> None:
        self._diagnostics = diagnostics
        self._budget = budget

    def read_fields(self, block: str, first_line: int, level: int = 1) -> dict[str, Any]:
        """Return every field of the block, which begins on `first_line` of the file."""
        values: dict[str, Any] = {}
        for count, raw in enumerate(_split_fields(block, level)):
            line = first_line + raw.line - 1
            if count == MAX_REPAIRED_FIELDS:
                message = f"only the first {MAX_REPAIRED_FIELDS} fields are read"
                self._diagnostics.warn("frontmatter-cut", message, line, fix="remove unused fields")
                break
            if raw.key in values:
                _warn_duplicate(raw.key, line, self._diagnostics)
            values[raw.key] = self._read_field(raw, line, level)
        return values

    def _read_field(self, raw: _RawField, line: int, level: int) -> Any:
        try:
            parsed = parse_block("\n".join([raw.first, *raw.below]), self._diagnostics, line, self._budget)
            if list(parsed) == [raw.key]:
                return parsed[raw.key]
            problem = "it is not a single field"
        except YamlFault as fault:
            problem = fault.problem

        if not raw.value and raw.below and level < MAX_REPAIRED_LEVELS:
            return self._read_nested(raw.below, line + 1, level)
        text = _join_as_text(raw)
        message = f"Invalid YAML in {raw.key!r} ({problem}); its value is taken as text"
        fix = f"put the value in quotes: {raw.key}: {_quote(text)}"
        self._diagnostics.warn("yaml-repaired", message, line, fix=fix)
        return text

    def _read_nested(self, lines: list[str], first_line: int, level: int) -> Any:
        """Read the indented lines under a field: items, fields, or running text."""
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        inner = [line.expandtabs(2)[indent:] for line in lines]
        texts = [line for line in inner if line.strip()]
        if texts and all(text.startswith("- ") for text in texts):
            message = "a list has items that are not valid YAML; they are taken as text"
            self._diagnostics.warn("yaml-repaired", message, first_line, fix="put the items in quotes")
            return [_unquote(text[2:].strip()) for text in texts]

        nested = self.read_fields("\n".join(inner), first_line, level + 1)
        return nested or " ".join(text.strip() for text in texts)


def _split_fields(block: str, level: int) -> Iterator[_RawField]:
    current: _RawField | None = None
    for number, line in enumerate(block.splitlines(), 1):
        match = _FIELD.match(line) or _FIELD_WITHOUT_SPACE.match(line)
        if not match and level == 1:
            takes_indented_lines = current and current.value[:1] in ("", "|", ">")
            if not takes_indented_lines:
                match = _INDENTED_FIELD.match(line)
        if match:
            if current:
                yield current
            current = _RawField(match["key"].strip("\"'"), number, match["value"].strip(), line)
        elif current:
            current.below.append(line)
    if current:
        yield current


def _join_as_text(raw: _RawField) -> str:
    parts = [raw.value, *(line.strip() for line in raw.below)]
    text = " ".join(part for part in parts if part)
    mark = _BLOCK_MARK.match(text)
    if mark:
        text = text[mark.end() :]
    return _unquote(text)


def _unquote(text: str) -> str:
    """Remove the quotes around a text, unless the first one is closed before its end: `"Foo" and "Bar"` stays."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return text
    second = text.find(text[0], 1)
    if second < len(text) - 1 and not text[second - 1].isspace() and not text[second + 1].isalnum():
        return text
    return text[1:-1]


def _quote(text: str) -> str:
    return "'" + truncate(text, _MAX_QUOTED).replace("'", "''") + "'"
