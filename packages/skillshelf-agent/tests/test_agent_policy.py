"""What the agent may do without asking."""

import errno
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from agent_kit import User, agent, of, requests, say
from skillshelf import BaseSkill, SkillError, tool
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf_agent import AgentCore, Answer, Approval, Policy
from skillshelf_agent.events import FileWritten, Finished, SkillsReloaded, ToolReturned
from skillshelf_agent.testing import ScriptedModel, call

Write = Callable[..., Path]
WRITE = call("write_file", path="a.txt", content="new\n")
SHELL = call("run_command", command="echo ran > ran.txt")


@pytest.mark.parametrize(
    ("mode", "tools"),
    [("ask", ["write_file", "run_command"]), ("auto-edit", ["run_command"]), ("yolo", []), ("read-only", [])],
)
def test_each_mode_asks_about_its_own_tools(tmp_path: Path, mode: str, tools: list[str]) -> None:
    """All modes allow reading. read-only allows nothing else, and asks no questions."""
    (tmp_path / "b.txt").write_text("b")
    user = User("yes", "yes")
    core = agent(tmp_path, call("read_file", path="b.txt"), WRITE, SHELL, "ok", mode=mode, user=user)
    events = say(core, "go")
    assert [question.tool for question in user.questions] == tools
    allowed = mode != "read-only"
    assert [event.ok for event in of(events, ToolReturned)] == [True, allowed, allowed]
    assert (tmp_path / "a.txt").exists() == (tmp_path / "ran.txt").exists() == allowed


class Notes(BaseSkill):
    """A skill with a tool that asks and one that does not."""

    name = "notes"
    description = "Keeps notes."
    instructions = "Call keep or look."

    @tool
    def look(self) -> str:
        """Return the notes."""
        return "none"

    @tool
    def keep(self, text: str) -> str:
        """Keep a note."""
        return text


def offered_tools(core: AgentCore) -> set[str]:
    return {*requests(core)[-1].tools} & {"read_file", "write_file", "edit_file", "run_command", "look", "keep"}


def test_tools_that_the_mode_blocks_are_not_offered(tmp_path: Path) -> None:
    """The prompt names them, a call is refused all the same, and another mode brings them back."""
    script = ScriptedModel(WRITE, call("keep", text="x"), "refused", "offered")
    core = AgentCore(
        script, WorkspaceSkills(tmp_path, [Notes().with_policy({"keep": "ask"})]), policy=Policy("read-only")
    )
    before = dict(core.context.tools)
    results = of(say(core, "go"), ToolReturned)
    assert [result.refused for result in results] == [True, True]
    assert "the policy is read-only" in results[0].text
    assert offered_tools(core) == {"read_file", "look"}
    assert core.withheld_tools == ("edit_file", "keep", "run_command", "write_file")
    blocked = "The user's policy blocks these tools, so you do not have them: edit_file, keep, run_command, write_file."
    assert blocked in requests(core)[-1].system

    core.gate.policy.set("ask")
    say(core, "go")
    assert offered_tools(core) == {"read_file", "write_file", "edit_file", "run_command", "look", "keep"}
    assert not core.withheld_tools
    assert "policy blocks" not in requests(core)[-1].system
    after = dict(core.context.tools)
    assert all(after[owner] > before[owner] > 0 for owner in ("", "notes"))


def test_a_refused_write_changes_nothing_and_the_model_learns_of_it(tmp_path: Path, write: Write) -> None:
    """No file and no reload, and the result says not to try again."""
    path = write("pdf")
    before = path.read_text()
    edit = call("edit_file", path="pdf/SKILL.md", old_text="Do it.", new_text="Do evil.")
    core = agent(tmp_path, edit, "Understood.", mode="ask", user=User("no"))
    events = say(core, "change it")
    (result,) = of(events, ToolReturned)
    assert not result.ok
    assert "denied this call" in result.text
    assert path.read_text() == before
    assert of(events, SkillsReloaded) == []
    assert "denied this call" in requests(core)[1].text


def test_without_a_way_to_ask_a_call_is_refused(tmp_path: Path) -> None:
    """The message says how the user can allow such calls."""
    core = agent(tmp_path, WRITE, "ok", mode="ask")
    (result,) = of(say(core, "go"), ToolReturned)
    assert not result.ok
    assert "--policy" in result.text
    assert not (tmp_path / "a.txt").exists()


def test_the_user_sees_the_change_before_it_happens(tmp_path: Path) -> None:
    """The question has a diff against the file as it is."""
    (tmp_path / "a.txt").write_text("old\nsame\n")
    user = User("no", "no")
    edit = call("edit_file", path="a.txt", old_text="same", new_text="other")
    core = agent(tmp_path, call("write_file", path="a.txt", content="new\nsame\n"), edit, "ok", mode="ask", user=user)
    say(core, "go")
    assert user.questions[0].diff.splitlines()[3:] == ["-old", "+new", " same"]
    assert user.questions[1].diff.splitlines()[3:] == [" old", "-same", "+other"]


def test_always_holds_for_the_session_and_ends_with_the_mode(tmp_path: Path) -> None:
    """ "always" answers all further calls of a tool until the mode is set again."""
    user = User("always", "no")
    core = agent(tmp_path, WRITE, WRITE, SHELL, "ok", WRITE, "ok", mode="ask", user=user)
    say(core, "go")
    assert [question.tool for question in user.questions] == ["write_file", "run_command"]
    core.gate.policy.set("ask")
    user.answers.append("no")
    say(core, "again")
    assert [question.tool for question in user.questions][2:] == ["write_file"]


def test_always_covers_writes_and_edits_alike(tmp_path: Path) -> None:
    """Also those that the model asked for in the same breath, and those after a new session."""
    user = User("always")
    other = call("write_file", path="b.txt", content="b")
    edit = call("edit_file", path="b.txt", old_text="b", new_text="c")
    core = agent(tmp_path, [WRITE, other], edit, "ok", WRITE, "ok", mode="ask", user=user)
    first = say(core, "go")
    core.new_session()
    say(core, "again")
    assert [question.arguments["path"] for question in user.questions] == ["a.txt"]
    assert (tmp_path / "b.txt").read_text() == "c"
    confirmed = {event.path: event.confirmed for event in of(first, FileWritten)}  # calls made at once end in any order
    assert confirmed == {"a.txt": True, "b.txt": False}


@pytest.mark.parametrize(
    "path", ["new/SKILL.md", "new/./SKILL.md", "new/SKILL.md/", "new/skill.md", "new/ſkill.md", "AGENTS.md"]
)
def test_auto_edit_asks_before_the_agent_changes_its_instructions(tmp_path: Path, path: str) -> None:
    """A SKILL.md or AGENTS.md is not a file like others, however its path is spelled."""
    user = User("no")
    core = agent(tmp_path, call("write_file", path=path, content="x"), "ok", mode="auto-edit", user=user)
    say(core, "go")
    assert [question.arguments["path"] for question in user.questions] == [path]


@pytest.mark.parametrize("path", ["link.md", "linked/SKILL.md"])
def test_a_link_to_instructions_is_not_written_through(tmp_path: Path, path: str, write: Write) -> None:
    """The model learns which path the link leads to, and a write there needs approval."""
    skill = write("old")
    (tmp_path / "link.md").symlink_to(skill)
    (tmp_path / "linked").symlink_to(tmp_path / "old")
    before = skill.read_text()
    core = agent(tmp_path, call("write_file", path=path, content="x"), "ok", mode="auto-edit", user=User())
    (result,) = of(say(core, "go"), ToolReturned)
    assert not result.ok
    assert "Use the path it leads to: 'old/SKILL.md'" in result.text
    assert skill.read_text() == before


def test_several_calls_at_once_are_asked_about_one_by_one(tmp_path: Path) -> None:
    """A yes to one call does not allow another."""
    user = User("yes", "no")
    other = call("write_file", path="b.txt", content="b")
    core = agent(tmp_path, [WRITE, other], "ok", mode="ask", user=user)
    say(core, "both")
    assert (tmp_path / "a.txt").exists()
    assert not (tmp_path / "b.txt").exists()


def test_an_unknown_mode_names_the_known_ones() -> None:
    """The error is typed."""
    with pytest.raises(SkillError, match="read-only"):
        Policy("maybe")  # type: ignore[arg-type]


def test_allowed_tools_of_a_skill_widen_nothing(tmp_path: Path) -> None:
    """A skill's author may wish for tools; the user is still asked."""
    skill = tmp_path / "pdf" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("---\nname: pdf\ndescription: d\nallowed-tools: run_command write_file\n---\nRun it.\n")
    user = User("no")
    core = agent(tmp_path, SHELL, "ok", mode="ask", user=user)
    say(core, "/skills:pdf")
    assert [question.tool for question in user.questions] == ["run_command"]
    assert not (tmp_path / "ran.txt").exists()


def test_a_command_inside_a_skill_is_text(tmp_path: Path, write: Write) -> None:
    """Invoking a skill runs nothing."""
    write("pdf", body="Look: !`touch pwned`\n")
    core = agent(tmp_path, "ok")
    say(core, "/skills:pdf")
    assert "!`touch pwned`" in requests(core)[0].text
    assert not (tmp_path / "pwned").exists()


def test_the_tools_cannot_reach_the_agents_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model cannot write trust records and sessions, even if they lie in the workspace."""
    monkeypatch.setenv("HOME", str(tmp_path))
    target = ".local/state/skillshelf/trust/approvals.json"
    (tmp_path / target).parent.mkdir(parents=True)
    core = agent(tmp_path, call("write_file", path=target, content="{}"), call("read_file", path=target), "ok")
    assert [event.ok for event in of(say(core, "go"), ToolReturned)] == [False, False]
    assert not (tmp_path / target).exists()


def test_always_does_not_cover_instructions(tmp_path: Path) -> None:
    """A yes to all writes does not allow new instructions."""
    user = User("always", "no")
    skill = call("write_file", path="new/SKILL.md", content="x")
    core = agent(tmp_path, WRITE, skill, "ok", mode="ask", user=user)
    say(core, "go")
    assert [question.arguments["path"] for question in user.questions] == ["a.txt", "new/SKILL.md"]


class BrokenCall(FunctionModel):
    """Writes a file with these arguments, which are not JSON."""

    def __init__(self, arguments: str) -> None:
        super().__init__(stream_function=self._say)
        self.arguments = arguments
        self.calls = 0

    async def _say(self, messages: object, info: object) -> AsyncIterator[Any]:
        self.calls += 1
        if self.calls == 1:
            yield {0: DeltaToolCall("write_file", self.arguments, tool_call_id="1")}
        else:
            yield "ok"


@pytest.mark.parametrize(
    "arguments",
    ['{"path": "new/SKILL.md", "content": "evil\\n"', '{"path": "new/SKILL.md", "content": "evil\n"}'],
    ids=["without the last bracket", "with a line break inside a string"],
)
def test_the_question_shows_the_call_that_will_run(tmp_path: Path, arguments: str) -> None:
    """This also holds if the model's JSON had to be repaired."""
    user = User("no")
    core = AgentCore(BrokenCall(arguments), tmp_path, policy=Policy("auto-edit"), approve=user)
    say(core, "go")
    assert [question.arguments for question in user.questions] == [{"path": "new/SKILL.md", "content": "evil\n"}]
    assert "+evil" in user.questions[0].diff
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "arguments", ['{"path": "a.txt", "content": "half of', '{"path": "a.txt", "content": half}', "["]
)
def test_a_call_that_ends_in_the_middle_is_not_run(tmp_path: Path, arguments: str) -> None:
    """The model learns what is missing, and half a file is not written."""
    core = AgentCore(BrokenCall(arguments), tmp_path, policy=Policy("yolo"))
    assert [event.ok for event in of(say(core, "go"), ToolReturned)] == [False]
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize("path", ["a\0b/c.txt", "../out.txt", "/etc/hostname", "secrets/deep/x.txt", "pipe"])
def test_a_write_that_fails_is_a_result_and_leaves_nothing(tmp_path: Path, path: str) -> None:
    """The turn goes on, nothing hangs, and no folder is left behind."""
    os.mkfifo(tmp_path / "pipe")
    core = agent(tmp_path, call("write_file", path=path, content="x"), "ok", mode="ask", user=User("yes"))
    events = say(core, "go")
    assert [event.ok for event in of(events, ToolReturned)] == [False]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


def test_always_for_a_command_is_for_that_command(tmp_path: Path) -> None:
    """A yes to `ls` does not allow `rm`."""
    user = User("always", "no")
    listing, other = call("run_command", command="ls"), call("run_command", command="rm -rf x")
    core = agent(tmp_path, listing, listing, other, "ok", mode="ask", user=user)
    say(core, "go")
    assert [question.arguments["command"] for question in user.questions] == ["ls", "rm -rf x"]


def test_a_refused_call_is_not_a_failed_one(tmp_path: Path) -> None:
    """The mode, the user, or the lack of a way to ask can refuse a call. A tool that ran and failed was not refused."""
    failing = call("read_file", path="missing.txt")
    for mode, user in [("read-only", None), ("ask", None), ("ask", User("no", "no"))]:
        core = agent(tmp_path, WRITE, SHELL, failing, "ok", mode=mode, user=user)
        results = of(say(core, "go"), ToolReturned)
        assert [result.refused for result in results] == [True, True, False]
        assert not any(result.ok for result in results)


def test_a_refusal_after_the_file_changed_is_a_refusal_too(tmp_path: Path) -> None:
    """The user allows a write, another program changes the file, and the user does not allow the new change."""
    file = tmp_path / "a.txt"
    file.write_text("old\n")
    answers: list[Answer] = ["yes", "no"]

    async def approve(question: Approval) -> Answer:
        file.write_text(f"changed before answer {len(answers)}\n")
        return answers.pop(0)

    core = AgentCore(ScriptedModel(WRITE, "ok"), tmp_path, policy=Policy("ask"), approve=approve)
    (result,) = of(say(core, "go"), ToolReturned)
    assert result.refused
    assert result.text.startswith("The file changed after this call was allowed")


def test_a_command_that_cannot_be_started_is_a_failed_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model gets the reason, and the turn goes on."""

    async def fail_to_start(*arguments: Any, **options: Any) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr("asyncio.create_subprocess_exec", fail_to_start)
    events = say(agent(tmp_path, SHELL, "Too bad."), "go")
    (result,) = of(events, ToolReturned)
    assert (result.ok, result.refused) == (False, False)
    assert result.text == "The command could not be started: Resource temporarily unavailable."
    assert events[-1] == Finished("Too bad.")


def test_always_for_another_tool_is_for_these_arguments(tmp_path: Path) -> None:
    """A tool of a raw skill can do anything with others."""

    class Shop(BaseSkill):
        name = "shop"
        description = "Orders. Use for orders."
        category = "raw"

        @tool
        def delete(self, order: int) -> str:
            """Delete an order."""
            return f"deleted {order}"

    user = User("always", "no")
    model = ScriptedModel(call("delete", order=1), call("delete", order=1), call("delete", order=2), "ok")
    core = AgentCore(
        model, WorkspaceSkills(tmp_path, [Shop().with_policy({"delete": "ask"})]), policy=Policy("ask"), approve=user
    )
    results = of(say(core, "go"), ToolReturned)
    assert [question.arguments for question in user.questions] == [{"order": 1}, {"order": 2}]
    assert [result.ok for result in results] == [True, True, False]
