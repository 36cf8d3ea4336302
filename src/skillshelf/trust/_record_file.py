"""The file that holds the record of approvals: reading it, locking it, and setting a damaged one aside."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from skillshelf.errors import TrustError
from skillshelf.files import (
    LockTimeout,
    NotPlainFile,
    NotPrivate,
    file_stamp,
    hold_lock,
    is_fresh,
    make_private_folders,
    read_private,
    system,
)

# A process that dies releases the lock, and one that lives needs it for a moment.
_LOCK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RecordText:
    """The record's bytes, or the reason why they cannot be used."""

    data: bytes | None
    """None if there is no record."""
    fault: str = ""


class RecordFile:
    """The file `approvals.json`, and the lock beside it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = f"{folder}/approvals.json"
        self.bad = f"{self.path}.bad"
        """The name that a damaged record gets."""
        self._last_status: os.stat_result | None = None

    def may_have_changed(self) -> bool:
        """Return True unless the file's times prove that it is the one read last."""
        status = self._status()
        if status is None or self._last_status is None:
            return True
        return file_stamp(status) != file_stamp(self._last_status) or is_fresh(status, time.time_ns())

    def read(self) -> RecordText:
        """Read the file, which only this user may have written."""
        self._last_status = self._status()
        try:
            return RecordText(read_private(self.path))
        except FileNotFoundError:
            return RecordText(None)
        except NotPlainFile:
            return RecordText(None, "The record of approvals is not a plain file")
        except NotPrivate as error:
            return RecordText(None, str(error))
        except OSError as error:
            return RecordText(None, f"The record of approvals cannot be read: {error.strerror}")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock. Raises OSError if it cannot be written, TrustError if another process does not release it."""
        make_private_folders(self.folder)
        path = f"{self.folder}/lock"
        try:
            with hold_lock(path, timeout=_LOCK_SECONDS):
                yield
        except LockTimeout:
            raise TrustError(f"Another process has held {path} for {_LOCK_SECONDS:.0f} seconds. Try again.") from None

    def set_aside(self, data: bytes) -> None:
        """Rename a damaged record, unless another process has repaired it. Call it with the lock held."""
        if self.read().data == data:
            system.replace(self.path, self.bad)

    def remove_leftovers(self) -> None:
        """Remove the scratch files of killed processes. Call it with the lock held."""
        for name in system.listdir(self.folder):
            if name.startswith("approvals.json.") and not name.endswith(".bad"):
                system.unlink(f"{self.folder}/{name}")

    def _status(self) -> os.stat_result | None:
        try:
            return system.stat(self.path, follow_symlinks=False)
        except OSError:
            return None
