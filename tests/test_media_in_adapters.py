"""Check how each framework passes images and sound from tools of code skills to its model."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from faces import FACES
from skillshelf import Audio, BaseSkill, Image, Shelf, tool
from skillshelf.adapters.openai import dispatch
from skillshelf.skills.results import MAX_MEDIA
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import Call, Reply

PNG = b"\x89PNG\r\n\x1a\n" + bytes(1200)
BASE64 = base64.b64encode(PNG).decode()
NOT_SHOWN = "[audio/wav, 4 bytes: it cannot be shown here]"


class Charts(BaseSkill):
    name = "charts"
    description = "Draws charts."
    instructions = "Call `draw`."

    @tool
    def draw(self) -> Image:
        """Draw a chart."""
        return Image(PNG)

    @tool
    def explain(self) -> list[str | Image | Audio | dict[str, int]]:
        """Draw a chart and explain it."""
        return ["Sales rise.", Image(PNG), Audio(b"RIFF"), {"june": 4}]

    @tool
    def huge(self) -> Image:
        """Draw a poster."""
        return Image(bytes(MAX_MEDIA + 1))

    @tool
    def nested(self) -> dict[str, Any]:
        """Put a chart where it cannot be shown."""
        return {"chart": Image(PNG)}

    @tool
    def raw(self) -> bytes:
        """Return a chart as nobody can read it."""
        return PNG

    @tool
    def raw_inside(self) -> dict[str, Any]:
        """Return text as bytes, deep inside."""
        return {"pages": [b"plain text"]}


@pytest.fixture
def shelf() -> Shelf:
    return Shelf([ObjectSource([Charts()])])


def test_pydantic_ai_gets_binary_content(shelf: Shelf) -> None:
    """It is part of the tool's result, beside the text."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import BinaryContent, ToolReturnPart

    from skillshelf.adapters.pydantic_ai import Skills
    from skillshelf_agent.testing import ScriptedModel, call

    agent = Agent(ScriptedModel(call("explain"), call("draw"), "Done."), capabilities=[Skills(shelf)])
    messages = asyncio.run(agent.run("hi")).all_messages()
    results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    image = BinaryContent(PNG, media_type="image/png")
    sound = BinaryContent(b"RIFF", media_type="audio/wav")
    assert [part.content for part in results] == [["Sales rise.", image, sound, '{"june": 4}'], image]


def test_langchain_gets_content_blocks(shelf: Shelf) -> None:
    """LangChain's tool messages have no blocks for sound."""
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from faces.langchain import Scripted
    from skillshelf.adapters.langchain import Skills

    calls = [AIMessage("", tool_calls=[{"name": name, "args": {}, "id": name}]) for name in ("explain", "draw")]
    image = {"type": "image", "base64": BASE64, "mime_type": "image/png"}
    explained = [
        {"type": "text", "text": "Sales rise."},
        image,
        {"type": "text", "text": NOT_SHOWN},
        {"type": "text", "text": '{"june": 4}'},
    ]

    def contents(state: dict[str, Any]) -> list[Any]:
        return [message.content for message in state["messages"] if isinstance(message, ToolMessage)]

    hello: Any = {"messages": [HumanMessage("hi")]}
    plain = create_agent(Scripted(messages=iter([*calls, AIMessage("Done.")])), middleware=[Skills(shelf)])
    assert contents(plain.invoke(hello)) == [explained, [image]]
    awaited = create_agent(Scripted(messages=iter([*calls, AIMessage("Done.")])), middleware=[Skills(shelf)])
    assert contents(asyncio.run(awaited.ainvoke(hello))) == [explained, [image]]


def test_the_openai_agents_sdk_sends_input_images(shelf: Shelf) -> None:
    """The images are in the function call's output, as the Responses API requires."""
    from agents import Agent, RunConfig, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    from skillshelf.adapters.openai_agents import Skills

    skills = Skills(shelf)
    model = ScriptedModel([[function_call("explain", "{}", call_id="a")], [assistant_message("Done.")]])
    agent = Agent[None]("one", instructions=skills.instructions(), tools=skills.tools(), model=model)
    run = asyncio.run(Runner.run(agent, "hi", run_config=RunConfig(tracing_disabled=True)))
    [output] = [item for item in run.to_input_list() if item.get("type") == "function_call_output"]
    assert output["output"] == [
        {"type": "input_text", "text": "Sales rise."},
        {"type": "input_image", "image_url": f"data:image/png;base64,{BASE64}"},
        {"type": "input_text", "text": NOT_SHOWN},
        {"type": "input_text", "text": '{"june": 4}'},
    ]


def test_google_adk_sends_parts_of_the_function_response(shelf: Shelf) -> None:
    """The text stays in the response, with the media beside it."""
    from google.adk.agents import LlmAgent
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    from faces.google_adk import ScriptedLlm
    from skillshelf.adapters.google_adk import Skills

    async def main() -> types.FunctionResponse:
        model = ScriptedLlm(script=[Call("explain", {}), "Done."])
        runner = InMemoryRunner(LlmAgent(name="one", model=model, tools=[Skills(shelf)]), app_name="tests")
        await runner.session_service.create_session(app_name="tests", user_id="user", session_id="one")
        message = types.Content(role="user", parts=[types.Part(text="hi")])
        async for _ in runner.run_async(user_id="user", session_id="one", new_message=message):
            pass
        await runner.close()
        [part] = model.requests[-1].contents[-1].parts or []
        assert part.function_response
        return part.function_response

    response = asyncio.run(main())
    assert response.response == {"result": ["Sales rise.", '{"june": 4}']}
    blobs = [part.inline_data for part in response.parts or [] if part.inline_data]
    assert [(blob.mime_type, blob.data) for blob in blobs] == [("image/png", PNG), ("audio/wav", b"RIFF")]


def test_the_agent_framework_gets_data_content(shelf: Shelf) -> None:
    """Media are items of the function's result."""
    from agent_framework import Agent

    from faces.agent_framework import ScriptedClient
    from skillshelf.adapters.agent_framework import Skills

    agent: Agent[Any] = Agent(ScriptedClient(Call("explain", {}), "Done."), context_providers=[Skills(shelf)])
    response = asyncio.run(agent.run("hi"))
    contents = [content for message in response.messages for content in message.contents]
    [result] = [content for content in contents if content.type == "function_result"]
    assert [(item.type, item.text or item.uri) for item in result.items or []] == [
        ("text", "Sales rise."),
        ("data", f"data:image/png;base64,{BASE64}"),
        ("data", "data:audio/wav;base64,UklGRg=="),
        ("text", '{"june": 4}'),
    ]


def test_claude_code_gets_image_blocks(shelf: Shelf) -> None:
    """The SDK passes on text and images, and drops sound."""
    from skillshelf.adapters.claude_agent import Skills

    options = Skills(shelf).options()

    async def main() -> Any:
        from mcp import Client

        assert isinstance(options.mcp_servers, dict)
        server: Any = options.mcp_servers["skillshelf"]
        async with Client(server["instance"]) as client:
            return await client.call_tool("explain", {})

    blocks = [block.model_dump(exclude_none=True, by_alias=True) for block in asyncio.run(main()).content]
    assert blocks == [
        {"type": "text", "text": "Sales rise."},
        {"type": "image", "data": BASE64, "mimeType": "image/png"},
        {"type": "text", "text": NOT_SHOWN},
        {"type": "text", "text": '{"june": 4}'},
    ]


def test_dispatch_returns_only_text(shelf: Shelf) -> None:
    """The text names the media and says that they cannot be shown."""
    assert dispatch(shelf, "draw", {}) == "[image/png, 1 kB: it cannot be shown here]"
    assert dispatch(shelf, "explain", {}).split("\n\n")[:2] == ["Sales rise.", dispatch(shelf, "draw", {})]


async def ask(face: str, shelf: Shelf, *names: str) -> Reply:
    conversation = await FACES[face]().open(shelf)
    try:
        return await conversation.say("hi", [Call(name, {}) for name in names], "Done.")
    finally:
        await conversation.close()


@pytest.mark.parametrize("face", sorted(FACES.keys() - {"mcp-stdio", "mcp-http"}))
def test_an_image_over_the_limit_is_refused_everywhere(shelf: Shelf, face: str) -> None:
    """The model learns the limit, and the run continues. An image inside a mapping is named, never written out."""
    reply = asyncio.run(ask(face, shelf, "huge", "nested"))
    assert reply.answer == "Done."
    assert "The tool returned 5,242,881 bytes of images and sound; at most 5,242,880" in reply.results[0].text
    assert "[image/png, 1 kB: it cannot be shown here]" in reply.results[1].text


@pytest.mark.parametrize("face", sorted(FACES.keys() - {"mcp-stdio", "mcp-http"}))
def test_bytes_are_the_same_error_everywhere(shelf: Shelf, face: str) -> None:
    reply = asyncio.run(ask(face, shelf, "raw", "raw_inside"))
    assert reply.answer == "Done."
    for result in reply.results:
        assert "The tool returned bytes, which a model cannot read." in result.text


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Image("aGVsbG8="), "Image.data must be bytes, not str"),
        (lambda: Image(PNG, "png"), "Image.media_type must begin with 'image/', not 'png'"),
        (lambda: Image(PNG, "image/png;x"), "not 'image/png;x'"),
        (lambda: Audio(b"", "image/png"), "Audio.media_type must begin with 'audio/'"),
    ],
)
def test_an_invalid_image_is_refused_on_construction(make: Any, error: str) -> None:
    """The error names valid values."""
    with pytest.raises((TypeError, ValueError), match=error):
        make()


def test_the_agent_sends_an_image_to_the_model_and_saves_it(tmp_path: Path) -> None:
    """The user sees its name, and a resumed conversation has its bytes."""
    from pydantic_ai.messages import BinaryContent, ToolReturnPart

    from skillshelf.shelf.workspace_skills import WorkspaceSkills
    from skillshelf_agent import AgentCore, Sessions
    from skillshelf_agent.events import ToolReturned
    from skillshelf_agent.testing import ScriptedModel, call

    def images(core: AgentCore) -> list[bytes]:
        parts = [part for message in core.conversation.messages for part in message.parts]
        contents = [part.content for part in parts if isinstance(part, ToolReturnPart)]
        return [content.data for content in contents if isinstance(content, BinaryContent)]

    async def talk(core: AgentCore) -> list[str]:
        stream = core.process_message("Draw.")
        return [event.text async for event in stream if isinstance(event, ToolReturned)]

    core = AgentCore(
        ScriptedModel(call("draw"), "Done."), WorkspaceSkills(tmp_path, [Charts()]), sessions=Sessions(tmp_path)
    )
    events = asyncio.run(talk(core))
    assert (len(events), images(core)) == (1, [PNG])
    assert len(events[0]) < 100

    core.conversation.close()
    later = AgentCore(ScriptedModel("Yes."), WorkspaceSkills(tmp_path, [Charts()]), sessions=Sessions(tmp_path))
    later.resume()
    assert images(later) == [PNG]
