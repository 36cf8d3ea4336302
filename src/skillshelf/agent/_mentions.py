"""Find the files of skills that a command mentions, so that the user hears of those that were not reviewed."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from skillshelf.files import count_shared_names
from skillshelf.trust import UnreviewedFile

_QUOTING = re.compile(r"[\"'\\]")
_IMPORTING = re.compile(r"-m\b|\bimport\b")
_WORD = re.compile(r"[^\s;&|<>()`$={},:]+")
_WILDCARD = re.compile(r"[*?\[]")


def find_mentioned(command: str, files: Iterable[UnreviewedFile], here: str = "") -> tuple[UnreviewedFile, ...]:
    """Return the files that a command mentions: by name or pattern, as a Python module, or by their skill's folder.

    `here` is the folder that the command runs in, below the root: a command leaves out what both paths share.

    A shell can spell a name in many ways, so this finds plain mentions and helps the user to decide. It is not a
    boundary. A mention too many costs a line in a question, and a missed one may cost more: in doubt, a file counts as
    mentioned.
    """
    words = {*_WORD.findall(command), *_WORD.findall(_QUOTING.sub("", command))}
    names = {word.rstrip("/").rpartition("/")[2] for word in words}
    patterns = [name for name in names if _WILDCARD.search(name)]
    modules: set[str] = set()
    if _IMPORTING.search(command):
        modules = {word.rpartition(".")[2] for word in words}

    def is_mentioned(file: UnreviewedFile) -> bool:
        folder, _, name = file.path.rpartition("/")
        skill_folder = _leave_out_shared(file.folder, here)
        if name in names or (skill_folder and skill_folder in command):
            return True
        if name.endswith(".py") and name.removesuffix(".py") in modules:
            return True
        if folder and folder.rpartition("/")[2] in names:  # the folder it is in: `make -C scripts`
            return True
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    return tuple(file for file in files if is_mentioned(file))


def _leave_out_shared(folder: str, here: str) -> str:
    """Return a folder without the leading names that it shares with `here`; the whole folder if nothing is left."""
    names = folder.split("/")[count_shared_names(folder, here) :]
    return "/".join(names) or folder
