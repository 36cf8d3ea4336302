"""Measure how well and how fast skills are found, beside plain BM25.

Our own small set is always measured. With the folder of the public data, the tables are about that, too. Weights are
chosen on one half of the authors and reported on the other, and the other way round.
"""

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from benchmarks.search import plot, tables
from benchmarks.search.baselines import ALL_FIELDS, SHORT_FIELDS, PlainBM25, PlainFTS5, is_bm25s_installed
from benchmarks.search.collections import OWN_DATA, Collection, DataError
from benchmarks.search.presence import ask_all, choose_sizes, measure_present_with_bm25
from benchmarks.search.speed import Speed, write_skills
from benchmarks.search.tables import EARLIER, WITH_EXTRA, WITHOUT_EXTRA, Measured, Table
from benchmarks.search.worker import Findings, WorkerError, find, load_metatool, load_public, time_search
from skillshelf.search import is_similarity_installed

ROOT = Path(__file__).resolve().parents[2]
PUBLIC_DATA = ROOT.parent / "shared" / "retrieval"
PAGE = ROOT / "docs" / "concepts" / "search.md"
PICTURE = ROOT / "docs" / "images" / "search.svg"
_BEGIN = "<!-- measured: written by `python -m benchmarks.search FOLDER --docs` -->"
_END = "<!-- end of measured -->"
_TIMED_QUERIES = 200
_FTS5 = "FTS5, all text"


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
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout, whose search is timed too")
    parser.add_argument("--docs", action="store_true", help="write the tables and picture of docs/concepts/search.md")
    options = parser.parse_args(arguments)
    if options.folder is None and PUBLIC_DATA.exists():
        options.folder = PUBLIC_DATA
    if options.sizes is None:
        options.sizes = [1_000] if options.fast else [5_000, 50_000]
    if options.docs and (options.fast or options.folder is None):
        parser.error("--docs needs the folder of the public data, and cannot be combined with --fast")
    return options


def _measure(options: argparse.Namespace) -> None:
    if not is_bm25s_installed():
        print("Plain BM25 is left out: bm25s and PyStemmer are not installed (pip install --group bench).\n")
    if not is_similarity_installed():
        print("Ours with the extra is left out: install skillshelf[search].\n")

    if options.folder is not None:
        load_public(options.folder, is_fast=options.fast)  # a wrong folder is named before anything is measured

    collection, methods = _measure_folder(OWN_DATA, is_fast=False, can_choose=False)
    own = [
        tables.show_summary(collection, methods),
        tables.show_languages(collection, methods),
        tables.show_traits(collection, methods),
        tables.show_silence(methods),
        tables.show_unanswerable(methods),
    ]
    _print("Our own set", own)

    public: list[Table] = []
    if options.folder is not None:
        collection, methods = _measure_folder(options.folder, is_fast=options.fast, can_choose=not options.fast)
        public = [
            tables.show_summary(collection, methods),
            tables.show_kinds(collection, methods),
            tables.show_sizes(methods),
            tables.show_silence(methods),
            tables.show_forks(methods),
            *(tables.show_reliability(method) for method in methods if method.findings),
            tables.show_choices(methods),
        ]
        _print("The given folder", public)

    speed: list[Table] = []
    if options.sizes:
        speeds = _measure_speed(collection, options.sizes, options.before)
        speed = [tables.show_speed(speeds), tables.show_goals(collection, methods, speeds)]
        _print("Speed", speed)
    if options.docs:
        drawn = [method for method in methods if method.title != _FTS5]
        PICTURE.write_text(plot.draw(collection, drawn), encoding="utf-8")
        _write_page(public, own[:3] + own[4:], speed)


def _measure_folder(folder: Path, *, is_fast: bool, can_choose: bool) -> tuple[Collection, list[Measured]]:
    """Ask the queries of a folder, with each method."""
    collection = load_public(folder, is_fast=is_fast)
    tools = load_metatool(folder, is_fast=is_fast)
    methods: list[Measured] = []
    if is_bm25s_installed():
        for title, fields in (("BM25, name + description", SHORT_FIELDS), ("BM25, all text", ALL_FIELDS)):
            methods.append(_measure_bm25(title, fields, collection, tools))
    methods.append(_measure_fts5(collection, tools))
    modes = {WITHOUT_EXTRA: False}
    if is_similarity_installed():
        modes[WITH_EXTRA] = True
    _report(" and ".join(modes))
    with ThreadPoolExecutor() as pool:
        running: dict[str, Future[Findings]] = {}
        for title, has_extra in modes.items():
            # Both modes have the same weights, so they are chosen once.
            does_choose = can_choose and has_extra == is_similarity_installed()
            running[title] = pool.submit(find, folder, has_extra=has_extra, is_fast=is_fast, can_choose=does_choose)
    for title, future in running.items():
        findings = future.result()
        by_size = {size: presence.present for size, presence in findings.by_size.items()}
        methods.append(Measured(title, by_size, findings.near_misses, findings.metatool, findings))
    return collection, methods


def _measure_bm25(title: str, fields: Sequence[str], collection: Collection, tools: Collection | None) -> Measured:
    _report(title)
    engine = PlainBM25(collection.skills, fields)
    measured = Measured(title, {})
    for size in choose_sizes(collection):
        measured.by_size[size] = measure_present_with_bm25(collection, size, engine)
    measured.near_misses = ask_all(collection.near_misses, engine.rank)
    if tools is not None:
        measured.metatool = ask_all(tools.queries, PlainBM25(tools.skills, fields).rank)
    return measured


def _measure_fts5(collection: Collection, tools: Collection | None) -> Measured:
    """Measure plain FTS5, in the whole collection alone."""
    _report(_FTS5)
    engine = PlainFTS5(collection.skills)
    measured = Measured(_FTS5, {len(collection.skills): ask_all(collection.queries, engine.rank)})
    measured.near_misses = ask_all(collection.near_misses, engine.rank)
    if tools is not None:
        measured.metatool = ask_all(tools.queries, PlainFTS5(tools.skills).rank)
    return measured


def _measure_speed(collection: Collection, sizes: Sequence[int], before: Path | None) -> dict[str, list[Speed]]:
    """Time collections of several sizes on disk, with the extra and without it, and with another checkout."""
    texts = [query.text for query in collection.queries]
    queries = random.Random(4).sample(texts, min(_TIMED_QUERIES, len(texts)))
    speeds: dict[str, list[Speed]] = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="skillshelf-skills-") as folder:
            skills = Path(folder)
            _report(f"the speed at {size:,} skills")
            write_skills(collection, size, skills)
            if before:
                speeds.setdefault(EARLIER, []).append(time_search(skills, queries, has_extra=False, checkout=before))
            speeds.setdefault(WITHOUT_EXTRA, []).append(time_search(skills, queries, has_extra=False))
            if is_similarity_installed():
                speeds.setdefault(WITH_EXTRA, []).append(time_search(skills, queries, has_extra=True))
    return speeds


def _print(title: str, shown: Sequence[Table]) -> None:
    print(f"=== {title} ===\n")
    for table in shown:
        if table.rows:
            print(table.for_terminal(), end="\n\n", flush=True)


def _write_page(public: Sequence[Table], own: Sequence[Table], speed: Sequence[Table]) -> None:
    """Write the tables into the page. Those of our own set come after the public ones, under a heading of their own."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    sections = [table.for_page() for table in (*public, *speed) if table.rows]
    sections.append("## On our own set")
    sections += [table.for_page() for table in own if table.rows]
    PAGE.write_text(before + "\n\n".join([_BEGIN, *sections, _END]) + after, encoding="utf-8")


def _report(what: str) -> None:
    print(f"measuring {what} …", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
