"""The walk through the folders below an open one, by descriptor.

Each folder is opened relative to the one above and never through a link, so a link swapped in amid the walk leads
nowhere. Folders on other mounts are not entered.
"""

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

from skillshelf.files import system
from skillshelf.files._gate import NotPlainFile, open_folder

MAX_DEPTH = 64
MAX_FOLDER_ENTRIES = 100_000
"""Names are sorted, so a folder's whole list is held in memory: about 30 MB for this many."""

EntryKind = Literal["file", "folder", "link", "other"]

_ESCAPE = re.compile(r"\\([0-7]{3})")


class TreeEntry(NamedTuple):
    """A file, folder, link or special file that a walk found."""

    path: str
    """Its path below the folder where the walk began, with `/` between names."""
    name: str
    kind: EntryKind
    folder: int
    """The descriptor of the folder it is in. It is closed when the walk leaves that folder."""


def walk(
    top: int,
    enter: Callable[[TreeEntry], bool] = lambda entry: True,
    report: Callable[[str, str], None] = lambda path, reason: None,
    *,
    max_depth: int = MAX_DEPTH,
    mounts: frozenset[str] | None = None,
) -> Iterator[TreeEntry]:
    """Yield everything below the open folder `top` in order of path. A folder comes before its content.

    A folder is entered only if `enter` agrees. `report` gets the path of each folder that could not be read whole, and
    the reason; it may raise to end the walk. `mounts` are the paths below `top` at which something else is mounted, for
    a caller who knows them already: to ask the system takes longer than to walk a small folder. `top` stays open.
    """
    device = system.fstat(top).st_dev
    if mounts is None:
        mounts = _mounts_in(top)
    open_folders: list[int] = []
    pending = [iter(list_folder(top, report=report))]
    try:
        while pending:
            entry = next(pending[-1], None)
            if entry is None:
                pending.pop()
                if open_folders:
                    system.close(open_folders.pop())
                continue

            yield entry

            if entry.kind != "folder" or not enter(entry):
                continue
            if len(pending) >= max_depth:
                report(entry.path, f"folders nested deeper than {max_depth} are not entered")
                continue
            try:
                folder = open_folder(entry.name, entry.folder)
            except (OSError, NotPlainFile) as error:
                report(entry.path, _reason(error))
                continue
            open_folders.append(folder)
            pending.append(iter(()))
            if system.fstat(folder).st_dev != device or entry.path in mounts:
                report(entry.path, "it is on another mount")
                continue
            try:
                pending[-1] = iter(list_folder(folder, f"{entry.path}/", report))
            except OSError as error:
                report(entry.path, _reason(error))
    finally:
        for folder in open_folders:
            system.close(folder)


def list_folder(
    folder: int, below: str = "", report: Callable[[str, str], None] = lambda path, reason: None
) -> list[TreeEntry]:
    """Return the entries of an open folder, sorted by name. `below` is put before each name to make its path."""
    with system.scandir(folder) as found:
        entries = [
            TreeEntry(below + entry.name, entry.name, _kind(entry), folder)
            for entry in islice(found, MAX_FOLDER_ENTRIES)
        ]
        if next(found, None) is not None:
            report(below.rstrip("/") or ".", f"only {MAX_FOLDER_ENTRIES:,} of its entries are looked at")
    entries.sort(key=lambda entry: entry.name)
    return entries


def mounts_below(root: str) -> frozenset[str]:
    """Return the mount points below `root`, as far as the system reports them.

    A bind mount of the same file system looks like an ordinary folder to `stat`; only this list shows it.
    """
    try:
        # Other line breaks than "\n" may be part of a name, and any user may have made a mount with such a name.
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            lines = list(file)
    except OSError:  # not Linux: only the device number shows a mount
        return frozenset()

    points = set()
    for line in lines:
        escaped = line.split(" ", 5)[4]
        point = _ESCAPE.sub(lambda match: chr(int(match[1], 8)), escaped)
        if point.startswith(f"{root}/"):
            points.add(point)
    return frozenset(points)


def _kind(entry: "os.DirEntry[str]") -> EntryKind:
    if entry.is_file(follow_symlinks=False):
        return "file"
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    if entry.is_symlink():
        return "link"
    return "other"


def _mounts_in(folder: int) -> frozenset[str]:
    """Return the paths below an open folder at which something else is mounted, as far as the system tells."""
    try:
        path = system.readlink(f"/proc/self/fd/{folder}").rstrip("/")
    except OSError:  # not Linux: only the device number shows a mount
        return frozenset()
    return frozenset(point[len(path) + 1 :] for point in mounts_below(path))


def _reason(error: OSError | NotPlainFile) -> str:
    if isinstance(error, NotPlainFile):
        return error.reason
    return error.strerror or "it cannot be opened"
