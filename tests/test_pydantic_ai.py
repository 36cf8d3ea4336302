"""The shelf in a program's own pydantic-ai agent."""

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelRequest, ToolReturnPart

from skillshelf import BaseSkill, MemorySource, Shelf, tool
from skillshelf.adapters.pydantic_ai import Skills
from skillshelf_agent.testing import ScriptedModel, call

SKILL = "---\nname: {0}\ndescription: About {0}.\n---\nBody of {0}.\n"


def shelf(*names: str) -> tuple[Shelf, MemorySource]:
    source = MemorySource({name: {"SKILL.md": SKILL.format(name), "notes.md": f"Notes on {name}."} for name in names})
    return Shelf([source]), source


def ask(agent: Agent[Any, str], text: str, history: list[ModelMessage] | None = None) -> Any:
    async def run() -> Any:
        async with agent.run_stream_events(text, message_history=history) as events:
            async for _ in events:
                pass
            return events.result

    return asyncio.run(run())


def results(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    parts = [part for message in messages if isinstance(message, ModelRequest) for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


def test_three_lines_give_an_agent_a_shelf() -> None:
    """The agent gets the listing in its instructions, and the tools to load skills."""
    stock, _ = shelf("pdf")
    model = ScriptedModel(call("load_skill_instructions", skill_name="pdf", reference="notes.md"), "Done.")
    result = ask(Agent(model, capabilities=[Skills(stock)]), "hi")
    assert result.output == "Done."
    assert '<skill name="pdf"' in model.requests[0].system
    assert [part.content for part in results(result.all_messages())] == ["Notes on pdf."]


def test_a_refused_reference_is_a_result_and_does_not_end_the_run() -> None:
    """Ten wrong requests in a row do not end the run, and each result says what would be right."""
    stock, _ = shelf("pdf")
    wrong = [call("load_skill_instructions", skill_name="pdf", reference=f"../{at}") for at in range(10)]
    result = ask(Agent(ScriptedModel(*wrong, "Done."), capabilities=[Skills(stock)]), "hi")
    assert result.output == "Done."
    assert all(part.outcome == "failed" and "notes.md" in str(part.content) for part in results(result.all_messages()))


def test_each_run_is_a_turn() -> None:
    """The next run sees a change, and a second load in one run reads nothing."""
    stock, source = shelf("pdf")
    load = call("load_skill_instructions", skill_name="pdf")
    model = ScriptedModel(load, load, "a", load, "b")
    agent = Agent(model, capabilities=[Skills(stock)])
    ask(agent, "one")
    source.put("pdf", SKILL.format("pdf") + "More.\n")
    assert "More." in str(results(ask(agent, "two").all_messages())[0].content)


def test_a_run_joins_the_open_turn() -> None:
    """The caller can read its activations."""
    stock, _ = shelf("pdf")
    agent = Agent(
        ScriptedModel(call("load_skill_instructions", skill_name="pdf"), "Done."), capabilities=[Skills(stock)]
    )
    with stock.turn() as turn:
        ask(agent, "hi")
    assert [(one.skill, one.by) for one in turn.activations] == [("pdf", "model")]


def test_an_agent_that_a_tool_runs_joins_the_turn() -> None:
    """A skill that one agent has loaded is there for the other, because it is the same task."""
    stock, _ = shelf("pdf")
    seen: list[Any] = []
    stock.observers.add(seen.append)
    load = call("load_skill_instructions", skill_name="pdf")
    helper = Agent(ScriptedModel(load, "Helped."), capabilities=[Skills(stock)])
    agent = Agent(ScriptedModel(load, call("delegate"), "Done."), capabilities=[Skills(stock)])

    @agent.tool_plain
    async def delegate() -> str:
        return (await helper.run("help")).output

    assert ask(agent, "hi").output == "Done."
    assert len(seen) == 1


def test_each_conversation_gets_its_own_note_of_a_change() -> None:
    """One agent has two long conversations, and each gets the note once."""
    stock, source = shelf("pdf")
    model = ScriptedModel("a", "b", "c", "d")
    agent = Agent(model, capabilities=[Skills(stock)])
    first = ask(agent, "long " * 3000).all_messages()
    second = ask(agent, "other " * 3000).all_messages()
    source.put("csv", SKILL.format("csv"))
    ask(agent, "go on", first)
    ask(agent, "go on", second)
    for before, after in ((0, 2), (1, 3)):
        assert model.requests[before].system == model.requests[after].system
        assert "Added: csv." in model.requests[after].text


class Counting(BaseSkill):
    """A code skill, to be given to a shelf."""

    name = "counting"
    description = "Counts letters."
    instructions = "Call count."

    @tool
    def count(self, text: str) -> int:
        """How many letters a text has."""
        return len(text)


def test_tools_of_code_skills_are_included(tmp_path: Any) -> None:
    """They have the schema that the skill declares."""
    stock = Shelf.open(tmp_path, skills=[Counting()])
    result = ask(Agent(ScriptedModel(call("count", text="four"), "Done."), capabilities=[Skills(stock)]), "hi")
    assert [part.content for part in results(result.all_messages())] == [4]
