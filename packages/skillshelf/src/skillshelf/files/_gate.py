"""The gate to files below a folder that cannot be trusted.

Checking a path and then opening it loses the race against a process that swaps a folder for a symlink in between. So a
file is reached by opening each component relative to the descriptor of the one before, never following a link. Every
check (is it a plain file? is it on the same device?) is made on the descriptor that is then read.
"""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from skillshelf.files import system

PLAIN_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Opens a file to read it; never through a link, and without waiting for the other end of a named pipe."""
_FOLDER = PLAIN_FILE | os.O_DIRECTORY
_MAX_READS = 3
_CHUNK = 1024 * 1024

FRESH_NS = 2_000_000_000
"""A file that changes twice within one tick of the clock keeps its stamp, so a stamp this young proves nothing."""


class Page(NamedTuple):
    """Bytes of a file as the gate read them."""

    data: bytes
    offset: int
    size: int
    """The size of the whole file."""


class Mount(NamedTuple):
    """The mount a file or folder is on."""

    device: int
    number: bytes
    """The kernel's number, which tells a bind mount from the file system it shows; empty if the kernel has none."""


class NotPlainFile(Exception):
    """The path leads to a link, a device, a folder or another mount, which the gate does not read."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def open_folder(name: str, dir_fd: int | None = None) -> int:
    """Open a real folder and return its descriptor. A link in its place raises NotPlainFile."""
    try:
        return system.open(name, _FOLDER, dir_fd=dir_fd)
    except OSError as error:
        # Linux answers ENOTDIR for a link opened with O_DIRECTORY | O_NOFOLLOW, BSD and macOS answer ELOOP.
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NotPlainFile("a folder on the way is a symlink or not a folder") from None
        raise


def open_plain(name: str, dir_fd: int, device: int) -> tuple[int, os.stat_result]:
    """Open a plain file in an open folder. Return its descriptor and its status."""
    try:
        fd = system.open(name, PLAIN_FILE, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPlainFile("it is a symlink") from None
        if error.errno == errno.ENXIO:
            raise NotPlainFile("it is a socket or device") from None
        raise

    info = system.fstat(fd)
    if stat.S_ISREG(info.st_mode) and info.st_dev == device:
        return fd, info

    system.close(fd)
    if stat.S_ISREG(info.st_mode):
        raise NotPlainFile("it is on another mount")
    raise NotPlainFile(f"it is a {_kind(info.st_mode)}")


@contextmanager
def open_below(root: str | int, parts: Sequence[str]) -> Iterator[int]:
    """Open the folder `root/parts…` component by component and close it at the end.

    `root` is a path or an open descriptor, which stays open.
    """
    fd = system.dup(root) if isinstance(root, int) else open_folder(root)
    try:
        for part in parts:
            inner = open_folder(part, fd)
            system.close(fd)
            fd = inner
        yield fd
    finally:
        system.close(fd)


@contextmanager
def open_folder_below(root: str, parts: Sequence[str]) -> Iterator[int]:
    """Open the folder `root/parts…` without following any link or leaving the root's mount, and close it at the end."""
    with open_below(root, ()) as top:
        mount = mount_of(top)
        with open_below(top, parts) as folder:
            check_mount(folder, mount)
            yield folder


@contextmanager
def open_file_below(root: str, parts: Sequence[str]) -> Iterator[tuple[int, os.stat_result]]:
    """Open the plain file `root/parts…` without following any link. Yield its descriptor and its status.

    Raises FileNotFoundError, NotPlainFile, or another OSError.
    """
    with open_below(root, ()) as top:
        mount = mount_of(top)
        with open_below(top, parts[:-1]) as folder:
            fd, info = open_plain(parts[-1], folder, mount.device)
    try:
        check_mount(fd, mount)
        yield fd, info
    finally:
        system.close(fd)


def read_file(root: str, parts: Sequence[str], offset: int, limit: int) -> Page:
    """Read `root/parts…` without following any link, neither below `root` nor as its last component.

    Raises FileNotFoundError, NotPlainFile, or another OSError.
    """
    with open_file_below(root, parts) as (fd, info):
        return _read_steady(fd, info, offset, limit)


def find_link(root: str, parts: Sequence[str]) -> tuple[str, str] | None:
    """Return the first link on the way to `root/parts…` and the target written in it, to explain a refusal."""
    with open_below(root, ()) as top:
        for depth, name in enumerate(parts):
            with open_below(top, parts[:depth]) as folder:
                info = system.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISLNK(info.st_mode):
                    return "/".join(parts[: depth + 1]), system.readlink(name, dir_fd=folder)
    return None


def mount_of(fd: int) -> Mount:
    """Return the mount an open file or folder is on."""
    return Mount(system.fstat(fd).st_dev, _mount_id(fd))


def check_mount(fd: int, mount: Mount) -> None:
    """Raise NotPlainFile if an open file or folder is on another mount."""
    if mount_of(fd) != mount:
        raise NotPlainFile("it is on another mount")


def _mount_id(fd: int) -> bytes:
    """Return the number of an open file's mount, or nothing if the system does not report it."""
    try:
        info = system.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):  # no /proc, or a sandbox that closes it
        return b""
    try:
        return system.read(info, 512).partition(b"mnt_id:")[2].split(b"\n", 1)[0]
    finally:
        system.close(info)


def _read_steady(fd: int, before: os.stat_result, offset: int, limit: int) -> Page:
    """Read a page that is all from one version of the file: try again while another process writes to it."""
    if not 0 <= offset <= before.st_size:
        return Page(b"", offset, before.st_size)
    for _ in range(_MAX_READS):
        data = read_at(fd, offset, limit, before.st_size)
        after = system.fstat(fd)
        if after.st_mtime_ns == before.st_mtime_ns and after.st_size == before.st_size:
            return Page(data, offset, after.st_size)
        before = after
    raise OSError(errno.EAGAIN, "it is being written right now; try again")


def read_at(fd: int, offset: int, limit: int, file_size: int) -> bytes:
    """Read up to `limit` bytes of an open file that had `file_size` bytes when it was looked at.

    One byte more is asked for than the file had, so that a file that has grown since shows it.
    """
    wanted = min(limit, file_size - offset + 1)
    expected = min(limit, file_size - offset)
    data = system.pread(fd, wanted, offset) if wanted > 0 else b""
    # The system may return less than it has. Most reads end here: asking again to see the end would double the calls.
    while len(data) < expected:
        more = system.pread(fd, wanted - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def read_up_to(fd: int, limit: int) -> bytes:
    """Read the next `limit` bytes of an open file, or all that is left. A single call may return fewer than it has."""
    chunks: list[bytes] = []
    left = limit
    while left > 0:
        chunk = system.read(fd, min(left, _CHUNK))
        if not chunk:
            break
        chunks.append(chunk)
        left -= len(chunk)
    return b"".join(chunks)


def file_stamp(info: os.stat_result) -> tuple[int, ...]:
    """Return the values of a file's status that change whenever the file does."""
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def is_fresh(info: os.stat_result, now: int) -> bool:
    """Return True if a file changed so shortly before `now` (in nanoseconds) that its stamp may miss a further change.

    Only the change time counts: unlike the modification time, it cannot be set back.
    """
    return info.st_ctime_ns > now - FRESH_NS


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISFIFO(mode):
        return "FIFO"
    if stat.S_ISSOCK(mode):
        return "socket"
    return "device"
