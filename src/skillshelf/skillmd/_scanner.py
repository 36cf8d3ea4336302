"""The plain case, by hand: `key: value` lines, one level of nesting, simple block scalars, no escapes.

PyYAML's C parser takes about 100 µs a block; most blocks are plain enough for a line scanner that takes a tenth. It
answers only where its answer is exactly PyYAML's (a differential test holds it to that) and None everywhere else.
"""

import re
from typing import Any

from skillshelf.skillmd._yaml import MAX_NODES

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}").fullmatch
_ITEM = re.compile(r"( +)(?:(- )|([A-Za-z][A-Za-z0-9_-]{0,99}):(?= |$))(.*)").fullmatch
# What a plain value cannot begin with.
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@` ")
_BLOCK_STYLES = frozenset((">", "|", ">-", "|-"))


def scan_lines(block: str) -> dict[str, Any] | None:
    """The block's mapping, or None where only a YAML parser can tell."""
    # A line has two values at most, a key and what it gives; counting those is the parser's business.
    if 2 * block.count("\n") >= MAX_NODES:
        return None
    # Tabs, line breaks that only YAML knows, what YAML refuses, and a last line without its end (a block scalar's last
    # line has one less then) are all left to the real parser.
    if not block.replace("\n", "").isprintable() or (block and block[-1] != "\n"):
        return None
    values: dict[str, Any] = {}
    parent, style = "", ""
    nested: list[str] = []
    for line in (*block.split("\n"), "end:"):
        if not line or line[0] == " ":
            if parent:
                nested.append(line)
            elif line:
                return None
            continue
        if parent and (style or any(nested)):
            value = _scan_block(nested, style) if style else _scan_nested(nested)
            if value is None:
                return None
            values[parent] = value
        nested = []
        key, colon, rest = line.partition(":")
        if not colon or not _KEY(key) or key in values or (rest and rest[0] != " "):
            return None
        rest = rest.strip(" ")
        style = rest if rest in _BLOCK_STYLES else ""
        parent = key if style or not rest else ""
        scalar = "" if style else scan_scalar(rest)
        if scalar is None:
            return None
        values[key] = scalar
    del values["end"]
    return values


def scan_scalar(text: str) -> str | None:
    """A plain or simply quoted value; None where only a YAML parser can tell."""
    if not text:
        return ""
    quote = text[0]
    if quote not in _INDICATORS:
        # Looking for one character first is ten times as fast as for two, and most values have neither.
        if (":" in text and (": " in text or text[-1] == ":")) or ("#" in text and " #" in text):
            return None
        return text
    inner = text[1:-1]
    if quote in "\"'" and len(text) > 1 and text[-1] == quote and quote not in inner and "\\" not in inner:
        return inner
    return None


def _scan_nested(lines: list[str]) -> dict[str, str] | list[str] | None:
    """`key: value` lines or `- item` lines of one indentation."""
    mapping: dict[str, str] = {}
    items: list[str] = []
    indent = ""
    for line in filter(None, lines):
        match = _ITEM(line)
        if not match:
            return None
        space, dash, key, rest = match.groups()
        value = scan_scalar(rest.strip(" "))
        # An empty value may be a parent of deeper lines: not plain any more.
        if not value or space != (indent := indent or space) or key in mapping:
            return None
        if dash:
            items.append(value)
        else:
            mapping[key] = value
    if items and mapping:
        return None
    return items or mapping


def _scan_block(lines: list[str], style: str) -> str | None:
    """A literal (|) or folded (>) text whose lines all have the same indentation."""
    while lines and not lines[-1]:
        lines.pop()
    first = lines[0] if lines else ""
    indent = len(first) - len(first.lstrip(" "))
    if not indent:
        return None
    texts = []
    for line in lines:
        text = line[indent:]
        if line and (line[:indent].strip(" ") or not text or text[0] == " "):
            return None
        texts.append(text)
    if style[0] == "|":
        text = "\n".join(texts)
    else:
        # A line break is a space; each empty line is a line break of its own.
        text = re.sub(r"(?<!\n)\n(?!\n)", " ", "\n".join(texts))
        text = re.sub(r"\n(\n+)", r"\1", text)
    return text if style[1:] == "-" else text + "\n"
