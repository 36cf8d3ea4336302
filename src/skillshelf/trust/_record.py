"""The file that holds the approvals: this user's alone, changed under a lock, replaced atomically."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from skillshelf.errors import TrustError
from skillshelf.files import (
    FRESH_NS,
    NotPlainFile,
    NotPrivate,
    file_stamp,
    make_private_folders,
    read_private,
    replace_file,
    system,
)

# A holder that dies lets go of the lock; one that lives is done in a moment.
_LOCK_SECONDS = 20.0


class RecordFile:
    """`approvals.json` in a folder, and the lock beside it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = f"{folder}/approvals.json"
        self.bad = f"{self.path}.bad"
        self._stamp: tuple[int, ...] | None = ()

    def may_differ(self) -> bool:
        """Return True if the file may have changed since the last read, by its times."""
        stamp = self._times()
        return stamp != self._stamp or stamp is None or stamp[3] > time.time_ns() - FRESH_NS

    def read(self) -> tuple[bytes | None, str]:
        """Return the bytes, None if there are none, and the reason why they do not count."""
        self._stamp = self._times()
        try:
            return read_private(self.path), ""
        except FileNotFoundError:
            return None, ""
        except NotPlainFile:
            return None, "The record of approvals is not a plain file"
        except NotPrivate as error:
            return None, str(error)
        except OSError as error:
            return None, f"The record of approvals cannot be read: {error.strerror}"

    def set_aside(self, data: bytes) -> bool:
        """Rename a damaged record, unless another process has mended it. Call it with the lock held."""
        if self.read()[0] == data:
            system.replace(self.path, self.bad)
            return True
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock. Raises OSError if nothing can be written, TrustError if another process does not let go."""
        make_private_folders(self.folder)
        fd = system.open(f"{self.folder}/lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + _LOCK_SECONDS
            while not _take(fd):
                if time.monotonic() > deadline:
                    raise TrustError(f"Another process has held {self.folder}/lock for long. Try again.")
                time.sleep(0.01)
            yield
        finally:
            system.close(fd)

    def replace(self, data: bytes) -> None:
        """Write new content. Call it with the lock held."""
        replace_file(self.path, data, durable=True)

    def collect(self) -> None:
        """Remove the scratch files of killed processes. Call it with the lock held."""
        for name in system.listdir(self.folder):
            if name.startswith("approvals.json.") and not name.endswith(".bad"):
                system.unlink(f"{self.folder}/{name}")

    def _times(self) -> tuple[int, ...] | None:
        try:
            return file_stamp(system.stat(self.path, follow_symlinks=False))
        except OSError:
            return None


def _take(fd: int) -> bool:
    try:
        system.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
