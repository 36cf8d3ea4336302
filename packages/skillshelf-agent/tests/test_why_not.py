"""Why the model did not use a skill, through the agent and on a terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from agent_kit import agent, say
from chats import OnTerminal, script
from skillshelf.errors import SkillError
from skillshelf.explain import explain_request
from skillshelf.trust import Trust
from skillshelf_agent import AgentCore
from skillshelf_agent.testing import ScriptedModel, call

Write = Callable[..., Path]


@pytest.fixture
def skills(write: Write, tmp_path: Path) -> Path:
    # Instructions that are too long for the listing, which shows short ones in full.
    long = "Do this with care.\n" * 4_000
    write("pdf-forms", "Fill in PDF forms. Use it when a form must be filled in.", long)
    write("sql-review", "Review SQL migrations before they run.", long)
    return tmp_path


def codes(core: AgentCore, name: str, request: str = "") -> list[str]:
    return [reason.code for reason in core.explain_unused(name, request).explanation.reasons]


def test_a_skill_that_was_offered_and_not_loaded_was_ignored(skills: Path) -> None:
    core = agent(skills, "I did it myself.")
    say(core, "fill in this form")
    unused = core.explain_unused("pdf-forms")
    assert unused.explanation.request == "fill in this form"
    assert not unused.is_loaded
    assert "offered and ignored" in unused.verdict


def test_a_skill_that_was_loaded_was_used(skills: Path) -> None:
    core = agent(skills, call("load_skill_instructions", skill_name="pdf-forms"), "Done.")
    say(core, "fill in this form")
    unused = core.explain_unused("pdf-forms")
    assert unused.is_loaded
    assert "It was used" in unused.verdict


def test_the_same_answer_as_the_command_line_gives(skills: Path) -> None:
    """With the listing that the model got, for the user's last message."""
    core = agent(skills, "Fine.", trust=Trust.open())
    core.skills.approve(core.skills.pending)
    say(core, "check the migration")
    unused = core.explain_unused("pdf-forms")
    assert unused.explanation == explain_request(core.shelf, "pdf-forms", "check the migration", listing=core.listing)
    assert codes(core, "pdf-forms")[0] == "no-match"


def test_a_skill_that_does_not_fit_in_the_listing_was_not_seen(write: Write, tmp_path: Path) -> None:
    for number in range(30):
        write(f"matter-{number}", f"Handle matter number {number} with all its papers. " * 10)
    core = AgentCore(ScriptedModel("Fine."), tmp_path, budget=300)
    say(core, "handle matter number 3")
    hidden = next(name for name in core.shelf.catalog if core.listing.level_of(name) is None)
    assert "it isn't in the listing" in core.explain_unused(hidden).verdict
    assert "left-out" in codes(core, hidden)


def test_a_skill_that_waits_for_review_or_is_off_could_not_be_used(skills: Path) -> None:
    core = agent(skills, "Fine.", trust=Trust.open())
    say(core, "fill in this form")
    assert codes(core, "pdf-forms") == ["unreviewed"]
    assert core.explain_unused("pdf-forms").verdict == "The model could not use it."

    trusting = agent(skills, "Fine.", choices={"pdf-forms": "off"})
    say(trusting, "fill in this form")
    assert codes(trusting, "pdf-forms") == ["off"]
    assert "unreviewed" not in codes(trusting, "sql-review", "review this migration")


def test_a_bundled_skill_that_is_not_attached_says_how_to_attach_it(skills: Path) -> None:
    core = agent(skills, "Fine.")
    reasons = core.explain_unused("execution-debugging", "why did the build crash").explanation.reasons
    assert [reason.code for reason in reasons] == ["not-attached"]
    assert "--with execution-debugging" in reasons[0].fix


def test_without_a_name_the_skill_that_fits_best_is_explained(skills: Path) -> None:
    core = agent(skills, "Fine.")
    say(core, "fill in this form")
    assert core.explain_unused("").explanation.name == "pdf-forms"


def test_a_clear_match_is_left_out_unless_it_was_used(skills: Path) -> None:
    core = agent(skills, "I did it myself.", call("load_skill_instructions", skill_name="pdf-forms"), "Done.")
    assert core.find_clear_match("thanks, go on") is None
    match = core.find_clear_match("fill in this pdf form")
    assert match is not None
    assert match.name == "pdf-forms"
    say(core, "fill in this pdf form")
    assert core.is_left_out(match, used=())
    assert not core.is_left_out(match, used=["pdf-forms"])  # in a conversation of its own
    say(core, "fill in this pdf form")
    assert not core.is_left_out(match, used=())


def test_a_skill_whose_instructions_are_in_the_listing_is_not_left_out(write: Write, tmp_path: Path) -> None:
    """There was nothing to load."""
    write("pdf-forms", "Fill in PDF forms. Use it when a form must be filled in.")
    core = agent(tmp_path, "Done.")
    say(core, "fill in this pdf form")
    match = core.find_clear_match("fill in this pdf form")
    assert match is not None
    assert not core.is_left_out(match, used=())


def test_there_must_be_a_request(skills: Path) -> None:
    core = agent(skills)
    with pytest.raises(SkillError, match="Nothing was said yet"):
        core.explain_unused("pdf-forms")
    assert "would have seen" in core.explain_unused("pdf-forms", "fill in this form").verdict


def test_why_not_on_a_terminal(skills: Path) -> None:
    terminal = OnTerminal("--model", script(skills, "I did it myself."), "--trust-workspace", cwd=skills, columns=160)
    terminal.see_idle()
    terminal.send("fill in this pdf form\r")
    terminal.see("I did it myself.")
    terminal.see("but wasn't used · /why-not")
    terminal.see_idle()
    terminal.send("/why-not\r")
    terminal.see("pdf-forms comes first for 'fill in this pdf form'.")
    terminal.see("It was offered and ignored")
    terminal.see("/skills:pdf-forms applies it now.")
    terminal.see_idle()
    terminal.send("exit\r")
    assert terminal.end() == 0
