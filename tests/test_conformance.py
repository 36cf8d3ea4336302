"""The conformance kit finds what is wrong with a face, and every face of ours passes."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillshelf import Shelf, SkillDiscoverySkill, SkillError
from skillshelf.listing import parse
from skillshelf.testing.conformance import FACES, STEPS, Call, Outcome, Reply, Result, Stage, run, server_command

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("name", FACES)
def test_every_face_passes_every_step(name: str) -> None:
    """Offline, with the framework's own fake model; MCP also over real pipes and sockets."""
    report = asyncio.run(run(FACES[name]()))
    assert [one.step for one in report.outcomes] == list(STEPS)
    assert report.passed, report


class Loop:
    """A face without a framework, which does everything right. Each fault below is one thing done otherwise."""

    name = "loop"

    async def open(self, shelf: Shelf) -> Any:
        self.shelf = shelf
        self.tools = {tool.name: tool for tool in (*SkillDiscoverySkill(shelf).tools(), *shelf.tools())}
        return self

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        with self.shelf.turn():
            requests, results = [self.request(text)], []
            for call in calls:
                results.append(self.call(call))
                requests.append(self.request(text))
        system_prompts, last_messages = zip(*requests, strict=True)
        return Reply(system_prompts, tuple(self.tools), tuple(results), answer, last_messages)

    def request(self, text: str) -> tuple[str, str]:
        """The system prompt, and the end, of the next request."""
        return self.shelf.listing().text, ""

    def call(self, call: Call) -> Result:
        try:
            return Result(str(self.tools[call.tool].call(call.arguments, approved=call.approve)), failed=False)
        except SkillError as error:
            return Result(str(error), failed=True)

    async def close(self) -> None:
        """Nothing is open."""


class ListsOnce(Loop):
    """The listing is part of the agent's instructions, which are made when it is."""

    async def open(self, shelf: Shelf) -> Any:
        self.listing = shelf.listing().text
        return await super().open(shelf)

    def request(self, text: str) -> tuple[str, str]:
        return self.listing, ""


class ListsOnceARun(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        reply = await super().say(text, calls, answer)
        return replace(reply, system_prompts=reply.system_prompts[:1] * len(reply.system_prompts))


class ListsWithTheTime(Loop):
    """No provider finds such a prompt in its cache."""

    def request(self, text: str) -> tuple[str, str]:
        return f"{time.monotonic_ns()}\n{super().request(text)[0]}", ""


class ForgetsNotes(Loop):
    """Once the conversation is long, the section stays as it was sent, and what changed since is told nowhere."""

    sent, length = "", 0

    def request(self, text: str) -> tuple[str, str]:
        self.length += len(text)
        if not self.sent or self.length < 4096:
            self.sent = self.shelf.listing().text
        return self.sent, ""


class TellsNotes(ForgetsNotes):
    def request(self, text: str) -> tuple[str, str]:
        sent, now = super().request(text)[0], self.shelf.listing().text
        before, after = ({entry.name for entry in parse(section)} for section in (sent, now))
        return sent, f"The available skills changed. Removed: {', '.join(before - after)}.\n{now}"


class HasNoCodeTools(Loop):
    async def open(self, shelf: Shelf) -> Any:
        await super().open(shelf)
        self.tools = {tool.name: tool for tool in SkillDiscoverySkill(shelf).tools()}
        return self

    def call(self, call: Call) -> Result:
        return super().call(call) if call.tool in self.tools else Result(f"{call.tool} is blocked", failed=True)


class RunsWhatIsBlocked(Loop):
    def call(self, call: Call) -> Result:
        tool = self.tools[call.tool]
        return Result(tool.method(**call.arguments), False) if tool.permission == "blocked" else super().call(call)


class ApprovesEverything(Loop):
    def call(self, call: Call) -> Result:
        return super().call(replace(call, approve=True))


class NeverAsks(Loop):
    def call(self, call: Call) -> Result:
        return super().call(replace(call, approve=False))


class Unattended(NeverAsks):
    exceptions = {"approval": "nobody is there to ask"}  # noqa: RUF012


class MarksNothing(Loop):
    def call(self, call: Call) -> Result:
        return replace(super().call(call), failed=None)


class HasNoMarks(MarksNothing):
    exceptions = {"errors-marked": "there is no such mark"}  # noqa: RUF012


class MarksAllAsFine(HasNoMarks):
    def call(self, call: Call) -> Result:
        return replace(super().call(call), failed=False)


class MasksErrors(Loop):
    def call(self, call: Call) -> Result:
        result = super().call(call)
        return replace(result, text="Something went wrong.") if result.failed else result


REFUSALS = ["traversal refused", "unknown skill", "removed skill gone", "denial typed"]


@pytest.mark.parametrize(
    ("face", "found"),
    [
        (Loop, []),
        (ListsOnce, ["listing present", "edit seen next turn", "removed skill gone"]),
        (ListsOnceARun, ["listing present", "edit seen next turn"]),
        (ListsWithTheTime, ["listing present"]),
        (ForgetsNotes, ["edit seen next turn", "removed skill gone"]),
        (TellsNotes, []),
        (HasNoCodeTools, ["listing present", "edit seen next turn", "denial typed"]),
        (RunsWhatIsBlocked, ["denial typed"]),
        (ApprovesEverything, ["denial typed"]),
        (NeverAsks, ["denial typed"]),
        (Unattended, []),
        (MarksNothing, [step for step in STEPS if step not in ("repeat load cached", "events recorded")]),
        (HasNoMarks, []),
        (MarksAllAsFine, REFUSALS),
        (MasksErrors, REFUSALS),
    ],
)
def test_a_fault_is_found_by_the_steps_it_breaks(face: type[Loop], found: list[str]) -> None:
    """And by no other: a report says where to look."""
    report = asyncio.run(run(face()))
    assert [one.step for one in report.outcomes if one.problem] == found, report


def test_what_a_face_declares_is_noted_where_it_counts() -> None:
    """A step that passed because less was asked of it says so."""
    notes = {one.step: one.note for one in asyncio.run(run(HasNoMarks())).outcomes if one.note}
    assert notes == dict.fromkeys(REFUSALS, "there is no such mark")
    notes = {one.step: one.note for one in asyncio.run(run(Unattended())).outcomes if one.note}
    assert notes == {"denial typed": "nobody is there to ask"}


class DropsResults(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        return replace(await super().say(text, calls, answer), results=())


class SaysNothing(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Any:
        """An author forgot the return."""


def test_what_is_missing_is_said_in_words() -> None:
    """Not as the exception that the kit would stumble over."""
    problems = [one.problem for one in asyncio.run(run(DropsResults())).outcomes]
    assert problems[1] == "expected a result for each of 1 tool calls, not 0; found ()"
    assert "Error" not in "".join(problems)
    problems = [one.problem for one in asyncio.run(run(SaysNothing())).outcomes]
    assert problems[0] == "expected a Reply(…); found None"


class Hangs(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        if calls and calls[0].arguments.get("skill_name") == "alhpa":
            await asyncio.Event().wait()
        return await super().say(text, calls, answer)


def test_a_face_that_hangs_fails_the_step() -> None:
    """The steps after it are not tried: nobody knows what state it is in."""
    outcomes = asyncio.run(run(Hangs(), limit=5)).outcomes
    assert [one.problem for one in outcomes[:4]] == ["", "", "", ""]
    assert outcomes[4] == Outcome("unknown skill", "expected an answer; none came within 5 seconds")
    assert [one.problem for one in outcomes[5:]] == ["not tried, because 'unknown skill' did not end"] * 5


class Dawdles(Loop):
    """Answers, but holds up everything else until it does."""

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        time.sleep(0.2)
        return await super().say(text, calls, answer)


def test_a_step_that_holds_up_the_event_loop_beyond_its_limit_has_failed() -> None:
    """The clock counts, also where nothing could be cancelled; the steps after it are tried."""
    outcomes = asyncio.run(run(Dawdles(), limit=0.1)).outcomes
    assert ["held up the event loop" in one.problem for one in outcomes] == [True] * len(STEPS)


class OpensNot(Loop):
    async def open(self, shelf: Shelf) -> Any:
        raise OSError("the port is taken")


class ClosesNot(Loop):
    async def close(self) -> None:
        await asyncio.Event().wait()


def test_a_face_must_open_and_close() -> None:
    """What goes wrong there is a finding too."""
    problems = {one.problem for one in asyncio.run(run(OpensNot())).outcomes}
    assert problems == {"the conversation did not open: OSError: the port is taken"}
    problem = asyncio.run(run(ClosesNot(), limit=5)).outcomes[-1].problem
    assert problem == "the conversation did not close: expected an answer; none came within 5 seconds"


@pytest.mark.parametrize("name", ["mcp-stdio", "mcp-http"])
def test_a_server_is_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    """What it puts on its shelf is not on ours until we look."""
    pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")
    stage = Stage(str(tmp_path))

    async def main() -> Reply:
        conversation = await FACES[name]().open(stage.shelf)
        try:
            return await conversation.say("hi", [Call("add_skill", {"name": "gamma"})], "Done.")
        finally:
            await conversation.close()

    assert "Added as gamma." in asyncio.run(main()).system_prompts[-1]
    assert "gamma" not in stage.shelf.catalog
    assert stage.recorded("ran") == ["add_skill"]


def test_a_server_leaves_with_whoever_began_it(tmp_path: Path) -> None:
    """Also where that was killed: no port stays open."""
    pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")
    words = server_command(Stage(str(tmp_path)).shelf, "--http", "--port", "0")
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stderr
        assert "http://127.0.0.1:" in process.stderr.readline()
        process.stdin.close()
        process.wait(20)


def test_the_matrix_is_printed_and_for_programs(run: Run) -> None:
    """One row a face, one column a step; what a face declares is marked and said."""
    code, out, _ = run("conformance", "pydantic-ai")
    assert code == 0
    assert out.splitlines()[1].split()[:3] == ["pydantic-ai", "ok", "ok"]
    pytest.importorskip("claude_agent_sdk")
    code, out, _ = run("conformance", "claude-agent")
    assert out.splitlines()[1].split()[:4] == ["claude-agent", "ok", "(1)", "ok"]
    assert "\n(1) Claude Code makes the model calls itself" in out
    code, out, _ = run("conformance", "claude-agent", "--json")
    (face,) = json.loads(out)["faces"]
    assert (face["face"], face["passed"], list(face["steps"])) == ("claude-agent", True, list(STEPS))
    assert list(face["notes"]) == ["listing present", "edit seen next turn"]


class Blocks(Loop):
    """It waits without leaving its event loop anything to do: it cannot be cancelled."""

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        if calls and calls[0].tool != "list_skills":
            threading.Event().wait()  # in a thread of the command's that nobody waits for
        return await super().say(text, calls, answer)


class Broken:
    def __init__(self) -> None:
        raise ImportError("no name 'Agent'")


def test_no_face_holds_up_the_command(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that blocks and one that is broken are rows with faults, and the others have theirs."""
    monkeypatch.setattr("skillshelf.testing.conformance._scenario.STEP_SECONDS", 5.0)
    monkeypatch.setattr("skillshelf.testing.conformance.STEP_SECONDS", 5.0)
    monkeypatch.setattr("skillshelf.cli._conformance._GRACE_SECONDS", 0.5)
    monkeypatch.setattr(
        "skillshelf.testing.conformance.FACES", {"blocks": Blocks, "broken": Broken, "loop": Loop}, raising=True
    )
    code, out, _ = run("conformance")
    assert code == 1
    assert [line.split()[1] for line in out.splitlines()[1:4]] == ["failed", "failed", "ok"]
    assert "blocks, listing present: expected an answer; none came within 5.5 seconds" in out
    assert "broken, listing present: the face could not be created: ImportError: no name 'Agent'" in out


def test_an_unknown_face_is_wrong_use(run: Run) -> None:
    """With the ones there are."""
    code, _, err = run("conformance", "nope")
    assert code == 2
    assert "langchain" in err


def test_a_face_that_is_not_installed_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, and nothing failed, unless somebody asked for that very face."""
    for module in ("skillshelf.adapters.langchain", "skillshelf.testing.conformance.faces.langchain"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "langchain", None)
    monkeypatch.setitem(sys.modules, "langchain.agents", None)
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    monkeypatch.setattr("skillshelf.testing.conformance.FACES", {name: FACES[name] for name in ("langchain", "mcp")})
    for words, expected in ((), 0), (("langchain", "mcp"), 1):
        code, out, _ = run("conformance", *words)
        assert code == expected
        assert "langchain was not tried" in out
        assert "skillshelf[langchain]" in out
