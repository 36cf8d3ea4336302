"""A file that only grows, written by one process at a time."""

import errno
import os
import weakref
from contextlib import suppress

from skillshelf.errors import SessionError
from skillshelf.files import make_private_folders, sync_folder, system, try_lock

_OPEN_FLAGS = os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Journal:
    """Appends records to a file. A record that could not be written goes out with the next write that succeeds.

    So the file has no gaps, and never half a record followed by another.
    """

    def __init__(self, path: str, fd: int | None = None, refused: str = "") -> None:
        self.path = path
        self.refused = refused
        """Why nothing is ever written; empty if the file can be written."""
        self._fd: int | None = None
        self._size = 0
        self._unwritten = b""
        self._may_have_torn_end = False
        if fd is not None:
            self._own(fd)
            self._size = system.fstat(fd).st_size

    @classmethod
    def open(cls, path: str) -> "Journal":
        """Open an existing file to read and to write. Raises SessionError if another process has it open."""
        refused = ""
        try:
            fd = system.open(path, os.O_RDWR | _OPEN_FLAGS)
        except OSError as error:
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise
            fd = system.open(path, os.O_RDONLY | _OPEN_FLAGS)
            refused = str(error.strerror)

        journal = cls(path, fd, refused)
        try:
            _lock(fd, path)
        except SessionError:
            journal.close()
            raise
        return journal

    @property
    def has_file(self) -> bool:
        """False until the first save of a new journal."""
        return self._fd is not None

    def read(self) -> bytes:
        """Return everything in the file."""
        if self._fd is None:
            return b""
        with open(self._fd, "rb", closefd=False) as file:
            return file.read()

    def add(self, data: bytes) -> None:
        """Queue a record for the next save."""
        self._unwritten += data

    def save(self) -> None:
        """Write the queued records. They are on disk when this returns; otherwise SessionError says why not."""
        if self.refused:
            raise self._explain_unsaved(self.refused)
        try:
            self._write(self._open_or_create())
        except OSError as error:
            raise self._explain_unsaved(error.strerror or str(error)) from error

    def move_torn_end(self, torn: bytes) -> bool:
        """Move an unfinished record from the end of the file to a file beside it. Return False if that fails."""
        if self._fd is None or self.refused:
            return False
        try:
            fd = system.open(self.path + ".torn", os.O_WRONLY | os.O_CREAT | _OPEN_FLAGS, 0o600)
            with open(fd, "ab") as beside:
                beside.write(torn + b"\n")
                beside.flush()
                system.fsync(fd)
            system.ftruncate(self._fd, self._size - len(torn))
        except OSError:
            return False
        self._size -= len(torn)
        return True

    def close(self) -> None:
        """Release the file for other processes."""
        if self._fd is not None:
            self._close_fd()
        self.refused = self.refused or "the session is closed"

    def _own(self, fd: int) -> None:
        """Take over an open file. It is closed, which ends the lock, even if the journal is dropped without close()."""
        self._fd = fd
        self._close_fd = weakref.finalize(self, os.close, fd)

    def _open_or_create(self) -> int:
        if self._fd is not None:
            return self._fd

        make_private_folders(os.path.dirname(self.path))
        fd = system.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _OPEN_FLAGS, 0o600)
        self._own(fd)
        _lock(fd, self.path)
        return fd

    def _write(self, fd: int) -> None:
        was_deleted = not system.fstat(fd).st_nlink
        if was_deleted:
            raise FileNotFoundError(errno.ENOENT, "its file was deleted")

        if self._may_have_torn_end:
            system.ftruncate(fd, self._size)
        try:
            left = memoryview(self._unwritten)
            while left:
                written = system.write(fd, left)
                left = left[written:]
            system.fsync(fd)
            if not self._size:
                sync_folder(os.path.dirname(self.path))
        except OSError:
            self._undo_write(fd)
            raise

        self._size += len(self._unwritten)
        self._unwritten = b""
        self._may_have_torn_end = False

    def _undo_write(self, fd: int) -> None:
        """Take back half a record: it waits whole for the next write. An empty file goes, too."""
        self._may_have_torn_end = True
        with suppress(OSError):
            system.ftruncate(fd, self._size)
        if not self._size:
            with suppress(OSError):
                system.unlink(self.path)
            self._close_fd()
            self._fd = None

    def _explain_unsaved(self, reason: str) -> SessionError:
        message = "The conversation goes on, but it is not saved"
        message += f": {reason} ({len(self._unwritten)} bytes for {self.path})."
        if not self.refused:
            message += " It is saved with the next message for which there is room."
        return SessionError(message)


def _lock(fd: int, path: str) -> None:
    try:
        is_locked = try_lock(fd)
    except OSError as error:
        if error.errno in (errno.ENOLCK, errno.EOPNOTSUPP):  # a network drive without locks
            return
        raise
    if not is_locked:
        name = os.path.basename(path).removesuffix(".jsonl")
        raise SessionError(
            f"The session {name} is open already, here or in another skillshelf. "
            "Close it there, or begin a new session."
        )
