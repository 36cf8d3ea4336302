"""The system call filter (seccomp) of sandboxed programs. It is the same for every program.

It denies what neither namespaces nor Landlock cover: Unix sockets and those of other families that lead out of a
network namespace, such as to the host of a virtual machine; the keys that the kernel holds for the user; and io_uring,
which makes system calls that no filter sees. The filter is a program for a small machine in the kernel with
one register; every rule below loads a value, returns a verdict if it matches, and otherwise falls through.
"""

import errno
import socket
import struct
from collections.abc import Sequence

from skillshelf.sandbox._kernel import MACHINE

_RET_ERRNO = 0x00050000
_RET_ALLOW = 0x7FFF0000
_DENY = _RET_ERRNO | errno.EACCES
_UNSUPPORTED = _RET_ERRNO | errno.ENOSYS

# The instructions of the machine, by the names of their parts: class, mode, operand.
_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP_IF_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_JUMP_IF_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

# struct seccomp_data: the number of the call, the architecture, the address, six arguments of 64 bits.
_NUMBER = 0
_ARCHITECTURE = 4
_ARGUMENTS = (16, 24)

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_SYSCALL_BIT = 0x40000000
_SOCK_TYPE_MASK = 0xF
_FAMILIES = (socket.AF_INET, socket.AF_INET6, getattr(socket, "AF_NETLINK", 16))
_IO_URING_SETUP = 425
_NUMBERS = {
    "x86_64": {"socket": 41, "socketpair": 53, "add_key": 248, "request_key": 249, "keyctl": 250},
    "aarch64": {"socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219},
}


def make_filter(*, network: bool = True, machine: str = MACHINE) -> bytes:
    """Return the filter's program. Raises OSError on an architecture whose system calls aren't known.

    Without `network`, no socket can be opened: for a level that has no network namespace.
    """
    if machine not in _NUMBERS:
        raise OSError(errno.ENOSYS, f"there is no system call filter for {machine}")
    numbers = _NUMBERS[machine]

    # Calls of another architecture (32-bit programs) have other numbers, and would pass unseen. So would those of x32.
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_JUMP_IF_EQUAL, _AUDIT_ARCH[machine], if_true=1),
        _instruction(_RETURN, _UNSUPPORTED),
        _instruction(_LOAD, _NUMBER),
        _instruction(_JUMP_IF_AT_LEAST, _X32_SYSCALL_BIT, if_false=1),
        _instruction(_RETURN, _UNSUPPORTED),
    ]
    for number in (_IO_URING_SETUP, numbers["add_key"], numbers["request_key"], numbers["keyctl"]):
        program += [_instruction(_JUMP_IF_EQUAL, number, if_false=1), _instruction(_RETURN, _UNSUPPORTED)]

    families = _FAMILIES if network else ()
    program += _rule(numbers["socket"], 0, families)
    # Connected pairs lead nowhere else, and event loops need them. A datagram can name any receiver.
    program += _rule(numbers["socketpair"], 1, (socket.SOCK_STREAM, socket.SOCK_SEQPACKET), mask=_SOCK_TYPE_MASK)
    return b"".join([*program, _instruction(_RETURN, _RET_ALLOW)])


def _rule(number: int, argument: int, allowed: Sequence[int], mask: int = 0xFFFFFFFF) -> list[bytes]:
    """Deny a call unless the lower half of an argument, which is what the kernel takes, has an allowed value."""
    verdict = [_instruction(_LOAD, _ARGUMENTS[argument]), _instruction(_AND, mask)]
    for value in allowed:
        verdict += [_instruction(_JUMP_IF_EQUAL, value, if_false=1), _instruction(_RETURN, _RET_ALLOW)]
    verdict.append(_instruction(_RETURN, _DENY))
    return [_instruction(_JUMP_IF_EQUAL, number, if_false=len(verdict)), *verdict]


def _instruction(code: int, value: int, *, if_true: int = 0, if_false: int = 0) -> bytes:
    """Return a struct sock_filter. `if_true` and `if_false`: how many instructions a jump skips."""
    return struct.pack("HBBI", code, if_true, if_false, value)
