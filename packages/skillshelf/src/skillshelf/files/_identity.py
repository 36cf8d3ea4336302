"""The identity of a folder: enough to notice that another one stands at its path."""

import os
import sys
from typing import NamedTuple

from skillshelf.files import system

# From linux/stat.h. The struct is 256 bytes long; the mask comes first and the birth time at byte 80.
_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW = 0x100
_STATX_BTIME = 0x800
_STATX_SIZE = 256
_BTIME_OFFSET = 80


class FolderIdentity(NamedTuple):
    """What stays the same as long as a folder exists, across reboots and mounts.

    A device number is not part of it: network disks, containers and some file systems get another one at each mount.
    """

    inode: int
    born: int | None
    """When it was created, in nanoseconds; None if the file system does not say. An inode can be used again."""

    def is_still(self, other: "FolderIdentity | None") -> bool:
        """Return True if the other one, taken later at the same path, is of the same folder."""
        if other is None or other.inode != self.inode:
            return False
        return self.born is None or self.born == other.born


def identify(path: str) -> FolderIdentity | None:
    """Return the identity of a folder or file, without following a link at its end; None if it does not exist."""
    try:
        status = system.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return FolderIdentity(status.st_ino, _birth_time(path, status))


def _birth_time(path: str, status: os.stat_result) -> int | None:
    seconds = getattr(status, "st_birthtime", None)  # macOS and the BSDs
    if seconds is not None:
        return int(seconds * 1_000_000_000)
    if sys.platform != "linux":
        return None

    import ctypes  # takes 3 ms, which only trust pays

    statx = getattr(ctypes.CDLL(None), "statx", None)  # Python has no function for it before 3.15
    if statx is None:
        return None
    buffer = (ctypes.c_ubyte * _STATX_SIZE)()
    if statx(_AT_FDCWD, os.fsencode(path), _AT_SYMLINK_NOFOLLOW, _STATX_BTIME, buffer) != 0:
        return None
    data = bytes(buffer)
    mask = int.from_bytes(data[:4], sys.byteorder)
    if not mask & _STATX_BTIME:
        return None
    whole = int.from_bytes(data[_BTIME_OFFSET : _BTIME_OFFSET + 8], sys.byteorder, signed=True)
    fraction = int.from_bytes(data[_BTIME_OFFSET + 8 : _BTIME_OFFSET + 12], sys.byteorder)
    return whole * 1_000_000_000 + fraction
