"""The shelf in somebody's own Google ADK agent."""

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
from skillshelf import BaseSkill, MemorySource, MissingExtraError, Shelf, tool
from skillshelf.adapters.google_adk import Skills
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import Call
from skillshelf.testing.conformance import run as conform
from skillshelf.testing.conformance.faces.google_adk import ScriptedLlm, make

SKILL = "---\nname: {0}\ndescription: About {0}.\n---\nBody of {0}.\n"
LOAD = "load_skill_instructions"


def source(*names: str) -> MemorySource:
    return MemorySource({name: {"SKILL.md": SKILL.format(name), "notes.md": f"Notes on {name}."} for name in names})


class Own:
    """An agent of somebody's own, and a session with it."""

    def __init__(self, skills: Skills, *script: Call | str, instruction: str = "", tools: Sequence[Any] = ()) -> None:
        self.model = ScriptedLlm(script=list(script))
        agent = LlmAgent(name="own", model=self.model, instruction=instruction, tools=[*tools, skills])
        self.runner = InMemoryRunner(agent, app_name="tests")

    async def say(self, *parts: types.Part, session: str = "one") -> list[Event]:
        place = {"app_name": "tests", "user_id": "user", "session_id": session}
        if await self.runner.session_service.get_session(**place) is None:
            await self.runner.session_service.create_session(**place)
        message = types.Content(role="user", parts=list(parts) or [types.Part(text="Go on.")])
        return [one async for one in self.runner.run_async(user_id="user", session_id=session, new_message=message)]


def responses(events: list[Event]) -> list[dict[str, Any]]:
    return [one.response or {} for event in events for one in event.get_function_responses()]


def text(events: list[Event]) -> str:
    parts = (events[-1].content.parts if events[-1].content else None) or []
    return "".join(part.text or "" for part in parts)


def test_the_scenario_passes() -> None:
    """All that a model can rely on, it can rely on here."""
    report = asyncio.run(conform(make()))
    assert report.passed, str(report)


def test_ten_wrong_references_do_not_end_the_run() -> None:
    """Each is answered with what would be right."""
    wrong = [Call(LOAD, {"skill_name": "pdf", "reference": f"../{at}"}) for at in range(10)]
    events = asyncio.run(Own(Skills(Shelf([source("pdf")])), *wrong, "Done.").say())
    assert text(events) == "Done."
    assert all("notes.md" in one["error"] for one in responses(events))
    assert len(responses(events)) == 10


def test_a_tool_that_waits_does_not_hold_up_the_others() -> None:
    """What is not async runs beside the event loop."""
    place = Place()
    skills = Skills(Shelf([ObjectSource([place])]))
    asyncio.run(Own(skills, Call("where", {}), "Done.").say())
    assert place.on_main_thread == [False]


def test_wrong_arguments_are_answered() -> None:
    """The model hears what the tool does not take."""
    events = asyncio.run(Own(Skills(Shelf([source("pdf")])), Call(LOAD, {"skill": "pdf"}), "Done.").say())
    assert [list(one) for one in responses(events)] == [["error"]]
    assert "skill_name" in responses(events)[0]["error"]


def test_the_agents_own_tools_and_instructions_stay() -> None:
    """The listing comes after the instruction, and the tools beside the others."""

    def weather(city: str) -> str:
        """The weather in a city."""
        return f"Sun over {city}."

    own = Own(
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


def test_invocations_side_by_side_have_turns_of_their_own() -> None:
    """Each reads the skill once, though they run at once and load it twice; nothing is kept when they are over."""
    shelf = Shelf([source("pdf")])
    activations: list[Any] = []
    shelf.on_activation(activations.append)
    skills, load = Skills(shelf), Call(LOAD, {"skill_name": "pdf"})
    agents = [Own(skills, load, load, "Done.") for _ in range(4)]

    async def all_at_once() -> list[list[Event]]:
        return await asyncio.gather(*(one.say(session=str(at)) for at, one in enumerate(agents)))

    assert [text(events) for events in asyncio.run(all_at_once())] == ["Done."] * 4
    assert len(activations) == 4
    gc.collect()
    assert skills._turns == {}


def test_an_invocation_joins_the_turn_that_is_open() -> None:
    """Its activations are the caller's to read."""
    shelf = Shelf([source("pdf")])
    own = Own(Skills(shelf), Call(LOAD, {"skill_name": "pdf"}), "Done.")
    with shelf.turn() as turn:
        asyncio.run(own.say())
    assert [(one.skill, one.by) for one in turn.activations] == [("pdf", "model")]


def test_a_long_session_keeps_its_beginning_and_is_told_what_changed() -> None:
    """In an invocation, by a note behind the newest message; from the next on, by the listing itself."""
    stock = source("pdf")
    own = Own(Skills(Shelf([stock])), "a", "b", "c")

    async def talk() -> None:
        await own.say(types.Part(text="long " * 3000))
        stock.put("csv", SKILL.format("csv"))
        await own.say()
        await own.say()

    asyncio.run(talk())
    systems = [str(one.config.system_instruction) for one in own.model.requests]
    assert ['name="csv"' in one for one in systems] == [False, False, True]
    second, third = (
        [part.text or "" for content in one.contents for part in content.parts or ()] for one in own.model.requests[1:]
    )
    assert "Added: csv." in second[-1]
    assert third[: len(second) - 1] == second[:-1]
    assert len(third) == len(second) + 1


class Erasing(BaseSkill):
    """A code skill whose tool changes something."""

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
def test_a_tool_that_asks_waits_for_the_person(confirmed: bool, answer: dict[str, str]) -> None:
    """ADK pauses the run with its own request for confirmation, and goes on with the person's word."""
    shelf = Shelf([ObjectSource([Erasing().with_policy({"erase": "ask"})])])
    own = Own(Skills(shelf), Call("erase", {"path": "a.txt"}), "Done.")

    async def talk() -> tuple[list[Event], list[Event]]:
        before = await own.say()
        [asked] = [
            one for event in before for one in event.get_function_calls() if one.name == "adk_request_confirmation"
        ]
        word = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": confirmed})
        return before, await own.say(types.Part(function_response=word))

    before, after = asyncio.run(talk())
    assert "confirmation" in responses(before)[0]["error"]
    assert responses(after) == [answer]
    assert text(after) == "Done."


def test_a_tool_that_asks_is_refused_where_nobody_was_asked() -> None:
    """A host that calls it in its own way gets past ADK's question, and no further."""
    shelf = Shelf([ObjectSource([Erasing().with_policy({"erase": "ask"})])])
    skills = Skills(shelf)

    async def go(tool_context: ToolContext) -> Any:
        """Erase a file behind ADK's back."""
        [tool] = [one for one in await skills.get_tools() if one.name == "erase"]
        return await tool.run_async(args={"path": "a.txt"}, tool_context=tool_context)

    own = Own(skills, Call("go", {}), "Done.", tools=[go])
    assert "runs only after the user has approved" in responses(asyncio.run(own.say()))[0]["error"]


def test_a_missing_framework_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to install."""
    monkeypatch.delitem(sys.modules, "skillshelf.adapters.google_adk")
    monkeypatch.setitem(sys.modules, "google.adk.tools.base_tool", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[google-adk\]'"):
        importlib.import_module("skillshelf.adapters.google_adk")
