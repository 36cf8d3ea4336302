"""The files of a skill's folder, by name. Nothing is followed out of it: each folder is opened from the one above."""

from collections.abc import Iterator

from skillshelf.files import NotPlainFile, open_folder, system
from skillshelf.sources import MAX_DEPTH, SKIPPED_FOLDERS, Entries


def files_below(folder: str) -> frozenset[str]:
    """Paths below the folder of every plain file in it; what cannot be entered is left out, and the scan says so."""
    try:
        fd = open_folder(folder)
    except (OSError, NotPlainFile):
        return frozenset()
    return frozenset(_walk(fd, "", 0))


def _walk(fd: int, below: str, depth: int) -> Iterator[str]:
    try:
        entries = Entries(system.scandir(fd))
        yield from (below + name for name in entries.files)
        for name in entries.folders:
            if name in SKIPPED_FOLDERS or depth >= MAX_DEPTH:
                continue
            try:
                inner = open_folder(name, fd)
            except (OSError, NotPlainFile):
                continue
            yield from _walk(inner, f"{below}{name}/", depth + 1)
    finally:
        system.close(fd)
