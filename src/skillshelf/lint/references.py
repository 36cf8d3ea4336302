"""Are a skill's references complete and sound?

Pure checks: the caller brings names, texts and bytes; nothing is opened or run. Paths are those below the skill's
folder (`references/a.md`), in the arguments and in the diagnostics.
"""

import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from skillshelf.descriptor import Diagnostic
from skillshelf.lint.markdown import check_markdown

_FOLDER = "references/"


def check_listed(listed: Sequence[str], existing: Collection[str], instructions: str) -> Iterator[Diagnostic]:
    """Every listed path is there, and the instructions name it."""
    for path in listed:
        if path not in existing:
            message = "the skill lists this reference, but there is no such file"
            yield Diagnostic("error", "reference-missing", message, path, fix="add the file, or take it off the list")
    names = [path.rpartition("/")[2] for path in listed]
    shared = Counter(names)
    for path, name in zip(listed, names, strict=True):
        # A bare file name that two references share loads neither, so it names neither.
        wanted = name if shared[name] == 1 else path
        if not _names(instructions, wanted):
            message = "the instructions do not name it, so a model has no reason to load it"
            fix = f"say in the instructions when to load {wanted!r}"
            yield Diagnostic("warning", "reference-unnamed", message, path, fix=fix)


def check_unlisted(listed: Collection[str], existing: Collection[str]) -> Iterator[Diagnostic]:
    """Every file under `references/` is on the list of a skill of that folder."""
    for path in sorted(set(existing).difference(listed)):
        if path.startswith(_FOLDER) and not _left_behind(path):
            message = "the file is not on the skill's list, so no model can load it"
            yield Diagnostic("error", "reference-unlisted", message, path, fix=f"add {path!r} to `references`")


def check_content(path: str, data: bytes, existing: Collection[str]) -> Iterator[Diagnostic]:
    """What the file's kind lets one say about it: Markdown and Python are looked at, other formats are the author's."""
    if path.lower().endswith((".md", ".markdown")):
        yield from check_markdown(path, data, existing)
    elif path.lower().endswith(".py"):
        yield from check_python(path, data)


def check_python(path: str, data: bytes) -> Iterator[Diagnostic]:
    """Compiled, never executed."""
    try:
        with warnings.catch_warnings():
            # An invalid escape is the author's style, not a reason to write into the terminal of whoever checks.
            warnings.simplefilter("ignore")
            compile(data, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        yield _python_fault(path, error.msg, error.lineno or 1)
    except (ValueError, RecursionError, MemoryError) as error:
        # NUL bytes, and nesting that the compiler gives up on.
        yield _python_fault(path, str(error) or type(error).__name__, 1)


def _python_fault(path: str, reason: str, line: int) -> Diagnostic:
    fix = "make it compile, or give a fragment another ending, such as .txt"
    return Diagnostic("error", "python-invalid", f"it does not compile: {reason}", path, line, fix)


def _names(instructions: str, wanted: str) -> bool:
    # Looking for the bare text first spares thousands of references the making of a pattern each.
    return wanted in instructions and bool(re.search(rf"(?<![\w.-]){re.escape(wanted)}(?![\w-]|\.\w)", instructions))


def _left_behind(path: str) -> bool:
    """By a tool or a system; nobody means it as a reference."""
    return path.endswith(".pyc") or any(part.startswith(".") or part == "__pycache__" for part in path.split("/"))
