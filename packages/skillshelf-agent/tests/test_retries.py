"""A provider that fails for a moment is asked again, visibly, and a broken answer says what broke."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart

from agent_kit import of, prompts
from openai_api import Broken, Fault, OpenAIApi, Step, chunk
from skillshelf_agent import AgentCore, Policy, Retries, Settings, resolve
from skillshelf_agent.events import Event, Failed, Finished, Notice, Retrying, Text, ToolReturned
from skillshelf_agent.sessions import Sessions

JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html"}
BUSY = Fault(429, '{"error": {"message": "slow down"}}', {**JSON, "retry-after": "7"})
DOWN = Fault(503, '{"error": {"message": "back soon"}}', JSON)
TOO_LONG = Fault(400, '{"error": {"message": "too many tokens", "code": "context_length_exceeded"}}', JSON)


class Waits(list[float]):
    """Pauses that take no time, and are remembered."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@contextmanager
def served(
    root: Path, *steps: Step, retries: Retries | None = None, **load: Any
) -> Iterator[tuple[AgentCore, OpenAIApi]]:
    api = OpenAIApi(steps)
    with api.serve() as url:
        model = resolve(Settings(model="fake", base_url=url))
        core = AgentCore(model, root, policy=Policy("yolo"), retries=retries or Retries(wait=Waits()), **load)
        yield core, api


def answer(core: AgentCore, *messages: str) -> list[Event]:
    """Send messages in one event loop, as a chat does: the provider's client belongs to it."""

    async def run() -> list[Event]:
        return [event for message in messages async for event in core.process_message(message)]

    return asyncio.run(run())


def pairs(messages: list[ModelMessage]) -> tuple[list[str], list[str]]:
    parts = [part for message in messages for part in message.parts]
    calls = [part.tool_name for part in parts if isinstance(part, ToolCallPart)]
    return calls, [part.tool_name for part in parts if isinstance(part, ToolReturnPart)]


def test_a_rate_limit_is_waited_for_as_long_as_the_provider_asks(tmp_path: Path) -> None:
    """The pause is an event, and the answer comes as if nothing had happened."""
    waits = Waits()
    with served(tmp_path, BUSY, BUSY, "Hello.", retries=Retries(wait=waits)) as (core, api):
        events = answer(core, "Hi.")
    assert of(events, Retrying) == [
        Retrying("The provider's rate limit was reached (HTTP 429)", 7.0, 1, 4),
        Retrying("The provider's rate limit was reached (HTTP 429)", 7.0, 2, 4),
    ]
    assert (waits, len(api.requests), events[-1]) == ([7.0, 7.0], 3, Finished("Hello. "))
    assert prompts(core) == ["Hi."]


def test_retries_are_bounded_and_the_last_error_is_explained(tmp_path: Path) -> None:
    """The pauses grow, and each try is one request: the provider's library makes none in silence."""
    waits = Waits()
    with served(tmp_path, *[DOWN] * 9, retries=Retries(attempts=3, wait=waits)) as (core, api):
        events = answer(core, "Hi.")
    assert (waits, len(api.requests)) == ([1.0, 2.0, 4.0], 4)
    assert events[-1] == Failed(
        "model-unavailable",
        "The model 'fake' is not available at the moment (HTTP 503): try again later. It says: back soon",
    )


def test_a_pause_that_is_too_long_ends_the_turn(tmp_path: Path) -> None:
    """The error says how long it would be."""
    with served(tmp_path, Fault(429, "{}", {**JSON, "retry-after": "900"})) as (core, api):
        events = answer(core, "Hi.")
    assert (len(api.requests), of(events, Retrying)) == (1, [])
    assert "try again in 900 seconds" in of(events, Failed)[0].message


def test_a_retry_in_the_middle_of_a_turn_goes_on_where_it_was(tmp_path: Path) -> None:
    """Tools do not run twice, and the file of the session is whole."""
    (tmp_path / "a.txt").write_text("alpha")
    step = ("read_file", '{"path": "a.txt"}')
    with served(tmp_path, step, DOWN, "Done.", sessions=Sessions(str(tmp_path))) as (core, api):
        events = answer(core, "Read it.")
    assert len(of(events, ToolReturned)) == 1
    assert events[-1] == Finished("Done. ")
    assert pairs(core.conversation.messages) == (["read_file"], ["read_file"])
    assert api.requests[1]["messages"] == api.requests[2]["messages"]

    saved = list(core.conversation.messages)
    core.conversation.close()
    with Sessions(str(tmp_path)).open() as session:
        assert [message.parts for message in session.messages] == [message.parts for message in saved]


def test_a_pause_can_be_stopped(tmp_path: Path) -> None:
    """The turn ends as stopped, and the message is kept."""
    started = asyncio.Event()

    async def wait(seconds: float) -> None:
        started.set()
        await asyncio.Event().wait()

    async def run(core: AgentCore) -> list[Event]:
        events: list[Event] = []

        async def collect() -> None:
            async for event in core.process_message("Hi."):
                events.append(event)

        task = asyncio.create_task(collect())
        await started.wait()
        core.cancel()
        await task
        return events

    with served(tmp_path, BUSY, retries=Retries(wait=wait)) as (core, _):
        events = asyncio.run(run(core))
    assert events[-1] == Finished("", stopped=True)
    assert prompts(core) == ["Hi."]


# -- what broke -------------------------------------------------------------------------------------------------------


def test_an_answer_that_breaks_off_keeps_what_arrived(tmp_path: Path) -> None:
    """It is not asked for again, because a part of it was shown."""
    for broken in (Broken([chunk("The beginning "), 'data: {"id']), Broken([chunk("The beginning ")], "cut")):
        with served(tmp_path, broken, "never") as (core, api):
            events = answer(core, "Hi.")
        assert (len(api.requests), of(events, Text)) == (1, [Text("The beginning ")])
        assert 'arrived is kept: say "go on"' in of(events, Failed)[0].message
        assert "The beginning" in str(core.conversation.messages[-1])


def test_an_answer_without_an_end_may_be_cut_short(tmp_path: Path) -> None:
    """The connection was closed in order, but nothing said that the answer was complete. What arrived is kept."""
    with served(tmp_path, Broken([chunk("The beginning ")]), "The end.") as (core, api):
        events = answer(core, "Hi.", "go on")
    assert ["may be cut short" in notice.text for notice in of(events, Notice)] == [True]
    assert [event.text for event in of(events, Finished)] == ["The beginning ", "The end. "]
    assert "The beginning" in str(api.requests[1]["messages"])


@pytest.mark.parametrize("provider", ["openai-chat", "openrouter", "ollama", "zai", "cerebras", "deepseek"])
def test_an_answer_of_a_known_provider_may_be_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """Each provider that speaks Chat Completions is watched, not only the user's own server."""
    whole = Broken([chunk("All of it."), "data: [DONE]"])
    for variable in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ZAI_API_KEY", "CEREBRAS_API_KEY", "DEEPSEEK_API_KEY"):
        monkeypatch.setenv(variable, "key")
    api = OpenAIApi([Broken([chunk("The beginning ")]), whole])
    with api.serve() as url:
        monkeypatch.setenv("OLLAMA_BASE_URL", url)
        chosen = resolve(Settings(model=f"{provider}:openai/tiny"))
        chosen.model.client.base_url = url  # type: ignore[attr-defined]
        core = AgentCore(chosen, tmp_path)
        events = answer(core, "Hi.", "go on")
    assert ["may be cut short" in notice.text for notice in of(events, Notice)] == [True]
    assert [event.text for event in of(events, Finished)] == ["The beginning ", "All of it."]


ANTHROPIC_EVENTS = [
    {
        "type": "message_start",
        "message": {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "claude-haiku-4-5",
            "content": [],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "The beginning "}},
]
RESPONSES_EVENTS = [
    {
        "type": "response.created",
        "sequence_number": 0,
        "response": {"id": "r", "object": "response", "created_at": 1, "model": "tiny", "output": [], "tools": []},
    },
    {
        "type": "response.output_text.delta",
        "sequence_number": 1,
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
        "delta": "The beginning ",
    },
]


@pytest.mark.parametrize(
    ("model", "events"),
    [("anthropic:claude-haiku-4-5", ANTHROPIC_EVENTS), ("openai:tiny", RESPONSES_EVENTS)],
    ids=["Messages", "Responses"],
)
def test_an_answer_in_another_format_may_be_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, events: list[dict[str, Any]]
) -> None:
    """Its end is an event of that format, and not the line of Chat Completions."""
    lines = [f"event: {event['type']}\ndata: {json.dumps(event)}" for event in events]
    with OpenAIApi([Broken(lines)]).serve() as url:
        for provider, address in (("OPENAI", url), ("ANTHROPIC", url.removesuffix("/v1"))):
            monkeypatch.setenv(f"{provider}_API_KEY", "key")
            monkeypatch.setenv(f"{provider}_BASE_URL", address)
        core = AgentCore(resolve(Settings(model=model)), tmp_path, retries=Retries(attempts=1, wait=Waits()))
        reported = answer(core, "Hi.")
    assert "".join(event.text for event in of(reported, Text)) == "The beginning "
    assert ["may be cut short" in notice.text for notice in of(reported, Notice)] == [True]
    assert "The beginning" in str(core.conversation.messages[-1])


def test_a_compressed_answer_may_be_cut_short(tmp_path: Path) -> None:
    """The line that says that it is complete is found in the text, not in the bytes."""
    cut = Broken([chunk("The beginning ")], encoding="gzip")
    whole = Broken([chunk("All of it."), "data: [DONE]"], encoding="gzip")
    with served(tmp_path, cut, whole) as (core, _):
        events = answer(core, "Hi.", "go on")
    assert ["may be cut short" in notice.text for notice in of(events, Notice)] == [True]
    assert [event.text for event in of(events, Finished)] == ["The beginning ", "All of it."]


def test_an_answer_without_a_finish_reason_is_complete_if_the_server_says_so(tmp_path: Path) -> None:
    """Some servers send the last line alone, and some a reason of their own."""
    reason = chunk("").replace('"finish_reason": null', '"finish_reason": "guardrail"')
    for last in ("data: [DONE]", "data:[DONE]", reason):
        with served(tmp_path, Broken([chunk("All of it."), last])) as (core, _):
            events = answer(core, "Hi.")
        assert (of(events, Notice), events[-1]) == ([], Finished("All of it."))


def test_a_line_that_is_not_json_is_said_to_be_unreadable(tmp_path: Path) -> None:
    """Before anything was shown, it is tried again, but not often."""
    with served(tmp_path, *[Broken(["data: {nonsense"])] * 9) as (core, api):
        events = answer(core, "Hi.")
    assert (len(api.requests), events[-1].kind) == (3, "error")
    assert of(events, Failed)[0].code == "unreadable-answer"
    assert "sent something that cannot be read as an answer" in of(events, Failed)[0].message


def test_a_web_page_instead_of_an_answer_is_quoted_in_words(tmp_path: Path) -> None:
    """A server in front of the provider answers with HTML."""
    page = Fault(502, "<html><head><title>502 Bad Gateway</title></head><body><hr>nginx</body></html>", HTML)
    with served(tmp_path, page, retries=Retries(attempts=1, wait=Waits())) as (core, api):
        api.steps *= 2
        events = answer(core, "Hi.")
    assert of(events, Failed)[0].message == "The provider failed (HTTP 502): try again later. It says: 502 Bad Gateway"


@pytest.mark.parametrize("empty", ["", Broken(["data: [DONE]"]), Fault(200, "<html>login</html>", HTML)])
def test_an_empty_answer_is_asked_for_once_more(tmp_path: Path, empty: Step) -> None:
    """The user is told, and the second time it is an answer, or the turn ends."""
    with served(tmp_path, empty, "Hello.") as (core, api):
        events = answer(core, "Hi.")
    assert (len(api.requests), events[-1]) == (2, Finished("Hello. "))
    assert len(of(events, Notice)) + len(of(events, Retrying)) == 1

    with served(tmp_path, *[empty] * 9) as (core, api):
        events = answer(core, "Hi.")
    assert (len(api.requests), of(events, Failed)[0].code) == (2, "empty-answer")


def test_a_provider_that_sends_nothing_is_given_up(tmp_path: Path) -> None:
    """There is a limit to the time without a byte."""
    hang = Broken([], "hang")
    with served(tmp_path, hang, "Hello.", retries=Retries(silence=0.2, wait=Waits())) as (core, _):
        events = answer(core, "Hi.")
    assert [event.reason for event in of(events, Retrying)] == ["The provider did not answer in time"]
    assert events[-1] == Finished("Hello. ")


@pytest.mark.parametrize(("status", "code"), [(401, "model-authentication"), (404, "model-not-found")])
def test_an_error_that_stays_is_not_retried(tmp_path: Path, status: int, code: str) -> None:
    """A wrong key or name will be wrong the next time."""
    with served(tmp_path, Fault(status, "{}", JSON)) as (core, api):
        events = answer(core, "Hi.")
    assert (len(api.requests), of(events, Failed)[0].code) == (1, code)


# -- too long ---------------------------------------------------------------------------------------------------------


def test_a_conversation_that_the_provider_finds_too_long_is_shortened_and_sent_again(tmp_path: Path) -> None:
    """The window was thought to be larger."""
    (tmp_path / "big.txt").write_text("some words of a line\n" * 2_000)
    step = ("read_file", '{"path": "big.txt"}')
    with served(tmp_path, step, TOO_LONG, "Done.") as (core, api):
        events = answer(core, "Read it.")
    assert events[-1] == Finished("Done. ")
    assert "was shortened" in of(events, Notice)[0].text
    assert len(str(api.requests[2])) < len(str(api.requests[1])) * 0.7
    assert pairs(core.conversation.messages) == (["read_file"], ["read_file"])


def test_if_nothing_can_be_shortened_the_error_says_what_to_do(tmp_path: Path) -> None:
    """It offers /compact and /new, and names what fills the window."""
    with served(tmp_path, TOO_LONG, "never") as (core, api):
        events = answer(core, "Hi.")
    message = of(events, Failed)[0].message
    assert len(api.requests) == 1
    assert "/compact shortens it, /new begins another" in message
    assert "the tools" in message
