"""Answers to queries while their right skills are in the collection, and while they are not.

The same queries are asked in collections of several sizes. A search that can be relied on finds the right skill in all
of them, and says that nothing fits once it is gone.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from benchmarks.search.baselines import PlainBM25
from benchmarks.search.collections import Collection, Query
from benchmarks.search.measures import DEPTH, Answer, Rank, Ranking, judge
from skillshelf.search import SkillSearch
from skillshelf.skills import Catalog

SIZES = (20, 200, 2_000)
_MAX_SAMPLES = 20
_SAMPLED_SKILLS = 2_000
"""How many skills all samples of one size have together, at least: a single sample of twenty would be an accident."""


@dataclass
class Presence:
    """Answers to the queries of a collection, in their order."""

    present: list[Answer] = field(default_factory=list)
    absent: list[Answer] = field(default_factory=list)
    """The answers when the right skills and their copies are taken out. None of them is a hit."""


@dataclass
class _Sample:
    """A part of the collection, and the queries that are asked in it, by their right skills."""

    skills: set[str]
    queries: dict[frozenset[str], list[int]] = field(default_factory=dict)


def choose_sizes(collection: Collection, sizes: Iterable[int] = SIZES) -> list[int]:
    """Return the sizes that the collection can be cut to, and its own."""
    whole = len(collection.skills)
    return [*(size for size in sizes if size < whole), whole]


def rank_with(search: SkillSearch, catalog: Catalog, depth: int = DEPTH) -> Rank:
    """Return the ranking of our search, without a threshold. Folded copies follow the skill that stands for them."""

    def rank(query: str) -> Ranking:
        matches = search.search(catalog, query, depth)
        found: list[str] = []
        for match in matches:
            found.append(match.descriptor.location)
            found += [catalog[copy].location for copy in match.copies]
        return Ranking(found, matches[0].score if matches else 0.0)

    return rank


def measure_presence(collection: Collection, size: int, make_search: Callable[[], SkillSearch]) -> Presence:
    """Ask each query twice among `size` skills: with its right skills, and without them and their copies."""
    present: dict[int, Answer] = {}
    absent: dict[int, Answer] = {}
    for sample in _take_samples(collection, size):
        search = make_search()
        skills = set(sample.skills)
        catalog = collection.make_catalog(sorted(skills))
        for right, numbers in sample.queries.items():
            # The order matters: every catalog is made from the one before it, as on a shelf.
            for wanted, answers in (
                (sample.skills - collection.find_copies(right), absent),
                (sample.skills | right, present),
            ):
                catalog = collection.change_catalog(catalog, skills, wanted)
                skills = wanted
                rank = rank_with(search, catalog)
                for number in numbers:
                    query = collection.queries[number]
                    answers[number] = judge(query, rank(query.text))
    order = range(len(collection.queries))
    return Presence([present[number] for number in order], [absent[number] for number in order])


def measure_present_with_bm25(collection: Collection, size: int, engine: PlainBM25) -> list[Answer]:
    """Ask each query among `size` skills. Words are as rare as in the sample with all right skills."""
    answers: dict[int, Answer] = {}
    for sample in _take_samples(collection, size):
        index = engine.take(sample.skills.union(*sample.queries))
        for right, numbers in sample.queries.items():
            among = sample.skills | right
            for number in numbers:
                query = collection.queries[number]
                answers[number] = judge(query, index.rank(query.text, among))
    return [answers[number] for number in range(len(collection.queries))]


def ask_all(queries: Iterable[Query], rank: Rank) -> list[Answer]:
    return [judge(query, rank(query.text)) for query in queries]


def _take_samples(collection: Collection, size: int) -> list[_Sample]:
    """Cut the collection to a size, several times if that is small, and spread the queries over these samples."""
    names = sorted(collection.skills)
    if size >= len(names):
        samples = [_Sample(set(names))]
    else:
        count = max(1, min(_MAX_SAMPLES, _SAMPLED_SKILLS // size))
        samples = [_Sample(set(random.Random(seed).sample(names, size - 1))) for seed in range(count)]

    groups: dict[frozenset[str], list[int]] = {}
    for number, query in enumerate(collection.queries):
        groups.setdefault(query.answers, []).append(number)
    for at, (right, numbers) in enumerate(groups.items()):
        samples[at % len(samples)].queries[right] = numbers
    return samples
