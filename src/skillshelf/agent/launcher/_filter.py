"""A filter on system calls (seccomp): some fail, and some wait for the supervisor.

The filter is a program for a small machine in the kernel, with one register. Every rule below reads from the top: load
a value, return a verdict if it equals another, and go on otherwise. Nothing jumps further than over one verdict, except
over a whole rule that is for another call.
"""

import ctypes
import errno
import socket
import struct

from skillshelf.agent.launcher._kernel import MACHINE, call_numbers, system_call

_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_NEW_LISTENER = 1 << 3
_SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV = 1 << 5
_SECCOMP_RET_ERRNO = 0x00050000
_SECCOMP_RET_USER_NOTIF = 0x7FC00000
_SECCOMP_RET_ALLOW = 0x7FFF0000

# The instructions of the machine, by the names of their parts: class, mode, operand.
_BPF_LD_W_ABS = 0x20
_BPF_ALU_AND_K = 0x54
_BPF_JMP_JEQ_K = 0x15
_BPF_JMP_JGE_K = 0x35
_BPF_RET_K = 0x06
_INSTRUCTION_BYTES = 8

# struct seccomp_data: where a filter finds the call. Arguments have 64 bits, of which a load takes 32; the lower half
# comes first on both architectures.
_NUMBER = 0
_ARCHITECTURE = 4
_FIRST_ARGUMENT = 16
_ARGUMENT_BYTES = 8
_UPPER_HALF = 4

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_SYSCALL_BIT = 0x40000000
_SOCK_TYPE_MASK = 0xF

_UNSUPPORTED_CALLS = (
    # Programs fall back to the older calls, which are filtered.
    "io_uring_setup",
    "setxattrat",
    "removexattrat",
    "file_setattr",
    # The kernel holds keys for the user, whichever process asks.
    "add_key",
    "request_key",
    "keyctl",
)


_DENIED_IOCTLS = (
    0x40086602,  # FS_IOC_SETFLAGS
    0x40087602,  # FS_IOC_SETVERSION
    0x401C5820,  # FS_IOC_FSSETXATTR
    0x40806685,  # FS_IOC_ENABLE_VERITY, which makes a file read-only for good
    0x800C6613,  # FS_IOC_SET_ENCRYPTION_POLICY
    0x5000940E,  # BTRFS_IOC_SUBVOL_CREATE
    0x50009418,  # BTRFS_IOC_SUBVOL_CREATE_V2
    0x50009401,  # BTRFS_IOC_SNAP_CREATE
    0x50009417,  # BTRFS_IOC_SNAP_CREATE_V2
    0x5000940F,  # BTRFS_IOC_SNAP_DESTROY
    0x5000943F,  # BTRFS_IOC_SNAP_DESTROY_V2
    0x4008941A,  # BTRFS_IOC_SUBVOL_SETFLAGS
)
"""Requests that change a file or folder through a descriptor that is open for reading. Landlock does not know them."""


def install_filter(supervised: list[str], *, network: bool = True) -> int:
    """Filter the system calls of this process and its children. Returns the descriptor the supervisor listens on.

    `supervised`: the names of the calls that the supervisor carries out. Without `network`, no socket can be opened
    that leads out of this machine or to its services.
    """
    seccomp = call_numbers()["seccomp"]
    program = make_filter(supervised, network=network)
    code = ctypes.create_string_buffer(program, len(program))
    # struct sock_fprog: the number of instructions, and where they are.
    header = struct.pack("HxxxxxxQ", len(program) // _INSTRUCTION_BYTES, ctypes.addressof(code))

    def install(flags: int) -> int:
        return system_call(seccomp, ctypes.c_uint(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(flags), header)

    try:
        return install(_SECCOMP_FILTER_FLAG_NEW_LISTENER | _SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return install(_SECCOMP_FILTER_FLAG_NEW_LISTENER)  # kernels before 5.19 do not know the second flag


def make_filter(supervised: list[str], machine: str = MACHINE, *, network: bool = True) -> bytes:
    """Return the filter's program for an architecture. Raises OSError if it is not known."""
    numbers = call_numbers(machine)
    allow = _return(_SECCOMP_RET_ALLOW)
    wait_for_supervisor = _return(_SECCOMP_RET_USER_NOTIF)
    deny = _return(_SECCOMP_RET_ERRNO | errno.EACCES)
    unsupported = _return(_SECCOMP_RET_ERRNO | errno.ENOSYS)

    # Calls of another architecture (32-bit programs) have other numbers, and would pass unseen. So would those of x32.
    program = [
        _load(_ARCHITECTURE),
        *_unless_equal(_AUDIT_ARCH[machine], unsupported),
        _load(_NUMBER),
        *_if_at_least(_X32_SYSCALL_BIT, unsupported),
    ]

    def add_rule(name: str, *rule: bytes) -> None:
        """Decide on a call. A rule may load its arguments, so it must end with a verdict: the next rule expects the
        call's number in the register."""
        if name in numbers:
            program.append(_skip_unless_equal(numbers[name], len(rule)))
            program.extend(rule)

    for name in supervised:
        add_rule(name, wait_for_supervisor)
    for name in _UNSUPPORTED_CALLS:
        add_rule(name, unsupported)

    # A datagram socket names its peer in each message, which no filter sees. Stream sockets have to connect.
    for name in ("socket", "socketpair"):
        add_rule(
            name,
            _load_argument(0),
            *_unless_equal(socket.AF_UNIX, allow if network else deny),
            _load_argument(1),
            _mask(_SOCK_TYPE_MASK),
            *_if_equal(socket.SOCK_STREAM, allow),
            *_if_equal(socket.SOCK_SEQPACKET, allow),
            deny,
        )

    # A process may ask for the limits of others, and set its own: prlimit64(process, resource, new limits, …).
    add_rule(
        "prlimit64",
        _load_argument(0),
        *_if_equal(0, allow),
        _load_argument(2),
        *_unless_equal(0, deny),
        _load_upper_half(2),
        *_unless_equal(0, deny),
        allow,
    )

    # Read-only mounts refuse these by themselves.
    if "fchmod" in supervised:
        checks = [instruction for request in _DENIED_IOCTLS for instruction in _if_equal(request, deny)]
        add_rule("ioctl", _load_argument(1), *checks, allow)

    return b"".join([*program, allow])


def _load(offset: int) -> bytes:
    """Load 32 bits of the call's description into the register."""
    return _instruction(_BPF_LD_W_ABS, offset)


def _load_argument(index: int) -> bytes:
    """Load the lower half of an argument."""
    return _load(_FIRST_ARGUMENT + _ARGUMENT_BYTES * index)


def _load_upper_half(index: int) -> bytes:
    return _load(_FIRST_ARGUMENT + _ARGUMENT_BYTES * index + _UPPER_HALF)


def _mask(bits: int) -> bytes:
    return _instruction(_BPF_ALU_AND_K, bits)


def _return(verdict: int) -> bytes:
    return _instruction(_BPF_RET_K, verdict)


def _if_equal(value: int, verdict: bytes) -> list[bytes]:
    """Return a verdict if the register has this value."""
    return [_instruction(_BPF_JMP_JEQ_K, value, skip_if_false=1), verdict]


def _unless_equal(value: int, verdict: bytes) -> list[bytes]:
    """Return a verdict if the register has another value."""
    return [_instruction(_BPF_JMP_JEQ_K, value, skip_if_true=1), verdict]


def _if_at_least(value: int, verdict: bytes) -> list[bytes]:
    """Return a verdict if the register has this value or a higher one."""
    return [_instruction(_BPF_JMP_JGE_K, value, skip_if_false=1), verdict]


def _skip_unless_equal(value: int, count: int) -> bytes:
    """Skip the next instructions if the register has another value."""
    return _instruction(_BPF_JMP_JEQ_K, value, skip_if_false=count)


def _instruction(code: int, value: int, *, skip_if_true: int = 0, skip_if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, skip_if_true, skip_if_false, value)  # struct sock_filter
