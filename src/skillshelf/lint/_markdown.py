"""Is a Markdown file what its author sees? Text that decodes, code fences that end, links that lead somewhere."""

import posixpath
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from skillshelf.descriptor import Diagnostic, Severity
from skillshelf.sources import REFERENCE_FOLDERS

if TYPE_CHECKING:
    from markdown_it.token import Token

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# `[text](url)` in a guide on writing is a figure of speech, `${DIR}/a.md` is filled in later; what ends like a file
# is meant as one.
_FILE = re.compile(r"[^${}<>]*[^/${}<>]\.\w{1,10}")

# Whatever may be the target of a link, and more: a parser decides.
_TARGET = re.compile(r"\](?:\(|:)\s*([^\s)]*)")
_ODD_TARGET = re.compile(r"[(<\\&]|^$")
_FENCE = re.compile(r"^([^`~\n]*)(`{3,}|~{3,})([^\n]*)$", re.M)
# The parser takes up to 40 µs a line or mark, and more if there are many brackets that open nothing.
_MAX_MARKS = 20_000


def check_markdown(path: str, data: bytes, existing: Collection[str]) -> Iterator[Diagnostic]:
    """`existing` are the files of the skill's folder: links that leave it cannot be judged and pass."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield _fault(path, data[: error.start].count(b"\n") + 1, "it is not UTF-8", "save it as UTF-8", "error")
        return
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        yield _fault(path, line, "it holds a NUL character", "save it as plain text", "error")
        return
    places = _places(frozenset(existing))
    if not _needs_parser(text, path, places):
        return
    if _count_marks(text) > _MAX_MARKS:
        message = f"it has more than {_MAX_MARKS:,} lines, brackets and marks: its links and fences are not checked"
        yield Diagnostic("warning", "check-stopped", message, path, 1, "split it into several files")
        return
    from markdown_it import MarkdownIt  # 30 ms that only a check pays

    for token in MarkdownIt("commonmark").parse(text):
        start = token.map[0] + 1 if token.map else 1
        if token.type == "fence" and not _is_closed(token):
            message = f"the code fence {token.markup} is never closed"
            yield _fault(path, start, message, "close it with the same marker, indented like the opening one")
        elif token.type == "inline":
            for line, target in _links(token, start):
                if _is_dead(target, path, places):
                    yield _fault(path, line, f"the link {target[:200]!r} leads to no file", "mend or remove the link")


def parsing_effort(path: str, data: bytes, existing: Collection[str]) -> int:
    """Estimate what `check_markdown` takes at worst, in microseconds."""
    text = data.decode(errors="replace")
    if not _needs_parser(text, path, _places(frozenset(existing))):
        return 0
    return 40 * min(_count_marks(text), _MAX_MARKS)


def _count_marks(text: str) -> int:
    """Count the lines and signs that a parser has to look at."""
    return text.count("\n") + sum(map(text.count, "[*_`<&!"))


def _needs_parser(text: str, path: str, places: frozenset[str]) -> bool:
    """False if the text has neither a link nor a code fence that could be at fault.

    This takes a tenth of the time that parsing does. It errs on the side of the parser.
    """
    for target in dict.fromkeys(_TARGET.findall(text)):
        if _ODD_TARGET.search(target) or _is_dead(unquote(target), path, places):
            return True
    opened = ""
    for before, marker, after in _FENCE.findall(text):
        if not opened:
            # Indented, in a list or in a quotation, a fence may end with what is around it.
            if before and not before.strip(" \t>*+-.)0123456789"):
                return True
            if not before and not (marker[0] == "`" and "`" in after):
                opened = marker
        elif marker.startswith(opened) and not after.strip():
            if before.strip() == "" and before:
                return True
            if not before:
                opened = ""
    return bool(opened)


def _fault(path: str, line: int, message: str, fix: str, severity: Severity = "warning") -> Diagnostic:
    return Diagnostic(severity, "markdown-invalid", message, path, line, fix)


def _is_closed(fence: "Token") -> bool:
    """The parser also ends a fence where the text or the list around it ends; only a closing line takes a line more."""
    first, end = fence.map or (0, 0)
    lines = fence.content.count("\n") + (fence.content[-1:] not in ("", "\n"))
    return end - first == lines + 2


def _links(inline: "Token", line: int) -> Iterator[tuple[int, str]]:
    for token in inline.children or ():
        if token.type in ("softbreak", "hardbreak"):
            line += 1
        elif token.type == "link_open":
            yield line, unquote(str(token.attrGet("href") or ""))
        elif token.type == "image":
            yield line, unquote(str(token.attrGet("src") or ""))


@lru_cache(1)
def _places(existing: frozenset[str]) -> frozenset[str]:
    """The files and the folders above them: what a link can lead to. Made once for all the files of a skill."""
    folders = set()
    for file in existing:
        while (file := posixpath.dirname(file)) and file not in folders:
            folders.add(file)
    return existing | folders


def _is_dead(target: str, path: str, places: frozenset[str]) -> bool:
    target = re.split("[?#]", target, maxsplit=1)[0]
    if _SCHEME.match(target) or target.startswith("/") or not _FILE.fullmatch(target):
        return False
    from_skill = posixpath.normpath(target)
    if from_skill.startswith("../"):
        beside, _, rest = from_skill[3:].partition("/")
        if rest and beside not in places and beside not in REFERENCE_FOLDERS:
            return False  # another skill, named from this one's folder: it lies outside and cannot be judged
    # Relative to the file, as Markdown has it, or to the skill's folder, as the references themselves are named.
    from_file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return not from_file.startswith("..") and from_file not in places and from_skill not in places
