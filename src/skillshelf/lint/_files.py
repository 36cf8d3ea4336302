"""The files of a skill's folder, by name."""

from skillshelf.files import NotPlainFile, open_below, walk
from skillshelf.sources import MAX_DEPTH, SKIPPED_FOLDERS


def files_below(folder: str) -> frozenset[str]:
    """Return the paths of all plain files below a folder.

    Folders that cannot be entered are left out; the scan of the skill reports them.
    """
    try:
        with open_below(folder, ()) as fd:
            entries = walk(fd, lambda entry: entry.name not in SKIPPED_FOLDERS, max_depth=MAX_DEPTH)
            return frozenset(entry.path for entry in entries if entry.kind == "file")
    except (OSError, NotPlainFile):
        return frozenset()
