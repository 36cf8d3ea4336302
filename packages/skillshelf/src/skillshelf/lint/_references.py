"""Check that a skill's references are complete, that something names them, and that their content is sound.

The caller brings names, texts and bytes; nothing is opened or run. All paths, in arguments and in diagnostics, start
at the skill's folder (`references/a.md`).
"""

import ast
import posixpath
import re
import string
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from skillshelf.lint._limits import MAX_MARKS
from skillshelf.lint._naming import find_unnamed
from skillshelf.skills import Diagnostic
from skillshelf.sources import REFERENCE_FOLDERS

if TYPE_CHECKING:
    from markdown_it.token import Token

_MARKDOWN = (".md", ".markdown")


def check_listed(listed: Sequence[str], existing: Collection[str]) -> Iterator[Diagnostic]:
    """Report listed references that do not exist."""
    for path in listed:
        if path not in existing:
            message = "the skill lists this reference, but there is no such file"
            fix = "add the file, or remove it from the list"
            yield Diagnostic("error", "reference-missing", message, path, fix=fix)


def check_unlisted(listed: Collection[str], existing: Collection[str]) -> Iterator[Diagnostic]:
    """Report files under `references/` that the skill's list lacks."""
    for path in sorted(set(existing).difference(listed)):
        if path.startswith("references/") and not _is_by_product(path):
            message = "the file is not on the skill's list, so no model can load it"
            fix = f"add {path!r} to `references`"
            yield Diagnostic("error", "reference-unlisted", message, path, fix=fix)


def _is_by_product(path: str) -> bool:
    """Return True for files that a tool or an operating system left there, which no author means as references."""
    if path.endswith(".pyc"):
        return True
    return any(part.startswith(".") or part == "__pycache__" for part in path.split("/"))


def check_named(
    listed: Sequence[str], existing: Collection[str], instructions: str, contents: Mapping[str, bytes]
) -> Iterator[Diagnostic]:
    """Report references that neither the instructions nor a file they lead to names."""
    texts = {"": instructions}
    for path, data in contents.items():
        if b"\0" not in data:
            texts[path] = data.decode(errors="replace")

    names = Counter(posixpath.basename(path) for path in listed)
    for path in find_unnamed(listed, existing, texts):
        # A bare name that two references share loads neither.
        name = posixpath.basename(path)
        if names[name] > 1:
            name = path
        message = "neither the instructions nor a file they lead to names it, so a model has no reason to load it"
        fix = f"say in the instructions when to load {name!r}, or remove it"
        yield Diagnostic("warning", "reference-unnamed", message, path, fix=fix)


# -- the content of one file -------------------------------------------------------------------------------------------

_LINK_TEXT = re.compile(rb"(?:\.{1,2}/|[\w.-]+/)[\w./-]{1,1000}")


def check_content(path: str, data: bytes, existing: Collection[str]) -> Iterator[Diagnostic]:
    """Check a Markdown or Python file. Other formats pass."""
    if _is_link_text(path, data):
        message = "the file holds only a path: a symlink that was checked out as text"
        fix = "check out with `git config core.symlinks true`, or copy the file it names here"
        yield Diagnostic("warning", "symlink-text", message, path, 1, fix)
    elif path.lower().endswith(_MARKDOWN):
        yield from check_markdown(path, data, existing)
    elif path.lower().endswith(".py"):
        yield from _check_python(path, data)


def estimate_effort(path: str, data: bytes, existing: Collection[str]) -> int:
    """Return the microseconds that `check_content` takes at worst."""
    if path.lower().endswith(_MARKDOWN):
        return _estimate_markdown_effort(path, data, existing)
    if path.lower().endswith(".py"):
        return _estimate_python_effort(data)
    return 0


def _is_link_text(path: str, data: bytes) -> bool:
    """Return True if the data is the path of a file with the same ending.

    Git writes that instead of a symlink if it cannot create one.
    """
    ending = posixpath.splitext(path)[1].encode()
    return bool(ending) and data.endswith(ending) and _LINK_TEXT.fullmatch(data) is not None


# -- Markdown ----------------------------------------------------------------------------------------------------------

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# A link target that ends like a file. The target of `[text](url)` in a guide on writing is a figure of speech, and
# `${DIR}/a.md` is filled in later.
_FILE = re.compile(r"[^${}<>]*[^/${}<>]\.\w{1,10}")
# Everything that may be the target of a link, and more: the parser decides.
_TARGET = re.compile(r"\](?:\(|:)\s*([^\s)]*)")
_ODD_TARGET = re.compile(r"[(<\\&]|^$")
_FENCE = re.compile(r"^([^`~\n]*)(`{3,}|~{3,})([^\n]*)$", re.M)


def check_markdown(path: str, data: bytes, existing: Collection[str]) -> Iterator[Diagnostic]:
    """Report text that does not decode, code fences that never end, and links to files that do not exist.

    `existing` are the files of the skill's folder. Links that leave the folder cannot be judged and pass.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        yield Diagnostic("error", "markdown-invalid", "it is not UTF-8", path, line, "save it as UTF-8")
        return
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        yield Diagnostic("error", "markdown-invalid", "it has a NUL character", path, line, "save it as plain text")
        return

    targets = _find_link_targets(frozenset(existing))
    if not _needs_parser(text, path, targets):
        return
    if _count_marks(text) > MAX_MARKS:
        message = f"it has more than {MAX_MARKS:,} lines, brackets and marks: its links and fences are not checked"
        yield Diagnostic("warning", "check-stopped", message, path, 1, "split it into several files")
        return
    yield from _check_parsed_markdown(path, text, targets)


def _check_parsed_markdown(path: str, text: str, targets: frozenset[str]) -> Iterator[Diagnostic]:
    from markdown_it import MarkdownIt  # takes 30 ms

    for token in MarkdownIt("commonmark").parse(text):
        first_line = 1
        if token.map:
            first_line = token.map[0] + 1
        if token.type == "fence" and not _is_closed(token):
            message = f"the code fence {token.markup} is never closed"
            fix = "close it with the same marker, indented like the opening one"
            yield Diagnostic("warning", "markdown-invalid", message, path, first_line, fix)
        elif token.type == "inline":
            for line, link in _find_links(token, first_line):
                if _is_dead(link, path, targets):
                    message = f"the link {link[:200]!r} leads to no file"
                    yield Diagnostic("warning", "markdown-invalid", message, path, line, "correct or remove the link")


def _estimate_markdown_effort(path: str, data: bytes, existing: Collection[str]) -> int:
    text = data.decode(errors="replace")
    if not _needs_parser(text, path, _find_link_targets(frozenset(existing))):
        return 0
    return 40 * min(_count_marks(text), MAX_MARKS)


def _count_marks(text: str) -> int:
    """Count the lines and signs that a parser has to look at."""
    return text.count("\n") + sum(text.count(sign) for sign in "[*_`<&!")


def _needs_parser(text: str, path: str, targets: frozenset[str]) -> bool:
    """Return False if the text certainly has no fault in its links and code fences.

    This takes a tenth of the time that parsing does.
    """
    for link in dict.fromkeys(_TARGET.findall(text)):
        if _ODD_TARGET.search(link) or _is_dead(unquote(link), path, targets):
            return True

    opening = ""
    for before, marker, after in _FENCE.findall(text):
        if not opening:
            # A fence that is indented, in a list or in a quotation may end together with that.
            if before and not before.strip(" \t>*+-.)0123456789"):
                return True
            is_code_span = marker.startswith("`") and "`" in after
            if not before and not is_code_span:
                opening = marker
        elif marker.startswith(opening) and not after.strip():
            if before and not before.strip():
                return True
            if not before:
                opening = ""
    return bool(opening)


def _is_closed(fence: "Token") -> bool:
    """Return True if the fence has a closing line.

    The parser also ends a fence at the end of the text or of the list around it. Only a closing line adds to the
    number of lines.
    """
    first, end = fence.map or (0, 0)
    lines = fence.content.count("\n")
    if fence.content and not fence.content.endswith("\n"):
        lines += 1
    return end - first == lines + 2


def _find_links(inline: "Token", line: int) -> Iterator[tuple[int, str]]:
    """Yield the line and target of each link and image. `line` is the line that the token begins on."""
    for token in inline.children or ():
        if token.type in ("softbreak", "hardbreak"):
            line += 1
        elif token.type == "link_open":
            yield line, unquote(str(token.attrGet("href") or ""))
        elif token.type == "image":
            yield line, unquote(str(token.attrGet("src") or ""))


@lru_cache(1)
def _find_link_targets(existing: frozenset[str]) -> frozenset[str]:
    """Return the files and all folders above them. The files of a skill share the result."""
    folders: set[str] = set()
    for file in existing:
        folder = posixpath.dirname(file)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return existing | folders


def _is_dead(link: str, path: str, targets: frozenset[str]) -> bool:
    """Return True if a link in the file at `path` is meant for a file of the skill that does not exist."""
    link = re.split("[?#]", link, maxsplit=1)[0]
    if _SCHEME.match(link) or link.startswith("/") or not _FILE.fullmatch(link):
        return False

    from_skill = posixpath.normpath(link)
    if from_skill.startswith("../"):
        beside, _, rest = from_skill.removeprefix("../").partition("/")
        if rest and beside not in targets and beside not in REFERENCE_FOLDERS:
            return False  # names another skill from this one's folder; it is outside and cannot be judged

    # Markdown has links start at the file; references are named from the skill's folder.
    from_file = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    if from_file.startswith(".."):
        return False
    return from_file not in targets and from_skill not in targets


# -- Python ------------------------------------------------------------------------------------------------------------

# The more of these a file has, the longer it takes to parse: up to 6 µs each.
_PYTHON_MARKS = string.punctuation.encode() + b"\n"
# A line of `# /// script` metadata, such as `# requires-python = ">=3.12"`.
_REQUIRES_PYTHON = re.compile(rb"^#[ \t]*requires-python[ \t]*=[ \t]*[\"'](?:>=|==|~=)[ \t]*(\d{1,3})\.(\d{1,3})", re.M)


def _check_python(path: str, data: bytes) -> Iterator[Diagnostic]:
    """Parse the file with the Python that runs the check, without executing any of it."""
    if _needs_newer_python(data):
        return
    try:
        with warnings.catch_warnings():
            # An invalid escape is a matter of style and no reason to print a warning on the user's terminal.
            warnings.simplefilter("ignore")
            # Only parse: compiling 37,000 small functions takes 44 s, parsing them 0.2 s.
            compile(data, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
        return
    except SyntaxError as error:
        reason = error.msg
        line = error.lineno or 1
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes, or nesting that is too deep for the compiler.
        reason = str(error) or type(error).__name__
        line = 1

    # Name the version: 3.12 has f-strings that 3.11 cannot parse.
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    message = f"Python {version} cannot parse it: {reason}"
    fix = "correct it, check with the Python it is written for, or give a fragment another ending, such as .txt"
    yield Diagnostic("error", "python-invalid", message, path, line, fix)


def _estimate_python_effort(data: bytes) -> int:
    marks = len(data) - len(data.translate(None, _PYTHON_MARKS))
    return 6 * marks


def _needs_newer_python(data: bytes) -> bool:
    """Return True if the script's metadata, which `uv run` and `pipx run` read, asks for a newer Python."""
    match = _REQUIRES_PYTHON.search(data)
    return match is not None and (int(match[1]), int(match[2])) > sys.version_info[:2]
