"""The one gate to a skill's bytes.

Checking a path and then opening it loses the race against somebody who swaps a folder for a symlink in between. So a
file is reached by opening each component relative to the descriptor of the one before, never following a link, and
every verdict (a plain file? the same device?) is taken on the descriptor that is then read.
"""

import errno
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = _FILE | os.O_DIRECTORY
_TRIES = 3


class Page(NamedTuple):
    """Bytes of a skill's file as the gate read them."""

    data: bytes
    offset: int
    size: int
    """Of the whole file."""


class NotPlainFile(Exception):
    """The path leads to a link, a device, a folder, another mount: nothing the gate reads."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def open_folder(name: str, dir_fd: int | None = None) -> int:
    """A descriptor of a real folder; a link in its place is refused."""
    try:
        return os.open(name, _FOLDER, dir_fd=dir_fd)
    except OSError as error:
        # Linux answers ENOTDIR for a link opened with O_DIRECTORY | O_NOFOLLOW, BSD and macOS answer ELOOP.
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NotPlainFile("a folder on the way is a symlink or no folder") from None
        raise


def open_plain(name: str, dir_fd: int, device: int) -> tuple[int, os.stat_result]:
    """A descriptor of a plain file in an open folder, and what fstat says of it."""
    try:
        fd = os.open(name, _FILE, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotPlainFile("it is a symlink") from None
        if error.errno == errno.ENXIO:
            raise NotPlainFile("it is a socket or device") from None
        raise
    info = os.fstat(fd)
    if stat.S_ISREG(info.st_mode) and info.st_dev == device:
        return fd, info
    os.close(fd)
    raise NotPlainFile("it lies on another mount" if stat.S_ISREG(info.st_mode) else f"it is a {_kind(info.st_mode)}")


def read_file(root: str, parts: Sequence[str], offset: int, limit: int) -> Page:
    """Bytes of `root/parts…`, reached without following any link below and including `root`'s last component.

    Raises FileNotFoundError, NotPlainFile, or another OSError.
    """
    folder = open_folder(root)
    try:
        device, mount = os.fstat(folder).st_dev, _mount_id(folder)
        for part in parts[:-1]:
            inner = open_folder(part, folder)
            os.close(folder)
            folder = inner
        fd, info = open_plain(parts[-1], folder, device)
    finally:
        os.close(folder)
    try:
        if _mount_id(fd) != mount:
            raise NotPlainFile("it lies on another mount")
        return _read_steady(fd, info, offset, limit)
    finally:
        os.close(fd)


def _mount_id(fd: int) -> bytes:
    """Tells a bind mount, which has the device number of its file system. Empty where the system does not say."""
    try:
        info = os.open(f"/proc/self/fdinfo/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):  # no /proc, or a sandbox that closes it
        return b""
    try:
        return os.read(info, 512).partition(b"mnt_id:")[2].split(b"\n", 1)[0]
    finally:
        os.close(info)


def _read_steady(fd: int, before: os.stat_result, offset: int, limit: int) -> Page:
    """A page all from one version of the file: read again while somebody writes to it."""
    if not 0 <= offset <= before.st_size:
        return Page(b"", offset, before.st_size)
    for _ in range(_TRIES):
        # One byte more than the file has: a file that grew meanwhile shows itself.
        data = os.pread(fd, max(0, min(limit, before.st_size - offset + 1)), offset)
        after = os.fstat(fd)
        if after.st_mtime_ns == before.st_mtime_ns and after.st_size == before.st_size:
            return Page(data, offset, after.st_size)
        before = after
    raise OSError(errno.EAGAIN, "it is being written right now; try again")


def _kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "folder"), (stat.S_ISFIFO, "FIFO"), (stat.S_ISSOCK, "socket"))
    return next((word for test, word in kinds if test(mode)), "device")
