"""Is a Markdown file what its author sees? Text that decodes, code fences that end, links that lead somewhere."""

import posixpath
import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from skillshelf.descriptor import Diagnostic, Severity

if TYPE_CHECKING:
    from markdown_it.token import Token

# Without a bracket or a fence there is neither a link nor code, and parsing takes a millisecond a page.
_WORTH_PARSING = re.compile(r"\[|```|~~~")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# `[text](url)` in a guide on writing is a figure of speech, `${DIR}/a.md` is filled in later; what ends like a file
# is meant as one.
_FILE = re.compile(r"[^${}<>]*[^/${}<>]\.\w{1,10}")


# A Markdown parser takes a time that grows with the square of the brackets that open nothing.
_MOST_BRACKETS = 20_000


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
    if not _WORTH_PARSING.search(text):
        return
    if text.count("[") > _MOST_BRACKETS:
        message = f"it has more than {_MOST_BRACKETS} opening brackets, too many to follow its links"
        yield _fault(path, 1, message, "split it into several files")
        return
    from markdown_it import MarkdownIt  # 30 ms that only a check pays

    places = _places(frozenset(existing))
    for token in MarkdownIt("commonmark").parse(text):
        start = token.map[0] + 1 if token.map else 1
        if token.type == "fence" and not _is_closed(token):
            message = f"the code fence {token.markup} is never closed"
            yield _fault(path, start, message, "close it with the same marker, indented like the opening one")
        elif token.type == "inline":
            for line, target in _links(token, start):
                if _is_dead(target, path, places):
                    yield _fault(path, line, f"the link {target[:200]!r} leads to no file", "mend or remove the link")


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
    # Relative to the file, as Markdown has it, or to the skill's folder, as the references themselves are named.
    from_file = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return not from_file.startswith("..") and from_file not in places and posixpath.normpath(target) not in places
