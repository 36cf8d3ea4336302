"""Compare this checkout with another one: what starting, scanning and reloading cost before and now.

    git worktree add ../before COMMIT
    python -m benchmarks.since ../before [--skills 10000] [--rounds 9]

Both take turns in fresh processes, and the table shows the median of the rounds' ratios: less than 1 is faster now.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.checkout import import_path
from benchmarks.clock import bytecode_environment
from benchmarks.collection import SETTLE_SECONDS, write

HERE = Path(__file__).resolve().parents[1]

# Each prints its CPU seconds. What the shelf holds is freed after the clock has stopped. A start ends when every
# descriptor can be used: some versions make them at the first use, which only moves the time into the first listing.
_COLD = """
import gc, sys, time
from skillshelf import DirectorySource, Shelf
gc.collect()
start = time.process_time()
shelf = Shelf([DirectorySource(sys.argv[1], cache=False)])
list(shelf.catalog.values())
print(time.process_time() - start)
"""
_WARM = _COLD.replace("cache=False", "cache=True")
_RELOAD = """
import gc, sys, time
from skillshelf import DirectorySource, Shelf
shelf = Shelf([DirectorySource(sys.argv[1], cache=True)])
shelf.reload()
gc.collect()
start = time.process_time()
shelf.reload()
print(time.process_time() - start)
"""


class Checkout:
    """The package of one checkout, with a bytecode folder and a cache of its own."""

    def __init__(self, root: Path, temp: Path) -> None:
        self._environment = {
            **bytecode_environment(str(temp / "bytecode")),
            "PYTHONPATH": import_path(root),
            "XDG_CACHE_HOME": str(temp / "cache"),
            "XDG_CONFIG_HOME": str(temp / "config"),
            "XDG_STATE_HOME": str(temp / "state"),
            "HOME": str(temp),
        }

    def measure_process(self, *arguments: str, folder: Path) -> float:
        """Return the CPU seconds of a whole Python process."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._run(arguments, folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def measure_script(self, script: str, folder: Path) -> float:
        """Return the CPU seconds that a script prints."""
        return float(self._run(["-c", script, str(folder)], folder))

    def _run(self, arguments: tuple[str, ...] | list[str], folder: Path) -> str:
        command = [sys.executable, *arguments]
        finished = subprocess.run(
            command, cwd=folder, env=self._environment, check=True, stdout=subprocess.PIPE, text=True
        )
        return finished.stdout


def compare(before: Checkout, now: Checkout, measure: Callable[[Checkout], float], rounds: int) -> tuple[float, ...]:
    """Return the median times of both in milliseconds, and the median ratio."""
    for checkout in (before, now):  # compile, fill caches
        measure(checkout)

    pairs = []
    for number in range(rounds):
        if number % 2:
            times = [measure(before), measure(now)]
        else:
            times = [measure(now), measure(before)][::-1]
        pairs.append(times)
    old, new = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
    return old, new, statistics.median(second / first for first, second in pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare this checkout with another one.")
    parser.add_argument("before", type=Path, help="the folder of the other checkout")
    parser.add_argument("--skills", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="", help="measure the rows with this text")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(prefix="skillshelf-since-") as folder:
        temp = Path(folder)
        few = temp / "few"
        many = temp / "many"
        write(10, few)
        write(options.skills, many)
        time.sleep(SETTLE_SECONDS)

        checkouts = []
        for name, root in (("before", options.before), ("now", HERE)):
            home = temp / name
            home.mkdir()
            checkouts.append(Checkout(root.resolve(), home))

        rows: dict[str, Callable[[Checkout], float]] = {
            "import skillshelf": lambda each: each.measure_process("-c", "import skillshelf", folder=few),
            "the interpreter alone": lambda each: each.measure_process("-c", "pass", folder=few),
            "skillshelf list, 10 skills": lambda each: each.measure_process("-m", "skillshelf", "list", folder=few),
            "cold scan": lambda each: each.measure_script(_COLD, many),
            "warm start": lambda each: each.measure_script(_WARM, many),
            "reload": lambda each: each.measure_script(_RELOAD, many),
        }
        print(f"{'':28}{'before':>10}{'now':>10}{'ratio':>8}")
        for what, measure in rows.items():
            if options.only not in what:
                continue
            rounds = options.rounds * 3 if what in list(rows)[:3] else options.rounds
            old, new, ratio = compare(*checkouts, measure, rounds)
            print(f"{what:28}{old:>7.1f} ms{new:>7.1f} ms{ratio:>7.2f}x", flush=True)


if __name__ == "__main__":
    main()
