"""Test `skillshelf search`: what a user sees of the results, and of a search that finds nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillshelf.cli import _matches
from skillshelf.search import WEAK_SCORE

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]


@pytest.fixture
def shelf(write: Write) -> None:
    write("skills/pdf-forms", "Fill in and flatten PDF forms.", "Ask for missing values before you write the file.\n")
    write("skills/deploy", "Ship the website to production.", "Build it, then copy the files.\n")
    write("skills/sql-review", "Review SQL migrations before they ship.", "Look for locks.\n")


pytestmark = pytest.mark.usefixtures("shelf")


def find_row(output: str, word: str) -> list[str]:
    """Return the cells of the first row of a table that begins with this word."""
    return next(line.split() for line in output.splitlines() if line.split()[:1] == [word])


def test_search_prints_the_best_match_first(run: Run) -> None:
    """Each match has the words that fit."""
    code, out, _ = run("search", "fill", "pdf")
    lines = out.splitlines()
    assert code == 0
    assert lines[:2] == ["1. pdf-forms  (project)", "   Fill in and flatten PDF forms."]
    assert "pdf in name" in lines[2]


def test_search_as_json_has_scores_and_reasons(run: Run) -> None:
    """The number of matches follows the limit."""
    read = json.loads(run("search", "--json", "--limit", "1", "ship", "zzzz")[1])
    assert (read["query"], len(read["matches"])) == ("ship zzzz", 1)
    assert {"score", "reasons", "name", "description", "location"} <= set(read["matches"][0])
    assert read["matches"][0]["missing_words"] == ["zzzz"]
    assert read["matches"][0]["next_score"] > 0
    assert read["weak_below"] == WEAK_SCORE


def test_search_explains_which_words_matched_in_which_field(run: Run) -> None:
    """The shares of all rows together are the whole score."""
    out = run("search", "--explain", "--limit", "1", "flatten", "pdf", "values", "quickly")[1]
    assert find_row(out, "pdf")[1] == "name"
    assert find_row(out, "flatten")[1] == "description"
    assert find_row(out, "values")[1] == "instructions"
    assert "not found: quickly" in out
    shares = [int(line.split()[-1][:-1]) for line in out.splitlines() if line.endswith("%")]
    assert 98 <= sum(shares) <= 102


def test_search_explains_a_corrected_word(run: Run) -> None:
    assert "migratoins (read as migration)" in run("search", "--explain", "sql", "migratoins")[1]


def test_search_says_why_the_skill_that_the_query_names_does_not_come_up(run: Run, write: Write) -> None:
    """Whether other skills fit or none does."""
    write("skills/kites", "Fly kites.")
    write("skills/broken").write_bytes(b"\xff\xfe")
    run("set", "kites", "off")
    run("set", "deploy", "manual")
    run("set", "pdf-forms", "off")
    write("skills/pdf", "Merge PDF files, not forms.")
    for query, reason in [
        (["kites"], "The skill 'kites' doesn't come up: you turned it off (`skillshelf set kites auto` turns it on)."),
        (["deploy"], "The skill 'deploy' doesn't come up: its disclosure is manual"),
        (["broken"], "The skill 'broken' doesn't come up: its file can't be used"),
    ]:
        code, out, err = run("search", *query)
        assert code == 1
        assert err.startswith(reason)
        assert "no skill fits" not in err.casefold()
    code, out, err = run("search", "pdf", "forms")
    assert code == 0
    assert out.startswith("1. pdf ")
    assert "The skill 'pdf-forms' doesn't come up: you turned it off" in err


def test_search_names_the_runner_up(run: Run) -> None:
    """Also if the limit hides it."""
    out = run("search", "--explain", "--limit", "1", "ship", "the", "website")[1]
    assert "ahead of sql-review with 0." in out
    assert "2. " not in out


def test_search_names_the_copies_that_it_folds(run: Run, write: Write) -> None:
    body = " ".join(f"step{number} needs value{number}" for number in range(60))
    write("skills/ledger", "Check a ledger.", body)
    write("skills/ledger-two", "Check a ledger.", body)
    code, out, _ = run("search", "ledger")
    assert code == 0
    assert "copies, not listed: ledger" in out
    assert "2. ledger" not in out


def test_weak_matches_are_shown_and_marked(run: Run) -> None:
    """Standard error says what to do."""
    query = "ship of an ancient admiral across stormy oceans towards undiscovered islands"
    code, out, err = run("search", *query.split())
    assert code == 1
    assert "(weak)" in out
    assert f"Perhaps no skill fits '{query}': all matches are weak (below {WEAK_SCORE:.2f})." in err
    assert f"--for '{query}'` says more" in err
    read = json.loads(run("search", "--json", *query.split())[1])
    assert all(0 < match["score"] < read["weak_below"] and match["is_weak"] for match in read["matches"])


@pytest.mark.parametrize("query", ["", "the of", "?!"])
def test_a_query_without_words_is_said_to_have_none(run: Run, query: str) -> None:
    code, out, err = run("search", query)
    assert (code, out) == (1, "")
    assert err == f"There is no word to search for in {query!r}: say what the task is about.\n"


def test_search_without_a_match_explains_the_nearest_skill(run: Run) -> None:
    """Its table shows how little of the query it has."""
    query = "ship of an ancient admiral across stormy oceans towards undiscovered islands"
    code, out, _ = run("search", "--explain", *query.split())
    assert code == 1
    assert find_row(out, "ship")[1] == "description"
    assert "not found: ancient, admiral" in out


def test_search_says_how_to_compare_meanings_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, an explanation ends with the command that installs it."""
    monkeypatch.setattr(_matches, "is_similarity_installed", lambda: False)
    assert run("search", "--explain", "pdf")[1].splitlines()[-1] == (
        "Only words were compared. pip install 'skillshelf[search]' adds similarity of meaning."
    )
