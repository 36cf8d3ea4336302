"""A sweep of the workspace: what a command could have changed, by the status of each file and without reading any."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from skillshelf.files import TreeEntry, file_stamp, is_fresh, open_below, system, walk
from skillshelf.sources import SKIPPED_FOLDERS
from skillshelf_agent.checkpoints import _limits
from skillshelf_agent.checkpoints._states import Kind
from skillshelf_agent.filetools import FileAccess, GitIgnore

_SCRATCH_PREFIX = ".skillshelf-"
"""Our own scratch files, which live for a moment."""


class Seen(NamedTuple):
    """The status of an entry."""

    kind: Kind
    mode: int
    size: int
    stamp: tuple[int, ...]
    is_fresh: bool
    """True if it changed so shortly before the sweep that a further change may leave the stamp as it is."""

    @property
    def modified(self) -> int:
        return self.stamp[2]


class TooManyFiles(Exception):
    """The workspace is too large to be swept."""


@dataclass(slots=True)
class Sweep:
    """The covered entries of a workspace at one moment."""

    entries: dict[str, Seen] = field(default_factory=dict)
    """Files, links and folders, by path."""
    skipped: set[str] = field(default_factory=set)
    """Folders that were not looked into, since they are not covered or could not be read. Nothing is known of them:
    a file that appears in one later is not a new file."""
    unread: list[str] = field(default_factory=list)
    """Those of them that could not be read whole."""

    def is_skipped(self, path: str) -> bool:
        """Return True if a path lies in a folder that was not looked into."""
        if not self.skipped:
            return False
        end = path.rfind("/")
        while end > 0:
            if path[:end] in self.skipped:
                return True
            end = path.rfind("/", 0, end)
        return path in self.skipped


def sweep(access: FileAccess) -> Sweep:
    """Return the status of all covered files, links and folders below the workspace.

    Version control, folders of dependencies and caches, folders that a .gitignore leaves out and skillshelf's own
    folders are not covered, nor are special files. Raises TooManyFiles, or OSError if the workspace cannot be read.
    """
    found = Sweep()
    now = time.time_ns()
    with open_below(access.root, ()) as top:
        covers = _make_cover(access)
        entries = walk(
            top,
            enter=lambda folder: folder.path not in found.skipped,
            report=lambda path, reason: found.unread.append(path),
        )
        for entry in entries:
            if entry.kind == "other" or entry.name.startswith(_SCRATCH_PREFIX):
                continue
            if entry.kind == "folder" and not covers(entry):
                found.skipped.add(entry.path)
                continue
            with suppress(FileNotFoundError):
                info = system.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
                stamp = () if entry.kind == "folder" else file_stamp(info)  # a folder's stamp changes with its content
                mode = stat.S_IMODE(info.st_mode)
                found.entries[entry.path] = Seen(entry.kind, mode, info.st_size, stamp, is_fresh(info, now))
            if len(found.entries) > _limits.ENTRIES:
                raise TooManyFiles
    found.skipped.update(found.unread)
    return found


def find_changed_paths(before: Sweep, after: Sweep) -> list[str]:
    """Return the files and links that differ between two sweeps."""
    paths = {*before.entries, *after.entries}
    return sorted(path for path in paths if _has_changed(path, before, after))


def _has_changed(path: str, before: Sweep, after: Sweep) -> bool:
    old = before.entries.get(path)
    new = after.entries.get(path)
    if old is None or new is None:
        known = old or new
        return known is not None and known.kind != "folder" and not (before.is_skipped(path) or after.is_skipped(path))
    return old[:4] != new[:4]


def _make_cover(access: FileAccess) -> Callable[[TreeEntry], bool]:
    ignore = GitIgnore(access, ())

    def covers(folder: TreeEntry) -> bool:
        parts = tuple(folder.path.split("/"))
        if folder.name in SKIPPED_FOLDERS or access.is_denied(parts):
            return False
        if ignore.covers(parts, is_folder=True):
            return False
        ignore.load(parts, folder.folder)
        return True

    return covers
