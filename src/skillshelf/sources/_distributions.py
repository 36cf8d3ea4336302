"""A quick look whether any installed distribution has entry points of a group.

importlib.metadata would answer it, but takes 40 ms to import and to read 150 distributions, which is half of what
`skillshelf list` takes altogether. Most users have no such distribution, so that they would wait for nothing.
"""

import sys

from skillshelf.files import system


def mentions_entry_points(group: str) -> bool:
    """Return False if importlib.metadata would find no entry points of the group; True if it may find some."""
    if any(hasattr(finder, "find_distributions") for finder in sys.meta_path if not _is_path_finder(finder)):
        return True
    return any(_mentions_in(entry, group.encode()) for entry in dict.fromkeys(sys.path))


def _is_path_finder(finder: object) -> bool:
    from importlib.machinery import PathFinder

    return finder is PathFinder


def _mentions_in(entry: str, group: bytes) -> bool:
    folder = entry or "."
    try:
        names = system.listdir(folder)
    except NotADirectoryError:
        return True  # an archive
    except OSError:
        return False
    if folder.endswith(".egg"):
        return True
    metadata = [name for name in names if name.lower().endswith((".dist-info", ".egg-info"))]
    return any(_mentions_group(f"{folder}/{name}/entry_points.txt", group) for name in metadata)


def _mentions_group(path: str, group: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return group in file.read()
    except OSError:
        return False
