"""The filter on system calls, for both architectures.

The kernel runs the filter for the architecture of this machine alone. So a small interpreter runs it here.
"""

import errno
import socket
import struct

import pytest

from skillshelf.sandbox._filter import make_filter

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {"socket": 41, "socketpair": 53, "add_key": 248, "request_key": 249, "keyctl": 250},
    "aarch64": {"socket": 198, "socketpair": 199, "add_key": 217, "request_key": 218, "keyctl": 219},
}
VERDICTS = {0x7FFF0000: "allowed", 0x00050000 | errno.EACCES: "denied", 0x00050000 | errno.ENOSYS: "unsupported"}
ABOVE_32_BITS = 1 << 32
AF_VSOCK = 40
IO_URING_SETUP = 425


def judge(machine: str, number: int, *arguments: int, architecture: int | None = None, network: bool = True) -> str:
    """Return the filter's verdict on a call."""
    if architecture is None:
        architecture = ARCHITECTURES[machine]
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("IIQ6Q", number, architecture, 0, *padded)
    return VERDICTS[run(make_filter(network=network, machine=machine), data)]


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
@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("socket", (socket.AF_INET, socket.SOCK_DGRAM), "allowed"),
        ("socket", (socket.AF_INET6, socket.SOCK_STREAM), "allowed"),
        ("socket", (16, socket.SOCK_RAW), "allowed"),  # netlink, which lists the network's own devices
        ("socket", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC), "denied"),
        ("socket", (socket.AF_UNIX | ABOVE_32_BITS, socket.SOCK_STREAM), "denied"),
        ("socket", (AF_VSOCK, socket.SOCK_STREAM), "denied"),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC), "allowed"),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_SEQPACKET), "allowed"),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK), "denied"),
        ("socketpair", (socket.AF_UNIX, socket.SOCK_RAW), "denied"),
        ("add_key", (), "unsupported"),
        ("request_key", (), "unsupported"),
        ("keyctl", (), "unsupported"),
    ],
)
def test_a_call_gets_the_same_verdict_on_both_architectures(
    machine: str, name: str, arguments: tuple[int, ...], verdict: str
) -> None:
    assert judge(machine, NUMBERS[machine][name], *arguments) == verdict


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_without_network_no_socket_can_be_opened(machine: str) -> None:
    """Connected pairs still can."""
    for family in (socket.AF_INET, socket.AF_INET6, 16, AF_VSOCK, socket.AF_UNIX):
        assert judge(machine, NUMBERS[machine]["socket"], family, socket.SOCK_STREAM, network=False) == "denied"
    pair = (NUMBERS[machine]["socketpair"], socket.AF_UNIX, socket.SOCK_STREAM)
    assert judge(machine, *pair, network=False) == "allowed"


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_calls_with_the_numbers_of_another_architecture_are_unsupported(machine: str) -> None:
    """A 32-bit program, and x32, which has the numbers of x86-64 with another bit, would pass the rules unseen."""
    i386 = 0x40000003
    x32_bit = 0x40000000
    for number in (0, *NUMBERS[machine].values()):
        assert judge(machine, number, architecture=i386) == "unsupported"
        assert judge(machine, number | x32_bit) == "unsupported"


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_other_calls_are_allowed(machine: str) -> None:
    filtered = {IO_URING_SETUP, *NUMBERS[machine].values()}
    for number in range(600):
        expected = "unsupported" if number == IO_URING_SETUP else "allowed"
        if number == IO_URING_SETUP or number not in filtered:
            assert judge(machine, number) == expected
