"""Copies of trees: what is served in place of the files in a workspace, which can change under the reader's feet."""

import hashlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence

from skillshelf.errors import TrustError
from skillshelf.files import NotPlainFile, Page, read_file, system, write_new
from skillshelf.trust._snapshot import Entry, Snapshot, look, signature

_MAX_MANIFEST = 4 * 1024 * 1024


class Copy:
    """A tree's files in a folder that is this user's alone."""

    def __init__(self, folder: str, snapshot: Snapshot) -> None:
        self.files = f"{folder}/files"
        self.snapshot = snapshot
        self.tree = snapshot.tree
        self._folder = folder
        self._signature: int | None = None

    def is_intact(self) -> bool:
        """Return True if the files are those of the hash: from their bytes the first time, then from their times."""
        known = self._signature
        if known is not None and signature(self._folder, "files") == known:
            return True
        now = look(self._folder, "files")
        # Links are named in the manifest and not made: nothing here leads anywhere.
        self._signature = now.signature if list(now.snapshot.entries) == _files(self.snapshot) else None
        return self._signature is not None and not now.snapshot.fault

    def read(self, path: str, offset: int, limit: int) -> Page:
        """Read a page of a file. Raises FileNotFoundError, NotPlainFile, or another OSError."""
        return read_file(self.files, path.split("/"), offset, limit)


def load_copy(trees: str, tree: str) -> Copy | None:
    """Return the copy of a tree from a folder of copies; None if there is none, or it may not be whole."""
    try:
        manifest = read_file(trees, (tree, "manifest.json"), 0, _MAX_MANIFEST).data
        snapshot = Snapshot.parse(manifest)
    except (OSError, NotPlainFile, ValueError, TypeError):
        return None
    return Copy(f"{trees}/{tree}", snapshot) if snapshot.tree == tree else None


def make_copy(root: str, folder: str, snapshot: Snapshot, target: str) -> Copy:
    """Copy the files of `root/folder` that `snapshot` lists. Raises TrustError if one has changed, or OSError."""
    system.mkdir(target, 0o700)
    system.mkdir(f"{target}/files", 0o700)
    write_new(f"{target}/manifest.json", snapshot.manifest)
    made = {""}
    for entry in _files(snapshot):
        data = read_verified(root, folder, entry)
        _make_folders(f"{target}/files", entry.path.rpartition("/")[0], made)
        write_new(f"{target}/files/{entry.path}", data, 0o700 if entry.executable else 0o600)
    return Copy(target, snapshot)


def read_verified(root: str, folder: str, entry: Entry) -> bytes:
    """Read a file and check that its bytes are those that were hashed. Raises TrustError if they are not."""
    path = f"{folder}/{entry.path}".lstrip("/")
    try:
        data = read_file(root, path.split("/"), 0, entry.size + 1).data
    except (OSError, NotPlainFile):
        data = None
    if data is None or hashlib.sha256(data).hexdigest() != entry.sha256:
        raise TrustError(f"{path!r} changed since it was looked at. Nothing was approved; look at it again.")
    return data


class SessionCopies:
    """Copies that last as long as this process: of what the agent wrote itself."""

    def __init__(self) -> None:
        self._home: tempfile.TemporaryDirectory[str] | None = None

    def make(self, root: str, folder: str, snapshot: Snapshot) -> Copy | None:
        """Copy a skill; None if its files are no longer those of the snapshot, or there is no room."""
        try:
            if self._home is None:
                self._home = tempfile.TemporaryDirectory(prefix="skillshelf-", ignore_cleanup_errors=True)
            target = f"{self._home.name}/{secrets.token_hex(8)}"
            return make_copy(root, folder, snapshot, target)
        except (TrustError, OSError):
            return None


def remove(path: str) -> None:
    """Remove a copy, under another name first: half a copy must not look like one."""
    scratch = f"{os.path.dirname(path)}/.old-{secrets.token_hex(8)}"
    system.rename(path, scratch)
    shutil.rmtree(scratch, ignore_errors=True)


def _files(snapshot: Snapshot) -> list[Entry]:
    return [entry for entry in snapshot.entries if entry.target is None]


def _make_folders(base: str, folder: str, made: set[str]) -> None:
    parts: Sequence[str] = folder.split("/") if folder else ()
    for depth in range(1, len(parts) + 1):
        path = "/".join(parts[:depth])
        if path not in made:
            system.mkdir(f"{base}/{path}", 0o700)
            made.add(path)
