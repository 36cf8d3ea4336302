"""Copies of approved content. They are served instead of the workspace's files, which can change at any time."""

import hashlib
import os
import secrets
import shutil
import tempfile

from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile, Page, read_file, system, write_new
from skillshelf.trust._snapshot import Snapshot, SnapshotEntry, take_signature, take_snapshot

COPIED_FILES = "files"
"""The name of the folder in a copy that has the files."""
_MAX_MANIFEST = 4 * 1024 * 1024


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
        manifest = read_file(trees, (tree, "manifest.json"), 0, _MAX_MANIFEST).data
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


class TemporaryCopies:
    """Copies that last as long as this process, for approved content whose lasting copy is missing or damaged."""

    def __init__(self) -> None:
        self._home: tempfile.TemporaryDirectory[str] | None = None

    def make(self, root: str, folder: str, snapshot: Snapshot) -> TreeCopy | None:
        """Copy a skill. Return None if its files are no longer those of the snapshot, or if the disk is full."""
        try:
            if self._home is None:
                self._home = tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)
            return make_copy(root, folder, snapshot, f"{self._home.name}/{secrets.token_hex(8)}")
        except (TrustError, OSError):
            return None
