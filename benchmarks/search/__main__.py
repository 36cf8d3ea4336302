"""Measure how well and how fast skills are found, beside plain BM25.

Our own small set is always measured. With the folder of the public data, the tables are about that, too. Weights are
chosen on one half of the repositories and reported on the other, and the other way round.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.search import plot, tables
from benchmarks.search.baselines import ALL_FIELDS, SHORT_FIELDS, PlainBM25, is_bm25s_installed
from benchmarks.search.collections import OWN_DATA, Collection, DataError
from benchmarks.search.presence import ask_all, choose_sizes, measure_present_with_bm25
from benchmarks.search.speed import Speed, write_skills
from benchmarks.search.tables import Measured
from benchmarks.search.worker import WorkerError, find, load_metatool, load_public, time_search
from skillshelf.search import is_similarity_installed

ROOT = Path(__file__).resolve().parents[2]
PUBLIC_DATA = ROOT.parent / "shared" / "retrieval"
PICTURE = ROOT / "docs" / "images" / "search.svg"
_TIMED_QUERIES = 200
_WITHOUT = "ours without the extra"
_WITH = "ours with the extra"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        _measure(options)
    except (DataError, WorkerError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="?", type=Path, help="a folder with the public data, or other data of its kind")
    parser.add_argument("--fast", action="store_true", help="a sample of the queries, few skills, no choice of weights")
    parser.add_argument("--sizes", type=int, nargs="*", metavar="N", help="skills to time (5000 50000; --fast: 1000)")
    parser.add_argument("--plot", action="store_true", help="draw docs/images/search.svg")
    options = parser.parse_args(arguments)
    if options.folder is None and PUBLIC_DATA.exists():
        options.folder = PUBLIC_DATA
    if options.sizes is None:
        options.sizes = [1_000] if options.fast else [5_000, 50_000]
    return options


def _measure(options: argparse.Namespace) -> None:
    if not is_bm25s_installed():
        print("Plain BM25 is left out: bm25s and PyStemmer are not installed (pip install --group bench).\n")
    if not is_similarity_installed():
        print("Ours with the extra is left out: install skillshelf[search].\n")

    own, own_methods = _measure_folder(OWN_DATA, is_fast=False, can_choose=False)
    print(f"Our own set: {len(own.queries):,} queries, {len(own.skills):,} skills\n")
    _print(
        tables.show_summary(own, own_methods, has_recorded=False),
        tables.show_languages(own, own_methods),
        tables.show_traits(own, own_methods),
        tables.show_silence(own_methods),
        tables.show_unanswerable(own_methods),
    )
    collection, methods = own, own_methods
    if options.folder is not None:
        collection, methods = _measure_folder(options.folder, is_fast=options.fast, can_choose=not options.fast)
        print(f"The given folder: {len(collection.queries):,} queries, {len(collection.skills):,} skills\n")
        _print(
            tables.show_summary(collection, methods, has_recorded=options.folder == PUBLIC_DATA),
            tables.show_kinds(collection, methods),
            tables.show_sizes(methods),
            tables.show_silence(methods),
            *(tables.show_reliability(method) for method in methods),
            tables.show_choices(methods),
        )
    if options.plot:
        PICTURE.write_text(plot.draw(collection, methods))
        print(f"Drew {PICTURE.relative_to(ROOT)}\n")
    _print(tables.show_speed(_measure_speed(collection, options.sizes)))


def _measure_folder(folder: Path, *, is_fast: bool, can_choose: bool) -> tuple[Collection, list[Measured]]:
    """Ask the queries of a folder, with each method."""
    collection = load_public(folder, is_fast=is_fast)
    tools = load_metatool(folder, is_fast=is_fast)
    methods: list[Measured] = []
    if is_bm25s_installed():
        for title, fields in (("BM25, name + description", SHORT_FIELDS), ("BM25, all text", ALL_FIELDS)):
            methods.append(_measure_bm25(title, fields, collection, tools))
    for title, has_extra in (_WITHOUT, False), (_WITH, True):
        if has_extra and not is_similarity_installed():
            continue
        print(f"measuring {title} …", file=sys.stderr, flush=True)
        findings = find(folder, has_extra=has_extra, is_fast=is_fast, can_choose=can_choose)
        by_size = {size: presence.present for size, presence in findings.by_size.items()}
        methods.append(Measured(title, by_size, findings.near_misses, findings.metatool, findings))
    return collection, methods


def _measure_bm25(title: str, fields: Sequence[str], collection: Collection, tools: Collection | None) -> Measured:
    print(f"measuring {title} …", file=sys.stderr, flush=True)
    engine = PlainBM25(collection.skills, fields)
    measured = Measured(title, {})
    for size in choose_sizes(collection):
        measured.by_size[size] = measure_present_with_bm25(collection, size, engine)
    measured.near_misses = ask_all(collection.near_misses, engine.rank)
    if tools is not None:
        measured.metatool = ask_all(tools.queries, PlainBM25(tools.skills, fields).rank)
    return measured


def _measure_speed(collection: Collection, sizes: Sequence[int]) -> dict[str, list[tuple[Speed, float]]]:
    """Time collections of several sizes on disk, with the extra and without it."""
    texts = [query.text for query in collection.queries]
    queries = random.Random(4).sample(texts, min(_TIMED_QUERIES, len(texts)))
    speeds: dict[str, list[tuple[Speed, float]]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="skillshelf-skills-") as folder:
            print(f"measuring the speed at {size:,} skills …", file=sys.stderr, flush=True)
            write_skills(collection, size, Path(folder))
            for title, has_extra in (_WITHOUT, False), (_WITH, True):
                if has_extra and not is_similarity_installed():
                    continue
                speeds.setdefault(title, []).append(time_search(Path(folder), queries, has_extra=has_extra))
    return speeds


def _print(*sections: str) -> None:
    for section in sections:
        if section:
            print(section, end="\n\n", flush=True)


if __name__ == "__main__":
    sys.exit(main())
