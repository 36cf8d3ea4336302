"""System calls that Python has no function for."""

import ctypes
import errno
import os
import platform
import struct
from typing import Any

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
_OPENAT2 = 437
_RESOLVE_NO_LINKS = 0x04
REFUSED = 125
"""The launcher's exit status if the program was not started."""

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


def call(function: Any, *arguments: Any) -> int:
    """Call a C function and raise OSError if it returns -1."""
    result = int(function(*arguments))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def system_call(number: int, *arguments: Any) -> int:
    """Make a system call by its number. Raises OSError if it fails."""
    return call(libc.syscall, ctypes.c_long(number), *arguments)


def open_without_links(path: str) -> int:
    """Open a folder as a place, whatever its mode. Raises OSError if any part of its path is a link."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    how = struct.pack("QQQ", flags, 0, _RESOLVE_NO_LINKS)
    return system_call(_OPENAT2, ctypes.c_int(AT_FDCWD), os.fsencode(path), how, ctypes.c_size_t(len(how)))


def set_process_option(option: int, *arguments: int) -> int:
    """Call prctl. Raises OSError if it fails."""
    padded = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    return call(libc.prctl, option, *padded)


# Calls that are older than 2019 have a number of their own on each architecture.
_NUMBERS = {
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
_NEW_NUMBERS = {"io_uring_setup": 425, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466, "file_setattr": 469}
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def call_numbers() -> dict[str, int]:
    """Return the numbers of the filtered calls by name. Raises OSError on an architecture that is not known."""
    numbers = _NUMBERS.get(platform.machine())
    if numbers is None:
        raise OSError(errno.ENOSYS, f"system calls of {platform.machine()} are not known")
    return {**numbers, **_NEW_NUMBERS}
