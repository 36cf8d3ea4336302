"""skillshelf's own folders, which are outside any workspace, and files that only this user may have written."""

import os
import stat
import sys
from contextlib import suppress

from skillshelf.files import system
from skillshelf.files._gate import PLAIN_FILE, NotPlainFile, read_up_to

_OWN_SKILLS = ("~/.agents/skills", "~/.claude/skills")
_OTHERS_MAY_WRITE = 0o022
_OTHERS_MAY_READ = 0o007


def cache_home() -> str | None:
    """Return the folder for data that can be made again, or None if this user has none."""
    return _home("XDG_CACHE_HOME", "~/.cache", "~/Library/Caches")


def state_home() -> str | None:
    """Return the folder for data that must last: sessions and approvals."""
    return _home("XDG_STATE_HOME", "~/.local/state", "~/Library/Application Support")


def config_home() -> str | None:
    """Return the folder of the user's settings."""
    return _home("XDG_CONFIG_HOME", "~/.config", "~/Library/Application Support")


def user_skill_folders() -> list[str]:
    """Return the folders whose skills a user has in every workspace, in order of precedence."""
    folders = []
    config = config_home()
    if config:
        folders.append(os.path.join(config, "skills"))

    for folder in map(os.path.expanduser, _OWN_SKILLS):
        if os.path.isabs(folder):  # without a home, `~` stays as it is
            folders.append(folder)
    return folders


def make_private_folders(path: str) -> None:
    """Create each missing folder for this user alone."""
    make_folders(path, 0o700)


def make_folders(path: str, mode: int = 0o777) -> None:
    """Create each missing folder with this mode. (`os.makedirs` gives its mode to the last one only.)"""
    if not os.path.isdir(path):
        make_folders(os.path.dirname(path), mode)
        with suppress(FileExistsError):
            system.mkdir(path, mode)


class NotPrivate(Exception):
    """A file or folder belongs to another user, or another user can write to it or read a secret from it."""

    def __init__(self, path: str, right: str = "write to") -> None:
        self.path = path
        super().__init__(f"Another user owns {path} or can {right} it, and only you may")


def read_private(path: str, limit: int | None = None, *, secret: bool = False) -> bytes:
    """Read a file, or its first `limit` bytes, that only this user or root can have written.

    A secret must also be unreadable to everyone but them and the file's group, which its owner chose.

    Raises FileNotFoundError, NotPlainFile, NotPrivate, or another OSError.
    """
    fd = system.open(path, PLAIN_FILE)
    try:
        info = system.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise NotPlainFile("it is not a plain file")
        folder = os.path.dirname(path)
        for place, status in ((folder, system.stat(folder)), (path, info)):
            is_own = status.st_uid in (os.geteuid(), 0)
            if not is_own or status.st_mode & _OTHERS_MAY_WRITE:
                raise NotPrivate(place)
        if secret and info.st_mode & _OTHERS_MAY_READ:
            raise NotPrivate(path, "read")
        return read_up_to(fd, info.st_size if limit is None else limit)
    finally:
        system.close(fd)


def _home(variable: str, usual: str, mac: str) -> str | None:
    base = os.environ.get(variable, "")
    if not os.path.isabs(base):
        default = mac if sys.platform == "darwin" else usual
        base = os.path.expanduser(default)
    if not os.path.isabs(base):
        return None
    return os.path.join(base, "skillshelf")
