"""A file that only grows, written by one process at a time."""

import errno
import fcntl
import os
from contextlib import suppress
from io import FileIO

from skillshelf.errors import SessionError
from skillshelf.files import make_private_folders, sync_folder, system

_OPEN = os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Journal:
    """What could not be written waits, and goes out with the next write that succeeds: the file has no gaps."""

    def __init__(self, path: str, fd: int | None = None, refused: str = "") -> None:
        self.path = path
        self.refused = refused
        """Why nothing is ever written; empty where it is."""
        # A file object, because it closes itself, and with it ends the lock, when nobody holds it any longer.
        self._file = None if fd is None else FileIO(fd)
        self._size = 0 if fd is None else system.fstat(fd).st_size
        self._waiting = b""
        self._dirty = False

    @classmethod
    def hold(cls, path: str) -> "Journal":
        """To read and to write. Raises SessionError while another process has it open."""
        try:
            fd, refused = system.open(path, os.O_RDWR | _OPEN), ""
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            fd, refused = system.open(path, os.O_RDONLY | _OPEN), str(error.strerror)
        journal = cls(path, fd, refused)
        try:
            _lock(fd, path)
        except SessionError:
            journal.close()
            raise
        return journal

    @property
    def begun(self) -> bool:
        return self._file is not None

    def read(self) -> bytes:
        return b"" if self._file is None else self._file.readall()

    def add(self, data: bytes) -> None:
        self._waiting += data

    def save(self) -> None:
        """Everything added is on the disk when this returns; SessionError says why where it is not."""
        if self.refused:
            raise self._unsaved(self.refused)
        try:
            fd = self._begin()
            self._write(fd)
        except OSError as error:
            raise self._unsaved(error.strerror or str(error)) from error

    def set_aside(self, torn: bytes) -> bool:
        """Move an unfinished end of the file to a file beside it; False where that cannot be done."""
        if self._file is None or self.refused:
            return False
        try:
            fd = system.open(self.path + ".torn", os.O_WRONLY | os.O_CREAT | _OPEN, 0o600)
            with open(fd, "ab") as beside:
                beside.write(torn + b"\n")
                beside.flush()
                system.fsync(fd)
            system.ftruncate(self._file.fileno(), self._size - len(torn))
        except OSError:
            return False
        self._size -= len(torn)
        return True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self.refused = self.refused or "the session is closed"

    def _begin(self) -> int:
        if self._file is None:
            make_private_folders(os.path.dirname(self.path))
            fd = system.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN, 0o600)
            self._file = FileIO(fd)
            _lock(fd, self.path)
        return self._file.fileno()

    def _write(self, fd: int) -> None:
        if not system.fstat(fd).st_nlink:
            raise FileNotFoundError(errno.ENOENT, "its file was deleted")
        if self._dirty:
            system.ftruncate(fd, self._size)
        try:
            left = memoryview(self._waiting)
            while left:
                left = left[system.write(fd, left) :]
            system.fsync(fd)
            if not self._size:
                sync_folder(os.path.dirname(self.path))
        except OSError:
            self._undo(fd)
            raise
        self._size += len(self._waiting)
        self._waiting, self._dirty = b"", False

    def _undo(self, fd: int) -> None:
        """Half a record is worse than none: it waits whole for the next write."""
        self._dirty = True
        with suppress(OSError):
            system.ftruncate(fd, self._size)
        if not self._size and self._file:
            with suppress(OSError):
                system.unlink(self.path)
            self._file.close()
            self._file = None

    def _unsaved(self, reason: str) -> SessionError:
        again = "" if self.refused else " What waits is saved with the next message for which there is room."
        needed = f"{len(self._waiting)} bytes for {self.path}"
        return SessionError(f"The conversation goes on, but it is not saved: {reason} ({needed}).{again}")


def _lock(fd: int, path: str) -> None:
    try:
        system.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SessionError(
            f"The session {os.path.basename(path).removesuffix('.jsonl')} is open already, here or in another "
            "skillshelf. Close it there, or begin a new session."
        ) from None
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP):  # a network drive without locks
            raise
