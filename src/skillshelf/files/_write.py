"""Writing files so that a reader, or a crash, finds the old content or the new, never half of it."""

import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from skillshelf.files import system
from skillshelf.files._gate import open_below, open_folder
from skillshelf.files._homes import make_folders
from skillshelf.files._names import SCRATCH_FOLDER

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_RESIDUE_SECONDS = 3600.0


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


def create_folder(path: str, contents: Mapping[str, bytes]) -> None:
    """Create a folder with these files in one step: after a crash it is complete or not there.

    Raises FileExistsError if anything is at `path`. `contents` maps paths below the folder to their bytes. Missing
    parents of `path` are created first and stay, whatever happens.
    """
    parent, name = os.path.split(os.path.abspath(path))
    make_folders(parent)
    parent_fd = system.open(parent, FOLDER)
    try:
        if _exists(name, parent_fd):
            raise FileExistsError(f"{path} exists")
        with _open_scratch(parent_fd) as scratch_fd:
            draft = secrets.token_hex(8)
            try:
                _write_tree(draft, contents, scratch_fd)
                system.rename(draft, name, src_dir_fd=scratch_fd, dst_dir_fd=parent_fd)
            except OSError:
                shutil.rmtree(draft, ignore_errors=True, dir_fd=scratch_fd)
                raise
    finally:
        system.close(parent_fd)


def _exists(name: str, dir_fd: int) -> bool:
    try:
        system.stat(name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextmanager
def _open_scratch(parent_fd: int) -> Iterator[int]:
    """Open the scratch folder in an open folder. It goes away at the end unless another process uses it."""
    with suppress(FileExistsError):
        system.mkdir(SCRATCH_FOLDER, dir_fd=parent_fd)
    try:
        scratch_fd = open_folder(SCRATCH_FOLDER, parent_fd)
        try:
            _remove_residue(scratch_fd)
            yield scratch_fd
        finally:
            system.close(scratch_fd)
    finally:
        with suppress(OSError):
            system.rmdir(SCRATCH_FOLDER, dir_fd=parent_fd)


def _remove_residue(scratch_fd: int) -> None:
    """Remove drafts of processes that were killed. A young one may belong to a process that still runs."""
    oldest = time.time() - _RESIDUE_SECONDS
    for name in system.listdir(scratch_fd):
        modified = system.stat(name, dir_fd=scratch_fd, follow_symlinks=False).st_mtime
        if modified < oldest:
            shutil.rmtree(name, ignore_errors=True, dir_fd=scratch_fd)


def _write_tree(folder: str, contents: Mapping[str, bytes], dir_fd: int) -> None:
    system.mkdir(folder, dir_fd=dir_fd)
    with open_below(dir_fd, [folder]) as top:
        for path, data in contents.items():
            *parents, name = path.split("/")
            for depth in range(1, len(parents) + 1):
                with suppress(FileExistsError):
                    system.mkdir("/".join(parents[:depth]), dir_fd=top)
            with open_below(top, parents) as inner:
                write_new(name, data, 0o666, dir_fd=inner)


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to an open file, however little each call takes."""
    left = memoryview(data)
    while left:
        written = system.write(fd, left)
        left = left[written:]
