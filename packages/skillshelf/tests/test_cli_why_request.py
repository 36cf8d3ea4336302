"""Test `skillshelf why NAME --for REQUEST`: every reason why a skill comes up for a request, or does not."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skillshelf import DirectorySource, Shelf
from skillshelf.explain import explain_request
from skillshelf.trust import Trust, TrustedSource

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
WriteOwn = Callable[..., Path]


@pytest.fixture
def write_own() -> WriteOwn:
    """Return a function that writes a skill of the user, which needs no review."""

    def write_skill(name: str, description: str, body: str = "Do it.\n", fields: str = "") -> Path:
        path = Path(os.environ["HOME"], ".agents/skills", name, "SKILL.md")
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: {name}\ndescription: {description}\n{fields}---\n\n{body}")
        return path

    return write_skill


def explain(run: Run, name: str, request: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(run("why", name, "--for", request, "--json")[1])
    return read


def codes(run: Run, name: str, request: str) -> list[str]:
    return [obstacle["code"] for obstacle in explain(run, name, request)["obstacles"]]


def set_budget(tokens: int) -> None:
    path = Path(os.environ["HOME"], ".config/skillshelf/config.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"budget = {tokens}\n")


def test_a_skill_that_comes_first_has_nothing_in_its_way(run: Run, write_own: WriteOwn) -> None:
    """The answer says how far ahead it is, and what the listing shows."""
    write_own("pdf-forms", "Fill in PDF forms.")
    write_own("tax-forms", "Compute a tax.")
    code, out, _ = run("why", "pdf-forms", "--for", "fill in a pdf form")
    assert code == 0
    assert out.startswith("pdf-forms comes first for 'fill in a pdf form'.\n")
    assert ", ahead of tax-forms with 0." in out
    assert "the listing shows its instructions to the model" in out
    assert explain(run, "pdf-forms", "fill in a pdf form")["obstacles"] == []


def test_a_request_for_what_a_skill_says_it_is_not_for_is_explained(run: Run, write_own: WriteOwn) -> None:
    """Search prints the words that count against it, too."""
    write_own("old-bikes", "Repair old bikes. Do not use for electric motors.")
    write_own("motors", "Repair electric motors.")
    _, out, _ = run("why", "old-bikes", "--for", "repair electric motors")
    assert "excluded: its description says that it is not for 'electric', 'motors'" in out
    assert "says it is not for: electric, motors" in out
    assert "excluded" not in codes(run, "old-bikes", "repair old bikes")


def test_an_outranked_skill_is_compared_with_the_better_one_word_by_word(run: Run, write_own: WriteOwn) -> None:
    """The differences of the words and of the meaning make up the difference of the scores."""
    write_own("invoice", "Write an invoice for a customer.")
    write_own("letters", "Write letters.", "Mention the customer by name.\n")
    request = "write a customer invoice in letters"
    answer = explain(run, "letters", request)
    assert [obstacle["code"] for obstacle in answer["obstacles"]] == ["outranked"]
    assert (answer["rank"], answer["comes_up"]) == (2, True)
    [rival] = answer["rivals"]
    assert rival["name"] == "invoice"
    by_word = {lead["word"]: lead for lead in rival["leads"]}
    assert (by_word["invoice"]["field"], by_word["invoice"]["own_field"]) == ("name", "")
    assert (by_word["customer"]["field"], by_word["customer"]["own_field"]) == ("description", "instructions")
    difference = rival["score"] - answer["match"]["score"]
    assert sum(lead["points"] for lead in rival["leads"]) >= difference - 0.05
    code, out, _ = run("why", "letters", "--for", request)
    assert code == 0
    assert "letters comes up for 'write a customer invoice in letters', but not first." in out
    assert "outranked: invoice fits better" in out


def test_the_advice_names_words_that_the_description_lacks(run: Run, write_own: WriteOwn) -> None:
    write_own("invoice", "Write an invoice for a customer.")
    write_own("letters", "Write letters to a customer.")
    [obstacle] = explain(run, "letters", "write a customer invoice")["obstacles"]
    assert obstacle["fix"].endswith("in its description: 'invoice'")


def test_a_hidden_skill_is_reported_with_the_way_to_show_it(run: Run, write_own: WriteOwn) -> None:
    write_own("deploy", "Ship it.", fields="disclosure: manual\n")
    assert codes(run, "deploy", "ship it") == ["manual"]
    assert run("why", "deploy", "--for", "ship it")[0] == 1


def test_a_hidden_skill_names_the_choice_that_hides_it(run: Run, write_own: WriteOwn) -> None:
    write_own("deploy", "Ship it.")
    assert run("set", "deploy", "manual")[0] == 0
    [obstacle] = explain(run, "deploy", "ship it")["obstacles"]
    assert (obstacle["code"], obstacle["fix"]) == ("manual", "`skillshelf set deploy auto` undoes your choice")


def test_a_skill_that_is_off_is_reported(run: Run, write_own: WriteOwn) -> None:
    write_own("deploy", "Ship it.")
    assert run("set", "deploy", "off")[0] == 0
    assert codes(run, "deploy", "ship it") == ["off"]
    assert run("why", "deploy", "--for", "ship it")[0] == 1


def test_an_unknown_skill_gets_similar_names(run: Run, write_own: WriteOwn) -> None:
    write_own("deploy", "Ship it.")
    [obstacle] = explain(run, "deplyo", "ship it")["obstacles"]
    assert (obstacle["code"], obstacle["fix"]) == ("missing", "did you mean 'deploy'?")


def test_a_broken_skill_is_reported_with_its_fault(run: Run, write: Write) -> None:
    write("skills/deploy").write_text("")
    assert codes(run, "deploy", "ship it") == ["broken"]


def test_a_skill_of_the_project_waits_for_review(run: Run, write: Write) -> None:
    """The agent does not use it, however well it fits. After the review it comes up."""
    write("skills/deploy", "Ship the site.")
    assert codes(run, "deploy", "ship the site") == ["unreviewed"]
    assert run("why", "deploy", "--for", "ship the site")[0] == 1
    assert run("trust", "--yes", "deploy")[0] == 0
    assert codes(run, "deploy", "ship the site") == []


def test_a_skill_that_changed_since_its_review_is_used_as_it_was(run: Run, write: Write) -> None:
    write("skills/deploy", "Ship the site.")
    assert run("trust", "--yes", "deploy")[0] == 0
    write("skills/deploy", "Ship the whole site.")
    assert codes(run, "deploy", "ship the site") == ["outdated"]


def test_the_agents_shelf_explains_a_skill_that_waits_for_review(write: Write, tmp_path: Path) -> None:
    """There, the skill is not in the catalog at all."""
    write("skills/deploy", "Ship the site.")
    shelf = Shelf([TrustedSource(DirectorySource(tmp_path, "project"), Trust.open())])
    explanation = explain_request(shelf, "deploy", "ship the site")
    assert [obstacle.code for obstacle in explanation.reasons] == ["unreviewed"]
    assert not explanation.comes_up


def test_a_shadowed_skill_is_found_by_search_alone(run: Run, write: Write, write_own: WriteOwn) -> None:
    write("skills/notes", "Take notes in meetings.")
    write_own("notes", "Tune the notes of a piano.")
    answer = explain(run, "notes@user", "tune a piano")
    assert [obstacle["code"] for obstacle in answer["obstacles"]] == ["shadowed"]
    assert (answer["name"], answer["rank"], answer["listed"]) == ("notes@user", 1, "nothing")


def test_a_copy_is_explained_by_the_skill_that_stands_for_it(run: Run, write_own: WriteOwn) -> None:
    body = " ".join(f"step{number} needs value{number}" for number in range(60))
    write_own("ledger", "Check a ledger.", body)
    write_own("ledger-two", "Check a ledger.", body)
    both = codes(run, "ledger", "check a ledger") + codes(run, "ledger-two", "check a ledger")
    assert both == ["copy"]


def test_a_skill_without_a_word_of_the_request_does_not_match(run: Run, write_own: WriteOwn) -> None:
    """It is in the listing all the same, so the model may choose it."""
    write_own("deploy", "Ship it.")
    write_own("tax", "Compute a tax.")
    assert codes(run, "deploy", "tax")[0] in ("no-match", "weak")
    code, out, _ = run("why", "deploy", "--for", "tax")
    assert code == 0
    assert out.startswith("deploy is in the listing, but a search for 'tax' doesn't find it.\n")


def test_the_listing_is_measured_with_the_users_budget(run: Run, write_own: WriteOwn) -> None:
    """With less and less room, even the skill that fits is shortened, shown by name only, and left out."""
    long_tail = "It also handles tables, charts, images, footnotes and everything else that anybody may ever ask for. "
    for number in range(30):
        write_own(
            f"skill-{number:02}", f"Handles topic{number} for teams that need it. {long_tail * 4}", "Do it.\n" * 50
        )
    seen: list[str] = []
    for budget in (8_000, 1_200, 120, 100):
        set_budget(budget)
        seen += [code for code in codes(run, "skill-29", "topic29") if code not in seen]
    assert seen == ["shortened", "name-only", "left-out"]
    assert run("why", "skill-29", "--for", "topic29")[0] == 0, "search still finds it"


def test_the_listing_is_that_of_a_conversation_that_begins_with_the_request(run: Run, write_own: WriteOwn) -> None:
    """A skill that fits is described before others are."""
    for number in range(100):
        write_own(f"skill-{number:02}", f"Handles topic{number} for teams that need it, in all its forms.")
    set_budget(800)
    assert codes(run, "skill-95", "topic95") == []
    assert codes(run, "skill-95", "topic42")[-1] == "name-only"


def test_a_shortened_description_names_the_words_that_are_cut(run: Run, write_own: WriteOwn) -> None:
    filler = (
        "It handles tables, charts, images, footnotes and everything else that anybody may ever ask for in a text. "
    )
    for number in range(30):
        write_own(f"skill-{number:02}", f"Handles texts. {filler * 4} Knows topic{number}.", "Do it.\n" * 50)
    set_budget(1_200)
    [obstacle] = explain(run, "skill-29", "topic29")["obstacles"]
    assert (
        obstacle["message"]
        == "the budget of 1,200 tokens has room for the beginning of its description only; 'topic29' is cut off"
    )


def test_a_description_that_is_too_long_is_reported_as_such(run: Run, write_own: WriteOwn) -> None:
    """The budget is not to blame."""
    write_own("essay", "Write essays. " + "With a very long tail. " * 60)
    [obstacle] = explain(run, "essay", "write essays")["obstacles"]
    assert (obstacle["code"], obstacle["fix"]) == ("shortened", "shorten it")


def test_the_advice_for_equal_words_is_to_say_what_differs(run: Run, write_own: WriteOwn) -> None:
    write_own("ci-checks", "Repair a failed build.", "A failed build is repaired.\n")
    write_own("failed-build", "Repair a failed build.", "Look at it.\n")
    [obstacle] = explain(run, "ci-checks", "repair a failed build")["obstacles"]
    assert obstacle["fix"] == "its description has the words already: say what it does that failed-build does not"


def test_an_empty_request_is_refused(run: Run, write_own: WriteOwn) -> None:
    write_own("deploy", "Ship it.")
    code, out, err = run("why", "deploy", "--for", " ")
    assert (code, out) == (2, "")
    assert "The request is empty." in err
