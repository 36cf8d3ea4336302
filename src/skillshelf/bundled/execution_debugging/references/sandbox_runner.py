"""Run a program within limits, end everything it started, and report how it ended.

    python sandbox_runner.py --seconds 10 --memory 512 --processes 32 -- python -m pytest -x

The limits: seconds of wall time, MiB of memory (for each process, and for all of them together), processes alive at
the same time, MiB of one file. A limit of 0 is no limit. The report is one line of JSON, on standard error or in the
file that --report names:

    {"exit_code": 0, "signal": null, "limit": null, "seconds": 0.4, "peak_memory_mb": 23.5, "most_processes": 2}

`exit_code` is null if a signal ended the program; `signal` is then its number. `limit` says which limit ended it:
"seconds", "memory", "processes", or "interrupted" if the runner itself was asked to end. The runner exits with the
program's exit code, or with 128 and the number of the signal.

The program is measured every 50 ms, so it can exceed a limit for that long. Unless the user is root, the kernel also
refuses more than ten times as many processes and threads. At the time limit it gets SIGABRT first:
Python prints where it was, if PYTHONFAULTHANDLER is set. This file sets limits only. It keeps the program from no file
and from no network; the skill `execution-debugging` puts a sandbox around it.

It needs the standard library alone. On systems without /proc, processes are not counted, and only those of the
program's own process group are ended.
"""

import argparse
import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NoReturn

MIB = 1024 * 1024
INTERVAL = 0.05
SECONDS_FOR_TRACEBACKS = 0.5
NICENESS = 5
TASKS_PER_PROCESS = 10
PR_SET_CHILD_SUBREAPER = 36
HAS_PROC = os.path.isdir("/proc/self/task")
INTERRUPTS = {signal.SIGINT, signal.SIGTERM}
NOT_EXECUTABLE = 126
NOT_FOUND = 127


def main() -> None:
    options = read_options()
    report = None
    if options.report:
        # Opened and unlinked before the program starts, which could put something else in its place.
        report = os.open(options.report, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        os.unlink(options.report)

    if sys.platform.startswith("linux"):
        # Orphans become children of this process, so that all of them can be found and waited for.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *INTERRUPTS})

    child = os.fork()
    if child == 0:
        start_program(options)
    run = Run(child, options)
    run.watch()

    text = json.dumps(run.make_report())
    if report is None:
        print(text, file=sys.stderr)
    else:
        os.ftruncate(report, 0)  # the program could write to it through /proc
        os.write(report, text.encode())
    sys.exit(run.exit_code if run.signal is None else 128 + run.signal)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a program within limits.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--memory", type=int, default=1024, help="in MiB")
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--file", type=int, default=1024, help="the size of one file, in MiB")
    parser.add_argument(
        "--report", default="", help="an existing file; it is removed, and written to through its handle"
    )
    parser.add_argument("program", nargs="+", help="after --")
    return parser.parse_args()


def start_program(options: argparse.Namespace) -> NoReturn:
    """Become the program, within the limits that the kernel can hold by itself."""
    # RLIMIT_DATA, not RLIMIT_AS: Node, Go and Java reserve far more addresses than they use.
    set_limit(resource.RLIMIT_DATA, options.memory * MIB)
    set_limit(resource.RLIMIT_FSIZE, options.file * MIB)
    limit_tasks(options.processes)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(NICENESS)  # the runner has to keep up with a program that multiplies
    if not HAS_PROC:
        os.setpgid(0, 0)

    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs would inherit that
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    try:
        os.execvp(options.program[0], options.program)
    except (OSError, ValueError) as error:
        print(f"{options.program[0]}: {getattr(error, 'strerror', error)}", file=sys.stderr, flush=True)
        os._exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE)


def set_limit(kind: int, size: int) -> None:
    if size == 0:
        return
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        size = min(size, hard)
    resource.setrlimit(kind, (size, size))


def limit_tasks(processes: int) -> None:
    """Have the kernel refuse new processes long before they freeze the machine, in case the runner is too slow.

    The kernel counts all processes and threads of the user, so those that run now come on top. Root has no such limit.
    """
    if not processes or not HAS_PROC or os.getuid() == 0:
        return
    others = sum(map(count_threads, filter(str.isdecimal, os.listdir("/proc"))))
    set_limit(resource.RLIMIT_NPROC, others + TASKS_PER_PROCESS * processes)


def count_threads(pid: str) -> int:
    """Return the number of threads of a process of this user; 0 for one of another user."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():
            return 0
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


class Run:
    """A program that runs, with all the processes it started."""

    def __init__(self, child: int, options: argparse.Namespace) -> None:
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.limit: str | None = None
        self._child = child
        self._options = options
        self._started = time.monotonic()
        self._measured = self._started
        self._seconds = 0.0
        self._has_ended = False
        self._peak_memory = 0
        self._most_processes = 1

    def watch(self) -> None:
        """Wait until the program has ended or exceeds a limit. Then end what is left of it."""
        while not self._has_ended and self.limit is None:
            received = wait_for_signal(INTERVAL)
            self._collect_children()
            if received in INTERRUPTS:
                self.limit = "interrupted"
            elif not self._has_ended:
                self.limit = self._find_exceeded_limit()

        if self.limit == "seconds":
            self._ask_for_tracebacks()
        end_descendants(self._child)
        while self._collect_children():
            wait_for_signal(INTERVAL)

    def make_report(self) -> dict[str, object]:
        largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        if sys.platform != "darwin":
            largest_child *= 1024
        return {
            "exit_code": self.exit_code,
            "signal": self.signal,
            "limit": self.limit,
            "seconds": round(self._seconds, 3),
            "peak_memory_mb": round(max(self._peak_memory, largest_child) / MIB, 1),
            "most_processes": self._most_processes,
        }

    def _collect_children(self) -> bool:
        """Collect the children that have ended. Returns False if none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._child:
                self._has_ended = True
                self._seconds = time.monotonic() - self._started
                if os.WIFSIGNALED(status):
                    self.signal = os.WTERMSIG(status)
                else:
                    self.exit_code = os.WEXITSTATUS(status)

    def _find_exceeded_limit(self) -> str | None:
        now = time.monotonic()
        if self._options.seconds and now - self._started > self._options.seconds:
            return "seconds"
        if now - self._measured < INTERVAL:  # woken by a child that ended
            return None

        processes = list(find_descendants(os.getpid()))
        self._most_processes = max(self._most_processes, len(processes))
        if self._options.processes and len(processes) > self._options.processes:
            return "processes"

        # Resident sizes count shared pages more than once. Only if they are too large, take the exact ones.
        memory = sum(map(read_resident_size, processes))
        if self._options.memory and memory > self._options.memory * MIB:
            memory = sum(map(read_proportional_size, processes))
        self._peak_memory = max(self._peak_memory, memory)
        self._measured = time.monotonic()
        if self._options.memory and memory > self._options.memory * MIB:
            return "memory"
        return None

    def _ask_for_tracebacks(self) -> None:
        """Give programs the time to print where they are, as Python's faulthandler does."""
        for pid in find_descendants(os.getpid()):
            send_signal(pid, signal.SIGABRT)
        end = time.monotonic() + SECONDS_FOR_TRACEBACKS
        while self._collect_children() and time.monotonic() < end:
            wait_for_signal(INTERVAL)


def wait_for_signal(seconds: float) -> int | None:
    """Wait for the end of a child or an interrupt. Returns the signal's number."""
    if not hasattr(signal, "sigtimedwait"):  # macOS
        time.sleep(seconds)
        pending = signal.sigpending() & INTERRUPTS
        return next(iter(pending), None)
    received = signal.sigtimedwait({signal.SIGCHLD, *INTERRUPTS}, seconds)
    return None if received is None else received.si_signo


def end_descendants(child: int) -> None:
    """End every process below this one.

    They are stopped first: a stopped process starts no other one, so a program that keeps starting processes is caught
    up with.
    """
    if not HAS_PROC:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        return

    stopped: set[int] = set()
    while True:
        fresh = set(find_descendants(os.getpid())) - stopped
        if not fresh:
            break
        for pid in fresh:
            send_signal(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        send_signal(pid, signal.SIGKILL)


def send_signal(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def find_descendants(ancestor: int) -> Iterator[int]:
    """Yield the processes below another one that have not ended."""
    if not HAS_PROC:
        return
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            children.setdefault(find_parent(name), []).append(int(name))
    pending = [ancestor]
    while pending:
        for child in children.get(pending.pop(), ()):
            pending.append(child)
            yield child


def find_parent(pid: str) -> int:
    """Return the parent of a process; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            status = file.read()
    except OSError:
        return 0
    # `number (name) state parent …`, and the name may have any character.
    state, parent = status.rpartition(b")")[2].split()[:2]
    return 0 if state == b"Z" else int(parent)


def read_resident_size(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def read_proportional_size(pid: int) -> int:
    """Return the memory of a process in bytes, with its part of the pages that it shares."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


if __name__ == "__main__":
    main()
