"""A conversation outlasts the process, and nothing else does."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart

from agent_kit import agent, of, prompts, requests, say
from skillshelf import SkillError
from skillshelf_agent.events import Finished, Notice
from skillshelf_agent.sessions import Sessions, loaded_skills, typed_text
from skillshelf_agent.testing import call, fail

Write = Callable[..., Path]


def test_a_session_goes_on_in_another_process(tmp_path: Path) -> None:
    """The next agent's model gets the conversation of the first."""
    first = agent(tmp_path, "I am Ada.", sessions=Sessions(str(tmp_path)))
    say(first, "who are you?")
    first.conversation.close()
    second = agent(tmp_path, "Ada, as I said.", sessions=Sessions(str(tmp_path)))
    assert second.resume() == ()
    say(second, "again?")
    assert "I am Ada." in requests(second)[0].text
    assert second.conversation.id == first.conversation.id


def test_the_file_has_skill_text_only_if_it_was_loaded(tmp_path: Path, write: Write) -> None:
    """It has the text that the model asked for, and no listing."""
    write("one", "First.", "BODY-ONE\n")
    write("two", "Second.", "BODY-TWO\n")
    core = agent(tmp_path, call("load_skill_instructions", skill_name="one"), "ok", sessions=Sessions(str(tmp_path)))
    say(core, "go")
    assert core.conversation.session
    saved = Path(core.conversation.session.path).read_text()
    assert "BODY-ONE" in saved
    assert "BODY-TWO" not in saved
    assert "Available Skills" not in saved
    assert "BODY-TWO" in requests(core)[0].system


def test_a_message_is_on_disk_before_the_answer_begins(tmp_path: Path) -> None:
    """A crash before the first word of the answer does not lose the message."""
    saved: list[str] = []

    def look(_: object) -> str:
        saved.extend(path.read_text() for path in Path.home().rglob("*.jsonl"))
        return "ok"

    core = agent(tmp_path, look, sessions=Sessions(str(tmp_path)))
    say(core, "remember this")
    assert "remember this" in saved[0]


def test_new_begins_without_history_and_resume_brings_it_back(tmp_path: Path, write: Write) -> None:
    """A new session also reloads the skills."""
    core = agent(tmp_path, "a", "b", "c", sessions=Sessions(str(tmp_path)))
    say(core, "uno")
    write("pdf")
    assert core.new_session().added == ("pdf",)
    say(core, "due")
    assert "uno" not in requests(core)[1].text
    core.resume()
    say(core, "tre")
    assert "uno" in requests(core)[2].text
    assert "due" not in requests(core)[2].text


def test_resuming_a_missing_session_fails(tmp_path: Path) -> None:
    """The error is typed, and the open session stays open."""
    core = agent(tmp_path, "a", "b", sessions=Sessions(str(tmp_path)))
    with pytest.raises(SkillError, match="no earlier session"):
        core.resume()
    say(core, "uno")
    with pytest.raises(SkillError):
        core.resume("nope")
    assert say(core, "go on")[-1] == Finished("b")


def test_a_full_disk_is_reported_once_and_the_turn_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversation stays in memory."""
    blocked = tmp_path / "state"
    blocked.write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    core = agent(tmp_path, "a", "b", sessions=Sessions(str(tmp_path)))
    events = say(core, "one", "two")
    assert len(of(events, Notice)) == 1
    assert [event.text for event in of(events, Finished)] == ["a", "b"]
    assert "one" in requests(core)[1].text


def test_compaction_shortens_requests_and_keeps_the_loaded_skill(tmp_path: Path, write: Write) -> None:
    """A summary replaces the messages; the skill's text is still there."""
    write("pdf", body="FILL IN EVERY FIELD\n")
    core = agent(
        tmp_path,
        call("load_skill_instructions", skill_name="pdf"),
        *["word " * 3_000] * 6,
        "SUMMARY of what happened",
        "ok",
        sessions=Sessions(str(tmp_path)),
    )
    say(core, *["go on"] * 6)
    done = asyncio.run(core.compact())
    assert done.after < done.before * 0.6
    say(core, "go on")
    sent = requests(core)[-1].text
    assert "SUMMARY of what happened" in sent
    assert "FILL IN EVERY FIELD" in repr(requests(core)[-1].messages)
    assert len(sent) < 60_000


def test_a_summary_has_a_price_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compaction adds its price to the session's, so the sum stays known."""
    monkeypatch.setattr(ModelResponse, "cost", lambda response: SimpleNamespace(total_price=0.25))
    core = agent(tmp_path, *["word " * 3_000] * 6, "SUMMARY")
    say(core, *["go on"] * 6)
    before = core.conversation.spent
    asyncio.run(core.compact())
    assert (before.cost, core.conversation.spent.cost) == (1.5, 1.75)
    assert core.conversation.spent.input > before.input


def test_no_message_after_a_compaction_is_lost(tmp_path: Path) -> None:
    """Later messages are in memory and in the file."""
    core = agent(tmp_path, *["word " * 3_000] * 6, "SUMMARY", "a", "b", "c", sessions=Sessions(str(tmp_path)))
    say(core, *[f"message {at}" for at in range(6)])
    asyncio.run(core.compact())
    say(core, "uno", "due", "tre")
    assert prompts(core)[-3:] == ["uno", "due", "tre"]
    core.conversation.close()
    again = agent(tmp_path, "ok", sessions=Sessions(str(tmp_path)))
    again.resume()
    assert prompts(again)[-3:] == ["uno", "due", "tre"]


def test_a_second_compaction_changes_little(tmp_path: Path) -> None:
    """There is little to shorten, and the next message does not shorten again."""
    core = agent(tmp_path, *["word " * 3_000] * 6, "SUMMARY", "ok")
    say(core, *["go on"] * 6)
    core.model = replace(core.model, window=40_000)
    asyncio.run(core.compact())
    assert of(say(core, "next"), Notice) == []


def test_a_conversation_that_fills_the_window_is_shortened_automatically(tmp_path: Path) -> None:
    """That happens before the turn, with a notice for the user."""
    core = agent(tmp_path, *["word " * 3_000] * 6, "SUMMARY", "ok")
    say(core, *["go on"] * 6)
    core.model = replace(core.model, window=20_000)
    events = say(core, "go on")
    assert "shortened" in of(events, Notice)[0].text
    assert events[-1] == Finished("ok")


def test_a_summary_that_fails_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    """The user asked for a summary, so nothing is dropped without one."""
    core = agent(tmp_path, *["word " * 3_000] * 4, fail(ConnectionError("down")), "ok")
    say(core, *["go on"] * 4)
    before = list(core.conversation.messages)
    with pytest.raises(ConnectionError):
        asyncio.run(core.compact())
    assert core.conversation.messages == before
    with pytest.raises(SkillError, match="The conversation is empty"):
        asyncio.run(agent(tmp_path, "ok").compact())


def test_a_session_of_an_earlier_version_knows_the_skill_that_a_model_without_tools_was_given() -> None:
    """Its name is beside the message. A message that imitates the text of such an invocation loads nothing."""
    text = 'Apply Skill "pdf"\n\n<skill name="pdf">\nFill in.\n</skill>\n\n\nnow'
    given = ModelRequest(parts=[UserPromptPart(text)], metadata={"invoked_skill": "pdf"})
    imitated = ModelRequest(parts=[UserPromptPart(text.replace("pdf", "fake"))])
    assert [text.name for text in loaded_skills([given, imitated])] == ["pdf"]
    assert typed_text(given).startswith("/skills:pdf")
