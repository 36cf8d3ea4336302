"""What a docstring says of a function and of each parameter, in Google, NumPy and Sphinx style."""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

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


@dataclass(frozen=True, slots=True)
class Docstring:
    summary: str
    """The text before the sections."""
    parameters: Mapping[str, str]


def parse_docstring(text: str | None) -> Docstring:
    lines = inspect.cleandoc(text or "").splitlines()
    sections = [index for index in range(len(lines)) if _opens_section(lines, index)]
    parameters: dict[str, str] = {}
    for start, end in pairwise([*sections, len(lines)]):
        parameters.update(_section(lines[start:end]))
    return Docstring("\n".join(lines[: sections[0]] if sections else lines).strip(), parameters)


def _opens_section(lines: Sequence[str], index: int) -> bool:
    line = lines[index]
    if _GOOGLE_HEADER.fullmatch(line) or _SPHINX_FIELD.match(line):
        return True
    underlined = index + 1 < len(lines) and _UNDERLINE.fullmatch(lines[index + 1])
    return bool(underlined and _NUMPY_HEADER.fullmatch(line))


def _section(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    if field := _SPHINX_FIELD.match(lines[0]):
        if field["name"]:
            yield field["name"], _joined([field["text"], *_indented(lines[1:])])
    elif header := _GOOGLE_HEADER.fullmatch(lines[0]):
        if header["parameters"]:
            yield from _google_entries(_indented(lines[1:]))
    elif (header := _NUMPY_HEADER.fullmatch(lines[0])) and header["parameters"]:
        yield from _numpy_entries(lines[2:])


def _indented(lines: Sequence[str]) -> list[str]:
    """The block that belongs to a header: it ends where the text returns to the margin."""
    end = next((index for index, line in enumerate(lines) if line and not line[0].isspace()), len(lines))
    return [line for line in lines[:end] if line.strip()]


def _google_entries(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    margin = _margin(lines[0]) if lines else 0
    for first, rest in _entries(lines, margin):
        if entry := _GOOGLE_ENTRY.fullmatch(first):
            yield entry["name"], _joined([entry["text"], *rest])


def _numpy_entries(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for first, rest in _entries([line for line in lines if line.strip()], 0):
        if entry := _NUMPY_ENTRY.fullmatch(first):
            for name in entry["names"].split(","):
                yield name.strip(" *"), _joined(rest)


def _entries(lines: Sequence[str], margin: int) -> Iterator[tuple[str, list[str]]]:
    """Each line at the margin, with the deeper lines below it."""
    starts = [index for index, line in enumerate(lines) if _margin(line) <= margin]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start].strip(), list(lines[start + 1 : end])


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: Sequence[str]) -> str:
    return " ".join(stripped for line in lines if (stripped := line.strip()))
