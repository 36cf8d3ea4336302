"""The processes that a program leaves behind, including those that left its process group or session."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress


def end_descendants() -> None:
    """End every process below this one, which must be their subreaper.

    They are stopped first: a stopped process starts no other one, so a program that keeps starting processes is caught
    up with.
    """
    stopped: set[int] = set()
    while True:
        fresh = set(_find_descendants(os.getpid())) - stopped
        if not fresh:
            break
        for pid in fresh:
            _send_signal(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        _send_signal(pid, signal.SIGKILL)


def _send_signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _find_descendants(ancestor: int) -> Iterator[int]:
    """Yield the processes below another one, in any order."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            children.setdefault(_find_parent(name), []).append(int(name))

    pending = [ancestor]
    while pending:
        for child in children.get(pending.pop(), ()):
            pending.append(child)
            yield child


def _find_parent(pid: str) -> int:
    """Return the parent of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            status = file.read()
    except OSError:
        return 0
    # `number (name) state parent …`, and the name may have any character.
    state, parent = status.rpartition(b")")[2].split()[:2]
    return 0 if state == b"Z" else int(parent)
