"""Test that the conformance kit finds the faults of a face, and that every face of ours passes."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faces import FACES
from skillshelf import Shelf, SkillDiscoverySkill, SkillError
from skillshelf.listing import parse
from skillshelf.testing.conformance import STEPS, Call, Reply, Result, Stage, StepOutcome, run


@pytest.mark.parametrize("name", FACES)
def test_every_face_passes_every_step(name: str) -> None:
    """The framework's own fake model is used, offline. MCP also runs over real pipes and sockets."""
    report = asyncio.run(run(FACES[name]()))
    assert [outcome.step for outcome in report.outcomes] == list(STEPS)
    assert report.passed, report


class Loop:
    """A correct face without a framework. Each face below has one fault."""

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
        """Return the system prompt and the last message of the next request."""
        return self.shelf.listing().text, ""

    def call(self, call: Call) -> Result:
        try:
            return Result(str(self.tools[call.tool].call(call.arguments, approved=call.approve)), failed=False)
        except SkillError as error:
            return Result(str(error), failed=True)

    async def close(self) -> None:
        """Close nothing, because nothing is open."""


class ListsOnce(Loop):
    """A face that puts the listing into the agent's instructions once, when the agent is created."""

    async def open(self, shelf: Shelf) -> Any:
        self.listing = shelf.listing().text
        return await super().open(shelf)

    def request(self, text: str) -> tuple[str, str]:
        return self.listing, ""


class ListsOncePerRun(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        reply = await super().say(text, calls, answer)
        return replace(reply, system_prompts=reply.system_prompts[:1] * len(reply.system_prompts))


class ListsTheTime(Loop):
    """A face whose prompt changes with every request, so that no provider can cache it."""

    def request(self, text: str) -> tuple[str, str]:
        return f"{time.monotonic_ns()}\n{super().request(text)[0]}", ""


class ForgetsNotes(Loop):
    """A face that keeps the old section in long conversations, and never announces changes."""

    sent_listing, length = "", 0

    def request(self, text: str) -> tuple[str, str]:
        self.length += len(text)
        if not self.sent_listing or self.length < 4096:
            self.sent_listing = self.shelf.listing().text
        return self.sent_listing, ""


class SendsNotes(ForgetsNotes):
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


class OffersBlockedTools(Loop):
    async def open(self, shelf: Shelf) -> Any:
        await super().open(shelf)
        self.tools |= {tool.name: tool for tool in shelf.blocked_tools()}
        return self


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


class MarksAllAsSuccessful(HasNoMarks):
    def call(self, call: Call) -> Result:
        return replace(super().call(call), failed=False)


class MasksErrors(Loop):
    def call(self, call: Call) -> Result:
        result = super().call(call)
        return replace(result, text="Something went wrong.") if result.failed else result


REFUSALS = ["traversal refused", "unknown skill", "removed skill gone", "denial typed"]


@pytest.mark.parametrize(
    ("face", "failed_steps"),
    [
        (Loop, []),
        (ListsOnce, ["listing present", "edit seen next turn", "removed skill gone"]),
        (ListsOncePerRun, ["listing present", "edit seen next turn"]),
        (ListsTheTime, ["listing present"]),
        (ForgetsNotes, ["edit seen next turn", "removed skill gone"]),
        (SendsNotes, []),
        (HasNoCodeTools, ["listing present", "edit seen next turn", "denial typed"]),
        (OffersBlockedTools, ["denial typed"]),
        (ApprovesEverything, ["denial typed"]),
        (NeverAsks, ["denial typed"]),
        (Unattended, []),
        (MarksNothing, [step for step in STEPS if step not in ("repeat load cached", "events recorded")]),
        (HasNoMarks, []),
        (MarksAllAsSuccessful, REFUSALS),
        (MasksErrors, ["traversal refused", "unknown skill", "removed skill gone"]),
    ],
)
def test_a_fault_fails_exactly_the_steps_it_breaks(face: type[Loop], failed_steps: list[str]) -> None:
    """A report shows where to look."""
    report = asyncio.run(run(face()))
    assert [outcome.step for outcome in report.outcomes if outcome.problem] == failed_steps, report


def test_declared_exceptions_are_noted_at_their_steps() -> None:
    """A step that passed under an easier rule has a note."""
    notes = {outcome.step: outcome.note for outcome in asyncio.run(run(HasNoMarks())).outcomes if outcome.note}
    assert notes == dict.fromkeys(REFUSALS, "there is no such mark")
    notes = {outcome.step: outcome.note for outcome in asyncio.run(run(Unattended())).outcomes if outcome.note}
    assert notes == {"denial typed": "nobody is there to ask"}


class DropsResults(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        return replace(await super().say(text, calls, answer), results=())


class ReturnsNothing(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Any:
        """Return nothing, as if its author had forgotten the return."""


def test_missing_parts_of_a_reply_are_explained() -> None:
    """The kit's own exception would not help the author."""
    problems = [outcome.problem for outcome in asyncio.run(run(DropsResults())).outcomes]
    assert problems[1] == "expected a result for each of 1 tool calls, not 0; found ()"
    assert "Error" not in "".join(problems)
    problems = [outcome.problem for outcome in asyncio.run(run(ReturnsNothing())).outcomes]
    assert problems[0] == "expected a Reply(…); found None"


class Hangs(Loop):
    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        if calls and calls[0].arguments.get("skill_name") == "alhpa":
            await asyncio.Event().wait()
        return await super().say(text, calls, answer)


def test_a_face_that_hangs_fails_the_step() -> None:
    """The steps after it are not tried, because the state of the face is unknown."""
    outcomes = asyncio.run(run(Hangs(), limit=5)).outcomes
    assert [outcome.problem for outcome in outcomes[:4]] == ["", "", "", ""]
    assert outcomes[4] == StepOutcome("unknown skill", "expected an answer; none came within 5 seconds")
    assert [outcome.problem for outcome in outcomes[5:]] == ["not tried, because 'unknown skill' did not end"] * 5


class BlocksTheLoop(Loop):
    """A face that answers, but blocks the event loop until then."""

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        time.sleep(0.2)
        return await super().say(text, calls, answer)


def test_a_step_that_blocks_the_event_loop_beyond_its_limit_fails() -> None:
    """The clock counts even if nothing could be cancelled. The steps after it are tried."""
    outcomes = asyncio.run(run(BlocksTheLoop(), limit=0.1)).outcomes
    assert ["held up the event loop" in outcome.problem for outcome in outcomes] == [True] * len(STEPS)


class FailsToOpen(Loop):
    async def open(self, shelf: Shelf) -> Any:
        raise OSError("the port is taken")


class FailsToClose(Loop):
    async def close(self) -> None:
        await asyncio.Event().wait()


def test_a_face_must_open_and_close() -> None:
    """A failure to do so is a finding, too."""
    problems = {outcome.problem for outcome in asyncio.run(run(FailsToOpen())).outcomes}
    assert problems == {"the conversation did not open: OSError: the port is taken"}
    problem = asyncio.run(run(FailsToClose(), limit=5)).outcomes[-1].problem
    assert problem == "the conversation did not close: expected an answer; none came within 5 seconds"


def test_a_server_is_a_process_of_its_own(tmp_path: Path) -> None:
    """Its shelf is separate, so ours sees a new skill only after a reload."""
    pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")
    stage = Stage(str(tmp_path))

    async def main() -> Reply:
        conversation = await FACES["mcp-stdio"]().open(stage.shelf)
        try:
            return await conversation.say("hi", [Call("add_skill", {"name": "gamma"})], "Done.")
        finally:
            await conversation.close()

    assert "Added as gamma." in asyncio.run(main()).system_prompts[-1]
    assert "gamma" not in stage.shelf.catalog
    assert stage.recorded("ran") == ["add_skill"]
