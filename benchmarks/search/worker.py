"""A process that measures our search, with the extra `search` or without it.

"Without" means a process that cannot import the libraries of the extra, whatever is installed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

ROOT = Path(__file__).resolve().parents[2]
EXTRA_MODULES = ("numpy", "tokenizers", "wordllama")
FAST_SHARE = 0.15
METATOOL_QUERIES = 4_000

if __name__ == "__main__" and "--without-extra" in sys.argv:
    sys.modules.update(dict.fromkeys(EXTRA_MODULES))  # None: an import fails, and the module cannot be found

from benchmarks.checkout import import_path  # noqa: E402
from benchmarks.search.choosing import Choice, choose_on_halves  # noqa: E402
from benchmarks.search.collections import Collection, Query, load  # noqa: E402
from benchmarks.search.measures import Answer  # noqa: E402
from benchmarks.search.presence import (  # noqa: E402
    Presence,
    ask_all,
    choose_sizes,
    measure_presence,
    rank_with,
)
from benchmarks.search.speed import Speed, measure_first_search, measure_speed  # noqa: E402
from skillshelf.search import WEAK_SCORE, WEIGHTS, SkillSearch, Weights  # noqa: E402


@dataclass
class Findings:
    """What our search answered to the queries of a folder, in one mode."""

    threshold: float
    """The score below which it says that nothing fits."""
    weights: dict[str, float]
    by_size: dict[int, Presence]
    with_forks: Presence = field(default_factory=Presence)
    """The same at `forked_size`, with a changed copy of each right skill in the collection."""
    forked_size: int = 0
    near_misses: list[Answer] = field(default_factory=list)
    unanswerable: list[Answer] = field(default_factory=list)
    metatool: list[Answer] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)

    @property
    def whole(self) -> Presence:
        """The answers in the whole collection."""
        return self.by_size[max(self.by_size)]


FINDINGS = TypeAdapter(Findings)
SPEED = TypeAdapter(Speed)


class WorkerError(Exception):
    """The process that measures has failed."""


def load_public(folder: Path, *, is_fast: bool) -> Collection:
    collection = load(folder)
    return collection.thin_out(FAST_SHARE) if is_fast else collection


def load_metatool(folder: Path, *, is_fast: bool) -> Collection | None:
    """Return the tools with a sample of their queries, or None if the folder does not have them."""
    if not (folder / "metatool").exists():
        return None
    tools = load(folder / "metatool")
    wanted = round(METATOOL_QUERIES * (FAST_SHARE if is_fast else 1))
    return tools.thin_out(wanted / max(1, len(tools.queries)))


def measure_findings(folder: Path, *, is_fast: bool, can_choose: bool) -> Findings:
    collection = load_public(folder, is_fast=is_fast)
    catalog = collection.make_catalog()
    search = collection.make_search()
    findings = Findings(
        threshold=WEAK_SCORE,
        weights=dict(WEIGHTS._asdict()),
        by_size={size: measure_presence(collection, size, collection.make_search) for size in choose_sizes(collection)},
        near_misses=ask_all(collection.near_misses, rank_with(search, catalog, 1)),
        unanswerable=ask_all(collection.unanswerable, rank_with(search, catalog, 1)),
    )
    findings.forked_size = _choose_forked_size(choose_sizes(collection))
    forked = collection.add_forks()
    findings.with_forks = measure_presence(forked, findings.forked_size, forked.make_search)
    tools = load_metatool(folder, is_fast=is_fast)
    if tools is not None:
        findings.metatool = ask_all(tools.queries, rank_with(tools.make_search(), tools.make_catalog(), 1))
    if can_choose:
        findings.choices = _choose(collection, search)
    return findings


def _choose_forked_size(sizes: Sequence[int]) -> int:
    """Return the second size, or the only one: twenty skills would be forks of each other."""
    return sizes[min(1, len(sizes) - 1)]


def _choose(collection: Collection, search: SkillSearch) -> list[Choice]:
    catalog = collection.make_catalog()

    def ask(weights: Weights, queries: Sequence[Query]) -> list[Answer]:
        search.weights = weights
        return ask_all(queries, rank_with(search, catalog))

    return choose_on_halves(collection.queries, ask, with_similarity=search.has_similarity)


# --- the parent's side ---


def find(folder: Path, *, has_extra: bool, is_fast: bool, can_choose: bool) -> Findings:
    """Measure a folder in a process of its own."""
    options = [*_flag("--fast", is_fast), *_flag("--choose", can_choose)]
    # One thread of OpenBLAS gives the same answers, and sooner if other programs are running.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return FINDINGS.validate_json(_run("findings", str(folder), has_extra, options, environment))


def time_search(folder: Path, queries: Sequence[str], *, has_extra: bool, checkout: Path = ROOT) -> Speed:
    """Measure the speed on a folder of skills, of this checkout or another one."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-search-") as temp:
        asked = Path(temp, "queries.json")
        asked.write_text(json.dumps(queries))
        environment = {**os.environ, "XDG_CACHE_HOME": temp + "/cache", "PYTHONPATH": import_path(checkout)}
        os.mkdir(environment["XDG_CACHE_HOME"])
        options = ["--queries", str(asked)]
        speed = SPEED.validate_json(_run("speed", str(folder), has_extra, options, environment))
        next_process = float(_run("first-search", str(folder), has_extra, options, environment))
    return replace(speed, next_process=next_process)


def _flag(name: str, is_set: bool) -> list[str]:
    return [name] if is_set else []


def _run(job: str, folder: str, has_extra: bool, options: Sequence[str], environment: Any) -> str:
    command = [sys.executable, "-m", "benchmarks.search.worker", job, str(Path(folder).resolve()), *options]
    command += _flag("--without-extra", not has_extra)
    finished = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if finished.returncode:
        raise WorkerError(f"Measuring {job} failed:\n{finished.stderr}")
    return finished.stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=("findings", "speed", "first-search"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=Path)
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--without-extra", action="store_true")
    options = parser.parse_args()
    if options.job == "findings":
        findings = measure_findings(options.folder, is_fast=options.fast, can_choose=options.choose)
        print(FINDINGS.dump_json(findings).decode())
        return
    queries = json.loads(options.queries.read_text())
    if options.job == "speed":
        print(SPEED.dump_json(measure_speed(str(options.folder), queries)).decode())
    else:
        print(measure_first_search(str(options.folder), queries[0]))


if __name__ == "__main__":
    main()
