"""Writing below a folder that cannot be trusted: by descriptor, in one step, over the version the caller saw."""

import errno
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from skillshelf.files import system
from skillshelf.files._gate import (
    check_mount,
    mount_of,
    open_below,
    open_file_below,
    open_folder,
    open_folder_below,
    open_plain,
    read_up_to,
)
from skillshelf.files._scratch import name_scratch, noting_scratch
from skillshelf.files._write import NEW_FILE, write_all

ABSENT = ""
"""The version of a file that does not exist."""


class FileChanged(Exception):
    """The file is not the version that the caller expects."""


class FileVersion(NamedTuple):
    """A file's whole content and the hash that names it."""

    data: bytes
    sha256: str
    """ABSENT if there is no such file."""


def hash_content(data: bytes) -> str:
    """Return the hash that names this content: SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


def read_version(root: str, parts: Sequence[str], limit: int) -> FileVersion:
    """Read a whole file below `root` without following any link. A file that does not exist is the version ABSENT.

    Raises NotPlainFile, or OSError: with EFBIG if the file has more than `limit` bytes.
    """
    try:
        with open_below(root, ()) as top:
            mount = mount_of(top)
            with open_below(top, parts[:-1]) as folder:
                check_mount(folder, mount)
                fd, info = open_plain(parts[-1], folder, mount.device)
    except FileNotFoundError:
        return FileVersion(b"", ABSENT)
    try:
        data = _read_whole(fd, info.st_size, limit)
    finally:
        system.close(fd)
    return FileVersion(data, hash_content(data))


def replace_below(
    root: str, parts: Sequence[str], data: bytes, *, expected: str | None, limit: int, mode: int | None = None
) -> None:
    """Give the file `root/parts…` new content in one step. No link is followed, and missing folders are made.

    The new content is written beside the file and renamed over it, so a hard link to the old content keeps it. Just
    before that, the version on disk is compared with `expected` (ABSENT if the file must be new, None if any version
    may be replaced). The file keeps its mode, unless `mode` gives it another one; then a read-only file is replaced
    too.

    Raises FileChanged if it is another version, NotPlainFile if the path leads through or to something that is not a
    plain file, or OSError. Nothing is left behind then: no scratch file, and none of the folders made.
    """
    scratch = name_scratch()
    with _open_parent(root, parts[:-1]) as (folder, device), noting_scratch(root, [*parts[:-1], scratch]):
        fd = system.open(scratch, NEW_FILE, 0o666, dir_fd=folder)
        try:
            try:
                write_all(fd, data)
                # Without it, a power cut can leave an empty file: the rename reaches the disk before the content.
                system.fsync(fd)
                _check_version(fd, parts[-1], folder, device, expected, limit, mode)
                if mode is not None:
                    system.fchmod(fd, mode & 0o777)
            finally:
                system.close(fd)
            system.rename(scratch, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                system.unlink(scratch, dir_fd=folder)
            raise


def remove_below(root: str, parts: Sequence[str]) -> None:
    """Remove the file or link `root/parts…`. No link is followed on the way. Raises NotPlainFile or OSError."""
    with open_folder_below(root, parts[:-1]) as folder:
        system.unlink(parts[-1], dir_fd=folder)


def remove_folder_below(root: str, parts: Sequence[str]) -> None:
    """Remove the empty folder `root/parts…`. Raises OSError if it is not empty, or NotPlainFile."""
    with open_folder_below(root, parts[:-1]) as folder:
        system.rmdir(parts[-1], dir_fd=folder)


def make_folder_below(root: str, parts: Sequence[str], mode: int) -> None:
    """Make the folder `root/parts…` with this mode, and those on the way to it. Raises NotPlainFile or OSError."""
    with _open_parent(root, parts) as (folder, _):
        system.fchmod(folder, mode & 0o777)


def make_link_below(root: str, parts: Sequence[str], target: str) -> None:
    """Make the link `root/parts…`. Nothing is looked up at its target. Raises NotPlainFile or OSError."""
    with _open_parent(root, parts[:-1]) as (folder, _):
        system.symlink(target, parts[-1], dir_fd=folder)


def set_mode_below(root: str, parts: Sequence[str], mode: int) -> None:
    """Set the mode of the plain file `root/parts…`. Raises NotPlainFile or OSError."""
    with open_file_below(root, parts) as (fd, _):
        system.fchmod(fd, mode & 0o777)


def _check_version(
    scratch: int, name: str, folder: int, device: int, expected: str | None, limit: int, mode: int | None
) -> None:
    """Compare the file with the expected version, and give the scratch file its mode and owner."""
    try:
        fd, info = open_plain(name, folder, device)
    except FileNotFoundError:
        if expected:
            raise FileChanged from None
        return
    try:
        if expected == ABSENT:
            raise FileChanged
        # A rename asks for the folder's permission only, but a read-only file is not meant to change.
        if mode is None and not info.st_mode & 0o222:
            raise PermissionError(errno.EACCES, "it is read-only")
        if expected is not None and hash_content(_read_whole(fd, info.st_size, limit)) != expected:
            raise FileChanged
    finally:
        system.close(fd)

    system.fchmod(scratch, info.st_mode & 0o777)
    own = system.fstat(scratch)
    if (own.st_uid, own.st_gid) != (info.st_uid, info.st_gid):
        with suppress(PermissionError):  # only root can give files away
            system.fchown(scratch, info.st_uid, info.st_gid)


def _read_whole(fd: int, size: int, limit: int) -> bytes:
    """Read an open file that had `size` bytes. Raises OSError with EFBIG if it has more than `limit`."""
    if size <= limit:
        data = read_up_to(fd, limit + 1)  # one more than allowed: the file may grow while it is read
        if len(data) <= limit:
            return data
    raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes")


@contextmanager
def _open_parent(root: str, parts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Open the folder of a file that is about to be written, and make the folders that are missing.

    Yields its descriptor and the root's device. If the block fails, the folders made are removed.
    """
    made: list[tuple[int, str]] = []
    with open_below(root, ()) as top:
        mount = mount_of(top)
        folder = system.dup(top)
        try:
            for name in parts:
                inner = _open_or_make(name, folder, made)
                system.close(folder)
                folder = inner
            check_mount(folder, mount)
            yield folder, mount.device
        except BaseException:
            for parent, name in reversed(made):
                with suppress(OSError):  # another process has put something there
                    system.rmdir(name, dir_fd=parent)
            raise
        finally:
            system.close(folder)
            for parent, _ in made:
                system.close(parent)


def _open_or_make(name: str, folder: int, made: list[tuple[int, str]]) -> int:
    try:
        return open_folder(name, folder)
    except FileNotFoundError:
        with suppress(FileExistsError):
            system.mkdir(name, dir_fd=folder)
            made.append((system.dup(folder), name))
        return open_folder(name, folder)
