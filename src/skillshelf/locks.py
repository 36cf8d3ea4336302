"""A lock for objects that live on in a forked child."""

import os
import threading
from types import TracebackType


class ForkSafeLock:
    """A reentrant lock that a forked child can always take.

    If another thread holds an ordinary lock during a fork, that thread does not exist in the child and never releases
    it there. So every process has a lock of its own behind this one.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.RLock] = {}

    def __enter__(self) -> None:
        # `setdefault` is atomic: two threads that come first in a new process get the same lock.
        self._locks.setdefault(os.getpid(), threading.RLock()).acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._locks[os.getpid()].release()
