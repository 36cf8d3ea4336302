"""Script: scan, list and load folders of skills, each in a process of its own that is killed if it takes too long.

Each line of the input is a JSON list: the folder, and references to load. The answer is a line too: what came of it and
the memory that it took, or the error.
"""

import json
import os
import resource
import sys
import traceback
from typing import Any

from skillshelf import DirectorySource, Shelf, SkillError, Turn

LIMIT = 2 << 30
SECONDS = 20
"""CPU time."""


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


def scan(root: str, *references: str) -> dict[str, Any]:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
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
    return {"codes": codes, "loaded": loaded, "megabytes": peak_megabytes()}


def scan_in_child(arguments: list[str]) -> bytes:
    """Return the answer of a fork, which has nothing to import."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = scan(*arguments)
        except BaseException:
            answer = {"error": traceback.format_exc()}
        with os.fdopen(writing, "w") as pipe:
            json.dump(answer, pipe)
        os._exit(0)

    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        line = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return line or json.dumps({"error": f"It ended with status {status}."}).encode()


if __name__ == "__main__":
    for request in sys.stdin.buffer:
        sys.stdout.buffer.write(scan_in_child(json.loads(request)) + b"\n")
        sys.stdout.buffer.flush()
