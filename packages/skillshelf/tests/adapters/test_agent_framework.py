"""Give a shelf to a user's own agent of the Microsoft Agent Framework."""

import asyncio
import importlib
import sys
from typing import Any

import pytest

pytest.importorskip("agent_framework", reason="needs the extra: pip install 'skillshelf[agent-framework]'")

from agent_framework import Agent, AgentResponse, AgentSession, Message

from adapters.place import Place
from crowd import BUDGET, ask_about, entry_of, write_skills
from faces.agent_framework import AgentFramework, ScriptedClient
from skillshelf import BaseSkill, MemorySource, MissingExtraError, Shelf, tool
from skillshelf.adapters.agent_framework import Skills
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import Call
from skillshelf.testing.conformance import run as conform

SKILL = "---\nname: {0}\ndescription: About {0}.\n---\nBody of {0}.\n"
LOAD = "load_skill_instructions"


def source(*names: str) -> MemorySource:
    return MemorySource({name: {"SKILL.md": SKILL.format(name), "notes.md": f"Notes on {name}."} for name in names})


def make_agent(skills: Skills, *script: Call | str, **agent: Any) -> Agent[Any]:
    """Return an agent as a user would build it."""
    return Agent(ScriptedClient(*script), context_providers=[skills], **agent)


def requests(agent: Agent[Any]) -> list[tuple[list[Message], dict[str, Any]]]:
    assert isinstance(agent.client, ScriptedClient)
    return agent.client.requests


def results(response: AgentResponse[Any]) -> list[str]:
    contents = [content for message in response.messages for content in message.contents]
    return [str(content.result) for content in contents if content.type == "function_result"]


def test_the_conformance_scenario_passes() -> None:
    report = asyncio.run(conform(AgentFramework()))
    assert report.passed, str(report)


def test_ten_wrong_references_do_not_end_the_run() -> None:
    """Each answer suggests a correction, and the model keeps its tools."""
    wrong = [Call(LOAD, {"skill_name": "pdf", "reference": f"../{at}"}) for at in range(10)]
    agent = make_agent(Skills(Shelf([source("pdf")])), *wrong, "Done.")
    response = asyncio.run(agent.run("hi"))
    assert response.text == "Done."
    assert ["notes.md" in result for result in results(response)] == [True] * 10
    assert [options.get("tool_choice") for _, options in requests(agent)] == ["auto"] * 11


def test_wrong_arguments_are_answered() -> None:
    """Every answer names the unknown argument, and the model sees the tool's own schema."""
    skills = Skills(Shelf([source("pdf")]))
    agent = make_agent(skills, *[Call(LOAD, {"skill": "pdf"})] * 4, "Done.")
    response = asyncio.run(agent.run("hi"))
    assert ["skill_name" in result for result in results(response)] == [True] * 4
    [offered] = [tool for tool in requests(agent)[0][1]["tools"] if tool.name == LOAD]
    assert offered.parameters()["required"] == ["skill_name"]


def test_a_blocking_tool_does_not_delay_the_others() -> None:
    """Tools that are not async run outside the event loop."""
    place = Place()
    skills = Skills(Shelf([ObjectSource([place])]))
    asyncio.run(make_agent(skills, Call("where", {}), "Done.").run("hi"))
    assert place.on_main_thread == [False]


def test_the_agents_own_tools_and_instructions_stay() -> None:
    """The listing comes after the instructions, and the tools join the existing ones."""

    def weather(city: str) -> str:
        """Return the weather in a city."""
        return f"Sun over {city}."

    agent = make_agent(
        Skills(Shelf([source("pdf")])),
        Call("weather", {"city": "Bonn"}),
        "Done.",
        tools=[weather],
        instructions="Be brief.",
    )
    response = asyncio.run(agent.run("hi"))
    options = requests(agent)[0][1]
    assert results(response) == ["Sun over Bonn."]
    assert options["instructions"].index("Be brief.") < options["instructions"].index('<skill name="pdf"')
    assert [tool.name for tool in options["tools"]] == ["weather", "list_skills", "search_skills", LOAD]


def test_instructions_in_parts_stay_in_parts() -> None:
    """Some providers cache instructions by part. Without skills nothing is added."""
    parts: Any = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    shelf, empty = Shelf([source("pdf")]), Shelf([source()])
    agent, other = make_agent(Skills(shelf), "Done."), make_agent(Skills(empty), "Done.")
    asyncio.run(agent.run("hi", options={"instructions": parts}))
    assert requests(agent)[0][1]["instructions"] == [*parts, shelf.listing().text]
    asyncio.run(other.run("hi"))
    assert not requests(other)[0][1].get("instructions")


def test_an_edit_is_seen_by_the_next_model_call_of_the_same_run() -> None:
    """The listing is made before each model call, not once per run."""
    stock = source("pdf")
    shelf = Shelf([stock])

    def install() -> str:
        """Put a skill on the shelf."""
        stock.put("csv", SKILL.format("csv"))
        shelf.reload()
        return "done"

    agent = make_agent(Skills(shelf), Call("install", {}), "Done.", tools=[install])
    asyncio.run(agent.run("hi"))
    assert ['name="csv"' in options["instructions"] for _, options in requests(agent)] == [False, True]


def test_concurrent_runs_have_turns_of_their_own() -> None:
    """Each reads the skill once, although they run at the same time and load it twice."""
    shelf = Shelf([source("pdf")])
    activations: list[Any] = []
    shelf.observers.add(activations.append)
    skills, load = Skills(shelf), Call(LOAD, {"skill_name": "pdf"})

    async def all_at_once() -> list[AgentResponse[Any]]:
        return await asyncio.gather(*(make_agent(skills, load, load, "Done.").run("hi") for _ in range(4)))

    assert [response.text for response in asyncio.run(all_at_once())] == ["Done."] * 4
    assert len(activations) == 4


def test_a_run_joins_an_open_turn() -> None:
    """The caller can read its activations."""
    shelf = Shelf([source("pdf")])
    with shelf.turn() as turn:
        asyncio.run(make_agent(Skills(shelf), Call(LOAD, {"skill_name": "pdf"}), "Done.").run("hi"))
    assert [(activation.skill, activation.by) for activation in turn.activations] == [("pdf", "model")]


def test_a_streamed_run_is_a_turn_like_any_other() -> None:
    """It has the listing and the tools, and a second load reads nothing."""
    shelf = Shelf([source("pdf")])
    activations: list[Any] = []
    shelf.observers.add(activations.append)
    load = Call(LOAD, {"skill_name": "pdf"})
    agent = make_agent(Skills(shelf), load, load, "Done.")

    async def streamed() -> AgentResponse[Any]:
        stream = agent.run("hi", stream=True)
        _ = [update async for update in stream]
        return await stream.get_final_response()

    response = asyncio.run(streamed())
    assert response.text == "Done."
    assert ["Body of pdf." in result for result in results(response)] == [True, True]
    assert [shelf.listing().text in options["instructions"] for _, options in requests(agent)] == [True] * 3
    assert len(activations) == 1


def test_an_agent_used_as_a_tool_joins_the_turn() -> None:
    """Both agents work on the same task, so a skill that one has loaded is there for the other."""
    shelf = Shelf([source("pdf")])
    activations: list[Any] = []
    shelf.observers.add(activations.append)
    skills, load = Skills(shelf), Call(LOAD, {"skill_name": "pdf"})
    helper = make_agent(skills, load, "Helped.", name="helper", description="Helps.")
    response = asyncio.run(
        make_agent(skills, load, Call("helper", {"task": "help"}), "Done.", tools=[helper.as_tool()]).run("hi")
    )
    assert results(response)[-1] == "Helped."
    assert len(activations) == 1


def test_a_long_session_keeps_its_beginning_and_gets_a_note_on_changes() -> None:
    """Within a run a note follows the newest message and is not saved. The next run has a new listing."""
    stock = source("pdf")
    agent, session = make_agent(Skills(Shelf([stock])), "a", "b", "c"), AgentSession()

    async def talk() -> None:
        await agent.run("long " * 3000, session=session)
        stock.put("csv", SKILL.format("csv"))
        await agent.run("two", session=session)
        await agent.run("three", session=session)

    asyncio.run(talk())
    assert ['name="csv"' in options["instructions"] for _, options in requests(agent)] == [False, False, True]
    second, third = ([message.text for message in messages] for messages, _ in requests(agent)[1:])
    assert "Added: csv." in second[-1]
    assert third == [*second[:-1], "b", "three"]
    assert "Added: csv." not in str(session.to_dict())


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


@pytest.mark.parametrize(("approved", "answer"), [(True, "erased a.txt"), (False, "rejected")])
def test_a_tool_that_asks_waits_for_the_user(approved: bool, answer: str) -> None:
    """The run ends with the framework's own request for approval, and the next one continues with the user's answer."""
    shelf = Shelf([ObjectSource([Erasing().with_policy({"erase": "ask"})])])
    agent, session = make_agent(Skills(shelf), Call("erase", {"path": "a.txt"}), "Done."), AgentSession()

    async def talk() -> tuple[AgentResponse[Any], AgentResponse[Any]]:
        before = await agent.run("hi", session=session)
        [approval] = before.user_input_requests
        return before, await agent.run(
            Message("user", [approval.to_function_approval_response(approved)]), session=session
        )

    before, after = asyncio.run(talk())
    assert results(before) == []
    assert [answer in result for result in results(after)] == [True]
    assert after.text == "Done."


def test_a_missing_framework_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "skillshelf.adapters.agent_framework")
    monkeypatch.setitem(sys.modules, "agent_framework", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[agent-framework\]'"):
        importlib.import_module("skillshelf.adapters.agent_framework")


def test_a_crowded_listing_describes_what_fits_the_message() -> None:
    stock = Shelf([MemorySource(write_skills())])
    agent, session = make_agent(Skills(stock, budget=BUDGET), "a", "b"), AgentSession()

    async def talk() -> None:
        await agent.run(ask_about(150), session=session)
        await agent.run(ask_about(170), session=session)

    asyncio.run(talk())
    first, second = (options["instructions"] for _, options in requests(agent))
    assert entry_of(150) in first
    assert entry_of(170) in second
