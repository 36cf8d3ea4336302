"""Script: scan, list and load a folder of skills, and print the outcome and the memory it took."""

import json
import resource
import sys

from skillshelf import DirectorySource, Shelf, SkillError, Turn

LIMIT = 2 << 30


def load(turn: Turn, name: str, reference: str) -> int | str:
    """Return the size of the text in bytes, or the kind of error."""
    try:
        return len(turn.load(name, reference).text.encode())
    except SkillError as error:
        return type(error).__name__


def peak_megabytes() -> int:
    """Return the peak memory of this process. ru_maxrss would include the parent's."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024
    except FileNotFoundError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 << 20)


def main(root: str, *references: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    shelf = Shelf([DirectorySource(root, "project", cache=False)])
    for disclosure in ("auto", "catalog", "full"):
        shelf.listing(disclosure)
    shelf.search("hostile words in a query")
    with shelf.turn() as turn:
        loaded = {
            f"{name}/{reference}".rstrip("/"): load(turn, name, reference)
            for name in shelf.catalog
            for reference in ("", *references)
        }
    codes = [note.code for note in shelf.catalog.diagnostics]
    print(json.dumps({"codes": codes, "loaded": loaded, "megabytes": peak_megabytes()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
