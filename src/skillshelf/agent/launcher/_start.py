"""Confines a program, starts it, and stays until it ends.

At the level `landlock` this process becomes the program. At the others there are three processes: this one, which ends
as the program does; the supervisor, which answers the program's calls and is not confined; and the program.
"""

import ctypes
import json
import os
import select
import signal
import socket
import sys
from typing import NoReturn

from skillshelf.agent.launcher._confine import confine
from skillshelf.agent.launcher._descendants import end_descendants
from skillshelf.agent.launcher._git import RedirectWatch
from skillshelf.agent.launcher._kernel import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    set_process_option,
)
from skillshelf.agent.launcher._plan import LaunchPlan, read_plan
from skillshelf.agent.launcher._supervisor import Supervisor

_REFUSED = 125
"""The launcher's exit status if the program was not started, as that of `env` and `timeout`."""
_NOT_EXECUTABLE = 127
"""The exit status of a shell for a program that it cannot start."""


def main() -> NoReturn:
    agent = os.getppid()
    try:
        plan = read_plan(sys.argv[1])
    except (OSError, ValueError, TypeError) as error:
        print(f"The command was not run: the plan of its confinement cannot be read ({error}).", file=sys.stderr)
        sys.exit(_REFUSED)
    program = sys.argv[3:]  # argument 2 is "--"
    if not plan.leaves_processes:
        _end_with(agent)

    if plan.level == "landlock":
        _confine_or_exit(plan)
        _become(program)

    # This process ends with the program. The supervisor stays for as long as the program's children do.
    report_end, supervisor_end = os.pipe()
    if os.fork() == 0:
        os.close(report_end)
        _supervise(plan, program, supervisor_end)
    os.close(supervisor_end)

    with os.fdopen(report_end, "rb") as pipe:
        report = pipe.read()
    if not report:  # the supervisor failed
        sys.exit(_REFUSED)
    result = json.loads(report)
    for path in result["removed"]:
        print(f"skillshelf removed {path}, which would have redirected Git.", file=sys.stderr)
    _end_as(result["status"])


def _end_with(agent: int) -> None:
    """Have this process killed when the agent ends, however that happens. The supervisor then ends the program."""
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != agent:  # it has ended already
        os._exit(_REFUSED)


def _confine_or_exit(plan: LaunchPlan) -> int | None:
    """Confine this process, or end it. Returns the descriptor for the supervisor, if the level needs one."""
    try:
        return confine(plan)
    except (OSError, ctypes.ArgumentError) as error:
        print(f"The command was not run: it cannot be confined ({plan.level}: {error}).", file=sys.stderr)
        sys.stderr.flush()
        os._exit(_REFUSED)


def _become(program: list[str]) -> NoReturn:
    """Replace this process by the program."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"{program[0]}: {error.strerror}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(_NOT_EXECUTABLE)


def _end_as(status: int) -> NoReturn:
    """End as the program did: by the same signal, or with the same exit status."""
    if os.WIFSIGNALED(status):
        set_process_option(PR_SET_DUMPABLE, 0)  # a core file would show this process, not the program
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.waitstatus_to_exitcode(status))


def _supervise(plan: LaunchPlan, program: list[str], report_pipe: int) -> NoReturn:
    """Start the program, and answer its calls until none of its processes is left."""
    # Orphans become children of this process. That tells when the last one ends, and some kernels let a process read
    # the memory of its descendants alone.
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)

    # Before the program starts, or it could be faster.
    watch = RedirectWatch(plan.repositories if plan.level == "mounted" else [])

    # A child that ends interrupts no wait by itself: its signal writes to a pipe, which is waited for.
    child_ended, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)

    our_end, program_end = socket.socketpair()
    child = os.fork()
    if child == 0:
        _start_supervised(plan, program, program_end)

    # A timeout ends the program's process group. What the program started outside the group is still to be supervised.
    os.setsid()
    program_end.close()
    _detach_from_output()

    poll = select.poll()
    poll.register(watch.fd, select.POLLIN)
    poll.register(child_ended, select.POLLIN)
    if not plan.leaves_processes:
        poll.register(report_pipe, 0)  # an error is reported anyway: the launcher was ended by a timeout
    _, listeners, _, _ = socket.recv_fds(our_end, 1, 1)  # no listener if the program could not be confined
    supervisors = {listener: Supervisor(listener, plan.writable) for listener in listeners}
    for listener in supervisors:
        poll.register(listener, select.POLLIN)

    while _collect_children(child, report_pipe, watch, leaves_processes=plan.leaves_processes):
        for fd, event in poll.poll():
            if fd == watch.fd:
                watch.check()
            elif fd == child_ended:
                os.read(fd, 512)
            elif fd == report_pipe:
                poll.unregister(fd)
                end_descendants()
            elif event & select.POLLIN:
                supervisors[fd].serve()
            else:  # nothing confined is left
                poll.unregister(fd)
    os._exit(0)


def _start_supervised(plan: LaunchPlan, program: list[str], supervisor: socket.socket) -> NoReturn:
    """Confine this process, send the supervisor the descriptor to listen on, and become the program."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener = _confine_or_exit(plan)
    assert listener is not None
    socket.send_fds(supervisor, [b"."], [listener])
    _become(program)


def _detach_from_output() -> None:
    """Close the program's input and output here: its readers wait until every process has. Leave its folder, too."""
    null = os.open(os.devnull, os.O_RDWR)
    for standard_stream in (0, 1, 2):
        os.dup2(null, standard_stream)
    os.chdir("/")


def _collect_children(program: int, report_pipe: int, watch: RedirectWatch, *, leaves_processes: bool) -> bool:
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
            if not leaves_processes:
                end_descendants()
            watch.check()
            _report_end(report_pipe, status, watch.removed)


def _report_end(report_pipe: int, status: int, removed: list[str]) -> None:
    try:
        os.write(report_pipe, json.dumps({"status": status, "removed": removed}).encode())
    except BrokenPipeError:  # the reader was ended by a timeout
        pass
    finally:
        os.close(report_pipe)
