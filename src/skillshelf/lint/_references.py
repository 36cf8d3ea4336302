"""Are a skill's references complete and sound?

Pure checks: the caller brings names, texts and bytes; nothing is opened or run. Paths are those below the skill's
folder (`references/a.md`), in the arguments and in the diagnostics.
"""

import ast
import posixpath
import re
import string
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from skillshelf.descriptor import Diagnostic
from skillshelf.lint._markdown import check_markdown, parsing_effort
from skillshelf.lint._naming import find_unnamed

_FOLDER = "references/"
# A parser's work grows with their number.
_PYTHON_MARKS = string.punctuation.encode() + b"\n"
_LINK_TEXT = re.compile(rb"(?:\.{1,2}/|[\w.-]+/)[\w./-]{1,1000}")
# The first line of `# /// script` metadata that counts, as in `# requires-python = ">=3.12"`.
_REQUIRES_PYTHON = re.compile(rb"^#[ \t]*requires-python[ \t]*=[ \t]*[\"'](?:>=|==|~=)[ \t]*(\d{1,3})\.(\d{1,3})", re.M)


def check_listed(listed: Sequence[str], existing: Collection[str]) -> Iterator[Diagnostic]:
    """Report listed paths that are not there."""
    for path in listed:
        if path not in existing:
            message = "the skill lists this reference, but there is no such file"
            yield Diagnostic("error", "reference-missing", message, path, fix="add the file, or take it off the list")


def check_named(
    listed: Sequence[str], existing: Collection[str], instructions: str, contents: Mapping[str, bytes]
) -> Iterator[Diagnostic]:
    """Report references that neither the instructions nor a file they lead to names."""
    texts = {path: data.decode(errors="replace") for path, data in contents.items() if b"\0" not in data}
    texts[""] = instructions
    shared = Counter(path.rpartition("/")[2] for path in listed)
    for path in find_unnamed(listed, existing, texts):
        name = path.rpartition("/")[2]
        # A bare name that two references share loads neither.
        wanted = name if shared[name] == 1 else path
        message = "neither the instructions nor a file they lead to names it, so a model has no reason to load it"
        fix = f"say in the instructions when to load {wanted!r}, or remove it"
        yield Diagnostic("warning", "reference-unnamed", message, path, fix=fix)


def check_unlisted(listed: Collection[str], existing: Collection[str]) -> Iterator[Diagnostic]:
    """Every file under `references/` is on the list of a skill of that folder."""
    for path in sorted(set(existing).difference(listed)):
        if path.startswith(_FOLDER) and not _left_behind(path):
            message = "the file is not on the skill's list, so no model can load it"
            yield Diagnostic("error", "reference-unlisted", message, path, fix=f"add {path!r} to `references`")


def checking_effort(path: str, data: bytes, existing: Collection[str]) -> int:
    """Estimate what `check_content` takes at worst, in microseconds."""
    kind = path.lower()
    if kind.endswith((".md", ".markdown")):
        return parsing_effort(path, data, existing)
    if kind.endswith(".py"):
        return 6 * (len(data) - len(data.translate(None, _PYTHON_MARKS)))
    return 0


def check_content(path: str, data: bytes, existing: Collection[str]) -> Iterator[Diagnostic]:
    """Check Markdown and Python; other formats are the author's business."""
    if _is_link_text(path, data):
        message = "the file holds only a path: a symlink that was checked out as text"
        fix = "check out with `git config core.symlinks true`, or copy the file it names here"
        yield Diagnostic("warning", "symlink-text", message, path, 1, fix)
    elif path.lower().endswith((".md", ".markdown")):
        yield from check_markdown(path, data, existing)
    elif path.lower().endswith(".py"):
        yield from check_python(path, data)


def check_python(path: str, data: bytes) -> Iterator[Diagnostic]:
    """Parse the file with the Python that runs the check. Nothing of it is executed."""
    if _needs_newer_python(data):
        return
    try:
        with warnings.catch_warnings():
            # An invalid escape is the author's style, not a reason to write into the terminal of whoever checks.
            warnings.simplefilter("ignore")
            # Parsed only: to compile 37,000 small functions as well takes 44 s, to parse them 0.2 s.
            compile(data, path, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except SyntaxError as error:
        yield _python_fault(path, error.msg, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes, and nesting that the compiler gives up on.
        yield _python_fault(path, str(error) or type(error).__name__, 1)


def _python_fault(path: str, reason: str, line: int) -> Diagnostic:
    # Another Python may take it: 3.12 has f-strings that 3.11 refuses. So the message names the one that judged.
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    fix = "correct it, check with the Python it is written for, or give a fragment another ending, such as .txt"
    return Diagnostic("error", "python-invalid", f"Python {version} cannot parse it: {reason}", path, line, fix)


def _needs_newer_python(data: bytes) -> bool:
    """True if the script says so itself, in the metadata that `uv run` and `pipx run` read."""
    match = _REQUIRES_PYTHON.search(data)
    return match is not None and (int(match[1]), int(match[2])) > sys.version_info[:2]


def _is_link_text(path: str, data: bytes) -> bool:
    """True if the data is the path of a file with the same ending. Git writes that for a symlink it cannot make."""
    ending = posixpath.splitext(path)[1].encode()
    return bool(ending) and data.endswith(ending) and _LINK_TEXT.fullmatch(data) is not None


def _left_behind(path: str) -> bool:
    """By a tool or a system; nobody means it as a reference."""
    return path.endswith(".pyc") or any(part.startswith(".") or part == "__pycache__" for part in path.split("/"))
