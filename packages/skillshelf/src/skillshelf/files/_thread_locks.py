"""Locks that a forked child can take."""

import os
import threading
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()


def make_lock() -> "threading.RLock":
    """Return a reentrant lock that starts unlocked in a forked child.

    Another thread may hold a lock during a fork. That thread doesn't exist in the child and would never release it.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _reset_locks() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as logging and concurrent.futures reset theirs


os.register_at_fork(after_in_child=_reset_locks)
