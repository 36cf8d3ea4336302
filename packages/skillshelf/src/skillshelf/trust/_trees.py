"""Content by the hash of all of it: snapshots of folders, and the copies that are served instead of live files."""

import hashlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from skillshelf.errors import TrustError
from skillshelf.files import (
    NotPlainFile,
    Page,
    TreeEntry,
    file_stamp,
    is_fresh,
    open_below,
    open_plain,
    read_file,
    system,
    walk,
    write_new,
)
from skillshelf.sources import MAX_DEPTH, SKIPPED_FOLDERS, VERSION_CONTROL_FOLDERS
from skillshelf.trust._limits import MAX_BYTES, MAX_FILES, MAX_MANIFEST

_CHUNK = 1024 * 1024
# Git changes its folder with each commit and never clones one. The folders of other systems can come with a clone.
_GIT = ".git"
_OTHER_VERSION_CONTROL = VERSION_CONTROL_FOLDERS - {_GIT}
_HEADER = b"skillshelf tree 1\n"


class SnapshotEntry(NamedTuple):
    """A file or a link in a snapshot."""

    path: str
    size: int = 0
    sha256: str = ""
    executable: bool = False
    target: str | None = None
    """The target written in a link; None for a file."""


class Snapshot(NamedTuple):
    """Everything in a folder at one moment: what a user approves."""

    name: str
    """The folder's name, which is the skill's if its file has none; or the name of a single file."""
    entries: tuple[SnapshotEntry, ...] = ()
    fault: str = ""
    """Why the snapshot is incomplete, so that it cannot be approved; empty if it is complete."""

    @property
    def tree(self) -> str:
        """The hash over all of it; empty if it is incomplete."""
        if self.fault:
            return ""
        return hashlib.sha256(_HEADER + self.manifest).hexdigest()

    @property
    def manifest(self) -> bytes:
        """The snapshot as JSON. Equal snapshots have equal manifests."""
        rows = [[entry.path, entry.size, entry.sha256, entry.executable, entry.target] for entry in self.entries]
        return json.dumps([self.name, rows], separators=(",", ":")).encode()

    @classmethod
    def parse(cls, manifest: bytes) -> "Snapshot":
        """Read a manifest. Raises ValueError or TypeError if it is not one."""
        name, rows = json.loads(manifest)
        return cls(name, tuple(SnapshotEntry(*row) for row in rows))

    @property
    def files(self) -> list[SnapshotEntry]:
        """The entries that are not links."""
        return [entry for entry in self.entries if entry.target is None]

    def entry(self, path: str) -> SnapshotEntry | None:
        """Return the entry with this path, or None."""
        for entry in self.entries:
            if entry.path == path:
                return entry
        return None


class DiskState(NamedTuple):
    """A folder's snapshot, and a cheap way to see whether the folder is still like that."""

    snapshot: Snapshot
    tree: str
    signature: int | None
    """Compare it with `take_signature`. None if only a new snapshot can tell."""
    is_fresh: bool
    """True if a file changed so recently that its times may not show a further change."""


class _Unfit(Exception):
    """The folder cannot be taken as a whole."""


def take_snapshot(
    root: str, key: str, mounts: frozenset[str] = frozenset(), has_file: Callable[[str], bool] = lambda path: True
) -> DiskState:
    """Read the folder `root/key` as it is now. `mounts` are the mount points below the root.

    Files for which `has_file` is False are not part of the snapshot.
    """
    name = key.rpartition("/")[2]
    try:
        return _take(root, key, name, mounts, has_file)
    except (_Unfit, NotPlainFile) as error:
        fault = str(error)
    except OSError as error:
        fault = error.strerror or "it cannot be read"
    return DiskState(Snapshot(name, fault=fault), tree="", signature=None, is_fresh=True)


def _take(root: str, key: str, name: str, mounts: frozenset[str], has_file: Callable[[str], bool]) -> DiskState:
    entries: list[SnapshotEntry] = []
    stamps: list[tuple[object, ...]] = []
    now = time.time_ns()
    any_fresh = False
    size = 0
    with _walk_content(root, key, mounts) as (top, found):
        device = system.fstat(top).st_dev
        for file in found:
            info = _status(file)
            if not has_file(file.path):
                pass
            elif file.kind == "link":
                target = system.readlink(file.name, dir_fd=file.folder)
                entries.append(SnapshotEntry(file.path, target=target))
            else:
                size += info.st_size
                if size > MAX_BYTES:
                    raise _Unfit(f"its files have more than {MAX_BYTES >> 20} MiB")
                entry, info = _hash_file(file.folder, file.name, file.path, device)
                entries.append(entry)
            stamps.append(_stamp(file, info))
            any_fresh = any_fresh or is_fresh(info, now)

    entries.sort(key=lambda entry: entry.path)
    snapshot = Snapshot(name, tuple(entries))
    return DiskState(snapshot, snapshot.tree, _sign(stamps), any_fresh)


def take_signature(root: str, key: str) -> int | None:
    """Return the signature of a folder from the status of its files alone; None if that is not possible."""
    try:
        with _walk_content(root, key, frozenset()) as (_, found):
            return _sign([_stamp(file, _status(file)) for file in found])
    except (_Unfit, NotPlainFile, OSError):
        return None


def hash_file(root: str, path: str) -> SnapshotEntry:
    """Return the entry of one file below a root, under its own name. Raises TrustError if it cannot be taken."""
    folder, _, name = path.rpartition("/")
    try:
        with open_below(root, _split(folder)) as fd:
            info = system.stat(name, dir_fd=fd, follow_symlinks=False)
            if info.st_size > MAX_BYTES:
                raise _Unfit(f"it has more than {MAX_BYTES >> 20} MiB")
            entry, _ = _hash_file(fd, name, name, system.fstat(fd).st_dev)
            return entry
    except (_Unfit, NotPlainFile) as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    raise TrustError(f"{path!r} cannot be used: {reason}.")


@contextmanager
def _walk_content(root: str, key: str, mounts: frozenset[str]) -> Iterator[tuple[int, Iterator[TreeEntry]]]:
    """Open the folder `root/key`. Yield its descriptor, and an iterator over the files and links below it."""
    prefix = f"{root}/{key}".rstrip("/") + "/"
    inner_mounts = frozenset(point.removeprefix(prefix) for point in mounts if point.startswith(prefix))
    with open_below(root, _split(key)) as top, closing(_content(top, key == "", inner_mounts)) as found:
        yield top, found


def _content(top: int, is_workspace: bool, mounts: frozenset[str]) -> Generator[TreeEntry, None, None]:
    """Yield the files and links below an open folder. Raises _Unfit if something in it cannot be entered or counted."""

    def enter(folder: TreeEntry) -> bool:
        if folder.name == _GIT:
            return False
        if not is_workspace:
            return True
        # A workspace that is itself a skill: its dot-folders hold skills of their own.
        is_other_skills = "/" not in folder.path and folder.name.startswith(".")
        return not is_other_skills and folder.name not in SKIPPED_FOLDERS - _OTHER_VERSION_CONTROL

    def refuse(path: str, reason: str) -> None:
        raise _Unfit(f"{path}: {reason}")

    for count, entry in enumerate(walk(top, enter, refuse, max_depth=MAX_DEPTH, mounts=mounts), 1):
        if count > MAX_FILES:
            raise _Unfit(f"it has more than {MAX_FILES:,} files")
        if entry.kind != "folder":
            yield entry


def _hash_file(folder: int, name: str, path: str, device: int) -> tuple[SnapshotEntry, os.stat_result]:
    try:
        fd, info = open_plain(name, folder, device)
    except NotPlainFile as error:
        raise _Unfit(f"{path}: {error.reason}") from None
    except OSError as error:
        raise _Unfit(f"{path}: {error.strerror or 'it cannot be opened'}") from None

    digest = hashlib.sha256()
    size = 0
    try:
        while size <= info.st_size:
            data = system.read(fd, min(_CHUNK, info.st_size + 1 - size))
            if not data:
                break
            digest.update(data)
            size += len(data)
    finally:
        system.close(fd)

    if size != info.st_size:
        raise _Unfit(f"{path} is being written right now")
    is_executable = bool(info.st_mode & 0o111)
    return SnapshotEntry(path, info.st_size, digest.hexdigest(), is_executable), info


def _status(file: TreeEntry) -> os.stat_result:
    return system.stat(file.name, dir_fd=file.folder, follow_symlinks=False)


def _stamp(file: TreeEntry, info: os.stat_result) -> tuple[object, ...]:
    return file.path, info.st_mode, *file_stamp(info)


def _sign(stamps: list[tuple[object, ...]]) -> int:
    """Return a number that is the same in every process, unlike `hash`."""
    text = repr(stamps).encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())


def _split(path: str) -> list[str]:
    return path.split("/") if path else []


COPIED_FILES = "files"
"""The name of the folder in a copy that has the files."""


class TreeCopy:
    """The files of a snapshot, in a folder that only this user can write to."""

    def __init__(self, folder: str, snapshot: Snapshot) -> None:
        self.folder = folder
        self.files = f"{folder}/{COPIED_FILES}"
        """The folder with the copied files."""
        self.snapshot = snapshot
        self.tree = snapshot.tree
        self._intact_signature: int | None = None

    def is_intact(self) -> bool:
        """Return True if the files are those of the snapshot. Their bytes are compared once, then only their times."""
        known = self._intact_signature
        if known is not None and take_signature(self.folder, COPIED_FILES) == known:
            return True

        now = take_snapshot(self.folder, COPIED_FILES)
        # Links are listed in the snapshot but never created, so nothing in a copy leads anywhere.
        is_same = not now.snapshot.fault and list(now.snapshot.entries) == self.snapshot.files
        self._intact_signature = now.signature if is_same else None
        return is_same

    def read(self, path: str, offset: int, limit: int) -> Page:
        """Read a page of a file. Raises FileNotFoundError, NotPlainFile, or another OSError."""
        return read_file(self.files, path.split("/"), offset, limit)


def load_copy(trees: str, tree: str) -> TreeCopy | None:
    """Return the copy of a tree from a folder of copies; None if it is missing or its manifest is damaged."""
    try:
        manifest = read_file(trees, (tree, "manifest.json"), 0, MAX_MANIFEST).data
        snapshot = Snapshot.parse(manifest)
    except (OSError, NotPlainFile, ValueError, TypeError):
        return None
    if snapshot.tree != tree:
        return None
    return TreeCopy(f"{trees}/{tree}", snapshot)


def make_copy(root: str, folder: str, snapshot: Snapshot, target: str) -> TreeCopy:
    """Copy the files of `root/folder` that the snapshot lists. Raises TrustError if one has changed, or OSError."""
    files = f"{target}/{COPIED_FILES}"
    system.mkdir(target, 0o700)
    system.mkdir(files, 0o700)
    write_new(f"{target}/manifest.json", snapshot.manifest)

    made = {""}
    for entry in snapshot.files:
        data = read_verified(root, folder, entry)
        _make_folders(files, os.path.dirname(entry.path), made)
        write_new(f"{files}/{entry.path}", data, 0o700 if entry.executable else 0o600)
    return TreeCopy(target, snapshot)


def _make_folders(base: str, folder: str, made: set[str]) -> None:
    """Create a folder below `base` and those above it, except for the ones in `made`."""
    if folder in made:
        return
    _make_folders(base, os.path.dirname(folder), made)
    system.mkdir(f"{base}/{folder}", 0o700)
    made.add(folder)


def read_verified(root: str, folder: str, entry: SnapshotEntry) -> bytes:
    """Read a file and check that its bytes are those that were hashed. Raises TrustError if they are not."""
    path = f"{folder}/{entry.path}".lstrip("/")
    try:
        data = read_file(root, path.split("/"), 0, entry.size + 1).data
    except (OSError, NotPlainFile):
        data = None
    if data is None or hashlib.sha256(data).hexdigest() != entry.sha256:
        raise TrustError(f"{path!r} changed since you looked at it. Nothing was approved; review it again.")
    return data


def remove_copy(path: str) -> None:
    """Remove a copy. It is renamed first, so that a half removed copy is never taken for a whole one."""
    scratch = f"{os.path.dirname(path)}/.old-{secrets.token_hex(8)}"
    system.rename(path, scratch)
    shutil.rmtree(scratch, ignore_errors=True)
