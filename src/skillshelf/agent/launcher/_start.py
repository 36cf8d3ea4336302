"""Confines a program, starts it, and stays until it ends."""

import ctypes
import json
import os
import select
import signal
import socket
import sys
from typing import Any, NoReturn

from skillshelf.agent.launcher._calls import REFUSED, set_process_option
from skillshelf.agent.launcher._capabilities import drop_capabilities
from skillshelf.agent.launcher._filter import install_filter
from skillshelf.agent.launcher._landlock import restrict_writes
from skillshelf.agent.launcher._mounts import SHARED_MEMORY, mount_read_only
from skillshelf.agent.launcher._plan import read_plan
from skillshelf.agent.launcher._redirect import RedirectWatch
from skillshelf.agent.launcher._supervisor import FILE_CHANGES, Supervisor

_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER = 36


def main() -> NoReturn:
    try:
        plan = read_plan(sys.argv[1])
    except (OSError, ValueError) as error:
        print(f"The command was not run: the plan of its confinement cannot be read ({error}).", file=sys.stderr)
        sys.exit(REFUSED)
    program = sys.argv[3:]
    if plan["level"] == "landlock":
        _confine(plan)
        _become(program)

    # This process ends with the program. The supervisor stays for as long as the program's children do.
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        _supervise(plan, program, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = pipe.read()
    if not report:
        sys.exit(REFUSED)
    end = json.loads(report)
    for path in end["removed"]:
        print(f"skillshelf removed {path}, which would have redirected Git.", file=sys.stderr)
    _end_as(end["status"])


def _end_as(status: int) -> NoReturn:
    """End as the program did: by the same signal, or with the same exit status."""
    if os.WIFSIGNALED(status):
        set_process_option(_SET_DUMPABLE, 0)  # a core file would show this process, not the program
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.waitstatus_to_exitcode(status))


def _supervise(plan: dict[str, Any], program: list[str], report: int) -> NoReturn:
    """Start the program, and answer its calls until none of its processes is left."""
    # Orphans become children of this process. That tells when the last one ends, and some kernels let a process read
    # the memory of its descendants alone.
    set_process_option(_SET_CHILD_SUBREAPER, 1)
    watch = RedirectWatch(plan["repositories"] if plan["level"] == "mounted" else [])
    ours, theirs = socket.socketpair()
    child_ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)

    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener = _confine(plan)
        socket.send_fds(theirs, [b"."], [listener])
        _become(program)

    # A timeout ends the program's process group. What the program started outside the group is still to be supervised.
    os.setsid()
    theirs.close()
    _let_go_of_output()
    poll = select.poll()
    poll.register(watch.fd, select.POLLIN)
    poll.register(child_ended, select.POLLIN)
    _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    supervisors = {listener: Supervisor(listener, plan["writable"]) for listener in descriptors}
    for listener in supervisors:
        poll.register(listener, select.POLLIN)

    while _collect_children(child, report, watch):
        for fd, event in poll.poll():
            if fd == watch.fd:
                watch.check()
            elif fd == child_ended:
                os.read(fd, 512)
            elif event & select.POLLIN:
                supervisors[fd].serve()
            else:  # nothing confined is left
                poll.unregister(fd)
    os._exit(0)


def _let_go_of_output() -> None:
    """Close the program's input and output here: its readers wait until every process has."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.chdir("/")


def _collect_children(program: int, report: int, watch: RedirectWatch) -> bool:
    """Collect the children that have ended, and report the end of the program. Returns False if none is left."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            watch.check()
            return False
        if pid == 0:
            return True
        if pid == program:
            watch.check()
            _report(report, {"status": status, "removed": watch.removed})


def _report(pipe: int, end: dict[str, Any]) -> None:
    try:
        os.write(pipe, json.dumps(end).encode())
    except BrokenPipeError:  # the reader was ended by a timeout
        pass
    finally:
        os.close(pipe)


def _confine(plan: dict[str, Any]) -> int:
    """Confine this process. Returns the descriptor to supervise it by, or -1 if the level needs none."""
    level = plan["level"]
    folders = plan["writable"]
    try:
        if level == "mounted":
            mount_read_only(folders, plan["repositories"])
            folders = [*folders, SHARED_MEMORY] if os.path.isdir(SHARED_MEMORY) else folders
        drop_capabilities()
        restrict_writes(folders)
        if level == "landlock":
            return -1
        return install_filter(["connect"] if level == "mounted" else ["connect", *FILE_CHANGES])
    except (OSError, ctypes.ArgumentError) as error:
        print(f"The command was not run: it cannot be confined ({level}: {error}).", file=sys.stderr)
        sys.stderr.flush()
        os._exit(REFUSED)


def _become(program: list[str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"{program[0]}: {error.strerror}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(127)
