"""Measure everything and print one table of ratios.

    python -m benchmarks.run [--quick] [--peers] [--curve] [--docs] [--json FILE]

Nothing fails for being slow: the table says which target is missed.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import skillshelf
from benchmarks import agent, bundled, chat_start, completion, curve, evals, mcp, ours, peers, registry
from benchmarks.collection import Collections
from benchmarks.report import HEADINGS, Row, aligned, markdown

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURE = DOCS / "images" / "curve.svg"
PAGE = DOCS / "benchmarks.md"
_BEGIN, _END = "<!-- measured: written by `python -m benchmarks.run --docs` -->", "<!-- end of measured -->"

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parse(arguments)
    count, rounds = (1_000, 2) if options.quick else (10_000, 7)
    with tempfile.TemporaryDirectory(prefix="skillshelf-bench-") as temp:
        os.environ["XDG_CACHE_HOME"] = f"{temp}/cache"
        collections = Collections(Path(temp, "skills"))
        python = peers.install(Path(temp, "venv")) if options.peers else sys.executable
        others, rows = _rows(collections, count, rounds, python)
        # Anew: what was measured last has rewritten files of the others.
        points = _points(Collections(Path(temp, "curve")), rounds) if options.curve else {}
    about = (
        f"skillshelf {skillshelf.__version__}, {count:,} skills, Python {platform.python_version()}, "
        f"{platform.system()}, {os.cpu_count()} cores"
    )
    ratios: Table = (HEADINGS, [row.cells() for row in rows])
    growth = curve.table(points) if points else None
    print(about, aligned(*ratios), *([aligned(*growth)] if growth else []), sep="\n\n")
    if points:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(curve.svg(points))
    if options.json:
        plain = {"about": about, "rows": [row.plain() for row in rows], "curve": points}
        options.json.write_text(json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
    if options.docs and growth:
        _write_page(about, {"Ratios": ratios, "Other libraries": peers.table(others), "Growth": growth})


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure skillshelf against floors and against other libraries.")
    parser.add_argument("--quick", action="store_true", help="1,000 skills and few rounds: a look, not a measurement")
    parser.add_argument("--peers", action="store_true", help="install the other libraries in a throw-away environment")
    parser.add_argument("--curve", action="store_true", help="up to 100,000 skills: minutes, 2.5 GB; draws a picture")
    parser.add_argument("--docs", action="store_true", help="--peers and --curve, and write the tables into the page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all numbers to a file")
    options = parser.parse_args(arguments)
    if options.docs:
        options.peers = options.curve = True
    if options.quick and options.curve:
        parser.error("--quick is too small for --curve and --docs")
    return options


def _rows(collections: Collections, count: int, rounds: int, python: str) -> tuple[list[Row], list[Row]]:
    """The other libraries' rows, and all."""
    _say(f"writing {count:,} skills")
    folder = collections[count]
    _say("measuring other libraries")
    others = peers.measure(folder, count, min(3, rounds), python)
    _say("measuring skillshelf")
    scan, *rest = ours.measure(collections.__getitem__, count, 100, rounds)
    _say("measuring the agent")
    empty = Path(folder).parent / "empty"
    empty.mkdir()
    chat = agent.measure(collections[agent.SKILLS], str(empty), rounds)
    starts = chat_start.measure(min(5, rounds))
    typing = completion.measure(agent.SKILLS, rounds)
    _say("measuring bundled skills")
    attached = bundled.measure(min(5, rounds))
    _say("measuring installed skills")
    pinned = registry.measure(rounds)
    _say("measuring evals")
    cases = evals.measure(min(3, rounds))
    _say("measuring the MCP server")
    served = mcp.measure(min(3, rounds), over_http=rounds > 2)
    return others, [scan, *others, *rest, *chat, *starts, *typing, *attached, *pinned, *cases, *served]


def _points(collections: Collections, rounds: int) -> curve.Points:
    points: dict[str, dict[int, float]] = {}
    for size in (100, 1_000, 10_000, 100_000):
        _say(f"measuring {size:,} skills")
        for operation, seconds in curve.measure(collections[size], rounds if size <= 10_000 else 3).items():
            points.setdefault(operation, {})[size] = seconds
    return points


def _write_page(about: str, tables: Mapping[str, Table]) -> None:
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    after = rest.partition(_END)[2]
    sections = [f"### {title}\n\n{markdown(*table)}" for title, table in tables.items()]
    PAGE.write_text(before + "\n\n".join([_BEGIN, f"{about}.", *sections, _END]) + after)


def _say(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
