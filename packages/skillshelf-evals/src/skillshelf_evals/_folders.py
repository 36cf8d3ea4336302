"""Folders and paths that cases name: folders of skills, and the files a case may read and write."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.skillmd import MAX_FILE, Unreadable, decode, read
from skillshelf.sources import SKILL_FILES, SKIPPED_FOLDERS

EVALS_FOLDER = "evals"
"""The part of a skill that no model gets to see: a model that knows the questions proves nothing."""


def is_skill(folder: str) -> bool:
    """True if the folder holds a SKILL.md."""
    return any(os.path.isfile(os.path.join(folder, name)) for name in SKILL_FILES)


def skill_name(folder: str) -> str:
    """Return a skill's name as the shelf has it: from its frontmatter, or else the name of the folder."""
    base = os.path.basename(os.path.abspath(folder))
    for name in SKILL_FILES:
        try:
            return read(decode(read_start(os.path.join(folder, name), MAX_FILE)), base).name
        except (OSError, Unreadable):
            continue
    return base


def is_named(folder: str, name: str) -> bool:
    """True if the skill in a folder has this name, or the folder has."""
    return name in (os.path.basename(os.path.abspath(folder)), skill_name(folder))


def written_skill_name(path: str, data: bytes) -> str:
    """Return the name of the skill whose SKILL.md a file of a workspace is; empty for any other file."""
    if os.path.basename(path) not in SKILL_FILES:
        return ""
    folder = os.path.basename(os.path.dirname(path))
    try:
        return read(decode(data), folder).name
    except Unreadable:
        return folder


def read_start(path: str, limit: int) -> bytes:
    """Read a plain file, up to a byte more than the limit. Raises OSError."""
    # Without O_NONBLOCK, opening a named pipe would block forever.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        return file.read(limit + 1)


def skills_in(folder: str) -> list[str]:
    """Return the folder of each skill: this folder if it is a skill, else the folders in it. Raises OSError."""
    if is_skill(folder):
        return [folder]
    with os.scandir(folder) as entries:
        return sorted(entry.path for entry in entries if entry.is_dir())


def walk_folders(top: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and those below it that are not inside a skill, each with the names of the folders in it.

    The caller may remove names of folders that it doesn't want. Links are not followed.
    """
    # Not `files.walk`: an `evals/` may be a link, and comes before the other folders beside it.
    for folder, below, _ in os.walk(top):
        below[:] = sorted(name for name in below if name not in SKIPPED_FOLDERS)
        yield folder, below
        if is_skill(folder):  # a skill inside a skill is not one of its own
            below.clear()


def check_workspace_path(path: Any) -> str:
    """Return a path inside the workspace as it is written. Raises EvalError for any other."""
    parts = path.split("/") if isinstance(path, str) else [""]
    for part in parts:
        if part in ("", ".", "..") or "\0" in part or "\\" in part:
            raise EvalError(f"the path {path!r:.60} is not inside the workspace", "Write it like `src/main.py`")
    return str(path)


def resolve_inside(root: str, base: str, path: str) -> str:
    """Return the real path of a file that a case may use. Raises EvalError if it is not below `root`."""
    if "\0" not in path:
        top = os.path.realpath(root)
        whole = os.path.realpath(os.path.join(base, path))
        if os.path.commonpath([top, whole]) == top:
            return whole
    raise EvalError(f"the path {path!r:.60} leads out of {root}", "Put a copy of the file there")
