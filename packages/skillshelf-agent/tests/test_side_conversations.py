"""A skill with `context: fork` runs in a conversation of its own, and only its result comes back."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agent_kit import User, agent, of, prompts, requests, say
from script_kit import write_skill
from skillshelf.errors import ModelUnavailableError
from skillshelf.listing import parse
from skillshelf.trust import Trust, review_text
from skillshelf_agent import AgentCore, ChosenModel, Policy, Settings, resolve
from skillshelf_agent._models import find_sibling
from skillshelf_agent.events import (
    Failed,
    Finished,
    Notice,
    SideStarted,
    SkillLoaded,
    Text,
    ToolCalled,
    ToolReturned,
    Usage,
    from_json,
)
from skillshelf_agent.sessions import Sessions, export_json, export_markdown
from skillshelf_agent.testing import ScriptedModel, call, fail

FORK = "context: fork\n"


def write_fork(folder: Path, frontmatter: str = FORK, body: str = "FORK-INSTRUCTIONS\n") -> None:
    write_skill(folder, {"references/a.md": "text"}, frontmatter, body)


def test_a_skill_that_the_model_runs_apart_returns_its_result_alone(tmp_path: Path) -> None:
    """The side conversation has the instructions and the task, the main one neither its words nor its tool calls."""
    write_fork(tmp_path / "audit")
    (tmp_path / "a.txt").write_text("SEEN-IN-THERE")
    inside = [call("read_file", path="a.txt"), "The audit is clean."]
    core = agent(tmp_path, call("run_skill", skill_name="audit", task="Audit a.txt"), *inside, "All is well.")
    events = say(core, "MAIN-MESSAGE")
    assert of(events, Finished)[0].text == "All is well."
    assert of(events, ToolReturned)[-1].text == "The audit is clean."

    outer, first, second, last = requests(core)
    assert "MAIN-MESSAGE" not in first.text
    assert "FORK-INSTRUCTIONS" in first.text
    assert "Audit a.txt" in first.text
    assert "Your last message is the result" in first.system
    assert "Your last message is the result" not in outer.system
    assert "SEEN-IN-THERE" in second.text
    assert "FORK-INSTRUCTIONS" not in last.text
    assert "SEEN-IN-THERE" not in last.text
    assert "The audit is clean." in last.text


def test_events_of_a_side_conversation_carry_its_skill(tmp_path: Path) -> None:
    """A program can tell them apart, and all tokens count."""
    write_fork(tmp_path / "audit")
    inside = [call("list_directory", path="."), "Clean."]
    core = agent(tmp_path, call("run_skill", skill_name="audit", task="Audit"), *inside, "Done.")
    events = say(core, "go")
    started = of(events, SideStarted)
    assert [(event.skill, event.task, event.model) for event in started] == [("audit", "Audit", core.model.name)]
    assert [(event.name, event.side) for event in of(events, ToolCalled)] == [
        ("run_skill", ""),
        ("list_directory", "audit"),
    ]
    assert [(event.skill, event.side) for event in of(events, SkillLoaded)] == [("audit", "audit")]
    assert "".join(event.text for event in of(events, Text)) == "Done."
    assert sum(event.input for event in of(events, Usage)) == core.conversation.spent.input
    assert len(of(events, Usage)) == 4
    for event in events:
        assert from_json(json.loads(json.dumps(event.as_json()))) == event
    assert "side" not in of(events, Finished)[0].as_json()


def test_a_skill_that_the_user_invokes_apart_answers(tmp_path: Path) -> None:
    """The conversation keeps the command and the result, and goes on."""
    write_fork(tmp_path / "audit")
    core = agent(tmp_path, call("list_directory", path="."), "Clean.", "As I said.")
    events = say(core, "/skills:audit the code")
    assert of(events, Finished)[0].text == "Clean."
    assert "".join(event.text for event in of(events, Text)) == "Clean."
    assert "the code" in requests(core)[0].text
    say(core, "And?")
    assert prompts(core) == ["/skills:audit the code", "And?"]
    assert "Clean." in requests(core)[2].text
    assert "FORK-INSTRUCTIONS" not in requests(core)[2].text


def test_the_listing_says_that_a_skill_runs_apart(tmp_path: Path) -> None:
    """Its instructions are never in the listing, and the tool is offered only if there is such a skill."""
    write_skill(tmp_path / "pdf", {})
    core = agent(tmp_path, "ok", "ok")
    say(core, "go")
    assert "run_skill" not in requests(core)[0].tools
    write_fork(tmp_path / "audit", FORK + "disclosure: always\n")
    say(core, "go")
    assert "run_skill" in requests(core)[1].tools
    entries = {entry.name: entry for entry in parse(core.shelf.listing(disclosure="full").text)}
    assert entries["audit"].runs_apart
    assert entries["audit"].instructions is None
    assert entries["pdf"].instructions is not None
    assert not core.shelf.listing(disclosure="full").shortened


def test_loading_a_skill_that_runs_apart_leads_to_the_tool(tmp_path: Path) -> None:
    """Its references can be loaded as usual."""
    write_fork(tmp_path / "audit")
    loads = [
        call("load_skill_instructions", skill_name="audit"),
        call("load_skill_instructions", skill_name="audit", reference="a.md"),
    ]
    first, second = of(say(agent(tmp_path, *loads, "ok"), "go"), ToolReturned)
    assert "run_skill(skill_name, task)" in first.text
    assert "FORK-INSTRUCTIONS" not in first.text
    assert second.text == "text"


def test_a_side_conversation_starts_no_other_one(tmp_path: Path) -> None:
    """It may load another skill that runs apart, and follow it."""
    write_fork(tmp_path / "audit")
    write_fork(tmp_path / "other", body="OTHER-INSTRUCTIONS\n")
    inside = [
        call("run_skill", skill_name="other", task="x"),
        call("load_skill_instructions", skill_name="other"),
        "Clean.",
    ]
    core = agent(tmp_path, call("run_skill", skill_name="audit", task="x"), *inside, "Done.")
    results = of(say(core, "go"), ToolReturned)
    assert not results[0].ok
    assert "OTHER-INSTRUCTIONS" in results[1].text
    assert [request.tools.count("run_skill") for request in requests(core)] == [1, 0, 0, 0, 1]


def test_tools_in_a_side_conversation_are_asked_about(tmp_path: Path) -> None:
    """The policy is the same, and a refusal reaches the model in there."""
    write_fork(tmp_path / "audit")
    user = User("no")
    inside = [call("write_file", path="a.txt", content="x"), "Not written."]
    core = agent(tmp_path, call("run_skill", skill_name="audit", task="x"), *inside, "Done.", mode="ask", user=user)
    results = of(say(core, "go"), ToolReturned)
    assert [question.tool for question in user.questions] == ["write_file"]
    assert (results[0].refused, results[0].side) == (True, "audit")
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("skill", ["missing", "pdf", "hidden"])
def test_only_skills_that_run_apart_and_are_for_the_model_are_run(tmp_path: Path, skill: str) -> None:
    write_fork(tmp_path / "audit")
    write_skill(tmp_path / "pdf", {})
    write_fork(tmp_path / "hidden", FORK + "disclosure: manual\n")
    core = agent(tmp_path, call("run_skill", skill_name=skill, task="x"), "Done.")
    (result,) = of(say(core, "go"), ToolReturned)
    assert not result.ok
    assert len(requests(core)) == 2


def test_an_error_in_a_side_conversation_is_a_result(tmp_path: Path) -> None:
    """The main conversation goes on with it. If the user asked, the turn fails."""
    write_fork(tmp_path / "audit")
    core = agent(
        tmp_path,
        call("run_skill", skill_name="audit", task="x"),
        fail(RuntimeError("overloaded")),
        "I see.",
        fail(RuntimeError("overloaded")),
    )
    events = say(core, "go")
    assert not of(events, ToolReturned)[0].ok
    assert of(events, Finished)[0].text == "I see."
    assert of(say(core, "/skills:audit"), Failed)


def test_stopping_ends_a_side_conversation(tmp_path: Path) -> None:
    """The command in it ends, and the conversation can go on."""
    write_fork(tmp_path / "audit")
    steps = [call("run_command", command="touch started; sleep 1000"), "never"]
    core = agent(tmp_path, call("run_skill", skill_name="audit", task="x"), *steps)

    async def stop_when_started() -> list[object]:
        async def watch() -> None:
            while not (tmp_path / "started").exists():
                await asyncio.sleep(0.01)
            core.cancel()

        watcher = asyncio.create_task(watch())
        events = [event async for event in core.process_message("go")]
        await watcher
        return list(events)

    events = asyncio.run(stop_when_started())
    assert isinstance(events[-1], Finished)
    assert events[-1].stopped
    assert len(requests(core)) == 2


def test_the_session_keeps_a_side_conversation_readable(tmp_path: Path) -> None:
    """In its place in both exports, also after the session was opened again; the model gets the result alone."""
    write_fork(tmp_path / "audit")
    sessions = Sessions(str(tmp_path))
    core = agent(
        tmp_path,
        *[call("run_skill", skill_name="audit", task="THE-TASK"), "SIDE-RESULT", "Done."],
        "USER-RESULT",
        sessions=sessions,
    )
    say(core, "go", "/skills:audit USER-TASK")
    identifier = core.conversation.id
    core.new_session()
    with sessions.open(identifier) as session:
        text = export_markdown(session)
        plain = json.loads(export_json(session))
        history = str(session.messages)
    assert text.index("THE-TASK") < text.index("SIDE-RESULT")
    assert text.index("### The side conversation of `audit`") < text.index("FORK-INSTRUCTIONS")
    assert text.index("Done.") < text.index("USER-TASK") < text.rindex("### The side conversation of `audit`")
    assert [side["skill"] for side in plain["sides"]] == ["audit", "audit"]
    assert "FORK-INSTRUCTIONS" not in history


def test_a_skill_that_is_not_approved_does_not_run_apart(tmp_path: Path) -> None:
    write_fork(tmp_path / "audit")
    core = agent(tmp_path, call("run_skill", skill_name="audit", task="x"), "ok", trust=Trust.open())
    (result,) = of(say(core, "go"), ToolReturned)
    assert not result.ok
    assert of(say(core, "/skills:audit"), Failed)


def test_the_review_says_how_a_skill_runs(tmp_path: Path) -> None:
    """Its own conversation, its model and its variables, so that the user approves them knowingly."""
    write_fork(tmp_path / "audit", FORK + "model: opus\nmetadata:\n  env: API_KEY\n")
    core = agent(tmp_path, "ok", trust=Trust.open())
    (pending,) = core.skills.pending
    text = review_text(pending)
    assert "How it runs:" in text
    assert "context: fork: it runs in a conversation of its own" in text
    assert "model: opus: it asks for this model, at its price" in text
    assert "environment variables for its scripts, which you are asked for: API_KEY" in text


# -- the model of a skill ---------------------------------------------------------------------------------------------


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> ChosenModel:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    return resolve(Settings(model="anthropic:claude-sonnet-4-5"))


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("claude-opus-4-5", "anthropic:claude-opus-4-5"),
        ("anthropic:claude-opus-4-5", "anthropic:claude-opus-4-5"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
    ],
)
def test_a_known_model_of_the_same_provider_is_used(claude: ChosenModel, wanted: str, name: str) -> None:
    assert find_sibling(claude, wanted).name == name


def test_a_family_means_its_newest_model(claude: ChosenModel) -> None:
    """Skills written for Claude Code say haiku, sonnet or opus."""
    chosen = find_sibling(claude, "haiku")
    assert chosen.name.startswith("anthropic:claude-haiku-")
    assert chosen.name != "anthropic:claude-haiku-4-5-20251001"


@pytest.mark.parametrize("wanted", ["openai:gpt-5", "gpt-5", "claude-unheard-of-9", "../x", "opus\n"])
def test_no_other_provider_and_no_unknown_model_is_asked(claude: ChosenModel, wanted: str) -> None:
    with pytest.raises(ModelUnavailableError):
        find_sibling(claude, wanted)


def test_a_server_of_the_users_own_is_never_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name is that of a model at OpenAI, but the user talks to another address."""
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    served = resolve(Settings(model="tiny", base_url="http://localhost:1/v1"))
    with pytest.raises(ModelUnavailableError, match="served"):
        find_sibling(served, "gpt-5")


def test_the_user_is_informed_when_another_model_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has another price."""
    write_fork(tmp_path / "audit", FORK + "model: claude-opus-4-5\n")
    core = agent(tmp_path, "Clean.")
    core.model = replace(core.model, name="anthropic:claude-sonnet-4-5")
    monkeypatch.setattr("skillshelf_agent._models._make_from_name", lambda name: core.model.model)
    events = say(core, "/skills:audit")
    assert [event.model for event in of(events, SideStarted)] == ["anthropic:claude-opus-4-5"]
    assert [event.text for event in of(events, Notice)] == [
        "audit asks for the model anthropic:claude-opus-4-5, which answers now, at its own price."
    ]


@pytest.mark.parametrize("frontmatter", [FORK + "model: opus\n", "model: opus\n"], ids=["apart", "inline"])
def test_a_model_that_cannot_be_had_is_reported_once(tmp_path: Path, frontmatter: str) -> None:
    """The model in use answers instead."""
    write_fork(tmp_path / "audit", frontmatter)
    core = agent(tmp_path, "First.", "Second.")
    events = say(core, "/skills:audit", "/skills:audit")
    notices = [event.text for event in of(events, Notice)]
    assert len(notices) == 1
    assert "audit asks for another model" in notices[0]
    assert [event.text for event in of(events, Finished)] == ["First.", "Second."]


def test_the_model_in_use_stays_if_a_skill_says_inherit(tmp_path: Path) -> None:
    write_fork(tmp_path / "audit", FORK + "model: inherit\n")
    core = AgentCore(ScriptedModel("Clean."), tmp_path, policy=Policy("yolo"))
    assert of(say(core, "/skills:audit"), Notice) == []
