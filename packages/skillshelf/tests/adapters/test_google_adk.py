"""Give a shelf to a user's own Google ADK agent."""

import asyncio
import gc
import importlib
import sys
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="needs the extra: pip install 'skillshelf[google-adk]'")

from google.adk.agents import LlmAgent
from google.adk.events.event import Event
from google.adk.runners import InMemoryRunner
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from adapters.place import Place
from crowd import BUDGET, ask_about, entry_of, write_skills
from faces.google_adk import GoogleADK, ScriptedLlm
from skillshelf import BaseSkill, MemorySource, MissingExtraError, Shelf, tool
from skillshelf.adapters.google_adk import Skills
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import Call
from skillshelf.testing.conformance import run as conform

SKILL = "---\nname: {0}\ndescription: About {0}.\n---\nBody of {0}.\n"
LOAD = "load_skill_instructions"


def source(*names: str) -> MemorySource:
    return MemorySource({name: {"SKILL.md": SKILL.format(name), "notes.md": f"Notes on {name}."} for name in names})


class AgentWithSession:
    """An agent as a user would build it, and a session with it."""

    def __init__(self, skills: Skills, *script: Call | str, instruction: str = "", tools: Sequence[Any] = ()) -> None:
        self.model = ScriptedLlm(script=list(script))
        agent = LlmAgent(name="own", model=self.model, instruction=instruction, tools=[*tools, skills])
        self.runner = InMemoryRunner(agent, app_name="tests")

    async def say(self, *parts: types.Part, session: str = "one") -> list[Event]:
        place = {"app_name": "tests", "user_id": "user", "session_id": session}
        if await self.runner.session_service.get_session(**place) is None:
            await self.runner.session_service.create_session(**place)
        message = types.Content(role="user", parts=list(parts) or [types.Part(text="Go on.")])
        return [event async for event in self.runner.run_async(user_id="user", session_id=session, new_message=message)]


def responses(events: list[Event]) -> list[dict[str, Any]]:
    return [response.response or {} for event in events for response in event.get_function_responses()]


def text(events: list[Event]) -> str:
    parts = (events[-1].content.parts if events[-1].content else None) or []
    return "".join(part.text or "" for part in parts)


def test_the_conformance_scenario_passes() -> None:
    report = asyncio.run(conform(GoogleADK()))
    assert report.passed, str(report)


def test_ten_wrong_references_do_not_end_the_run() -> None:
    """Each answer suggests a correction."""
    wrong = [Call(LOAD, {"skill_name": "pdf", "reference": f"../{at}"}) for at in range(10)]
    events = asyncio.run(AgentWithSession(Skills(Shelf([source("pdf")])), *wrong, "Done.").say())
    assert text(events) == "Done."
    assert all("notes.md" in response["error"] for response in responses(events))
    assert len(responses(events)) == 10


def test_a_blocking_tool_does_not_delay_the_others() -> None:
    """Tools that are not async run outside the event loop."""
    place = Place()
    skills = Skills(Shelf([ObjectSource([place])]))
    asyncio.run(AgentWithSession(skills, Call("where", {}), "Done.").say())
    assert place.on_main_thread == [False]


def test_wrong_arguments_are_answered() -> None:
    """The answer names the unknown argument."""
    events = asyncio.run(AgentWithSession(Skills(Shelf([source("pdf")])), Call(LOAD, {"skill": "pdf"}), "Done.").say())
    assert [list(response) for response in responses(events)] == [["error"]]
    assert "skill_name" in responses(events)[0]["error"]


def test_the_agents_own_tools_and_instructions_stay() -> None:
    """The listing comes after the instruction, and the tools join the existing ones."""

    def weather(city: str) -> str:
        """Return the weather in a city."""
        return f"Sun over {city}."

    own = AgentWithSession(
        Skills(Shelf([source("pdf")])),
        Call("weather", {"city": "Bonn"}),
        "Done.",
        tools=[weather],
        instruction="Be brief.",
    )
    events = asyncio.run(own.say())
    system = str(own.model.requests[0].config.system_instruction)
    assert responses(events) == [{"result": "Sun over Bonn."}]
    assert system.index("Be brief.") < system.index('<skill name="pdf"')
    assert set(own.model.requests[0].tools_dict) == {"weather", "list_skills", "search_skills", LOAD}


def test_concurrent_invocations_have_turns_of_their_own() -> None:
    """Each reads the skill once, although they run at the same time and load it twice. No state remains afterwards."""
    shelf = Shelf([source("pdf")])
    activations: list[Any] = []
    shelf.observers.add(activations.append)
    skills, load = Skills(shelf), Call(LOAD, {"skill_name": "pdf"})
    agents = [AgentWithSession(skills, load, load, "Done.") for _ in range(4)]

    async def all_at_once() -> list[list[Event]]:
        return await asyncio.gather(*(agent.say(session=str(at)) for at, agent in enumerate(agents)))

    assert [text(events) for events in asyncio.run(all_at_once())] == ["Done."] * 4
    assert len(activations) == 4
    gc.collect()
    assert skills._turns == {}


def test_an_invocation_joins_an_open_turn() -> None:
    """The caller can read its activations."""
    shelf = Shelf([source("pdf")])
    own = AgentWithSession(Skills(shelf), Call(LOAD, {"skill_name": "pdf"}), "Done.")
    with shelf.turn() as turn:
        asyncio.run(own.say())
    assert [(activation.skill, activation.by) for activation in turn.activations] == [("pdf", "model")]


def test_a_long_session_keeps_its_beginning_and_gets_a_note_on_changes() -> None:
    """Within an invocation a note follows the newest message. The next invocation has a new listing."""
    stock = source("pdf")
    own = AgentWithSession(Skills(Shelf([stock])), "a", "b", "c")

    async def talk() -> None:
        await own.say(types.Part(text="long " * 3000))
        stock.put("csv", SKILL.format("csv"))
        await own.say()
        await own.say()

    asyncio.run(talk())
    systems = [str(request.config.system_instruction) for request in own.model.requests]
    assert ['name="csv"' in system for system in systems] == [False, False, True]
    second, third = (
        [part.text or "" for content in request.contents for part in content.parts or ()]
        for request in own.model.requests[1:]
    )
    assert "Added: csv." in second[-1]
    assert third[: len(second) - 1] == second[:-1]
    assert len(third) == len(second) + 1


class Erasing(BaseSkill):
    """A code skill with a tool that changes something."""

    name = "erasing"
    description = "Erases files."
    category = "raw"
    instructions = "Call erase."

    @tool
    async def erase(self, path: str) -> str:
        """Erase a file."""
        return f"erased {path}"


@pytest.mark.parametrize(
    ("confirmed", "answer"), [(True, {"result": "erased a.txt"}), (False, {"error": "This tool call is rejected."})]
)
def test_a_tool_that_asks_waits_for_the_user(confirmed: bool, answer: dict[str, str]) -> None:
    """ADK pauses the run with its own request for confirmation, and continues with the user's answer."""
    shelf = Shelf([ObjectSource([Erasing().with_policy({"erase": "ask"})])])
    own = AgentWithSession(Skills(shelf), Call("erase", {"path": "a.txt"}), "Done.")

    async def talk() -> tuple[list[Event], list[Event]]:
        before = await own.say()
        [question] = [
            call for event in before for call in event.get_function_calls() if call.name == "adk_request_confirmation"
        ]
        answer = types.FunctionResponse(id=question.id, name=question.name, response={"confirmed": confirmed})
        return before, await own.say(types.Part(function_response=answer))

    before, after = asyncio.run(talk())
    assert "confirmation" in responses(before)[0]["error"]
    assert responses(after) == [answer]
    assert text(after) == "Done."


def test_a_tool_that_asks_is_refused_if_adk_did_not_ask() -> None:
    """A host that calls the tool directly bypasses ADK's question, but not the skill's policy."""
    shelf = Shelf([ObjectSource([Erasing().with_policy({"erase": "ask"})])])
    skills = Skills(shelf)

    async def go(tool_context: ToolContext) -> Any:
        """Call the tool directly, without ADK's question."""
        [tool] = [tool for tool in await skills.get_tools() if tool.name == "erase"]
        return await tool.run_async(args={"path": "a.txt"}, tool_context=tool_context)

    own = AgentWithSession(skills, Call("go", {}), "Done.", tools=[go])
    assert "runs only after the user has approved" in responses(asyncio.run(own.say()))[0]["error"]


def test_a_missing_framework_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "skillshelf.adapters.google_adk")
    monkeypatch.setitem(sys.modules, "google.adk.tools.base_tool", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[google-adk\]'"):
        importlib.import_module("skillshelf.adapters.google_adk")


def test_a_crowded_listing_describes_what_fits_the_message() -> None:
    own = AgentWithSession(Skills(Shelf([MemorySource(write_skills())]), budget=BUDGET), "a", "b")

    async def talk() -> None:
        await own.say(types.Part(text=ask_about(150)))
        await own.say(types.Part(text=ask_about(170)))

    asyncio.run(talk())
    first, second = (str(request.config.system_instruction) for request in own.model.requests)
    assert entry_of(150) in first
    assert entry_of(170) in second
