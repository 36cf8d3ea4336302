"""Writing files so that a reader, or a crash, finds the old content or the new, never half of it."""

import os
import secrets
from contextlib import suppress

from skillshelf.files import system

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def write_new(path: str, data: bytes, mode: int = 0o600, *, durable: bool = False, dir_fd: int | None = None) -> None:
    """Create a file that does not exist yet. Raises FileExistsError if it does, even as a link.

    If the write fails, no part of the file is left behind.
    """
    fd = system.open(path, NEW_FILE, mode, dir_fd=dir_fd)
    try:
        try:
            write_all(fd, data)
            if durable:
                system.fsync(fd)
        finally:
            system.close(fd)
    except OSError:
        with suppress(OSError):
            system.unlink(path, dir_fd=dir_fd)
        raise


def replace_file(path: str, data: bytes, mode: int = 0o600, *, durable: bool = False) -> None:
    """Give a file new content in one step. Readers see the old content or the new.

    With `durable`, the new content survives a power cut once this returns. A crash may leave a file named
    `<path>.<random>` beside it.
    """
    scratch = f"{path}.{secrets.token_hex(8)}"
    write_new(scratch, data, mode, durable=durable)
    try:
        system.replace(scratch, path)
    except OSError:
        with suppress(OSError):
            system.unlink(scratch)
        raise
    if durable:
        sync_folder(os.path.dirname(path) or ".")


def sync_folder(path: str) -> None:
    """Force a folder's list of names to disk: after this, a rename in it survives a power cut."""
    fd = system.open(path, FOLDER)
    try:
        system.fsync(fd)
    finally:
        system.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to an open file, however little each call takes."""
    left = memoryview(data)
    while left:
        written = system.write(fd, left)
        left = left[written:]
