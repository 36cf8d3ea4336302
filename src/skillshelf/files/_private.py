"""Reading files that decide something, which nobody but the user may have written, and secrets."""

import os
import stat

from skillshelf.files import system
from skillshelf.files._gate import NotPlainFile

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CHUNK = 1024 * 1024


class NotPrivate(Exception):
    """A file or folder belongs to another user, or another user can write to it or read a secret from it."""

    def __init__(self, path: str, right: str = "write to") -> None:
        self.path = path
        super().__init__(f"Another user owns {path} or can {right} it, and only you may")


def read_private(path: str, limit: int | None = None, *, secret: bool = False) -> bytes:
    """Read a file, or its first `limit` bytes, that only this user or root can have written.

    Nobody but them and the file's group may be able to read a secret. A group that may was chosen by the owner.

    Raises FileNotFoundError, NotPlainFile, NotPrivate, or another OSError.
    """
    fd = system.open(path, _FILE)
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
        return _read_all(fd, info.st_size if limit is None else limit)
    finally:
        system.close(fd)


def _read_all(fd: int, limit: int) -> bytes:
    """Read up to `limit` bytes. A single call may return fewer than it was asked for."""
    chunks = []
    left = limit
    while left > 0:
        chunk = system.read(fd, min(left, _CHUNK))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)
