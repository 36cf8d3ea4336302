"""Messages that the user sends while the agent works reach the model with the results of the tools."""

import asyncio
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
from rich.console import Console

from agent_kit import agent, of, prompts, requests, say
from skillshelf_agent import AgentCore, Answer, Approval, Policy, Retries, Sessions, SteeringMessage
from skillshelf_agent.events import Failed, Finished, Retrying, Steered, Text, ToolReturned
from skillshelf_agent.sessions import export_markdown
from skillshelf_agent.terminal._screen import view_resumed
from skillshelf_agent.testing import ScriptedModel, call, fail

WRITE = call("write_file", path="a.txt", content="one\n")
READ = call("read_file", path="a.txt")


class Typist:
    """A user who has sent these messages when the model is about to be called again."""

    def __init__(self, *texts: str) -> None:
        self.waiting = list(texts)

    async def __call__(self) -> Sequence[SteeringMessage]:
        messages = [SteeringMessage(text) for text in self.waiting]
        self.waiting.clear()
        return messages


def steered(root: Path, *script: object, texts: Sequence[str] = ("in Latin, please",), **load: object) -> AgentCore:
    core = agent(root, *script, **load)  # type: ignore[arg-type]
    core.take_steering = Typist(*texts)
    return core


def show_resumed(core: AgentCore) -> str:
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as capture:
        console.print(*view_resumed(core), sep="\n")
    return capture.get()


def test_a_message_goes_to_the_model_after_the_tool_call(tmp_path: Path) -> None:
    """It is part of the request with the result, and the event comes after that of the result."""
    core = steered(tmp_path, WRITE, "Scripsi.", texts=["in Latin, please", "and briefly"])
    events = say(core, "write")
    shown = [event for event in events if isinstance(event, ToolReturned | Steered | Text)]
    assert [type(event).__name__ for event in shown] == ["ToolReturned", "Steered", "Steered", "Text"]
    last = requests(core)[1].messages[-1]
    assert [type(part) for part in last.parts] == [ToolReturnPart, UserPromptPart, UserPromptPart]
    assert prompts(core) == ["write", "in Latin, please", "and briefly"]
    assert events[-1] == Finished("Scripsi.")


def test_a_turn_without_another_model_call_leaves_the_message_alone(tmp_path: Path) -> None:
    """It was not taken, so the chat can send it as the next one."""
    core = steered(tmp_path, "Hello.")
    assert of(say(core, "hi"), Steered) == []
    assert isinstance(core.take_steering, Typist)
    assert core.take_steering.waiting == ["in Latin, please"]


def test_a_message_waits_for_the_answer_to_a_question(tmp_path: Path) -> None:
    """It comes with the refusal, too."""
    core = steered(tmp_path, WRITE, "Done.", mode="ask")

    async def refuse(_: Approval) -> Answer:
        assert isinstance(core.take_steering, Typist)
        assert core.take_steering.waiting
        return "no"

    core.gate.approve = refuse
    events = say(core, "write")
    assert [event.refused for event in of(events, ToolReturned)] == [True]
    assert of(events, Steered) == [Steered("in Latin, please")]


def test_the_conversation_goes_on_and_is_resumed_with_the_message(tmp_path: Path) -> None:
    """Nothing is lost or doubled, in memory and on the disk, and it stands where it was sent."""
    core = steered(tmp_path, WRITE, READ, "Scripsi.", "Iterum.", sessions=Sessions(str(tmp_path)))
    say(core, "write", "again")
    assert prompts(core) == ["write", "in Latin, please", "again"]
    core.conversation.close()

    resumed = agent(tmp_path, "Tertium.", sessions=Sessions(str(tmp_path)))
    assert resumed.resume() == ()
    assert resumed.conversation.session
    kinds = [type(part).__name__ for message in resumed.conversation.messages for part in message.parts]
    assert kinds == [
        *("UserPromptPart", "ToolCallPart", "ToolReturnPart", "UserPromptPart"),
        *("ToolCallPart", "ToolReturnPart", "TextPart", "UserPromptPart", "TextPart"),
    ]
    say(resumed, "and again")
    assert prompts(resumed) == ["write", "in Latin, please", "again", "and again"]
    assert export_markdown(resumed.conversation.session).count("> in Latin, please") == 1

    shown = show_resumed(resumed)
    assert shown.index("in Latin, please") < shown.index("read_file") < shown.index("› again")


def test_the_result_of_the_call_before_a_message_belongs_to_the_message_before(tmp_path: Path) -> None:
    core = steered(tmp_path, WRITE, "Scripsi.", sessions=Sessions(str(tmp_path)))
    say(core, "write")
    shown = show_resumed(core)
    assert shown.index("› write") < shown.index("Wrote 4 chars") < shown.index("› in Latin, please")


def test_a_message_is_on_disk_before_the_model_answers_it(tmp_path: Path) -> None:
    saved: list[str] = []

    def look(_: object) -> str:
        saved.extend(path.read_text() for path in Path.home().rglob("*.jsonl"))
        return "ok"

    core = steered(tmp_path, WRITE, look, sessions=Sessions(str(tmp_path)))
    say(core, "write")
    assert "in Latin, please" in "".join(saved)
    assert all(
        message.instructions is None for message in core.conversation.messages if isinstance(message, ModelRequest)
    )


def test_a_model_call_that_fails_is_made_again_with_the_message(tmp_path: Path) -> None:
    async def wait(_: float) -> None:
        """Take no time."""

    model = ScriptedModel(WRITE, fail(ModelHTTPError(503, "m", "busy")), "Scripsi.")
    core = AgentCore(model, tmp_path, policy=Policy("yolo"), retries=Retries(wait=wait))
    core.take_steering = Typist("in Latin, please")
    events = say(core, "write")
    assert of(events, Retrying)
    assert events[-1] == Finished("Scripsi.")
    assert "in Latin, please" in requests(core)[2].text
    assert prompts(core) == ["write", "in Latin, please"]


def test_a_turn_stopped_after_a_message_keeps_it(tmp_path: Path) -> None:
    core = steered(tmp_path, WRITE, "Scripsi longe et late.", "Salve.")

    async def stop() -> list[object]:
        events: list[object] = []
        async for event in core.process_message("write"):
            events.append(event)
            if isinstance(event, Steered):
                core.cancel()
        return events

    end = asyncio.run(stop())[-1]
    assert isinstance(end, Finished)
    assert end.stopped
    say(core, "go on")
    assert prompts(core) == ["write", "in Latin, please", "go on"]


def test_undo_takes_back_the_whole_turn(tmp_path: Path) -> None:
    """A message in the middle of a turn begins no other one."""
    edit = call("write_file", path="b.txt", content="two\n")
    core = steered(tmp_path, WRITE, edit, "Done.", sessions=Sessions(str(tmp_path)))
    say(core, "write")
    core.undo()
    assert not (tmp_path / "a.txt").exists()
    assert not (tmp_path / "b.txt").exists()


@pytest.mark.parametrize("times", [4, 6])
def test_a_message_starts_the_count_of_repeated_calls_again(tmp_path: Path, times: int) -> None:
    """Without it, five calls in a row would end the turn."""
    (tmp_path / "a.txt").touch()
    core = agent(tmp_path, *[READ] * times, "Done.", mode="ask")
    typist = Typist()
    core.take_steering = typist

    async def run() -> list[object]:
        events: list[object] = []
        async for event in core.process_message("go"):
            events.append(event)
            if len(of(events, ToolReturned)) == 2:  # type: ignore[arg-type]
                typist.waiting = ["go on"]
        return events

    assert not isinstance(asyncio.run(run())[-1], Failed)
