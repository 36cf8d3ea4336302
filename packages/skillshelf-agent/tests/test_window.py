"""A conversation is kept in the model's window, also in the middle of a turn, and nothing is paid for in vain."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from agent_kit import agent, of, prompts, requests, say
from skillshelf_agent import AgentCore
from skillshelf_agent._compaction import Compacted, CompactionLimits, compact
from skillshelf_agent._window import Room
from skillshelf_agent.events import Finished, Notice
from skillshelf_agent.sessions import Sessions, loaded_skills, make_prompt
from skillshelf_agent.testing import call

Write = Callable[..., Path]
LOAD = "load_skill_instructions"
SUMMARY = "The task goes on."


class Summarizer:
    """A model that writes a short summary, and counts how often it was asked."""

    def __init__(self, summary: str = SUMMARY) -> None:
        self.summary = summary
        self.calls = 0
        self.model = FunctionModel(self._reply)

    def _reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.calls += 1
        return ModelResponse(parts=[TextPart(self.summary)])


def shorten(messages: Sequence[ModelMessage], room: Room, summarizer: Summarizer | None = None) -> Compacted:
    limits = CompactionLimits(keep_tokens=room.limit // 4, skill_tokens=room.limit // 4, summary_tokens=50)
    return asyncio.run(compact(messages, (summarizer or Summarizer()).model, room=room, limits=limits))


def text_of(messages: Sequence[ModelMessage]) -> str:
    return "\n".join(str(getattr(part, "content", "")) for message in messages for part in message.parts)


def exchange(id: str, result: str, tool: str = "read_file", **arguments: Any) -> list[ModelMessage]:
    return [
        ModelResponse(parts=[ToolCallPart(tool, arguments or {"path": "a"}, id)]),
        ModelRequest(parts=[ToolReturnPart(tool, result, id)]),
    ]


# -- any conversation, any window -------------------------------------------------------------------------------------

SIZES = st.sampled_from([1, 20, 300, 3_000])


@st.composite
def conversations(draw: st.DrawFn) -> list[ModelMessage]:
    messages: list[ModelMessage] = []
    for turn in range(draw(st.integers(1, 5))):
        messages.append(ModelRequest(parts=[UserPromptPart(f"question {turn} " * draw(SIZES))]))
        for step in range(draw(st.integers(0, 5))):
            name = f"{turn}-{step}"
            if draw(st.booleans()):
                messages += exchange(name, f"result {name} " * draw(SIZES), path="p " * draw(SIZES))
            else:
                messages += exchange(name, f"skill {step} " * draw(SIZES), LOAD, skill_name=f"s{step}")
        messages.append(ModelResponse(parts=[TextPart(f"answer {turn} " * draw(SIZES))]))
    if draw(st.booleans()):
        messages.pop()  # in the middle of a turn
    return messages


@given(conversations(), st.sampled_from([100, 1_000, 5_000, 50_000]))
def test_any_conversation_fits_afterwards_or_is_said_not_to(messages: list[ModelMessage], limit: int) -> None:
    """Pairs stay whole, the user's last message stays word for word, and a second time nothing is paid again."""
    summarizer = Summarizer()
    done = shorten(messages, Room(limit, limit * 3 // 4), summarizer)

    assert done.after <= limit or not done.fits
    assert done.after <= done.before
    assert_pairs(done.messages)
    assert last_prompt(done.messages) == last_prompt(messages)
    kept = [text.name for text in loaded_skills(done.messages)]
    dropped = [text.name for text in done.dropped_skills]
    assert set(kept) | set(dropped) == {text.name for text in loaded_skills(messages)}
    assert not done.problem

    paid = summarizer.calls
    if not done.fits:
        assert paid == 0
    again = shorten(done.messages, Room(limit, limit * 3 // 4), summarizer)
    assert summarizer.calls == paid
    assert again.after <= done.after


def assert_pairs(messages: Sequence[ModelMessage]) -> None:
    parts = [part for message in messages for part in message.parts]
    calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    assert calls == [part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)]


def last_prompt(messages: Sequence[ModelMessage]) -> str:
    found = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return str([text for text in found if isinstance(text, str)][-1])


# -- results are cut first --------------------------------------------------------------------------------------------


def test_the_oldest_results_are_cut_first_and_no_summary_is_paid() -> None:
    """What was cut is said in its place, with the tool that brings it back. The newest result stays whole."""
    results = [f"begin {name} " + "word " * 6_000 + f"end {name}" for name in "abc"]
    messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Go.")])]
    for name, result in zip("abc", results, strict=True):
        messages += exchange(name, result)
    summarizer = Summarizer()
    done = shorten(messages, Room(12_000, 8_000), summarizer)

    text = text_of(done.messages)
    assert (done.fits, done.trimmed, summarizer.calls) == (True, 2, 0)
    assert "characters are left out: call read_file again if you need them" in text
    assert all(mark in text for mark in ("begin a", "end a", "begin b", "end b"))
    assert results[2] in text


def test_a_result_larger_than_the_window_keeps_its_beginning_and_end() -> None:
    """Even the newest result is cut if nothing else helps."""
    messages = [
        ModelRequest(parts=[UserPromptPart("Go.")]),
        *exchange("1", "first line\n" + "log " * 40_000 + "\n[exit code: 1]"),
    ]
    done = shorten(messages, Room(12_000, 8_000))
    text = text_of(done.messages)
    assert (done.fits, done.trimmed) == (True, 1)
    assert "first line" in text
    assert "[exit code: 1]" in text
    assert done.after > 5_000, "as much stays as there is room for"


def test_long_arguments_of_old_calls_are_cut() -> None:
    """Fifty written files do not fill the window for good."""
    messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Go.")])]
    for number in range(50):
        messages += exchange(str(number), "Wrote it.", "write_file", path=f"f{number}", content="line " * 1_500)
    done = shorten(messages, Room(30_000, 25_000))
    first = done.messages[1].parts[0]
    assert isinstance(first, ToolCallPart)
    assert done.fits
    assert first.args_as_dict()["path"] == "f0"
    assert "characters are left out" in first.args_as_dict()["content"]


def test_a_summary_that_cannot_help_is_not_paid_for() -> None:
    """The user's last message alone is too long."""
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("Go.")]),
        ModelResponse(parts=[TextPart("Gone.")]),
        ModelRequest(parts=[UserPromptPart("paste " * 30_000)]),
    ]
    summarizer = Summarizer()
    done = shorten(messages, Room(10_000, 8_000), summarizer)
    assert (done.fits, done.is_shorter, summarizer.calls) == (False, False, 0)
    assert done.messages == messages


# -- in a turn --------------------------------------------------------------------------------------------------------


def small_agent(tmp_path: Path, window: int, *script: Any, **options: Any) -> AgentCore:
    core = agent(tmp_path, *script, **options)
    core.model = replace(core.model, window=window)
    return core


def test_a_turn_with_fifty_calls_does_not_die_of_its_window(tmp_path: Path) -> None:
    """Each request fits, each call has its result, the message is still there, and the file holds the same."""
    for number in range(50):
        (tmp_path / f"{number}.txt").write_text(f"some words of line {number}\n" * 1_000)
    calls = [call("read_file", path=f"{number}.txt") for number in range(50)]
    core = small_agent(tmp_path, 20_000, *calls, "Done.", sessions=Sessions(str(tmp_path)))
    events = say(core, "Read all of them.")

    assert events[-1] == Finished("Done.")
    assert all("Read all of them." in request.text for request in requests(core))
    assert max(len(request.text) for request in requests(core)) < 20_000 * 5
    assert_pairs(core.conversation.messages)
    assert "shortened" in of(events, Notice)[0].text
    saved = text_of(core.conversation.messages)
    core.conversation.close()

    again = small_agent(tmp_path, 20_000, sessions=Sessions(str(tmp_path)))
    again.resume()
    assert text_of(again.conversation.messages) == saved


def test_a_message_that_cannot_fit_is_explained_once(tmp_path: Path) -> None:
    """The notice names what fills the window and what to do. The model is asked all the same: it may hold more."""
    core = small_agent(tmp_path, 12_000, call("read_file", path="nothing.txt"), "ok")
    notices = of(say(core, "paste " * 30_000), Notice)
    assert len(notices) == 1
    assert "does not fit in the window of scripted" in notices[0].text
    assert "your last message" in notices[0].text
    assert "send less at once" in notices[0].text
    assert "/model chooses a model with a larger window" in notices[0].text


def test_stopping_a_summary_loses_nothing(tmp_path: Path) -> None:
    """The conversation is as it was, with the new message."""
    core = agent(tmp_path, *["word " * 3_000] * 6, sessions=Sessions(str(tmp_path)))
    say(core, *[f"message {number}" for number in range(6)])
    before = text_of(core.conversation.messages)
    started = asyncio.Event()

    async def hang(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    core.model = replace(core.model, model=FunctionModel(hang), window=12_000)

    async def stop() -> list[Any]:
        events = core.process_message("one more")
        task = asyncio.create_task(collect(events))
        await started.wait()
        core.cancel()
        return await task

    async def collect(events: Any) -> list[Any]:
        return [event async for event in events]

    assert asyncio.run(stop())[-1].stopped
    assert text_of(core.conversation.messages).startswith(before)
    assert prompts(core)[-1] == "one more"


def test_a_short_conversation_is_not_compacted(tmp_path: Path) -> None:
    """The model is not asked, and nothing changes."""
    core = agent(tmp_path, "Hello.")
    say(core, "Hi.")
    done = asyncio.run(core.compact())
    assert not done.is_shorter
    assert len(requests(core)) == 1


def test_a_summary_that_is_longer_is_thrown_away(tmp_path: Path) -> None:
    """The user learns why nothing changed."""
    core = agent(tmp_path, *["word " * 3_000] * 4, "long " * 40_000)
    say(core, *["go on"] * 4)
    before = list(core.conversation.messages)
    done = asyncio.run(core.compact())
    assert "longer than the messages" in done.problem
    assert core.conversation.messages == before
    assert core.conversation.spent.output > 40_000


# -- one count --------------------------------------------------------------------------------------------------------


def test_without_a_count_of_the_provider_the_window_is_estimated(tmp_path: Path, write: Write) -> None:
    """It is never empty: instructions, tools and the listing are in every call."""
    write("pdf", "Fill in forms.")
    core = agent(tmp_path, "Hello.")
    at_start = core.context
    assert (at_start.counted, at_start.used) == (0, at_start.estimated)
    assert at_start.used > 1_000


def test_the_providers_count_leads_and_later_messages_are_added(tmp_path: Path) -> None:
    """Only what came after the count is estimated. A count that is far too low is not believed."""
    core = agent(tmp_path)
    question = ModelRequest(parts=[UserPromptPart("Go.")])
    later = ModelRequest(parts=[UserPromptPart("More. " * 100)])

    def count(tokens: int) -> int:
        answer = ModelResponse(parts=[TextPart("Gone.")], usage=RequestUsage(input_tokens=tokens, output_tokens=10))
        core.conversation.replace([question, answer, later])
        return core.context.used

    estimated = core.context.fixed
    assert count(estimated * 2) == estimated * 2 + 10 + core.context.since
    assert core.context.since > 100
    assert count(50) == core.context.estimated


@pytest.mark.parametrize("window", [1_000, 5_000, 1_000_000])
def test_there_is_less_room_if_the_provider_counts_more(tmp_path: Path, window: int) -> None:
    """The estimate is corrected by what the provider counted."""
    core = agent(tmp_path)
    core.model = replace(core.model, window=window)
    core.conversation.add([make_prompt("Go.")])
    before = core.context.room
    double = RequestUsage(input_tokens=core.context.estimated * 2)
    core.conversation.add([ModelResponse(parts=[TextPart("Gone.")], usage=double)])
    assert core.context.room.limit < before.limit


def test_images_and_documents_take_room_in_the_window(tmp_path: Path) -> None:
    """Those of a message and those of a tool's result do. A provider that counts fewer for them is believed."""
    core = agent(tmp_path)
    empty = core.context.used
    image = BinaryContent(bytes(100), media_type="image/png")
    core.conversation.add([ModelRequest(parts=[UserPromptPart(["What is this?", image])])])
    with_image = core.context
    assert with_image.used > empty + 1_000
    assert with_image.last_message > 1_000

    document = BinaryContent(bytes(500_000), media_type="application/pdf")
    core.conversation.add(
        [
            ModelResponse(parts=[ToolCallPart("scan", {}, "1")]),
            ModelRequest(parts=[ToolReturnPart("scan", [document], "1")]),
        ]
    )
    with_document = core.context
    assert with_document.used > with_image.used + 10_000

    fewer = RequestUsage(input_tokens=empty + 400, output_tokens=10)
    core.conversation.add([ModelResponse(parts=[TextPart("A cat.")], usage=fewer)])
    assert core.context.used == empty + 410
