"""Notes about scratch files, by which the leftovers of a killed process are found and removed.

A scratch file lies beside its target, anywhere in a workspace. To look for such files would take a walk through all of
it, and one that came with a clone would look the same. So a note in the state folder names each of them, locked as long
as its writer lives.
"""

import errno
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from skillshelf.files import system
from skillshelf.files._gate import PLAIN_FILE, NotPlainFile, open_folder_below, read_up_to
from skillshelf.files._homes import make_private_folders, state_home
from skillshelf.files._lock import try_lock
from skillshelf.files._names import SCRATCH_FOLDER, is_at_or_inside
from skillshelf.files._write import NEW_FILE, write_all

_NAME = re.compile(r"\.skillshelf-[0-9a-f]{16}")
_MAX_NOTE = 100_000


def name_scratch() -> str:
    """Return a name for a scratch file that nothing has yet."""
    return f".skillshelf-{secrets.token_hex(8)}"


@contextmanager
def noting_scratch(root: str, parts: Sequence[str]) -> Iterator[None]:
    """Note that there may be a scratch file or folder `root/parts…` while the block runs, and remove it at the end.

    Without a state folder to write to there is no note, and a kill leaves the file behind.
    """
    root = os.path.realpath(root)
    note = _write_note(root, parts)
    try:
        yield
    finally:
        with suppress(OSError):  # the note stays, and the next start tries again
            _remove(root, parts)
            if note:
                system.unlink(note.path)
        if note:
            system.close(note.fd)


def remove_stale_scratch(root: str) -> None:
    """Remove what killed processes left at or below the folder `root`. What a process still writes stays."""
    root = os.path.realpath(root)
    folder = _notes_folder()
    try:
        names = system.listdir(folder)
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            _follow_note(os.path.join(folder, name), root)


class _ScratchNote(NamedTuple):
    path: str
    fd: int


def _notes_folder() -> str:
    """Return the folder of the notes. Without a home it cannot exist."""
    return os.path.join(state_home() or os.devnull, "scratch")


def _write_note(root: str, parts: Sequence[str]) -> _ScratchNote | None:
    """Write a note and lock it. Return None if that is not possible."""
    path = os.path.join(_notes_folder(), parts[-1])
    try:
        make_private_folders(os.path.dirname(path))
        note = _ScratchNote(path, system.open(path, NEW_FILE, 0o600))
    except OSError:
        return None
    with suppress(OSError):
        if try_lock(note.fd):
            write_all(note.fd, json.dumps([root, *parts]).encode())
    return note


def _follow_note(path: str, root: str) -> None:
    fd = system.open(path, PLAIN_FILE)
    try:
        if not try_lock(fd):
            return
        try:
            place, *parts = json.loads(read_up_to(fd, _MAX_NOTE))
        except ValueError:  # its writer was killed before it made the file
            system.unlink(path)
            return
        if is_at_or_inside(place, root) and _NAME.fullmatch(parts[-1]):
            _remove(place, parts)
            system.unlink(path)
    finally:
        system.close(fd)


def _remove(root: str, parts: Sequence[str]) -> None:
    """Remove a scratch file, or a scratch folder with everything in it, if it is there. No link is followed.

    Raises OSError if it cannot be removed.
    """
    *parents, name = parts
    try:
        with open_folder_below(root, parents) as folder:
            mode = system.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISREG(mode):
                system.unlink(name, dir_fd=folder)
            elif stat.S_ISDIR(mode):
                shutil.rmtree(name, dir_fd=folder)
    except (FileNotFoundError, NotPlainFile):
        pass
    if parents[-1:] == [SCRATCH_FOLDER]:
        _remove_if_empty(root, parents)


def _remove_if_empty(root: str, parts: Sequence[str]) -> None:
    *parents, name = parts
    try:
        with open_folder_below(root, parents) as folder:
            system.rmdir(name, dir_fd=folder)
    except (FileNotFoundError, NotPlainFile):
        pass
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):  # another process uses it
            raise
