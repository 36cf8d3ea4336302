"""A script for a confined command: tries to reach files and processes outside, and prints the tries that worked.

    escapes.py WORKSPACE OUTSIDE VICTIM

OUTSIDE holds a file, sockets and a home; VICTIM is the process id of another program of the same user.
"""

import ctypes
import json
import os
import platform
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

WORKSPACE, OUTSIDE = sys.argv[1], sys.argv[2]
VICTIM = int(sys.argv[3])
FILE = f"{OUTSIDE}/file"
GIT = f"{WORKSPACE}/.git"
SUBMODULE = f"{GIT}/modules/sub"
BARE = f"{WORKSPACE}/nested/bare.git"

AT_FDCWD = -100
AT_RECURSIVE = 0x8000
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
FS_IOC_SETFLAGS = 0x40086602
FS_NODUMP_FL = 0x40
KEYCTL_GET_KEYRING_ID = 0
KEY_SPEC_USER_KEYRING = -4
MNT_DETACH = 2
MOUNT_ATTR_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
PTRACE_ATTACH = 16
SYS_IO_URING_SETUP = 425
SYS_MOUNT_SETATTR = 442
SYS_FCHMODAT2 = 452
SYS_KEYCTL = {"x86_64": 250, "aarch64": 219}

LIBC = ctypes.CDLL(None, use_errno=True)


def check_result(result: int) -> None:
    """Raise OSError if a C function failed."""
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")


def with_descriptor(act: Callable[[int], object]) -> Callable[[], object]:
    """Open the outside file for reading, which is allowed, and act on the descriptor."""
    return lambda: act(os.open(FILE, os.O_RDONLY))


def overwrite(path: str) -> None:
    with open(path, "w") as file:
        file.write("[core]\n\tfsmonitor = evil\n")


def rename_over(path: str) -> None:
    overwrite(f"{WORKSPACE}/.git/fresh")
    os.rename(f"{WORKSPACE}/.git/fresh", path)


def rename_away(path: str) -> None:
    os.rename(path, f"{path}-away")


def connect(address: str, kind: int = socket.SOCK_STREAM) -> None:
    socket.socket(socket.AF_UNIX, kind).connect(address)


def send_through_a_pair(address: str) -> None:
    sender, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.sendto(b"x", address)


def trace() -> None:
    check_result(LIBC.ptrace(PTRACE_ATTACH, VICTIM, None, None))


def set_flags() -> None:
    """Set the flag "no dump", which any owner of a file may set."""
    import fcntl

    fd = os.open(FILE, os.O_RDONLY)
    fcntl.ioctl(fd, FS_IOC_SETFLAGS, FS_NODUMP_FL.to_bytes(8, sys.byteorder))


def set_limits() -> None:
    import resource

    resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (8, 8))


def make_writable(*, in_namespace: bool) -> None:
    """Clear the read-only attribute of all mounts, then write outside."""
    if in_namespace:
        check_result(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS))
    attributes = struct.pack("QQQQ", 0, MOUNT_ATTR_RDONLY, 0, 0)  # the second field is attr_clr
    check_result(LIBC.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, b"/", AT_RECURSIVE, attributes, len(attributes)))
    os.chmod(FILE, 0o777)


def race() -> None:
    """Exchange the path in memory while the call is on its way. Inside and outside have the same length."""
    outside = FILE.encode()
    inside = f"{WORKSPACE}/own".encode()
    inside = inside[: len(WORKSPACE)] + b"/" * (len(outside) - len(inside)) + inside[len(WORKSPACE) :]
    before = os.stat(FILE).st_mode
    path = ctypes.create_string_buffer(inside, max(len(inside), len(outside)) + 1)
    done = threading.Event()

    def exchange() -> None:
        while not done.is_set():
            ctypes.memmove(path, outside, len(outside))
            ctypes.memmove(path, inside, len(inside))

    thread = threading.Thread(target=exchange)
    thread.start()
    for _ in range(2_000):
        LIBC.chmod(path, 0o604)
    done.set()
    thread.join()
    if os.stat(FILE).st_mode == before:
        raise OSError("nothing outside changed")


ESCAPES: dict[str, Callable[[], object]] = {
    "chmod": lambda: os.chmod(FILE, 0o777),
    "fchmod": with_descriptor(lambda fd: os.fchmod(fd, 0o777)),
    "fchmodat2": lambda: check_result(LIBC.syscall(SYS_FCHMODAT2, AT_FDCWD, FILE.encode(), 0o777, 0)),
    "chmod of the folder": lambda: os.chmod(OUTSIDE, 0o777),
    "chmod through a link": lambda: (os.symlink(FILE, f"{WORKSPACE}/link"), os.chmod(f"{WORKSPACE}/link", 0o777)),
    "chmod through /proc": with_descriptor(lambda fd: os.chmod(f"/proc/self/fd/{fd}", 0o777)),
    "chown": lambda: os.chown(FILE, os.getuid(), os.getgid()),
    "fchown": with_descriptor(lambda fd: os.fchown(fd, -1, os.getgid())),
    "lchown": lambda: os.lchown(FILE, -1, os.getgid()),
    "utime": lambda: os.utime(FILE, (1, 1)),
    "futimens": with_descriptor(lambda fd: os.utime(fd, (1, 1))),
    "setxattr": lambda: os.setxattr(FILE, "user.x", b"1"),
    "fsetxattr": with_descriptor(lambda fd: os.setxattr(fd, "user.x", b"1")),
    "removexattr": lambda: os.removexattr(FILE, "user.there"),
    "file flags": set_flags,
    "write": lambda: overwrite(FILE),
    "truncate": lambda: os.truncate(FILE, 0),
    "create": lambda: overwrite(f"{OUTSIDE}/new"),
    "unlink": lambda: os.unlink(FILE),
    "rename": lambda: os.rename(FILE, f"{OUTSIDE}/moved"),
    "rename in": lambda: os.rename(FILE, f"{WORKSPACE}/moved"),
    "link in": lambda: os.link(FILE, f"{WORKSPACE}/linked"),
    "link out": lambda: os.link(f"{WORKSPACE}/own", f"{OUTSIDE}/linked"),
    "symlink": lambda: os.symlink("/", f"{OUTSIDE}/symlink"),
    "mkdir": lambda: os.mkdir(f"{OUTSIDE}/folder"),
    "mkfifo": lambda: os.mkfifo(f"{OUTSIDE}/fifo"),
    "shell start file": lambda: overwrite(f"{OUTSIDE}/.bashrc"),
    "unix socket by path": lambda: connect(f"{OUTSIDE}/stream"),
    "unix socket through a link": lambda: (
        os.symlink(f"{OUTSIDE}/stream", f"{WORKSPACE}/socket"),
        connect(f"{WORKSPACE}/socket"),
    ),
    "unix datagram socket": lambda: connect(f"{OUTSIDE}/datagram", socket.SOCK_DGRAM),
    "unix datagram by a pair": lambda: send_through_a_pair(f"{OUTSIDE}/datagram"),
    "abstract unix socket": lambda: connect(f"\0skillshelf-{VICTIM}"),
    "signal": lambda: os.kill(VICTIM, signal.SIGCONT),
    "ptrace": trace,
    "memory": lambda: os.open(f"/proc/{VICTIM}/mem", os.O_RDWR),
    "environment": lambda: os.open(f"/proc/{VICTIM}/environ", os.O_RDONLY),
    "limits": set_limits,
    "io_uring": lambda: check_result(LIBC.syscall(SYS_IO_URING_SETUP, 8, ctypes.create_string_buffer(200))),
    "kernel keys": lambda: check_result(
        LIBC.syscall(SYS_KEYCTL[platform.machine()], KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0)
    ),
    "remount": lambda: check_result(LIBC.mount(b"none", b"/", None, ctypes.c_ulong(MS_REMOUNT | MS_BIND), None)),
    "remount in a namespace of its own": lambda: make_writable(in_namespace=True),
    "mount attributes": lambda: make_writable(in_namespace=False),
    "the mounts of another process": lambda: os.chmod(f"/proc/{VICTIM}/root{FILE}", 0o777),
    "the mounts of the parent": lambda: os.chmod(f"/proc/{os.getppid()}/root{FILE}", 0o777),
    "chmod while the path changes": race,
    "unmount": lambda: check_result(LIBC.umount2(WORKSPACE.encode(), MNT_DETACH)),
}
GIT_ESCAPES: dict[str, Callable[[], object]] = {
    "hook": lambda: overwrite(f"{GIT}/hooks/pre-commit"),
    "hook in place": lambda: overwrite(f"{GIT}/hooks/commit-msg"),
    "hooks replaced": lambda: rename_away(f"{GIT}/hooks"),
    "config": lambda: overwrite(f"{GIT}/config"),
    "config renamed over": lambda: rename_over(f"{GIT}/config"),
    "config removed": lambda: os.unlink(f"{GIT}/config"),
    "config through a link": lambda: (
        os.symlink(f"{GIT}/config", f"{WORKSPACE}/to-config"),
        overwrite(f"{WORKSPACE}/to-config"),
    ),
    "config linked": lambda: os.link(f"{GIT}/config", f"{GIT}/other-name"),
    "config mode": lambda: os.chmod(f"{GIT}/config", 0o666),
    "git folder renamed": lambda: rename_away(GIT),
    "config of a submodule": lambda: overwrite(f"{SUBMODULE}/config"),
    "hook of a submodule": lambda: overwrite(f"{SUBMODULE}/hooks/post-checkout"),
    "git file of a worktree": lambda: overwrite(f"{WORKSPACE}/tree/.git"),
    "git file replaced": lambda: rename_over(f"{WORKSPACE}/tree/.git"),
    "worktree administration": lambda: overwrite(f"{GIT}/worktrees/tree/commondir"),
    "config of a bare repository": lambda: overwrite(f"{BARE}/config"),
    "hooks where there were none": lambda: overwrite(f"{BARE}/hooks/pre-receive"),
}


def main() -> None:
    overwrite(f"{WORKSPACE}/own")
    successes = []
    escapes = dict(ESCAPES)
    if os.path.exists(GIT):
        escapes.update(GIT_ESCAPES)
    if platform.machine() not in SYS_KEYCTL:
        escapes.pop("io_uring")
        escapes.pop("kernel keys")
    for name, escape in escapes.items():
        with suppress(OSError):
            escape()
            successes.append(name)
    print(json.dumps(successes))


main()
