"""`python -m benchmarks.preload [FOLDER]`: how often a model without tools gets the right skill with a message.

Messages: parts of each description, the requests and near misses that authors wrote, and small talk. Shelves: a sample
of all skills, and each author's own library.
"""

import argparse
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.routing import PUBLIC_DATA, open_shelf
from benchmarks.search.collections import OWN_DATA, Collection, Query, load
from skillshelf import Shelf
from skillshelf.agent import preload

SMALL_TALK = Path(__file__).with_name("data") / "small_talk.txt"
SAMPLE = 362
LIBRARY_SIZES = range(8, 344)
_BUDGET = 200


@dataclass
class Counts:
    messages: int = 0
    loaded: int = 0
    expected: int = 0
    """Messages for which the expected skill was loaded."""

    def add(self, shelf: Shelf, message: str, expected: str = "") -> None:
        found = preload(shelf, shelf.turn(), message, budget=_BUDGET)
        self.messages += 1
        if found is not None:
            self.loaded += 1
            self.expected += found.skill == expected

    def __str__(self) -> str:
        share = self.loaded / max(1, self.messages)
        return f"{self.messages:6,} messages, loaded {share:6.1%}, the expected skill {self.expected:5,} times"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.preload", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="the data (../shared/retrieval, or our own small set)")
    options = parser.parse_args(arguments)
    collection = load(options.folder or (PUBLIC_DATA if PUBLIC_DATA.exists() else OWN_DATA))
    small_talk = SMALL_TALK.read_text(encoding="utf-8").splitlines()

    identifiers = random.Random(1).sample(sorted(collection.skills), min(SAMPLE, len(collection.skills)))
    measure_sample(collection, name_skills(collection, identifiers), small_talk)
    measure_libraries(collection, small_talk)
    return 0


def name_skills(collection: Collection, identifiers: Iterable[str]) -> dict[str, str]:
    """Return the names of these skills by identifier. Of skills with one name, the first is taken."""
    names: dict[str, str] = {}
    for identifier in identifiers:
        name = collection.skills[identifier]["name"] or identifier
        if name not in names.values():
            names[identifier] = name
    return names


def measure_sample(collection: Collection, names: dict[str, str], small_talk: Sequence[str]) -> None:
    randomness = random.Random(1)
    shelf = open_shelf(collection, names)
    sentences = Counts()
    six = Counts()
    three = Counts()
    for identifier, name in names.items():
        description = collection.skills[identifier]["description"]
        words = description.split()
        sentences.add(shelf, description.partition(". ")[0], name)
        six.add(shelf, " ".join(randomness.sample(words, min(6, len(words)))), name)
        three.add(shelf, " ".join(randomness.sample(words, min(3, len(words)))), name)
    talk = Counts()
    for line in small_talk:
        talk.add(shelf, line)
    print(f"{len(names)} skills")
    for title, counts in (("first sentence", sentences), ("six words", six), ("three words", three)):
        print(f"  {title:16} {counts}")
    print(f"  {'small talk':16} {talk}", flush=True)


def measure_libraries(collection: Collection, small_talk: Sequence[str]) -> None:
    libraries: dict[str, list[str]] = {}
    for identifier, skill in collection.skills.items():
        libraries.setdefault(skill.get("repo", ""), []).append(identifier)

    requests = Counts()
    near_misses = Counts()
    talk = Counts()
    measured = 0
    for repository in sorted({query.repository for query in collection.queries}):
        identifiers = libraries.get(repository, [])
        if len(identifiers) not in LIBRARY_SIZES:
            continue
        measured += 1
        names = name_skills(collection, identifiers)
        shelf = open_shelf(collection, names)
        add_queries(requests, shelf, collection.queries, names, repository)
        add_queries(near_misses, shelf, collection.near_misses, names, repository)
        for line in small_talk:
            talk.add(shelf, line)
    print(f"{measured} libraries of {LIBRARY_SIZES.start} to {LIBRARY_SIZES.stop - 1} skills")
    for title, counts in (("requests", requests), ("near misses", near_misses), ("small talk", talk)):
        print(f"  {title:16} {counts}")


def add_queries(counts: Counts, shelf: Shelf, queries: Iterable[Query], names: dict[str, str], repository: str) -> None:
    for query in queries:
        if query.repository != repository:
            continue
        for identifier in query.answers & names.keys():
            counts.add(shelf, query.text, names[identifier])


if __name__ == "__main__":
    sys.exit(main())
