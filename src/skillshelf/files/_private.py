"""Reading settings, approvals and secrets: files that only the user may have written."""

import os
import stat

from skillshelf.files import system
from skillshelf.files._gate import PLAIN_FILE, NotPlainFile, read_up_to


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
            if status.st_uid not in (os.geteuid(), 0) or status.st_mode & 0o022:
                raise NotPrivate(place)
        if secret and info.st_mode & 0o007:
            raise NotPrivate(path, "read")
        return read_up_to(fd, info.st_size if limit is None else limit)
    finally:
        system.close(fd)
