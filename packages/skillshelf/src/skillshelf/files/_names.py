"""How file systems compare names, and which names lead from a root to a path."""

import os
import unicodedata

SCRATCH_FOLDER = ".skillshelf-new"
"""Holds folders that are not complete yet, beside the place they are made for. No source looks into it."""


def fold_name(name: str) -> str:
    """Return a name in the form in which the most lenient file system compares it.

    macOS ignores case and Unicode forms, and older versions of it ignore invisible characters too: there, `.GIT` is
    `.git`. Rules that protect a name compare this form on every system.
    """
    if name.isascii():
        return name.lower()
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(char for char in folded if unicodedata.category(char) != "Cf")


def split_below(root: str, path: str | os.PathLike[str]) -> list[str] | None:
    """Return the names that lead from a root to a path: none for the root itself, None for a path elsewhere.

    `root` must be a real path. Links on the way to the path are resolved, but if the path itself is a link, it stays
    one: it is the link that changed, or that a file is written to.
    """
    folder, name = os.path.split(os.path.abspath(path))
    real_path = os.path.join(os.path.realpath(folder), name)
    if real_path == root:
        return []
    prefix = root.rstrip("/") + "/"
    if not real_path.startswith(prefix):
        return None
    return real_path.removeprefix(prefix).split("/")


def is_inside(path: str, folder: str) -> bool:
    """Return True if a path is below a folder. The paths alone decide: nothing is resolved."""
    return path.startswith(folder.rstrip("/") + "/")


def is_at_or_inside(path: str, folder: str) -> bool:
    """Return True if a path is a folder's own or is below it. The paths alone decide: nothing is resolved."""
    return path == folder or is_inside(path, folder)


def count_shared_names(path: str, other: str) -> int:
    """Return how many names two relative paths have in common before they part."""
    count = 0
    for name, other_name in zip(path.split("/"), other.split("/"), strict=False):
        if name != other_name:
            break
        count += 1
    return count
