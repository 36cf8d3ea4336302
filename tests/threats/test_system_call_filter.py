"""The filter on system calls, for both architectures.

The kernel runs the filter for the architecture of this machine alone. So a small interpreter runs it here.
"""

import errno
import socket
import struct

import pytest

from skillshelf.agent.launcher._filter import make_filter
from skillshelf.agent.launcher._kernel import call_numbers
from skillshelf.agent.launcher._supervisor import METADATA_CALLS

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
LEVELS = {"mounted": ["connect"], "supervised": ["connect", *METADATA_CALLS]}
VERDICTS = {
    0x7FFF0000: "allowed",
    0x7FC00000: "supervised",
    0x00050000 | errno.EACCES: "denied",
    0x00050000 | errno.ENOSYS: "unsupported",
}
ABOVE_32_BITS = 1 << 32
GET_FLAGS = 0x80086601
CLONE_RANGE_OF_A_FILE = 0x4020940D
CHANGES_BY_IOCTL = {
    "FS_IOC_SETFLAGS": 0x40086602,
    "FS_IOC_SETVERSION": 0x40087602,
    "FS_IOC_FSSETXATTR": 0x401C5820,
    "FS_IOC_ENABLE_VERITY": 0x40806685,
    "FS_IOC_SET_ENCRYPTION_POLICY": 0x800C6613,
    "BTRFS_IOC_SUBVOL_CREATE": 0x5000940E,
    "BTRFS_IOC_SUBVOL_CREATE_V2": 0x50009418,
    "BTRFS_IOC_SNAP_CREATE": 0x50009401,
    "BTRFS_IOC_SNAP_CREATE_V2": 0x50009417,
    "BTRFS_IOC_SNAP_DESTROY": 0x5000940F,
    "BTRFS_IOC_SNAP_DESTROY_V2": 0x5000943F,
    "BTRFS_IOC_SUBVOL_SETFLAGS": 0x4008941A,
}


def judge(
    level: str, machine: str, number: int, *arguments: int, architecture: int | None = None, network: bool = True
) -> str:
    """Return the filter's verdict on a call."""
    if architecture is None:
        architecture = ARCHITECTURES[machine]
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("IIQ6Q", number, architecture, 0, *padded)
    return VERDICTS[run(make_filter(LEVELS[level], machine, network=network), data)]


def run(program: bytes, data: bytes) -> int:
    """Run a filter on the description of a call, as the kernel does, and return its result."""
    instructions = list(struct.iter_unpack("HBBI", program))
    register = 0
    position = 0
    while True:
        code, skip_if_true, skip_if_false, value = instructions[position]
        position += 1
        match code:
            case 0x20:
                (register,) = struct.unpack_from("I", data, value)
            case 0x54:
                register &= value
            case 0x15:
                position += skip_if_true if register == value else skip_if_false
            case 0x35:
                position += skip_if_true if register >= value else skip_if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("connect", (), "supervised"),
        ("socket", (socket.AF_INET, socket.SOCK_DGRAM), "allowed"),
        ("socket", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC), "allowed"),
        ("socket", (socket.AF_UNIX, socket.SOCK_SEQPACKET), "allowed"),
        ("socket", (socket.AF_UNIX, socket.SOCK_DGRAM), "denied"),
        ("socket", (socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK), "denied"),
        ("socket", (socket.AF_UNIX, socket.SOCK_RAW), "denied"),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_STREAM), "allowed"),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_DGRAM), "denied"),
        ("prlimit64", (0, 7, 1), "allowed"),
        ("prlimit64", (1234, 7, 0), "allowed"),
        ("prlimit64", (1234, 7, 1), "denied"),
        ("prlimit64", (1234, 7, ABOVE_32_BITS), "denied"),
        ("io_uring_setup", (), "unsupported"),
        ("setxattrat", (), "unsupported"),
        ("removexattrat", (), "unsupported"),
        ("file_setattr", (), "unsupported"),
        ("add_key", (), "unsupported"),
        ("request_key", (), "unsupported"),
        ("keyctl", (), "unsupported"),
        ("ioctl", (3, GET_FLAGS), "allowed"),
        ("ioctl", (3, CLONE_RANGE_OF_A_FILE), "allowed"),
        ("seccomp", (), "allowed"),
    ],
)
def test_a_call_gets_the_same_verdict_on_both_architectures(
    level: str, machine: str, name: str, arguments: tuple[int, ...], verdict: str
) -> None:
    assert judge(level, machine, call_numbers(machine)[name], *arguments) == verdict


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("family", "kind", "verdict"),
    [
        (socket.AF_INET, socket.SOCK_STREAM, "denied"),
        (socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, "denied"),
        (socket.AF_NETLINK, socket.SOCK_RAW, "denied"),
        (socket.AF_VSOCK, socket.SOCK_STREAM, "denied"),
        (socket.AF_UNIX | ABOVE_32_BITS, socket.SOCK_STREAM, "allowed"),
        (socket.AF_UNIX, socket.SOCK_DGRAM, "denied"),
    ],
)
def test_without_network_only_unix_sockets_can_be_opened(
    level: str, machine: str, family: int, kind: int, verdict: str
) -> None:
    """The kernel takes the family from the lower half of the argument, as the filter does."""
    number = call_numbers(machine)["socket"]
    assert judge(level, machine, number, family, kind, network=False) == verdict


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_changes_of_metadata_are_supervised_unless_mounts_refuse_them(machine: str) -> None:
    numbers = call_numbers(machine)
    for name in METADATA_CALLS:
        if name in numbers:
            assert judge("supervised", machine, numbers[name]) == "supervised"
            assert judge("mounted", machine, numbers[name]) == "allowed"


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("request_name", CHANGES_BY_IOCTL)
def test_a_file_outside_cannot_be_changed_by_ioctl(machine: str, request_name: str) -> None:
    """These work on a descriptor that is open for reading, so Landlock does not refuse them."""
    ioctl = call_numbers(machine)["ioctl"]
    request = CHANGES_BY_IOCTL[request_name]
    assert judge("supervised", machine, ioctl, 3, request) == "denied"
    assert judge("supervised", machine, ioctl, 3, request | ABOVE_32_BITS) == "denied"
    assert judge("mounted", machine, ioctl, 3, request) == "allowed"  # its read-only mounts refuse it


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("level", LEVELS)
def test_calls_with_the_numbers_of_another_architecture_are_unsupported(level: str, machine: str) -> None:
    """A 32-bit program, and x32, which has the numbers of x86-64 with another bit, would pass the rules unseen."""
    i386 = 0x40000003
    x32_bit = 0x40000000
    for number in (0, *call_numbers(machine).values()):
        assert judge(level, machine, number, architecture=i386) == "unsupported"
        assert judge(level, machine, number | x32_bit) == "unsupported"


@pytest.mark.parametrize("machine", ARCHITECTURES)
@pytest.mark.parametrize("level", LEVELS)
def test_other_calls_are_allowed(level: str, machine: str) -> None:
    filtered = set(call_numbers(machine).values())
    for number in range(600):
        if number not in filtered:
            assert judge(level, machine, number) == "allowed"
