"""The program that confines itself by Landlock and the system call filter, and then starts another one.

    python -I -m skillshelf.sandbox._launcher OPTIONS -- PROGRAM ARGUMENT…

OPTIONS is a JSON object: `writable` folders, `network`, and `status`, a descriptor. Right before the program starts,
`{"started": true}` is written there.
"""

import ctypes
import json
import os
import signal
import struct
import sys
from types import FrameType
from typing import NoReturn

from skillshelf.sandbox._filter import make_filter
from skillshelf.sandbox._kernel import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    PR_SET_SECCOMP,
    call,
    libc,
    set_process_option,
)
from skillshelf.sandbox._landlock import restrict_writes
from skillshelf.sandbox._processes import kill_descendants

_NOT_STARTED = 125
_NOT_EXECUTABLE = 127
_SECCOMP_MODE_FILTER = 2
_INSTRUCTION_BYTES = 8
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_END_OF_CAPABILITIES = 64
_KEPT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 10)
"""CAP_CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE: what bubblewrap leaves to root."""


def main() -> NoReturn:
    agent = os.getppid()
    options = json.loads(sys.argv[1])
    program = sys.argv[3:]  # argument 2 is "--"

    # End with the agent, however that ends, and be the parent of every orphan.
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != agent:
        os._exit(_NOT_STARTED)
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _end_everything)

    child = os.fork()
    if child == 0:
        _become(program, options)
    code = _wait_for(child)
    kill_descendants()
    os._exit(code)


def _become(program: list[str], options: dict[str, object]) -> NoReturn:
    """Confine this process, and replace it by the program."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        _drop_capabilities()
        restrict_writes(options["writable"])  # type: ignore[arg-type]
        _install_filter(make_filter(network=bool(options["network"])))
        os.write(options["status"], b'{"started": true}')  # type: ignore[arg-type]
        os.close(options["status"])  # type: ignore[arg-type]
    except (OSError, ctypes.ArgumentError) as error:
        print(f"the program cannot be confined: {error}", file=sys.stderr, flush=True)
        os.kill(os.getppid(), signal.SIGKILL)
        os._exit(_NOT_STARTED)

    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and programs would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        print(f"{program[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(_NOT_EXECUTABLE)


def _wait_for(child: int) -> int:
    """Wait for the program, and collect the orphans that end before it. Return its exit code, as shells give it."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _end_everything(number: int, frame: FrameType | None) -> NoReturn:
    kill_descendants()
    os._exit(128 + number)


def _drop_capabilities() -> None:
    """Give up every capability but the kept ones, for good."""
    # The bounding set: a program that is executed later can't regain any of these.
    for capability in range(_END_OF_CAPABILITIES):
        if capability in _KEPT_CAPABILITIES:
            continue
        try:
            set_process_option(PR_CAPBSET_DROP, capability)
        except OSError:  # past the last capability, or not privileged: then there is nothing to drop
            break

    # The kernel's data: effective, permitted and inheritable for the capabilities 0 to 31, then for 32 to 63. The zeros
    # give up the inheritable ones and all from 32 up.
    header = struct.pack("Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    current = ctypes.create_string_buffer(24)
    call(libc.capget, header, current)
    effective, permitted = struct.unpack_from("2I", current.raw)
    mask = sum(1 << capability for capability in _KEPT_CAPABILITIES)
    call(libc.capset, header, struct.pack("6I", effective & mask, permitted & mask, 0, 0, 0, 0))
    set_process_option(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)


def _install_filter(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and where they are.
    header = struct.pack("HxxxxxxQ", len(program) // _INSTRUCTION_BYTES, ctypes.addressof(code))
    call(
        libc.prctl,
        PR_SET_SECCOMP,
        ctypes.c_ulong(_SECCOMP_MODE_FILTER),
        header,
        ctypes.c_ulong(0),
        ctypes.c_ulong(0),
    )


if __name__ == "__main__":
    main()
