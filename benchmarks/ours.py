"""What skillshelf takes, held against the floors, against itself on another size, or against a limit."""

import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import floors
from benchmarks.clock import Clock, best, bytecode_environment, cpu, per_call, wall
from benchmarks.collection import skill_name, skill_text
from benchmarks.report import Row, amount
from benchmarks.worker import once
from skillshelf import DirectorySource, Shelf

QUERY = "rotate the oauth token after an incident"
HEADS = "scandir each folder, stat each file, read 1 KB of each SKILL.md"
STATS = "stat each folder and SKILL.md"
_SHORT_CALLS = 100_000
_MOST_WARM = 2.5
"""Each descriptor is built from the cache by the names of its fields, 5 µs a skill. By position it was 1.8x."""


def shelf_of(folder: str, cache: bool = False) -> Shelf:
    return Shelf([DirectorySource(folder, cache=cache)])


def cold(folder: str, rounds: int) -> Row:
    ours, floor = best(rounds, lambda: cpu(lambda: shelf_of(folder)), lambda: cpu(lambda: floors.read_heads(folder)))
    return Row("cold scan", ours, against=HEADS, other=floor, most_ratio=2.2)


def warm(folder: str, rounds: int) -> Row:
    paths = floors.known_paths(folder)
    shelf_of(folder, cache=True)
    ours, floor = best(rounds, lambda: cpu(lambda: shelf_of(folder, True)), lambda: cpu(lambda: floors.stat_all(paths)))
    return Row("warm start, same process", ours, against=STATS, other=floor, most_ratio=_MOST_WARM)


def warm_fresh(folder: str, count: int, rounds: int) -> Row:
    ours, floor = best(rounds, lambda: once("warm", folder, count), lambda: once("stat-floor", folder, count))
    return Row("warm start, fresh process", ours, against=STATS, other=floor, most_ratio=_MOST_WARM)


def sweep(folder: str, rounds: int) -> Row:
    paths, shelf = floors.known_paths(folder), shelf_of(folder)
    ours, floor = best(rounds, lambda: cpu(shelf.reload), lambda: cpu(lambda: floors.stat_all(paths)))
    return Row("sweep: reload()", ours, against=STATS, other=floor)


def known_reload(folder: str, small_folder: str, small: int, rounds: int) -> Row:
    ours, other = best(rounds, reload_clock(folder), reload_clock(small_folder))
    what = "reload(changed=[path]), wall time"
    return Row(what, ours, against=f"the same at {small:,} skills", other=other, most_ratio=2)


def reload_clock(folder: str) -> Clock:
    """Rewrites one of the first hundred skills each time, and clocks the reload that is told of it."""
    shelf, words = shelf_of(folder), random.Random()

    def clock() -> float:
        name = skill_name(words.randrange(100))
        path = Path(folder, name, "SKILL.md")
        path.write_text(skill_text(name, words))
        deltas: list[object] = []
        seconds = wall(lambda: deltas.append(shelf.reload(changed=[path])))
        if getattr(deltas[0], "changed", ()) != (name,):
            raise AssertionError(f"the reload missed that {name} changed: {deltas[0]}")
        return seconds

    return clock


def listings(folder: str, rounds: int) -> list[Row]:
    (first,) = best(rounds, listing_clock(folder))
    shelf = shelf_of(folder)
    shelf.listing()
    (again,) = best(rounds, lambda: per_call(shelf.listing, _SHORT_CALLS))
    return [Row("listing, first time", first), Row("listing, unchanged", again)]


def listing_clock(folder: str) -> Clock:
    return lambda: cpu(shelf_of(folder).listing)


def searching(folder: str, rounds: int) -> list[Row]:
    """Time a first search, which builds the index and is long enough for one round, and a later one."""
    (scan,) = best(rounds, lambda: cpu(lambda: shelf_of(folder)))
    shelf = shelf_of(folder)
    first = cpu(lambda: shelf.search(QUERY))
    (later,) = best(rounds, search_clock(folder))
    return [
        Row("first search, which builds the index", first, against="cold scan", other=scan),
        Row("search of seven words", later),
    ]


def search_clock(folder: str) -> Clock:
    shelf = shelf_of(folder)
    shelf.search(QUERY)
    return lambda: cpu(lambda: shelf.search(QUERY))


def second_load(folder: str, rounds: int) -> Row:
    shelf, name = shelf_of(folder), skill_name(0)
    with shelf.turn() as turn:
        turn.load(name, "references/guide.md")
        (again,) = best(rounds, lambda: per_call(lambda: turn.load(name, "references/guide.md"), _SHORT_CALLS))
    return Row("second load of a reference in a turn", again, most=2e-6)


def importing(rounds: int) -> Row:
    with tempfile.TemporaryDirectory(prefix="skillshelf-import-") as folder:
        environment = bytecode_environment(folder)
        ours, bare = best(
            rounds,
            lambda: _run_python("import skillshelf", environment),
            lambda: _run_python("pass", environment),
        )
    return Row("import skillshelf", ours - bare, against=f"over the interpreter's {amount(bare, 's')}", most=0.04)


def _run_python(code: str, environment: dict[str, str]) -> float:
    """Return the CPU seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def imported() -> Row:
    """What an import pulls in that is neither ours nor of the standard library."""
    show = "print(*{name.partition('.')[0] for name in sys.modules})"
    bare, ours = (
        set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())
        for code in (f"import sys; {show}", f"import sys, skillshelf; {show}")
    )
    foreign = sorted(ours - bare - sys.stdlib_module_names - {"skillshelf"})
    return Row("foreign packages that the import pulls in", len(foreign), "packages", ", ".join(foreign), most=0)


def memory(folder: str, count: int) -> list[Row]:
    held, resident = (once(job, folder, count) / count for job in ("memory", "resident"))
    return [
        Row("memory held for a skill", held, "B", most=1536),
        Row("resident memory grown for a skill", resident, "B"),
    ]


def measure(folder_of: Callable[[int], str], count: int, small: int, rounds: int) -> list[Row]:
    """Every row but the peers'. What changes files comes last."""
    folder = folder_of(count)
    rows = [
        cold(folder, rounds),
        warm(folder, rounds),
        warm_fresh(folder, count, rounds),
        sweep(folder, rounds),
        *listings(folder, min(3, rounds)),
        *searching(folder, rounds),
        second_load(folder, rounds),
        importing(2 * rounds),
        imported(),
        *memory(folder, count),
        known_reload(folder, folder_of(small), small, 20 * rounds),
    ]
    if not any(files for _, _, files in os.walk(os.environ["XDG_CACHE_HOME"])):
        raise AssertionError("no scan cache was written, so no start was warm")
    return rows
