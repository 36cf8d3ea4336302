"""Repositories that the user declared their own: what can be one, what isn't, and when an agent is at work there.

The declaration is the user's and is kept outside the repository. It holds for one folder: another folder that takes its
path later is not the user's own until the user says so again.
"""

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from skillshelf.errors import TrustError
from skillshelf.files import (
    FolderIdentity,
    NotPlainFile,
    NotPrivate,
    identify,
    make_private_folders,
    read_private,
    system,
    try_lock,
    write_new,
)
from skillshelf.sources import VERSION_CONTROL_FOLDERS

_OTHERS_MAY_WRITE = 0o002
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class RepositoryIdentity(NamedTuple):
    """The folder, and its version control folder: a new clone in an emptied folder has another one."""

    folder: FolderIdentity
    version_control: FolderIdentity | None


def identify_repository(root: str) -> RepositoryIdentity:
    """Return the identity of a repository. Raises TrustError, with the reason, if it cannot be the user's own."""
    reason = _find_obstacle(root)
    if reason:
        raise TrustError(f"{root!r} cannot be your own repository: {reason}.")
    identity = _identify(root)
    if identity is None:
        raise TrustError(f"{root!r} cannot be your own repository: it does not exist.")
    return identity


def check_repository(root: str, declared: RepositoryIdentity) -> str:
    """Return the reason why a declared repository no longer counts as the user's own; empty if it does."""
    try:
        reason = _find_obstacle(root)
        now = _identify(root)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        now = None
    if reason:
        return reason
    if now is None or not declared.folder.is_still(now.folder):
        return "another folder has taken its place"
    was_versioned = declared.version_control
    if was_versioned is not None and not was_versioned.is_still(now.version_control):
        return "another repository has taken its place"
    return ""


def is_foreign(root: str, key: str, paths: Iterable[str] = ()) -> bool:
    """Return True if a place below the root is not the user's own, although the root is.

    It may belong to another repository inside, such as a submodule or a clone, or another user may have written it.
    `paths` are its files, below the key; both kinds of place may begin inside it.
    """
    files = [f"{key}/{path}".lstrip("/") for path in paths]
    folders = {folder for path in (*files, f"{key}/") for folder in _list_folders(path)}
    for folder in folders:
        if any(os.path.lexists(f"{root}/{folder}/{name}") for name in VERSION_CONTROL_FOLDERS):
            return True
    return any(_others_may_have_written(f"{root}/{path}") for path in (*folders, *files))


def _list_folders(path: str) -> Iterator[str]:
    """Yield the folders above a path, up to the root and without it."""
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def _others_may_have_written(path: str) -> bool:
    """Return True if a file or folder belongs to another user than this one and root, or everyone can write to it."""
    try:
        status = system.stat(path, follow_symlinks=False)
    except OSError:
        return False  # it has just gone, and cannot come into use
    if stat.S_ISLNK(status.st_mode):  # links have no rights of their own
        return status.st_uid not in (os.geteuid(), 0)
    return status.st_uid not in (os.geteuid(), 0) or bool(status.st_mode & _OTHERS_MAY_WRITE)


def _find_obstacle(root: str) -> str:
    """Return why a folder cannot be the user's own repository; empty if it can."""
    status = system.stat(root, follow_symlinks=False)
    home = os.path.realpath(os.path.expanduser("~"))
    if f"{home}/".startswith(root.rstrip("/") + "/"):
        return "it is or contains your home folder; declare the repositories in it one by one"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    if status.st_uid != os.geteuid():
        return "the folder belongs to another user"
    if status.st_mode & _OTHERS_MAY_WRITE:
        return "every user of this machine can write to it"
    if _find_version_control(root) is None:
        return "it is not the root of a repository: run this at the root, or `git init` first"
    return ""


def _find_version_control(root: str) -> str | None:
    for name in sorted(VERSION_CONTROL_FOLDERS):
        path = f"{root}/{name}"
        if os.path.lexists(path):
            return path
    return None


def _identify(root: str) -> RepositoryIdentity | None:
    folder = identify(root)
    if folder is None:
        return None
    version_control = _find_version_control(root)
    return RepositoryIdentity(folder, identify(version_control) if version_control else None)


class AgentLock:
    """The lock file of a repository: it exists while agents change files there, and after one of them was killed.

    It has the content that was there before the first of them began, and each of them holds a shared lock on it. Call
    these methods with the lock of the record held.
    """

    def __init__(self, folder: str, root: str) -> None:
        self._folder = folder
        self._path = f"{folder}/{hashlib.sha256(os.fsencode(root)).hexdigest()}"

    def exists(self) -> bool:
        return os.path.lexists(self._path)

    def acquire(self, before: Mapping[str, str]) -> int:
        """Return a descriptor that holds the lock until it is closed. Raises OSError."""
        if not self.exists():
            make_private_folders(self._folder)
            write_new(self._path, json.dumps(before).encode())
        fd = system.open(self._path, _OPEN)
        try:
            system.flock(fd, fcntl.LOCK_SH)  # without waiting: `is_held` alone tries the exclusive lock
        except OSError:
            system.close(fd)
            raise
        return fd

    def is_held(self) -> bool:
        """Return True if an agent is at work. Raises OSError."""
        fd = system.open(self._path, _OPEN)
        try:
            return not try_lock(fd)
        finally:
            system.close(fd)

    def read_before(self) -> Mapping[str, str]:
        """Return the content that was there before; empty if the file is damaged. Raises OSError."""
        try:
            before = json.loads(read_private(self._path))
        except (NotPlainFile, NotPrivate, ValueError):
            return {}
        return before if isinstance(before, dict) else {}

    def remove(self) -> None:
        """Remove the file. Raises OSError."""
        system.unlink(self._path)
