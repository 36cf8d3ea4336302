"""The state of one path of a workspace: enough to compare it later, and to bring it back with the content."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from skillshelf.files import NotPlainFile, file_stamp, hash_content, open_below, open_plain, read_at, system
from skillshelf_agent.checkpoints import _limits
from skillshelf_agent.filetools import find_protection

Kind = Literal["absent", "file", "folder", "link", "other"]


class PathState(BaseModel):
    """What lay at a path at one moment. Two states are equal if nothing was changed in between."""

    model_config = ConfigDict(frozen=True)

    kind: Kind
    mode: int = 0
    size: int = 0
    digest: str = ""
    """The hash of the content, or of a link's target. Empty if the file is too large, secret or unreadable."""
    stamp: tuple[int, ...] = ()
    """Stands for the content of a file that has no digest."""

    @property
    def has_content(self) -> bool:
        """True if this is something that content brings back."""
        return self.kind in ("file", "link")


ABSENT_STATE = PathState(kind="absent")
BLOCKED_STATE = PathState(kind="other")
"""Something that is neither a file, a folder nor a link, or that cannot be reached without following a link."""


class Look(NamedTuple):
    """A state, and the content that it has."""

    state: PathState
    data: bytes = b""


def may_hold_secrets(path: str) -> bool:
    """Return True for a file whose content is never kept, by the names on its path."""
    return any(find_protection(name) for name in path.split("/"))


def look_at(root: str, parts: Sequence[str], *, limit: int = _limits.FILE_BYTES) -> Look:
    """Look at a path below `root` without following any link.

    Content beyond `limit` is not read; the state then has a stamp instead. Raises OSError if the folder that it lies in
    cannot be read.
    """
    try:
        with open_below(root, parts[:-1]) as folder:
            return look_in(folder, parts[-1], limit=limit)
    except FileNotFoundError:
        return Look(ABSENT_STATE)
    except NotPlainFile:
        return Look(BLOCKED_STATE)


def look_in(folder: int, name: str, *, limit: int = _limits.FILE_BYTES) -> Look:
    """Look at an entry of an open folder. Raises FileNotFoundError if it is gone."""
    info = system.stat(name, dir_fd=folder, follow_symlinks=False)
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISDIR(info.st_mode):
        return Look(PathState(kind="folder", mode=mode))
    if stat.S_ISLNK(info.st_mode):
        target = os.fsencode(system.readlink(name, dir_fd=folder))
        return Look(PathState(kind="link", size=len(target), digest=hash_content(target)), target)
    if not stat.S_ISREG(info.st_mode):
        return Look(BLOCKED_STATE)

    stamped = PathState(kind="file", mode=mode, size=info.st_size, stamp=file_stamp(info))
    if info.st_size > limit:
        return Look(stamped)
    try:
        fd, opened = open_plain(name, folder, system.fstat(folder).st_dev)
    except PermissionError:
        return Look(stamped)
    except NotPlainFile:  # swapped right now
        return Look(BLOCKED_STATE)
    try:
        data = read_at(fd, 0, limit + 1, opened.st_size)
    finally:
        system.close(fd)
    if len(data) > limit:  # it grows while it is read
        return Look(stamped)
    mode = stat.S_IMODE(opened.st_mode)
    return Look(PathState(kind="file", mode=mode, size=len(data), digest=hash_content(data)), data)
