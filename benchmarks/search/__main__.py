"""`make bench-search`: print how well and how fast skills are found, beside plain BM25.

Weights are chosen on one half of the repositories and reported on the other, and the other way round.
"""

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

from benchmarks.search.baselines import PlainBM25, join
from benchmarks.search.collections import OWN_DATA, Collection, Query, load
from benchmarks.search.measures import DEPTH, Quality, Rank, measure, measure_near_misses
from skillshelf.catalog import Catalog
from skillshelf.search import WEIGHTS, SkillSearch, Weights, is_similarity_installed

PUBLIC_DATA = Path(__file__).parents[2].parent / "shared" / "retrieval"
SHORT_FIELDS = ("name", "description")
ALL_FIELDS = ("name", "description", "body")
_METATOOL_SAMPLE = 4_000
_GRID = [
    Weights(long=1.0, short=short, pairs=pairs, similarity=similarity)
    for short, pairs, similarity in product((0.3, 0.5, 0.8), (0.2, 0.4), (0.7, 1.1))
]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, help="the data (../shared/retrieval, or our own small set)")
    parser.add_argument("--fixed", action="store_true", help="report the shipped weights instead of choosing any")
    parser.add_argument("--sizes", type=int, nargs="*", default=[5_000], help="collection sizes to time (5000)")
    options = parser.parse_args(arguments)
    folder = options.folder or (PUBLIC_DATA if PUBLIC_DATA.exists() else OWN_DATA)

    collection = load(folder)
    print(f"{len(collection.queries):,} queries, {len(collection.skills):,} skills in {folder}")
    print(f"similarity of meaning: {'yes' if is_similarity_installed() else 'no (install skillshelf[search])'}\n")
    catalog = collection.make_catalog()
    search = collection.make_search()
    print_quality(collection, catalog, search, choose=not options.fixed)
    if (folder / "metatool").exists():
        print_metatool(load(folder / "metatool"))
    print_speed(collection, options.sizes)
    return 0


def rank_with(search: SkillSearch, catalog: Catalog, depth: int = DEPTH) -> Rank:
    """Return the ranking of a search. Folded copies come after the skill that stands for them."""

    def rank(query: str) -> list[str]:
        found: list[str] = []
        for match in search.search(catalog, query, depth, min_score=0):
            found.append(match.descriptor.location)
            found += [catalog[copy].location for copy in match.copies]
        return found

    return rank


def print_quality(collection: Collection, catalog: Catalog, search: SkillSearch, *, choose: bool) -> None:
    queries = collection.queries
    baselines: dict[str, Rank] = {}
    for title, fields in (("BM25, name + description", SHORT_FIELDS), ("BM25, all text", ALL_FIELDS)):
        engine = PlainBM25({identifier: join(skill, fields) for identifier, skill in collection.skills.items()})
        baselines[title] = _bind(engine)

    print(
        f"{'hit@1 / nDCG@10':28} {'all':>13} {'short':>13} {'routing':>13} {'task':>13} {'CJK':>13}  near misses first"
    )
    for title, rank in baselines.items():
        print_row(title, queries, measure(queries, rank), measure_near_misses(collection.near_misses, rank))
    lexical = rank_with(collection.make_search(with_similarity=False), catalog)
    print_row(
        "ours, words alone", queries, measure(queries, lexical), measure_near_misses(collection.near_misses, lexical)
    )
    ours = rank_with(search, catalog)
    wrong = measure_near_misses(collection.near_misses, ours)
    print_row("ours", queries, measure(queries, ours), wrong)
    if choose:
        print_row("ours, weights of other half", queries, measure_across_halves(queries, catalog, search), wrong)
    print()


def measure_across_halves(queries: Sequence[Query], catalog: Catalog, search: SkillSearch) -> Quality:
    """Choose the weights on each half of the repositories, and return the results of the other half."""
    results: list[Quality] = []
    for weights in _GRID:
        search.weights = weights
        results.append(measure(queries, rank_with(search, catalog)))
    search.weights = WEIGHTS

    hits = [False] * len(queries)
    gains = [0.0] * len(queries)
    for half in (0, 1):
        is_seen = [query.half != half for query in queries]
        best = max(range(len(_GRID)), key=lambda at: results[at].choose(is_seen).gain)
        print(f"  chosen for half {half}: {_GRID[best]}")
        for at, query in enumerate(queries):
            if query.half == half:
                hits[at] = results[best].hits[at]
                gains[at] = results[best].gains[at]
    return Quality(tuple(hits), tuple(gains))


def print_row(title: str, queries: Sequence[Query], quality: Quality, near_misses: float) -> None:
    columns: list[Quality] = [quality]
    for kind in ("trigger", "expected", "task"):
        columns.append(quality.choose([query.kind == kind for query in queries]))
    cjk = quality.choose([query.is_cjk for query in queries])
    columns.append(cjk)
    cells = " ".join(f"{column!s:>13}" for column in columns)
    print(f"{title:28} {cells}  {near_misses:.1f} %   (CJK: {cjk.interval()})", flush=True)


def print_metatool(tools: Collection) -> None:
    sample = random.Random(1).sample(tools.queries, min(_METATOOL_SAMPLE, len(tools.queries)))
    engine = PlainBM25({identifier: join(skill, SHORT_FIELDS) for identifier, skill in tools.skills.items()})
    catalog = tools.make_catalog()
    print(f"MetaTool, {len(sample):,} queries, {len(tools.skills)} tools, hit@1")
    for title, rank in (
        ("BM25, name + description", _bind(engine)),
        ("ours, words alone", rank_with(tools.make_search(with_similarity=False), catalog, 1)),
        ("ours", rank_with(tools.make_search(), catalog, 1)),
    ):
        print(f"{title:28} {measure(sample, rank).hit_rate:.1f}", flush=True)
    print()


def print_speed(collection: Collection, sizes: Sequence[int]) -> None:
    """Time collections of any size, made of the skills of this one under more names."""
    for size in sizes:
        originals = list(collection.skills.items())
        skills = {}
        for number in range(size):
            identifier, skill = originals[number % len(originals)]
            skills[f"{identifier}#{number // len(originals)}"] = skill
        larger = Collection(skills)
        catalog = larger.make_catalog()
        texts = [query.text for query in collection.queries[:200]]
        for title, has_similarity in (("words alone", False), ("with similarity", True)):
            search = larger.make_search(with_similarity=has_similarity)
            started = time.process_time()
            search.search(catalog, "begin")
            built = time.process_time() - started
            times: list[float] = []
            for text in texts:
                started = time.process_time()
                search.search(catalog, text)
                times.append(1000 * (time.process_time() - started))
            p50 = statistics.median(times)
            p95 = statistics.quantiles(times, n=20)[-1]
            print(
                f"{size:,} skills, {title}: a query {p50:.1f} ms (p95 {p95:.1f}) CPU, "
                f"index built in {built:.1f} s, {search.size / size:,.0f} bytes a skill",
                flush=True,
            )


def _bind(engine: PlainBM25) -> Callable[[str], list[str]]:
    return lambda query: engine.rank(query, DEPTH)


if __name__ == "__main__":
    sys.exit(main())
