"""How long queries, building and updating take, and what the index costs on disk."""

import os
import random
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.search.collections import Collection
from benchmarks.search.measures import percentile
from skillshelf import DirectorySource, Shelf

_PARENTS = 3
_MAX_LINES = 120
_EDITS = 5
_WARM_UP = 20
_ROUNDS = 3
"""Scans, and builds: of both the best counts."""
_CLAUSE = re.compile(r"(?<=[.,;])\s+")


@dataclass(frozen=True)
class Speed:
    """Seconds of processor time and bytes, at one size."""

    skills: int
    scan: float
    """A cold scan of the same skills."""
    build: float
    """A first search, which reads all instructions and builds the index."""
    median: float
    slow: float
    """95 of 100 queries take less."""
    update: float
    """The first search after the instructions of one skill changed, beyond a usual search."""
    stored: int
    """Bytes in the cache folder that came with the index."""
    next_process: float = 0.0
    """The first search of another process, which may find a stored index."""


def write_skills(collection: Collection, count: int, folder: Path) -> None:
    """Write skills to a folder: those of the collection, and then others whose lines come from three of them each.

    Exact copies would be folded into one result, so a large collection must not consist of copies.
    """
    choice = random.Random(3)
    originals = [collection.skills[identifier] for identifier in sorted(collection.skills)]
    for number in range(count):
        if number < len(originals):
            skill = originals[number]
            description = skill["description"]
            lines = skill.get("body", "").splitlines()
        else:
            parents = choice.sample(originals, min(_PARENTS, len(originals)))
            clauses = [clause for parent in parents for clause in _CLAUSE.split(parent["description"])]
            description = " ".join(choice.sample(clauses, max(1, len(clauses) // _PARENTS)))
            lines = [line for parent in parents for line in parent.get("body", "").splitlines() if line.strip()]
            lines = choice.sample(lines, min(len(lines), max(1, len(lines) // _PARENTS), _MAX_LINES))
        name = _make_name(originals, choice, number)
        _write_skill(folder / name, name, description, lines)


def _make_name(originals: Sequence[dict[str, str]], choice: random.Random, number: int) -> str:
    words = [*_name_words(originals[number % len(originals)]), *_name_words(choice.choice(originals))][:3]
    return "-".join([*words, str(number)])


def _name_words(skill: dict[str, str]) -> list[str]:
    return [word[:15] for word in re.findall(r"[a-z]+", skill["name"].lower())][:2]


def _write_skill(folder: Path, name: str, description: str, lines: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    plain = re.sub(r"\s+", " ", description)[:1000].replace("\\", " ").replace('"', "'").strip()
    text = f'---\nname: {name}\ndescription: "{plain or name}"\n---\n\n' + "\n".join(lines) + "\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8", errors="replace")


def measure_speed(folder: str, queries: Sequence[str]) -> Speed:
    """Measure one folder of skills. Call it in a process of its own, with an empty cache folder."""
    scans = [_cpu(lambda: Shelf([DirectorySource(folder, cache=False)])) for _ in range(_ROUNDS)]
    builds = [_measure_build(folder, queries[0]) for _ in range(_ROUNDS)]

    shelf = Shelf([DirectorySource(folder, cache=True)])
    bytes_before = _measure_cache()
    for query in queries[:_WARM_UP]:
        shelf.search(query)
    stored = _measure_cache() - bytes_before

    times = [_cpu(lambda query=query: shelf.search(query)) for query in queries]
    updates = [_measure_update(shelf, folder, number, queries[0]) for number in range(_EDITS)]
    usual = percentile([_cpu(lambda: shelf.search(queries[0])) for _ in range(_EDITS)], 0.5)
    return Speed(
        skills=len(shelf.catalog),
        scan=min(scans),
        build=min(builds),
        median=percentile(times, 0.5),
        slow=percentile(times, 0.95),
        update=max(0.0, percentile(updates, 0.5) - usual),
        stored=stored,
    )


def measure_first_search(folder: str, query: str) -> float:
    """Return the seconds of the first search of this process."""
    shelf = Shelf([DirectorySource(folder, cache=True)])
    return _cpu(lambda: shelf.search(query))


def _measure_build(folder: str, query: str) -> float:
    """Build the index in a cache folder that is empty."""
    usual = os.environ["XDG_CACHE_HOME"]
    with tempfile.TemporaryDirectory(prefix="skillshelf-build-") as cache:
        os.environ["XDG_CACHE_HOME"] = cache
        try:
            return measure_first_search(folder, query)
        finally:
            os.environ["XDG_CACHE_HOME"] = usual


def _measure_update(shelf: Shelf, folder: str, number: int, query: str) -> float:
    name = sorted(os.listdir(folder))[number]
    path = Path(folder, name, "SKILL.md")
    with path.open("a", encoding="utf-8") as file:
        file.write(f"\nA line that was added later, number {number}.\n")
    shelf.reload(changed=[path])
    return _cpu(lambda: shelf.search(query))


def _cpu(job: Callable[[], object]) -> float:
    start = time.process_time()
    result = job()
    seconds = time.process_time() - start
    del result
    return seconds


def _measure_cache() -> int:
    """Return the bytes in the cache folder."""
    total = 0
    for folder, _, names in os.walk(os.environ["XDG_CACHE_HOME"]):
        total += sum(os.path.getsize(os.path.join(folder, name)) for name in names)
    return total
