"""Test `skillshelf check --overlap`: which skills take requests from each other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillshelf import MemorySource, Shelf
from skillshelf.search import find_overlaps, list_phrases

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]


@pytest.fixture
def shelf(write: Write) -> None:
    write("skills/review-comments", 'Answer reviewers. Use for "address review feedback".', "Reply politely.\n")
    write(
        "skills/review-feedback",
        'Address review feedback on a pull request. Use for "address review feedback".',
        "Address each piece of review feedback.\n",
    )
    write("skills/piano", "Tune the strings of a grand piano.", "Use a tuning fork.\n")


def read_overlaps(run: Run, *arguments: str) -> list[dict[str, Any]]:
    overlaps: list[dict[str, Any]] = json.loads(run("check", "--overlap", "--json", *arguments)[1])["overlaps"]
    return overlaps


@pytest.mark.usefixtures("shelf")
def test_overlap_names_the_phrases_that_another_skill_takes(run: Run) -> None:
    """A skill that nothing competes with is not there."""
    code, out, _ = run("check", "--overlap")
    assert code == 0
    assert "1. review-feedback takes 1 phrase from review-comments" in out
    assert "quoted request  address review feedback" in out
    assert "Both descriptions claim 'address review feedback': keep it in one of them." in out
    assert "piano" not in out


@pytest.mark.usefixtures("shelf")
def test_overlap_says_where_its_phrases_come_from(run: Run) -> None:
    """The bundled skill has some, too."""
    out = run("check", "--overlap")[1]
    assert "Searched for the phrases of 4 skills: " in out
    assert " quoted requests, " in out


def test_overlap_reports_skills_that_can_be_told_apart(run: Run, write: Write) -> None:
    write("skills/piano", "Tune the strings of a grand piano.")
    code, out, _ = run("check", "--overlap")
    assert (code, out.splitlines()[0]) == (
        0,
        "No overlap: the skills on the shelf can be told apart from the others by every phrase.",
    )


def test_overlap_puts_the_worst_pair_first(run: Run, write: Write) -> None:
    """More phrases taken is worse."""
    for topic, phrases in (("piano", ["tune a piano"]), ("violin", ["restring a violin", "varnish a violin"])):
        quoted = ", ".join(f'"{phrase}"' for phrase in phrases)
        write(f"skills/{topic}-care", f"Instruments. Use for {quoted}.", "Be careful.\n")
        write(f"skills/{topic}-work", f"{' and '.join(phrases)} for {quoted}.", f"{'. '.join(phrases)}.\n")
    overlaps = read_overlaps(run)
    assert [overlap["names"][0] for overlap in overlaps[:2]] == ["violin-care", "piano-care"]


def test_overlap_reports_copies_first(run: Run, write: Write) -> None:
    body = " ".join(f"step{number} needs value{number}" for number in range(60))
    write("skills/ledger", "Check the ledger of a company.", body)
    write("skills/ledger-two", "Check the ledger of a company.", body)
    [overlap] = read_overlaps(run)
    assert overlap["are_copies"]
    assert "1. ledger and ledger-two are copies" in run("check", "--overlap")[1]


def test_a_sentence_that_sends_requests_to_another_skill_is_not_contested(run: Run, write: Write) -> None:
    write("skills/emails", "Plan sequences of newsletters. For cold outreach mails use cold-mails.", "Plan.\n")
    write("skills/cold-mails", "Write cold outreach mails.", "Write cold outreach mails.\n")
    assert read_overlaps(run) == []


def test_overlap_tries_the_queries_of_eval_cases(run: Run, write: Write) -> None:
    """Queries that should not lead to the skill are left out."""
    queries = [
        {"query": "restring my old violin", "should_trigger": True},
        {"query": "varnish my old violin", "should_trigger": False},
    ]
    write("skills/instruments", "Care for instruments.", evals__triggers_json=json.dumps(queries))
    write("skills/violin", "Restring or varnish an old violin.")
    [overlap] = read_overlaps(run)
    assert [(phrase["origin"], phrase["text"]) for phrase in overlap["phrases"]] == [("eval", "restring my old violin")]


@pytest.mark.usefixtures("shelf")
def test_overlap_of_a_draft_shows_what_it_would_take(run: Run, write: Write, tmp_path: Path) -> None:
    """The draft is not on the shelf, and other pairs are not reported."""
    draft = write("../draft/piano-tuner", "Tune the strings of a grand piano, of an upright piano, or any piano.")
    [overlap] = read_overlaps(run, str(draft))
    assert set(overlap["names"]) == {"piano", "piano-tuner"}
    assert {phrase["owner"] for phrase in overlap["phrases"]} >= {"piano"}
    assert read_overlaps(run, str(draft.parent)) == [overlap]
    assert "piano-tuner" not in run("list")[1]


@pytest.mark.usefixtures("shelf")
def test_overlap_of_a_draft_names_the_skill_that_answers_its_requests_today(run: Run, write: Write) -> None:
    """The draft would come first for them, however well the other skill does without it."""
    draft = write("../draft/strings", 'Tune piano strings. Use for "tune piano strings".', "Tune piano strings.\n")
    code, out, _ = run("check", "--overlap", str(draft))
    assert code == 0
    assert "1. strings would take 1 phrase from piano" in out
    [overlap] = read_overlaps(run, str(draft))
    assert [phrase["new"] for phrase in overlap["phrases"]] == [True]


@pytest.mark.usefixtures("shelf")
def test_overlap_of_a_skill_on_the_shelf_names_the_skill_that_would_answer_without_it(run: Run, write: Write) -> None:
    """It is the same whether a new skill is still a draft elsewhere or is in the workspace already."""
    new = write("skills/strings", 'Tune piano strings. Use for "tune piano strings".', "Tune piano strings.\n")
    assert "1. without strings, piano would answer 1 phrase of it" in run("check", "--overlap", str(new))[1]
    [overlap] = read_overlaps(run, str(new))
    assert [phrase["new"] for phrase in overlap["phrases"]] == [True]


@pytest.mark.usefixtures("shelf")
def test_overlap_of_a_skill_on_the_shelf_is_limited_to_it(run: Run) -> None:
    assert read_overlaps(run, "skills/piano") == []
    [overlap] = read_overlaps(run, "skills/review-comments/SKILL.md")
    assert set(overlap["names"]) == {"review-comments", "review-feedback"}


@pytest.mark.usefixtures("shelf")
def test_overlap_says_that_a_drafts_name_is_taken(run: Run, write: Write) -> None:
    draft = write("../draft/piano", "Move a piano to another house.")
    assert "skills/piano/SKILL.md has the name 'piano' already" in run("check", "--overlap", str(draft))[1]


def test_overlap_of_a_skill_without_phrases_says_so(run: Run, write: Write) -> None:
    assert (
        "the description of vague says too little"
        in run("check", "--overlap", str(write("../draft/vague", "Helps.")))[1]
    )


@pytest.mark.parametrize("path", ["nowhere", "empty"])
def test_overlap_of_a_path_without_a_skill_is_refused(run: Run, tmp_path: Path, path: str) -> None:
    (tmp_path / "empty").mkdir()
    code, out, err = run("check", "--overlap", path)
    assert (code, out) == (2, "")
    assert f"There is no skill at '{path}'." in err


def test_a_hidden_skill_competes_with_no_other(run: Run, write: Write) -> None:
    write("skills/piano", "Tune the strings of a grand piano.")
    hidden = write("skills/tuner", "Tune the strings of a grand piano.")
    hidden.write_text(hidden.read_text().replace("description", "disclosure: manual\ndescription"))
    assert read_overlaps(run) == []
    assert "its disclosure is manual" in run("check", "--overlap", "skills/tuner")[1]


def test_phrases_are_quoted_requests_and_sentences_without_exclusions() -> None:
    """A single quoted word is not a request, and words in quotes are not part of a sentence."""
    text = (
        '---\nname: pdf\ndescription: \'Fill in PDF forms and check them. Use for "sign a form" or "pdf". '
        "Do not use for scanned pages of a book. For letters to a customer, see mail.'\n---\nDo it.\n"
    )
    skill = Shelf([MemorySource({"pdf": text})]).catalog["pdf"]
    assert [(phrase.origin, phrase.text) for phrase in list_phrases(skill, ["complete this"])] == [
        ("quoted", "sign a form"),
        ("eval", "complete this"),
        ("sentence", "Fill in PDF forms and check them"),
    ]


def test_the_answer_does_not_depend_on_the_order_of_the_skills() -> None:
    texts = {
        f"s{number}": f"---\nname: s{number}\ndescription: Handle item {number % 3} of the report.\n---\nDo it.\n"
        for number in range(9)
    }
    forwards = find_overlaps(Shelf([MemorySource(texts)]))
    backwards = find_overlaps(Shelf([MemorySource(dict(reversed(texts.items())))]))
    assert forwards == backwards
    assert forwards.overlaps
