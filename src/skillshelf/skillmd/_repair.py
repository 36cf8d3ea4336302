"""Frontmatter that is not YAML, read field by field: what can be told apart safely is kept and reported.

The commonest fault is an unquoted colon in a description. A fault in one field never costs another.
"""

import re
from collections.abc import Iterator
from typing import Any

from skillshelf.skillmd._values import Notes, YamlFault
from skillshelf.skillmd._yaml import Budget, parse_yaml

# Each field is parsed on its own; a hostile block with thousands of them must not take seconds.
_MAX_FIELDS = 256
_MAX_LEVELS = 4
_FIELD = re.compile(
    r"(?P<key>[A-Za-z_][\w .-]{0,99}?|\"[^\"\n]{1,99}\"|'[^'\n]{1,99}')[ \t]*:"
    r"(?=[ \t\u00a0]|$)[ \t\u00a0]*(?P<value>.*)"
)
# One of the format's own fields behind a stray space, after a field that has its value already.
_STRAY = re.compile(
    r"[ \u00a0]+(?P<key>name|description|license|compatibility|allowed-tools|metadata)[ \t]*:[ \u00a0]+(?P<value>\S.*)"
)
_GLUED = re.compile(r"(?P<key>name|description|license):(?P<value>\S.*)")
_BLOCK_MARK = re.compile(r"[>|][+-]?[1-9]?[+-]?[ \t]+(?=\S)")


def repair_fields(block: str, notes: Notes, first_line: int, budget: Budget, level: int = 1) -> dict[str, Any]:
    """Return every field of the block that can be read, alone or as text. Together they stay within the budget."""
    values: dict[str, Any] = {}
    for count, (key, line, value, raw) in enumerate(_fields(block, level)):
        if count == _MAX_FIELDS:
            notes.add(
                "warning",
                "frontmatter-cut",
                f"only the first {_MAX_FIELDS} fields are read",
                first_line + line - 1,
                "remove what nothing reads",
            )
            break
        at = first_line + line - 1
        if key in values:
            notes.add(
                "warning",
                "yaml-duplicate-key",
                f"{key!r} is given twice; the last value counts",
                at,
                "remove one of them",
            )
        values[key] = _read_field(key, value, raw, notes, at, budget, level)
    return values


def _fields(block: str, level: int) -> Iterator[tuple[str, int, str, str]]:
    """Key, line, value on the key's line, and the whole raw text of each field."""
    current: tuple[str, int, str, list[str]] | None = None
    for number, line in enumerate(block.splitlines(), 1):
        match = _FIELD.match(line) or _GLUED.match(line)
        if not match and level == 1 and (not current or current[2][:1] not in ("", "|", ">")):
            match = _STRAY.match(line)
        if match:
            if current:
                yield (*current[:3], "\n".join(current[3]))
            current = (match["key"].strip("\"'"), number, match["value"].strip(), [line])
        elif current:
            current[3].append(line)
    if current:
        yield (*current[:3], "\n".join(current[3]))


def _read_field(key: str, value: str, raw: str, notes: Notes, line: int, budget: Budget, level: int) -> Any:
    try:
        parsed = parse_yaml(raw, notes, line, budget)
        if list(parsed) == [key]:
            return parsed[key]
        problem = "it does not read as one field"
    except YamlFault as fault:
        problem = fault.problem
    below = raw.split("\n")[1:]
    if not value and below and level < _MAX_LEVELS:
        return _read_nested(below, notes, line, budget, level)
    text = _as_text(value, below)
    notes.add(
        "warning",
        "yaml-repaired",
        f"Invalid YAML in {key!r} ({problem}); its value is taken as text",
        line,
        f"put the value in quotes: {key}: {_quoted(text)}",
    )
    return text


def _read_nested(below: list[str], notes: Notes, line: int, budget: Budget, level: int) -> Any:
    """The indented lines under a field: items, fields, or running text."""
    indent = min((len(text) - len(text.lstrip()) for text in below if text.strip()), default=0)
    inner = [text.expandtabs(2)[indent:] for text in below]
    full = [text for text in inner if text.strip()]
    if full and all(text.startswith("- ") for text in full):
        notes.add(
            "warning",
            "yaml-repaired",
            "a list with items that are not valid YAML is taken as texts",
            line + 1,
            "put the items in quotes",
        )
        return [_unquote(text[2:].strip()) for text in full]
    nested = repair_fields("\n".join(inner), notes, line + 1, budget, level + 1)
    return nested or " ".join(text.strip() for text in full)


def _as_text(value: str, below: list[str]) -> str:
    text = " ".join(part for part in (value, *(line.strip() for line in below)) if part)
    return _unquote(_BLOCK_MARK.sub("", text, count=1) if _BLOCK_MARK.match(text) else text)


def _unquote(text: str) -> str:
    """Without the quotes around it, unless the first one is closed before: `"Foo" and "Bar"` is not one quotation."""
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "\"'":
        return text
    second = text.find(text[0], 1)
    if second < len(text) - 1 and not text[second - 1].isspace() and not text[second + 1].isalnum():
        return text
    return text[1:-1]


def _quoted(text: str) -> str:
    shown = text if len(text) <= 60 else text[:57] + "…"
    return "'" + shown.replace("'", "''") + "'"
