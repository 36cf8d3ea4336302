"""A filter on system calls: some fail, and some wait for the supervisor."""

import ctypes
import errno
import platform
import socket
import struct

from skillshelf.agent.launcher._calls import ARCHITECTURES, call_numbers, system_call

_ALLOW = 0x7FFF0000
_NOTIFY = 0x7FC00000
_FAIL = 0x00050000
_LOAD = 0x20
_EQUAL = 0x15
_AT_LEAST = 0x35
_AND = 0x54
_RETURN = 0x06
_SET_FLAGS = 0x40086602
_SET_EXTENDED_FLAGS = 0x401C5820


def install_filter(supervised: list[str]) -> int:
    """Filter the system calls of this process and its children. Returns the descriptor the supervisor listens on.

    `supervised`: the calls that the supervisor carries out.
    """
    numbers = call_numbers()
    program = _filter_program(numbers, supervised)
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    listen = 1 << 3
    wait_killable = 1 << 5
    for flags in (listen | wait_killable, listen):  # the second one for kernels before 5.19
        try:
            return system_call(numbers["seccomp"], ctypes.c_uint(1), ctypes.c_uint(flags), header)
        except OSError as error:
            if error.errno != errno.EINVAL or flags == listen:
                raise
    raise AssertionError("unreachable")


def _filter_program(numbers: dict[str, int], supervised: list[str]) -> bytes:
    unsupported = _step(_RETURN, _FAIL | errno.ENOSYS)
    denied = _step(_RETURN, _FAIL | errno.EACCES)
    allowed = _step(_RETURN, _ALLOW)

    # Calls of another architecture (32-bit programs) have other numbers, and would pass unseen.
    program = [_step(_LOAD, 4), _step(_EQUAL, ARCHITECTURES[platform.machine()], 1, 0), unsupported]
    program += [_step(_LOAD, 0), _step(_AT_LEAST, 0x40000000, 0, 1), unsupported]

    def add(name: str, *body: bytes) -> None:
        if name in numbers:
            program.extend([_step(_EQUAL, numbers[name], 0, len(body)), *body])

    for name in supervised:
        add(name, _step(_RETURN, _NOTIFY))
    for name in ("io_uring_setup", "setxattrat", "removexattrat", "file_setattr"):
        add(name, unsupported)  # programs fall back to the older calls, which are filtered
    for name in ("add_key", "request_key", "keyctl"):
        add(name, unsupported)  # the kernel holds keys for the user, whichever process asks

    # A datagram socket names its peer in each message, which no filter sees. Stream sockets have to connect.
    for name in ("socket", "socketpair"):
        add(
            name,
            _step(_LOAD, _argument(0)),
            _step(_EQUAL, socket.AF_UNIX, 0, 4),
            _step(_LOAD, _argument(1)),
            _step(_AND, 0xF),
            _step(_EQUAL, socket.SOCK_STREAM, 1, 0),
            _step(_EQUAL, socket.SOCK_SEQPACKET, 0, 1),
            allowed,
            denied,
        )
    # A process may ask for the limits of others, and set its own.
    add(
        "prlimit64",
        _step(_LOAD, _argument(0)),
        _step(_EQUAL, 0, 4, 0),
        _step(_LOAD, _argument(2)),
        _step(_EQUAL, 0, 0, 3),
        _step(_LOAD, _argument(2) + 4),
        _step(_EQUAL, 0, 0, 1),
        allowed,
        denied,
    )
    if "fchmod" in supervised:
        add(
            "ioctl",
            _step(_LOAD, _argument(1)),
            _step(_EQUAL, _SET_FLAGS, 1, 0),
            _step(_EQUAL, _SET_EXTENDED_FLAGS, 0, 1),
            denied,
            allowed,
        )
    return b"".join([*program, allowed])


def _argument(index: int) -> int:
    """Return where the filter finds the lower half of an argument."""
    return 16 + 8 * index


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
