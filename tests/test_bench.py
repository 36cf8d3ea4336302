"""Test that the benchmarks run and report what they should. No test depends on their speed."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import collection, curve, floors
from benchmarks.report import Row, aligned, markdown
from repository import REPO
from skillshelf import DirectorySource, Shelf

ROWS = [
    "cold scan",
    "cold scan against langchain-skills-adapters",
    "cold scan against skills-ref",
    "cold scan against openai-agents",
    "warm start, same process",
    "warm start, fresh process",
    "sweep: reload()",
    "listing, first time",
    "listing, unchanged",
    "first search, which builds the index",
    "search of seven words",
    "second load of a reference in a turn",
    "import skillshelf",
    "foreign packages that the import pulls in",
    "memory held for a skill",
    "resident memory grown for a skill",
    "reload(changed=[path]), wall time",
    "agent: 1,000 skills, each model call of a turn of 5",
    "agent: 1,000 skills, each model call of a turn of 1",
    "agent: no skills, each model call of a turn of 5",
    "chat: the prompt appears, CPU",
    "chat: no model was chosen, CPU",
    "completion: a key, 99th percentile",
    "completion: the first key after a reload",
    "bundled: attach all and list them, for each skill",
    "bundled: attach the costliest alone and list it",
    "bundled: list attached skills again, for each skill",
    "evals: 1,000 scripted cases, on one core",
    "evals: a scripted trial",
    "evals: a live trial, on loopback",
    "mcp: a cached reference, in memory",
    "mcp: a cached reference over HTTP, 100 clients, the server's CPU",
    "mcp: the same with handshake sessions, 100 clients, the server's CPU",
    "mcp: 100 clients × 20 references over HTTP, p99",
    "mcp: memory grown by 1,000 handshake sessions at once",
    "mcp: a process starts and answers initialize over stdio",
    "mcp: the same, CPU",
    "mcp: the same without bytecode, CPU",
]


@pytest.mark.long
def test_a_quick_run_prints_every_row_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """The table and the JSON file hold the same rows; the collection and the caches are gone."""
    scratch, numbers = tmp_path / "scratch", tmp_path / "numbers.json"
    scratch.mkdir()
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.run", "--quick", "--json", str(numbers)],
        cwd=REPO,
        env={"PATH": "", "TMPDIR": str(scratch), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, list(scratch.iterdir())) == (0, []), run.stderr
    plain = json.loads(numbers.read_text())
    assert [row["what"] for row in plain["rows"]] == ROWS
    printed = run.stdout.splitlines()
    assert [line[: len(what)] for line, what in zip(printed[4:], ROWS, strict=True)] == ROWS
    assert all(row["ours"] is not None for row in plain["rows"] if row["verdict"] != "not measured")


def test_the_collection_consists_of_valid_skills(tmp_path: Path) -> None:
    """Each has 4 KB and two references of 4 KB, and the bytes are always the same."""
    for folder in ("one", "two"):
        collection.write(3, tmp_path / folder)
    catalog = Shelf([DirectorySource(tmp_path / "one", cache=False)]).catalog
    assert catalog.diagnostics == ()
    assert {name: skill.references for name, skill in catalog.items()} == {
        collection.skill_name(number): ("references/config.md", "references/guide.md") for number in range(3)
    }
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.md"))
    assert len(files) == 9
    for file in files:
        text = (tmp_path / "one" / file).read_text()
        assert 4000 <= len(text) < 4600
        assert text == (tmp_path / "two" / file).read_text()


def test_the_floors_touch_every_folder_and_skill(tmp_path: Path) -> None:
    """All heads are read, and the paths to stat are the folders and the SKILL.md files."""
    collection.write(3, tmp_path)
    assert floors.read_heads(str(tmp_path)) == 3
    expected = [path for path in tmp_path.rglob("*") if path.is_dir() or path.name == "SKILL.md"]
    assert sorted(floors.known_paths(str(tmp_path))) == sorted(map(str, [tmp_path, *expected]))


def test_a_row_says_whether_its_target_is_met() -> None:
    """The ratio counts if there is something to compare with, otherwise the number itself."""
    rows = [
        Row("scan", 0.3, against="floor", other=0.2, most_ratio=2),
        Row("scan", 0.5, against="floor", other=0.2, most_ratio=2),
        Row("peer", None, against="not installed", most_ratio=0.1),
        Row("load", 3e-6, most=2e-6),
        Row("memory", 1500.4, "B", most=1536),
        Row("search", 0.0123),
    ]
    assert [row.cells() for row in rows] == [
        ("scan", "300 ms", "floor: 200 ms", "1.50x", "≤ 2x", "met"),
        ("scan", "500 ms", "floor: 200 ms", "2.50x", "≤ 2x", "missed"),
        ("peer", "", "not installed", "", "≤ 0.1x", "not measured"),
        ("load", "3.00 µs", "", "", "≤ 2.00 µs", "missed"),
        ("memory", "1,500 B", "", "", "≤ 1,536 B", "met"),
        ("search", "12.3 ms", "", "", "", ""),
    ]


def test_a_table_is_aligned_text_or_markdown() -> None:
    """Both forms have the same cells."""
    headings, rows = ["what", "ours"], [["scan", "1 s"], ["warm start", ""]]
    assert aligned(headings, rows) == "what        ours\n----------  ----\nscan        1 s\nwarm start"
    assert markdown(headings, rows) == "| what | ours |\n| --- | --- |\n| scan | 1 s |\n| warm start |  |"


def test_the_picture_names_every_line_on_white() -> None:
    """It is a well-formed SVG with one line per operation, named with its last value, and no overlapping names."""
    points = {name: {size: size * 1e-6 for size in (100, 1_000, 10_000)} for name in "abcdef"}
    picture = ElementTree.fromstring(curve.svg(points))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{svg}polyline")) == 6
    background = picture.find(f"{svg}rect")
    assert background is not None
    assert background.attrib["fill"] == "#ffffff"
    named = {text.text: float(text.attrib["y"]) for text in picture.findall(f"{svg}text")}
    heights = [named[f"{name}, 10.0 ms"] for name in "abcdef"]
    assert all(abs(one - other) >= 15 for at, one in enumerate(heights) for other in heights[:at])


def test_growth_is_reported_per_skill() -> None:
    """1x is linear: a hundred times the skills take a hundred times as long."""
    headings, rows = curve.table({"scan": {100: 0.1, 1_000: 1.0, 10_000: 10.0, 100_000: 150.0}})
    assert headings == ["", "100", "1,000", "10,000", "100,000", "100,000 against 1,000, per skill"]
    assert rows == [["scan", "100 ms", "1.00 s", "10.0 s", "150 s", "1.50x"]]
