"""Test the measures of benchmarks/search against known values, and its command on a folder of five skills."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.search import baselines, plot, tables
from benchmarks.search.choosing import choose_on_halves
from benchmarks.search.collections import OWN_DATA, Collection, DataError, Query, load
from benchmarks.search.measures import (
    Answer,
    Quality,
    calibration_error,
    compare_scores,
    discounted_gain,
    percentile,
    resample,
    sort_into_bins,
    wilson,
)
from benchmarks.search.presence import measure_presence, measure_present_with_bm25
from benchmarks.search.speed import write_skills
from repository import REPO
from skillshelf import DirectorySource, Shelf
from skillshelf.search import Weights

SKILLS = {
    "pdf": ("pdf-forms", "Fill in PDF forms.", "List the fields, then fill them."),
    "csv": ("csv-cleaning", "Clean CSV files.", "Remove duplicate rows and repair broken umlauts."),
    "git": ("git-history", "Squash and rebase commits.", "Make a backup branch before you rewrite history."),
    "cook": ("recipes", "Scale recipes for more guests.", "Multiply the amounts, not the oven's temperature."),
    "trip": ("travel-plans", "Plan trips by train.", "Leave enough time to change trains."),
}
QUERIES = [
    ("fill in this pdf form", ["pdf"], "trigger", "one"),
    ("my csv has duplicate rows", ["csv"], "trigger", "two"),
    ("squash these commits", ["git"], "expected", "three"),
    ("a recipe for twelve guests", ["cook"], "task", "four"),
    ("a trip by train", ["trip"], "task", "five"),
    ("tune a piano", [], "trigger", "six"),
]


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_lines(
        tmp_path / "corpus.jsonl",
        [{"id": key, "name": name, "description": text, "body": body} for key, (name, text, body) in SKILLS.items()],
    )
    write_lines(
        tmp_path / "queries.jsonl",
        [{"query": text, "gold": gold, "kind": kind, "repo": repo} for text, gold, kind, repo in QUERIES],
    )
    write_lines(tmp_path / "negatives.jsonl", [{"query": "merge two pdf files", "gold": ["pdf"]}])
    return tmp_path


def answer(score: float, *, is_hit: bool = False, gain: float = 0.0) -> Answer:
    return Answer(is_hit, gain, score)


# --- measures ---


@pytest.mark.parametrize(
    ("found", "right", "gain"),
    [
        (["a"], {"a"}, 1.0),
        (["b", "a"], {"a"}, 0.6309),
        (["b", "c", "a"], {"a"}, 0.5),
        (["a", "x", "b"], {"a", "b"}, 0.9197),
        ([*"xxxxxxxxxx", "a"], {"a"}, 0.0),
        ([], {"a"}, 0.0),
    ],
)
def test_a_right_skill_is_worth_less_the_later_it_comes(found: list[str], right: set[str], gain: float) -> None:
    assert discounted_gain(found, frozenset(right)) == pytest.approx(gain, abs=1e-4)


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(5, 10, 0.2366, 0.7634), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (21, 49, 0.3002, 0.5673)],
)
def test_the_interval_of_a_share_is_that_of_wilson(hits: int, count: int, low: float, high: float) -> None:
    interval = wilson(hits, count)
    assert interval.low == pytest.approx(low, abs=1e-3)
    assert interval.high == pytest.approx(high, abs=1e-3)


def test_no_queries_say_nothing_about_a_share() -> None:
    assert wilson(0, 0).high - wilson(0, 0).low == 1


def test_quality_is_a_mean_in_percent() -> None:
    quality = Quality([answer(0.5, is_hit=True, gain=1.0), answer(0.5, gain=0.5), answer(0.5), answer(0.5)])
    assert str(quality) == "25.0 / 37.5"


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.95) == 95
    assert percentile([3.0], 0.95) == 3


def test_scores_that_say_how_often_they_are_right_are_calibrated() -> None:
    answers = [answer(0.25, is_hit=number == 0) for number in range(4)]
    answers += [answer(0.75, is_hit=number > 0) for number in range(4)]
    bins = sort_into_bins(answers, (0.0, 0.5, 1.0))
    assert [each.count for each in bins] == [4, 4]
    assert calibration_error(bins) == pytest.approx(0)
    assert calibration_error(sort_into_bins([answer(1.0), answer(1.0)], (0.0, 0.5, 1.0))) == pytest.approx(1)


def test_scores_are_compared_between_queries_with_and_without_their_skill() -> None:
    low = [answer(0.1), answer(0.2)]
    high = [answer(0.8), answer(0.9)]
    assert compare_scores(high, low) == 1
    assert compare_scores(low, high) == 0
    assert compare_scores(low, low) == 0.5


def test_few_authors_say_less_than_their_many_queries_seem_to() -> None:
    good = [answer(1.0, is_hit=True)] * 50
    bad = [answer(1.0)] * 50
    over_authors = resample([good, bad])
    over_queries = wilson(50, 100)
    assert over_authors.high - over_authors.low > over_queries.high - over_queries.low
    assert resample([good, good]).low == 1


# --- halves ---


def test_all_queries_of_a_repository_are_in_the_same_half() -> None:
    halves = {Query(f"query {number}", frozenset("a"), "owner/name").half for number in range(20)}
    assert len(halves) == 1
    assert {Query("", frozenset("a"), f"owner/{number}").half for number in range(20)} == {0, 1}


def test_weights_are_chosen_without_the_half_that_they_are_reported_on() -> None:
    queries = [Query(f"query {number}", frozenset("a"), f"owner/{number}") for number in range(20)]

    def ask(weights: Weights, asked: Sequence[Query]) -> list[Answer]:
        # Half 0 wants much of the second weight, half 1 little of it.
        best = {0: 8.0, 1: 0.125}
        return [answer(1.0, gain=1 / (1 + abs(weights[1] - best[query.half]))) for query in asked]

    reported_on_0, reported_on_1 = choose_on_halves(queries, ask, with_similarity=True)
    name = Weights._fields[1]
    assert reported_on_0.weights[name] < 1
    assert reported_on_1.weights[name] > 1
    assert len(reported_on_0.answers) == sum(query.half == 0 for query in queries)


# --- presence ---


def test_a_query_is_asked_with_its_skill_and_without_it(folder: Path) -> None:
    collection = load(folder)
    presence = measure_presence(collection, 5, lambda: collection.make_search(with_similarity=False))
    assert [each.is_hit for each in presence.present] == [True] * 5
    assert [each.is_hit for each in presence.absent] == [False] * 5
    assert all(
        with_it.score > without.score for with_it, without in zip(presence.present, presence.absent, strict=True)
    )


def test_small_collections_have_the_right_skill_among_them(folder: Path) -> None:
    collection = load(folder)
    presence = measure_presence(collection, 2, lambda: collection.make_search(with_similarity=False))
    assert Quality(presence.present).hit_rate == 100


def test_copies_of_the_right_skill_are_taken_out_with_it() -> None:
    skills = {
        "a": {"name": "a", "description": "Fill in forms."},
        "b": {"name": "b", "description": "Fill in FORMS!"},
        "c": {"name": "c", "description": "Plan trips."},
    }
    assert Collection(skills).find_copies(["a"]) == {"a", "b"}


def test_a_fork_has_most_of_the_lines_of_the_right_skill_and_is_right_too() -> None:
    body = "\n".join(f"line {number}" for number in range(100))
    collection = Collection({"a": {"name": "a", "description": "d", "body": body}}, [Query("q", frozenset("a"))])
    forked = collection.add_forks()
    assert forked.queries[0].answers == {"a", "a#fork"}
    assert 60 < len(forked.skills["a#fork"]["body"].splitlines()) < 90
    assert forked.skills["a#fork"]["name"] != "a"


def test_plain_bm25_finds_skills_by_their_words(folder: Path) -> None:
    pytest.importorskip("bm25s")
    collection = load(folder)
    engine = baselines.PlainBM25(collection.skills, baselines.ALL_FIELDS)
    assert engine.rank("repairing umlauts").identifiers == ["csv"]
    assert engine.rank("zebra").identifiers == []
    assert Quality(measure_present_with_bm25(collection, 5, engine)).hit_rate == 100


# --- data ---


def test_our_own_set_covers_what_search_promises() -> None:
    collection = load(OWN_DATA)
    languages = {(query.language, collection.skills[min(query.answers)]["lang"]) for query in collection.queries}
    for language in ("de", "pt", "zh", "ja"):
        assert {(language, "en"), ("en", language), (language, language)} <= languages
    assert {query.trait for query in collection.queries} >= {"typo", "camelCase, hyphens", "same name", "copies"}
    assert len(collection.unanswerable) >= 20
    assert len(collection.near_misses) >= 20


def test_a_query_about_an_unknown_skill_is_an_error(folder: Path) -> None:
    write_lines(folder / "queries.jsonl", [{"query": "x", "gold": ["nothing"]}])
    with pytest.raises(DataError, match="'nothing'"):
        load(folder)


def test_a_folder_without_data_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is missing"):
        load(tmp_path)


def test_large_collections_consist_of_different_skills_that_can_be_read(folder: Path, tmp_path: Path) -> None:
    written = tmp_path / "skills"
    write_skills(load(folder), 40, written)
    shelf = Shelf([DirectorySource(written)])
    assert len(shelf.catalog) == 40
    assert len({path.read_text() for path in written.glob("*/SKILL.md")}) == 40


# --- the command ---


@pytest.mark.long
def test_the_command_prints_every_table(folder: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.search", str(folder), "--fast", "--sizes", "6"]
    finished = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    for text in (
        "hit@1 / nDCG@10",
        "German → English",
        "typo",
        "Nothing fits",
        "right, by score, if half",
        "query, median",
    ):
        assert text in finished.stdout
    assert "ours without the extra" in finished.stdout


def test_the_command_names_a_folder_that_has_no_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.search", str(tmp_path), "--fast", "--sizes"]
    finished = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert finished.returncode == 1
    assert "corpus.jsonl.gz is missing" in finished.stderr


def test_the_picture_is_svg_that_names_every_method(folder: Path) -> None:
    collection = load(folder)
    answers = [answer(0.5, is_hit=True, gain=1.0) for _ in collection.queries]
    picture = plot.draw(collection, [tables.Measured("one", {5: answers}), tables.Measured("two", {5: answers})])
    texts = [element.text for element in ElementTree.fromstring(picture).iter() if element.tag.endswith("text")]
    assert {"one", "two", "short trigger"} <= set(texts)
