"""Which files a command's text mentions.

A shell can spell a name in many ways, so this finds plain mentions and helps the user to decide; it is not a boundary.
A mention too many costs a line in a question, and a missed one may cost more: in doubt, a file counts as mentioned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from skillshelf.trust import UnreviewedFile

_QUOTING = re.compile(r"[\"'\\]")
_IMPORTING = re.compile(r"-m\b|\bimport\b")
_WORD = re.compile(r"[^\s;&|<>()`$={},:]+")


def mentioned_files(command: str, files: Iterable[UnreviewedFile]) -> tuple[UnreviewedFile, ...]:
    """Return the files that a command mentions: by name or pattern, as a Python module, or by their skill's folder."""
    words = set(_WORD.findall(command)) | set(_WORD.findall(_QUOTING.sub("", command)))
    names = {word.rstrip("/").rpartition("/")[2] for word in words}
    modules = {word.rpartition(".")[2] for word in words} if _IMPORTING.search(command) else set()
    patterns = [name for name in names if re.search(r"[*?\[]", name)]
    return tuple(file for file in files if _is_mentioned(file, command, names, modules, patterns))


def _is_mentioned(file: UnreviewedFile, command: str, names: set[str], modules: set[str], patterns: list[str]) -> bool:
    folder, _, name = file.path.rpartition("/")
    if name in names or (file.folder and file.folder in command):
        return True
    if name.endswith(".py") and name.removesuffix(".py") in modules:
        return True
    if folder and folder.rpartition("/")[2] in names:  # the folder it lies in: `make -C scripts`
        return True
    return any(fnmatchcase(name, pattern) for pattern in patterns)
