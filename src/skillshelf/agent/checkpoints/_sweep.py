"""A sweep of the workspace: what a command could have changed, by the status of each file and without reading any."""

from __future__ import annotations

import stat
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from skillshelf.agent.checkpoints._states import Kind
from skillshelf.agent.filetools import FileAccess, GitIgnore
from skillshelf.files import TreeEntry, file_stamp, is_fresh, open_below, system, walk
from skillshelf.sources import SKIPPED_FOLDERS

MAX_ENTRIES = 200_000
"""A larger workspace is not swept: its commands cannot be taken back. So many take about a second and a half."""

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


def sweep(access: FileAccess, *, max_entries: int = MAX_ENTRIES) -> dict[str, Seen]:
    """Return the status of all covered files, links and folders below the workspace, by path.

    Version control, folders of dependencies and caches, folders that a .gitignore leaves out and skillshelf's own
    folders are not covered, nor are special files. Raises TooManyFiles, or OSError if the workspace cannot be read.
    """
    found: dict[str, Seen] = {}
    now = time.time_ns()
    with open_below(access.root, ()) as top:
        covers = _make_cover(access)
        entered: set[str] = set()
        for entry in walk(top, lambda folder: folder.path in entered):
            if entry.kind == "other" or entry.name.startswith(_SCRATCH_PREFIX):
                continue
            if entry.kind == "folder":
                if not covers(entry):
                    continue
                entered.add(entry.path)
            with suppress(FileNotFoundError):
                info = system.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False)
                stamp = () if entry.kind == "folder" else file_stamp(info)  # a folder's stamp changes with its content
                mode = stat.S_IMODE(info.st_mode)
                found[entry.path] = Seen(entry.kind, mode, info.st_size, stamp, is_fresh(info, now))
            if len(found) > max_entries:
                raise TooManyFiles
    return found


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
