"""A scanner for plain blocks of YAML, which most frontmatters are. It is ten times as fast as PyYAML's parser in C."""

import re
from typing import Any

from skillshelf.skillmd._yaml import MAX_NODES

_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}").fullmatch
_NESTED_LINE = re.compile(r"(?P<indent> +)(?:(?P<dash>- )|(?P<key>[A-Za-z][A-Za-z0-9_-]{0,99}):(?= |$))(?P<value>.*)")
# Characters that a plain value cannot begin with.
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@` ")
_BLOCK_STYLES = frozenset((">", "|", ">-", "|-"))


def scan_block(block: str) -> dict[str, Any] | None:
    """Read a plain mapping line by line; return None if the block needs a YAML parser.

    A plain block has `key: value` lines, one level of nesting and simple block scalars, without escapes. PyYAML's C
    parser takes about 100 µs for a block; most blocks are plain, and the scanner takes a tenth. It answers exactly as
    PyYAML does, or not at all: a differential test holds it to that.
    """
    # A line has at most two values, a key and its value. The parser counts them if they could be too many.
    if 2 * block.count("\n") >= MAX_NODES:
        return None
    # The parser takes tabs, line breaks that only YAML knows, characters that YAML refuses, and a last line without its
    # end, which shortens a block scalar by one character.
    if not block.replace("\n", "").isprintable() or (block and block[-1] != "\n"):
        return None

    values: dict[str, Any] = {}
    lines = block.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if not line:
            continue
        key, colon, rest = line.partition(":")
        if not colon or not _KEY(key) or key in values or (rest and rest[0] != " "):
            return None

        rest = rest.strip(" ")
        indented: list[str] = []
        if not rest or rest in _BLOCK_STYLES:
            indented = _take_indented(lines, at)
            at += len(indented)
        value: Any
        if rest in _BLOCK_STYLES:
            value = _scan_block_scalar(indented, rest)
        elif any(indented):
            value = _scan_nested(indented)
        else:
            value = scan_scalar(rest)
        if value is None:
            return None
        values[key] = value
    return values


def _take_indented(lines: list[str], start: int) -> list[str]:
    """Return the lines from `start` up to the next one that is not indented. Empty lines are among them."""
    end = start
    while end < len(lines) and (not lines[end] or lines[end][0] == " "):
        end += 1
    return lines[start:end]


def scan_scalar(text: str) -> str | None:
    """Return a plain or simply quoted value; None if only a YAML parser can read it."""
    if not text:
        return ""
    first = text[0]
    if first not in _INDICATORS:
        # A search for one character is ten times as fast as for two, and most values have neither.
        if ":" in text and (": " in text or text[-1] == ":"):
            return None
        if "#" in text and " #" in text:
            return None
        return text

    is_quoted = first in "\"'" and len(text) > 1 and text[-1] == first
    inner = text[1:-1]
    if is_quoted and first not in inner and "\\" not in inner:
        return inner
    return None


def _scan_nested(lines: list[str]) -> dict[str, str] | list[str] | None:
    """Read `key: value` lines or `- item` lines that all have the same indentation."""
    mapping: dict[str, str] = {}
    items: list[str] = []
    indent = ""
    for line in lines:
        if not line:
            continue
        match = _NESTED_LINE.fullmatch(line)
        if not match:
            return None
        indent = indent or match["indent"]
        key = match["key"]
        value = scan_scalar(match["value"].strip(" "))
        # An empty value may be the parent of deeper lines, which are not plain.
        if not value or match["indent"] != indent or key in mapping:
            return None
        if match["dash"]:
            items.append(value)
        else:
            mapping[key] = value
    if items and mapping:
        return None
    return items or mapping


def _scan_block_scalar(lines: list[str], style: str) -> str | None:
    """Read a literal (|) or folded (>) text whose lines all have the same indentation."""
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        return None
    indent = len(lines[0]) - len(lines[0].lstrip(" "))
    if not indent:
        return None

    texts = []
    for line in lines:
        text = line[indent:]
        if line and (line[:indent].strip(" ") or not text or text[0] == " "):
            return None
        texts.append(text)
    joined = "\n".join(texts)
    if style[0] == ">":
        # A line break is a space; each empty line is a line break of its own.
        joined = re.sub(r"(?<!\n)\n(?!\n)", " ", joined)
        joined = re.sub(r"\n(\n+)", r"\1", joined)
    return joined if style.endswith("-") else joined + "\n"
