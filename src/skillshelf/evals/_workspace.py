"""The workspace of a trial: made for it, changed by it, and looked at afterwards."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import string
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from functools import partial
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import TYPE_CHECKING

from skillshelf.evals._folders import LEFT_OUT, skills_in
from skillshelf.evals._trace import FileState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillshelf.evals._case import Case

_SKILLS = ".skillshelf/skills"
# As much of a file as a check needs to look into.
_KEPT = 256 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder of its own. Its name is letters: a digit in it would make a prompt longer by a token, now and then."""
    while True:
        name = "".join(random.choices(string.ascii_lowercase, k=8))
        root = os.path.join(tempfile.gettempdir(), f"skillshelf-eval-{name}")
        with suppress(FileExistsError):
            os.mkdir(root, 0o700)
            break
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)
        if os.path.isdir(root):
            _remove_locked(root)


def _remove_locked(root: str) -> None:
    """Where a model took the rights from its own folders."""
    os.chmod(root, 0o700)
    for folder, below, _ in os.walk(root):
        for path in (os.path.join(folder, name) for name in below):
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(root, ignore_errors=True)


def make_workspace(root: str, case: Case) -> dict[str, str]:
    """The case's skills and files; and the digest of what is there, by path. Raises OSError."""
    for folder in case.skills:
        for skill in skills_in(folder):
            target = os.path.join(root, _SKILLS, os.path.basename(os.path.abspath(skill)))
            shutil.copytree(skill, target, symlinks=True, ignore=partial(_left_out, skill))
    for path, data in case.files.items():
        change_file(root, path, data)
    return {path: digest for path, (digest, _) in _walk(root).items()}


def _left_out(skill: str, folder: str, names: list[str]) -> list[str]:
    """Its evals, and pipes and the like: they are no part of a skill, and cannot be copied."""
    kinds = {name: os.lstat(os.path.join(folder, name)).st_mode for name in names}
    odd = [name for name, mode in kinds.items() if not (S_ISREG(mode) or S_ISDIR(mode) or S_ISLNK(mode))]
    return [*odd, LEFT_OUT] if folder == skill and LEFT_OUT in names else odd


def change_file(root: str, path: str, data: bytes | None) -> None:
    """Write a file of the workspace, or remove it. Raises OSError: where a link leads, nothing is written."""
    *folders, name = path.split("/")
    with _opened(root, folders, make=data is not None) as folder:
        if data is None:
            os.unlink(name, dir_fd=folder)
            return
        with open(os.open(name, _FILE, 0o644, dir_fd=folder), "wb") as file:
            file.write(data)


def changes_in(root: str, before: Mapping[str, str]) -> tuple[dict[str, FileState], tuple[str, ...]]:
    """What is there now, and what is not any more. Raises OSError."""
    now = _walk(root)
    files = {path: FileState(text, before.get(path) != digest) for path, (digest, text) in now.items()}
    return files, tuple(sorted(before.keys() - now.keys()))


@contextmanager
def _opened(root: str, folders: list[str], *, make: bool) -> Iterator[int]:
    """A folder below the root, reached through folders alone: a skill may bring links, and a model make them."""
    here = os.open(root, _FOLDER)
    try:
        for name in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
            inner = os.open(name, _FOLDER, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _walk(root: str) -> dict[str, tuple[str, str | None]]:
    """Digest and text of every plain file, by path."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as file:
                    data = file.read(_KEPT + 1)
                    digest = hashlib.sha256(data)
                    while more := file.read(_KEPT):  # a model can make a file of any size
                        digest.update(more)
                text = data.decode("utf-8", "replace") if len(data) <= _KEPT and b"\0" not in data else None
                found[os.path.relpath(path, root)] = digest.hexdigest(), text
    return found
