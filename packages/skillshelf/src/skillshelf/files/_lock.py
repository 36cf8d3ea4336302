"""A lock between processes, held on an open file.

The system releases it when the holder ends, however that happens, so there is nothing to clean up. The filelock library
would do the same, but past `system`, where no fault test could fail its calls.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from skillshelf.files import system

_POLL_SECONDS = 0.01


class LockTimeout(Exception):
    """Another process holds the lock and did not release it in time."""


@contextmanager
def hold_lock(path: str, *, timeout: float = 0.0) -> Iterator[None]:
    """Hold the lock on a file, which is created if it does not exist.

    Raises LockTimeout if another process still has the lock after `timeout` seconds, or OSError if the file cannot be
    opened for writing.
    """
    fd = system.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while not try_lock(fd):
            if time.monotonic() >= deadline:
                raise LockTimeout(f"Another process holds {path}")
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        system.close(fd)


def try_lock(fd: int) -> bool:
    """Take the lock on an open file without waiting. Return False if it is held through another descriptor."""
    try:
        system.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
