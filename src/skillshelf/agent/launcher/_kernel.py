"""System calls that Python has no function for.

Here and in the other modules of the launcher, constants have the names of the kernel's headers.
"""

import ctypes
import errno
import os
import platform
import struct
from typing import Any

MACHINE = platform.machine()

AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
AT_EMPTY_PATH = 0x1000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

# System calls since 2019 have the same number on every architecture.
SYS_OPEN_TREE = 428
SYS_MOVE_MOUNT = 429
SYS_PIDFD_OPEN = 434
SYS_OPENAT2 = 437
SYS_PIDFD_GETFD = 438
SYS_MOUNT_SETATTR = 442
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446

_NEW_CALLS = {
    "io_uring_setup": 425,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}

# Older ones have a number of their own on each architecture.
_OLD_CALLS = {
    "x86_64": {
        "ioctl": 16, "socket": 41, "connect": 42, "socketpair": 53, "chmod": 90, "fchmod": 91, "chown": 92,
        "fchown": 93, "lchown": 94, "utime": 132, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "utimes": 235, "add_key": 248,
        "request_key": 249, "keyctl": 250, "fchownat": 260, "futimesat": 261, "fchmodat": 268, "utimensat": 280,
        "prlimit64": 302, "seccomp": 317,
    },
    "aarch64": {
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15, "fremovexattr": 16,
        "ioctl": 29, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88, "socket": 198,
        "socketpair": 199, "connect": 203, "add_key": 217, "request_key": 218, "keyctl": 219,
        "prlimit64": 261, "seccomp": 277,
    },
}  # fmt: skip

_RESOLVE_NO_SYMLINKS = 0x04

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


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


def call_numbers(machine: str = MACHINE) -> dict[str, int]:
    """Return the numbers of the calls that the filter knows, by name. Raises OSError on an unknown architecture.

    An architecture without a call (aarch64 has no chmod, only fchmodat) has no number for it.
    """
    if machine not in _OLD_CALLS:
        raise OSError(errno.ENOSYS, f"system calls of {machine} are not known")
    return {**_OLD_CALLS[machine], **_NEW_CALLS}


def set_process_option(option: int, *arguments: int) -> int:
    """Call prctl. Raises OSError if it fails."""
    # Some options fail unless the arguments they do not use are 0.
    padded = (*arguments, 0, 0, 0, 0)[:4]
    return call(libc.prctl, option, *[ctypes.c_ulong(value) for value in padded])


def open_without_links(path: str) -> int:
    """Open a folder as a place, whatever its mode. Raises OSError if any part of its path is a link."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    how = struct.pack("QQQ", flags, 0, _RESOLVE_NO_SYMLINKS)  # struct open_how: flags, mode, resolve
    return system_call(SYS_OPENAT2, ctypes.c_int(AT_FDCWD), os.fsencode(path), how, ctypes.c_size_t(len(how)))
