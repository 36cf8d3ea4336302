"""Read the summary and the parameters from a docstring in Google, NumPy or Sphinx style."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

_PARAMETERS = "Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters"
_OTHERS = "Returns?|Yields?|Raises|Warns|Attributes|Methods|Examples?|Notes?|Warnings?|See Also|References|Todo"
_GOOGLE_HEADER = re.compile(rf"(?:(?P<parameters>{_PARAMETERS})|{_OTHERS}):\s*")
_NUMPY_HEADER = re.compile(rf"(?:(?P<parameters>{_PARAMETERS})|{_OTHERS})\s*")
_UNDERLINE = re.compile(r"-{3,}\s*")
_SPHINX_FIELD = re.compile(
    r":(?:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(?P<name>\w+)"
    r"|(?:type|returns?|rtype|raises?|except|exception|yields?)\b[^:]*):\s*(?P<text>.*)"
)
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(?P<name>\w+)\s*(?:\(.*?\))?\s*:\s*(?P<text>.*)")
_NUMPY_ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")


class Docstring(NamedTuple):
    """A docstring, taken apart."""

    summary: str
    """The text before the sections."""
    parameters: Mapping[str, str]
    """The description of each parameter."""


def parse_docstring(text: str | None) -> Docstring:
    lines = inspect.cleandoc(text or "").splitlines()
    starts = [index for index in range(len(lines)) if _opens_section(lines, index)]

    summary = lines
    if starts:
        summary = lines[: starts[0]]
    parameters: dict[str, str] = {}
    for start, end in pairwise([*starts, len(lines)]):
        parameters.update(_parse_section(lines[start:end]))
    return Docstring("\n".join(summary).strip(), parameters)


def _opens_section(lines: Sequence[str], index: int) -> bool:
    line = lines[index]
    if _GOOGLE_HEADER.fullmatch(line) or _SPHINX_FIELD.match(line):
        return True
    if index + 1 == len(lines):
        return False
    return bool(_UNDERLINE.fullmatch(lines[index + 1]) and _NUMPY_HEADER.fullmatch(line))


def _parse_section(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each parameter in a section."""
    sphinx_field = _SPHINX_FIELD.match(lines[0])
    if sphinx_field:
        if sphinx_field["name"]:
            yield sphinx_field["name"], _join([sphinx_field["text"], *_take_indented(lines[1:])])
        return

    google_header = _GOOGLE_HEADER.fullmatch(lines[0])
    if google_header:
        if google_header["parameters"]:
            yield from _parse_google_entries(_take_indented(lines[1:]))
        return

    numpy_header = _NUMPY_HEADER.fullmatch(lines[0])
    if numpy_header and numpy_header["parameters"]:
        yield from _parse_numpy_entries(lines[2:])


def _take_indented(lines: Sequence[str]) -> list[str]:
    """Return the block that belongs to a header: it ends where the text returns to the margin."""
    block: list[str] = []
    for line in lines:
        if line and not line[0].isspace():
            break
        if line.strip():
            block.append(line)
    return block


def _parse_google_entries(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    margin = _margin(lines[0]) if lines else 0
    for first, rest in _split_entries(lines, margin):
        entry = _GOOGLE_ENTRY.fullmatch(first)
        if entry:
            yield entry["name"], _join([entry["text"], *rest])


def _parse_numpy_entries(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    written = [line for line in lines if line.strip()]
    for first, rest in _split_entries(written, 0):
        entry = _NUMPY_ENTRY.fullmatch(first)
        if not entry:
            continue
        for name in entry["names"].split(","):
            yield name.strip(" *"), _join(rest)


def _split_entries(lines: Sequence[str], margin: int) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield each line at the margin, with the deeper lines below it."""
    starts = [index for index, line in enumerate(lines) if _margin(line) <= margin]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start].strip(), lines[start + 1 : end]


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _join(lines: Sequence[str]) -> str:
    stripped = [line.strip() for line in lines]
    return " ".join(line for line in stripped if line)
