"""The processes that a program starts: find them, measure them, end them."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress

HAS_PROC = os.path.isdir("/proc/self/task")
_MIB = 1024 * 1024


def find_descendants(ancestor: int) -> Iterator[int]:
    """Yield the processes below another one that have not ended."""
    if not HAS_PROC:
        return
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            children.setdefault(_find_parent(name), []).append(int(name))

    pending = [ancestor]
    while pending:
        for child in children.get(pending.pop(), ()):
            pending.append(child)
            yield child


def kill_descendants(ancestor: int | None = None) -> int:
    """End every process below one, by default this one. Return how many there were.

    They are stopped first: a stopped process starts no other one, so a program that keeps starting processes is caught
    up with.
    """
    stopped: set[int] = set()
    while True:
        fresh = set(find_descendants(ancestor or os.getpid())) - stopped
        if not fresh:
            break
        for pid in fresh:
            send_signal(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        send_signal(pid, signal.SIGKILL)
    return len(stopped)


def send_signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def measure_memory_mb(processes: list[int], limit_mb: int) -> float:
    """Return the memory of processes together.

    Resident sizes count shared pages more than once. Only if they exceed the limit, the exact sizes are taken.
    """
    memory = sum(map(_read_resident_size, processes))
    if limit_mb and memory > limit_mb * _MIB:
        memory = sum(map(_read_proportional_size, processes))
    return memory / _MIB


def count_threads_of_user() -> int:
    """Return how many threads of all processes this user has, which is what the kernel counts against RLIMIT_NPROC."""
    return sum(map(_count_threads, filter(str.isdecimal, os.listdir("/proc"))))


def _count_threads(pid: str) -> int:
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return 0
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


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


def _read_resident_size(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def _read_proportional_size(pid: int) -> int:
    """Return the memory of a process in bytes, with its part of the pages that it shares."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
