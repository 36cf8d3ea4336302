"""A skill's folder as content: every file by path, kind and hash, and one hash over all of it.

Folders are opened relative to the one above and never through a link, and every verdict is taken on the descriptor
that is then read, so nothing outside the folder is hashed, whatever is swapped meanwhile.
"""

import hashlib
import json
import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from skillshelf.errors import TrustError
from skillshelf.files import FRESH_NS, NotPlainFile, open_below, open_folder, open_plain, system
from skillshelf.sources import MAX_DEPTH, SKIPPED_FOLDERS, VERSION_CONTROL_FOLDERS

MAX_FILES = 2_000
MAX_BYTES = 50 * 1024 * 1024
_CHUNK = 1024 * 1024
# Git changes this folder with each commit and never clones one. The folders of other systems can be in a clone.
_GIT = ".git"
_OTHER_VERSION_CONTROL = VERSION_CONTROL_FOLDERS - {_GIT}
_HEADER = b"skillshelf tree 1\n"
_Stamp = tuple[str, int, int, int, int, int]
_Found = tuple[int, str, "os.DirEntry[str]"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a skill, or a link in its folder."""

    path: str
    size: int = 0
    sha256: str = ""
    executable: bool = False
    target: str | None = None
    """Where a link says that it leads; None for a file."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a person agrees to: everything in a skill's folder at one moment."""

    name: str
    """Of the folder, which names a skill whose file does not; of the file, where it is one alone."""
    entries: tuple[Entry, ...] = ()
    fault: str = ""
    """Why it is not whole; then nobody can agree to it."""

    @property
    def tree(self) -> str:
        """The hash over all of it; empty where it is not whole."""
        return "" if self.fault else hashlib.sha256(_HEADER + self.manifest).hexdigest()

    @property
    def manifest(self) -> bytes:
        rows = [[one.path, one.size, one.sha256, one.executable, one.target] for one in self.entries]
        return json.dumps([self.name, rows], separators=(",", ":")).encode()

    @classmethod
    def parse(cls, manifest: bytes) -> "Snapshot":
        """What `manifest` wrote. Raises ValueError or TypeError for anything else."""
        name, rows = json.loads(manifest)
        return cls(name, tuple(Entry(*row) for row in rows))

    def entry(self, path: str) -> Entry | None:
        return next((one for one in self.entries if one.path == path), None)


class Look(NamedTuple):
    """A snapshot, and what tells without reading that it still holds."""

    snapshot: Snapshot
    tree: str
    signature: int | None
    """None where it must be taken again to know."""
    fresh: bool
    """Something in it changed so lately that times cannot tell a further change."""


class _Unfit(Exception):
    """Why the folder cannot be taken as a whole."""


def look(root: str, key: str, mounts: frozenset[str] = frozenset()) -> Look:
    """The folder at `root/key` as it is now."""
    entries: list[Entry] = []
    stamps: list[_Stamp] = []
    horizon, fresh, size = time.time_ns() - FRESH_NS, False, 0
    try:
        with (
            open_below(root, _parts(key)) as top,
            closing(_walk(top, key == "", f"{root}/{key}".rstrip("/"), mounts)) as found,
        ):
            device = system.fstat(top).st_dev
            for folder, path, one in found:
                info = one.stat(follow_symlinks=False)
                if one.is_symlink():
                    target = system.readlink(one.name, dir_fd=folder)
                    entries.append(Entry(path, target=target))
                else:
                    size += info.st_size
                    if size > MAX_BYTES:
                        raise _Unfit(f"its files have more than {MAX_BYTES >> 20} MiB")
                    entry, info = _read(folder, one.name, path, device)
                    entries.append(entry)
                stamps.append(_stamp(path, info))
                fresh = fresh or info.st_ctime_ns > horizon
    except (_Unfit, NotPlainFile) as error:
        return Look(Snapshot(_name(key), (), str(error)), "", None, True)
    except OSError as error:
        return Look(Snapshot(_name(key), (), error.strerror or "it cannot be read"), "", None, True)
    entries.sort(key=lambda entry: entry.path)
    snapshot = Snapshot(_name(key), tuple(entries))
    return Look(snapshot, snapshot.tree, hash(tuple(sorted(stamps))), fresh)


def signature(root: str, key: str) -> int | None:
    """What `look` gave as its signature, from the times of the files alone; None where that cannot be had."""
    try:
        with open_below(root, _parts(key)) as top, closing(_walk(top, key == "", "", frozenset())) as found:
            stamps = [_stamp(path, one.stat(follow_symlinks=False)) for _, path, one in found]
    except (_Unfit, NotPlainFile, OSError):
        return None
    return hash(tuple(sorted(stamps)))


def look_at_file(root: str, path: str) -> Entry:
    """One file below a root, under its own name. Raises TrustError where it is no plain file of a fit size."""
    folder, _, name = path.rpartition("/")
    try:
        with open_below(root, _parts(folder)) as fd:
            info = system.stat(name, dir_fd=fd, follow_symlinks=False)
            if info.st_size > MAX_BYTES:
                raise _Unfit(f"it has more than {MAX_BYTES >> 20} MiB")
            return _read(fd, name, name, system.fstat(fd).st_dev)[0]
    except (_Unfit, NotPlainFile) as error:
        raise TrustError(f"{path!r} cannot be taken: {error}.") from None
    except OSError as error:
        raise TrustError(f"{path!r} cannot be taken: {error.strerror or 'it cannot be read'}.") from None


def _parts(key: str) -> list[str]:
    return key.split("/") if key else []


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _stamp(path: str, info: os.stat_result) -> _Stamp:
    return path, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_mode


def _walk(top: int, whole: bool, place: str, mounts: frozenset[str]) -> Generator[_Found, None, None]:
    """Every file and link below an open folder, with the descriptor of the folder it lies in.

    `whole`: the folder is the workspace itself, whose dot-folders hold skills of their own.
    """
    device, seen = system.fstat(top).st_dev, 0

    def enter(folder: int, below: str, depth: int) -> Iterator[_Found]:
        nonlocal seen
        for one in system.scandir(folder):
            path = below + one.name
            seen += 1
            if seen > MAX_FILES:
                raise _Unfit(f"it has more than {MAX_FILES:,} files")
            if not one.is_dir(follow_symlinks=False):
                yield folder, path, one
            elif not _is_left_out(one.name, whole, depth):
                if depth >= MAX_DEPTH:
                    raise _Unfit(f"its folders are nested deeper than {MAX_DEPTH}")
                inner = open_folder(one.name, folder)
                try:
                    if system.fstat(inner).st_dev != device or (mounts and f"{place}/{path}" in mounts):
                        raise _Unfit(f"{path} lies on another mount")
                    yield from enter(inner, path + "/", depth + 1)
                finally:
                    system.close(inner)

    yield from enter(top, "", 1)


def _is_left_out(name: str, whole: bool, depth: int) -> bool:
    if name == _GIT:
        return True
    if not whole:
        return False
    return name in SKIPPED_FOLDERS - _OTHER_VERSION_CONTROL or (depth == 1 and name[0] == ".")


def _read(folder: int, name: str, path: str, device: int) -> tuple[Entry, os.stat_result]:
    try:
        fd, info = open_plain(name, folder, device)
    except NotPlainFile as error:
        raise _Unfit(f"{path}: {error.reason}") from None
    except OSError as error:
        raise _Unfit(f"{path}: {error.strerror or 'it cannot be opened'}") from None
    digest, left = hashlib.sha256(), info.st_size + 1
    try:
        while left > 0 and (data := system.read(fd, min(left, _CHUNK))):
            digest.update(data)
            left -= len(data)
    finally:
        system.close(fd)
    if left != 1:
        raise _Unfit(f"{path} is being written right now")
    return Entry(path, info.st_size, digest.hexdigest(), bool(info.st_mode & 0o111)), info
