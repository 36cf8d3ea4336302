"""The workspace of a trial: made for it, changed by it, and examined afterwards."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import string
import tempfile
from collections.abc import Collection, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import TYPE_CHECKING, NamedTuple

from skillshelf.files import NotPlainFile, open_below, open_plain, walk
from skillshelf_evals._folders import EVALS_FOLDER, skills_in
from skillshelf_evals._limits import MAX_FILE_KEPT, MAX_FILES_KEPT, MAX_INPUTS_KEPT, MAX_TEXT_KEPT
from skillshelf_evals._trace import FileState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillshelf_evals._case import Case

SKILLS_FOLDER = ".skillshelf/skills"
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Make a folder for a trial and remove it at the end.

    Its name has only letters: a digit would make a prompt longer by a token, now and then.
    """
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
    """Remove a folder in which a model took away its own permissions."""
    os.chmod(root, 0o700)
    for folder, below, _ in os.walk(root):
        for name in below:
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(root, ignore_errors=True)


def make_workspace(root: str, case: Case) -> dict[str, str]:
    """Write the case's skills and files, and return the digest of each file by path. Raises OSError."""
    for folder in case.skills:
        for skill in skills_in(folder):
            target = os.path.join(root, SKILLS_FOLDER, os.path.basename(os.path.abspath(skill)))
            shutil.copytree(skill, target, symlinks=True, ignore=partial(_names_to_leave_out, skill))
    for path, data in case.files.items():
        change_file(root, path, data)
    return {path: content.digest for path, content in _read_files(root).items()}


def read_inputs(files: Mapping[str, bytes]) -> dict[str, str | None]:
    """Return the files of a case as text, as far as a trace keeps them."""
    room = MAX_INPUTS_KEPT
    inputs: dict[str, str | None] = {}
    for path, data in files.items():
        text = decode_leniently(data)
        if text is None or len(data) > room:
            inputs[path] = None
            continue
        room -= len(data)
        inputs[path] = text
    return inputs


def decode_leniently(data: bytes) -> str | None:
    """Return a file as text, whatever its encoding, or None if it is binary, or too long to search."""
    if len(data) > MAX_TEXT_KEPT or b"\0" in data:
        return None
    return data.decode("utf-8", "replace")


def _names_to_leave_out(skill: str, folder: str, names: list[str]) -> list[str]:
    """Return the skill's evals, and pipes and the like, which are not part of a skill and cannot be copied."""
    left_out = []
    for name in names:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        is_special = not (S_ISREG(mode) or S_ISDIR(mode) or S_ISLNK(mode))
        is_evals = folder == skill and name == EVALS_FOLDER
        if is_special or is_evals:
            left_out.append(name)
    return left_out


def change_file(root: str, path: str, data: bytes | None) -> None:
    """Write a file of the workspace, or remove it if `data` is None. Raises OSError, as for a path through a link."""
    *folders, name = path.split("/")
    with _open_folder(root, folders, make=data is not None) as folder:
        if data is None:
            os.unlink(name, dir_fd=folder)
            return
        with open(os.open(name, _FILE_FLAGS, 0o644, dir_fd=folder), "wb") as file:
            file.write(data)


@contextmanager
def _open_folder(root: str, folders: list[str], *, make: bool) -> Iterator[int]:
    """Open a folder below the root without following links: a skill may bring links, and a model can make them."""
    here = os.open(root, _FOLDER_FLAGS)
    try:
        for name in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=here)
            inner = os.open(name, _FOLDER_FLAGS, dir_fd=here)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def find_changes(root: str, before: Mapping[str, str]) -> tuple[dict[str, FileState], tuple[str, ...]]:
    """Return the files of the workspace now, and the paths of those that are gone. Raises OSError.

    `before` holds the digests that `make_workspace` returned.
    """
    now = _read_files(root)
    room = MAX_FILES_KEPT
    files = {}
    for path, content in now.items():
        is_changed = before.get(path) != content.digest
        data = None
        if is_changed and content.data is not None and len(content.data) <= room:
            data = content.data
            room -= len(data)
        files[path] = FileState(content.text, is_changed, content.size, data)
    return files, tuple(sorted(before.keys() - now.keys()))


def find_new_files(root: str, known: Collection[str]) -> dict[str, FileState]:
    """Return the files of the workspace that the commands of checks have added to the known ones. Raises OSError."""
    added, _ = find_changes(root, {})
    return {path: replace(state, changed=False, by_check=True) for path, state in added.items() if path not in known}


class _Content(NamedTuple):
    digest: str
    size: int
    data: bytes | None
    """None if the file is too large to keep."""

    @property
    def text(self) -> str | None:
        """The file as text; None if it is not text, or too long to search."""
        return None if self.data is None else decode_leniently(self.data)


def _read_files(root: str) -> dict[str, _Content]:
    """Read every plain file below the root."""
    contents = {}
    with open_below(root, ()) as top:
        device = os.fstat(top).st_dev
        for entry in walk(top):
            if entry.kind != "file":
                continue
            try:
                descriptor, _ = open_plain(entry.name, entry.folder, device)
            except NotPlainFile:  # a process that the model left behind has just replaced it
                continue
            contents[entry.path] = _read_content(descriptor)
    return contents


def _read_content(descriptor: int) -> _Content:
    """Read an open file and close it. A model can make a file of any size, so only a small one is kept."""
    with open(descriptor, "rb") as file:
        data = file.read(MAX_FILE_KEPT + 1)
        digest = hashlib.sha256(data)
        size = len(data)
        while more := file.read(MAX_FILE_KEPT):
            digest.update(more)
            size += len(more)

    return _Content(digest.hexdigest(), size, data if size <= MAX_FILE_KEPT else None)
