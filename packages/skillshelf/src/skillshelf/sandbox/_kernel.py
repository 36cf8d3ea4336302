"""System calls that Python has no function for. Constants have the names of the kernel's headers."""

import ctypes
import os
import platform
from typing import Any

MACHINE = platform.machine()

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

# System calls since 2019 have the same number on every architecture.
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446

libc = ctypes.CDLL(None, use_errno=True)


def call(function: Any, *arguments: Any) -> int:
    """Call a C function and return its result. Raises OSError if it returns -1."""
    result = int(function(*arguments))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def system_call(number: int, *arguments: Any) -> int:
    """Make a system call by its number. Raises OSError if it fails."""
    return call(libc.syscall, ctypes.c_long(number), *arguments)


def set_process_option(option: int, *arguments: int) -> int:
    """Call prctl. Raises OSError if it fails."""
    # Some options fail unless the arguments they do not use are 0.
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return call(libc.prctl, option, *[ctypes.c_ulong(value) for value in padded])
