"""Give a shelf to a user's own agent of the OpenAI Agents SDK."""

import asyncio
import gc
import importlib
import sys
from typing import Any

import pytest

from skillshelf import BaseSkill, MemorySource, MissingExtraError, Shelf, tool
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import run

pytest.importorskip("agents", reason="needs the extra skillshelf[openai-agents]")

from agents import Agent, RunConfig, Runner, RunResult, ToolCallOutputItem, function_tool
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

from faces.openai_agents import OpenAIAgents
from skillshelf.adapters.openai_agents import Skills

SKILL = "---\nname: {0}\ndescription: About {0}.\n---\nBody of {0}.\n"
OFFLINE = RunConfig(tracing_disabled=True)


def shelf(*names: str, skills: tuple[BaseSkill, ...] = ()) -> tuple[Shelf, MemorySource]:
    source = MemorySource({name: {"SKILL.md": SKILL.format(name), "notes.md": f"Notes on {name}."} for name in names})
    return Shelf([ObjectSource(skills), source]), source


def script(*steps: str | tuple[str, Any]) -> ScriptedModel:
    return ScriptedModel(
        [assistant_message(step)] if isinstance(step, str) else [function_call(*step, call_id=f"call-{at}")]
        for at, step in enumerate(steps)
    )


def load(**arguments: Any) -> tuple[str, Any]:
    return "load_skill_instructions", {"skill_name": "pdf", **arguments}


def agent(skills: Skills, model: ScriptedModel, own: Any = "") -> Agent[Any]:
    return Agent("one", instructions=skills.instructions(own), tools=[*skills.tools()], model=model)


def results(result: Any) -> list[str]:
    return [str(item.output) for item in result.new_items if isinstance(item, ToolCallOutputItem)]


class Files(BaseSkill):
    """A code skill whose tool asks first."""

    name = "files"
    description = "Changes files."
    category = "raw"
    instructions = "Call erase."

    def __init__(self) -> None:
        self.erased: list[str] = []

    @tool
    async def erase(self, path: str) -> dict[str, str]:
        """Erase a file."""
        self.erased.append(path)
        return {"erased": path}


def asking() -> tuple[Shelf, Files]:
    files = Files().with_policy({"erase": "ask"})
    return shelf("pdf", skills=(files,))[0], files


def test_the_conformance_scenario_passes() -> None:
    report = asyncio.run(run(OpenAIAgents()))
    assert report.passed, report


def test_three_lines_give_an_agent_a_shelf() -> None:
    """A synchronous run has the listing, and the tools load the skills in it."""
    stock, _ = shelf("pdf")
    model = script(load(reference="notes.md"), "Done.")
    result = Runner.run_sync(agent(Skills(stock), model), "hi", run_config=OFFLINE)
    assert (result.final_output, results(result)) == ("Done.", ["Notes on pdf."])
    assert [call.system_instructions for call in model.calls] == [stock.listing().text] * 2


@pytest.mark.parametrize("own", ["You are terse.", lambda ctx, agent: f"You are {ctx.context}."])
def test_the_users_instructions_and_tools_stay(own: Any) -> None:
    """The instructions come first, even if a function makes them for each call, and the tools stay."""
    stock, _ = shelf("pdf")
    skills, model = Skills(stock), script(("shout", {"text": "hey"}), "Done.")

    @function_tool
    def shout(text: str) -> str:
        """Say it loudly."""
        return text.upper()

    mine = Agent("one", instructions=skills.instructions(own), tools=[shout, *skills.tools()], model=model)
    result = Runner.run_sync(mine, "hi", context="terse", run_config=OFFLINE)
    assert results(result) == ["HEY"]
    assert model.calls[0].system_instructions == f"You are terse.\n\n{stock.listing().text}"


def test_refused_references_do_not_end_the_run() -> None:
    """Ten wrong requests in a row each get an answer that suggests a correction."""
    stock, _ = shelf("pdf")
    model = script(*(load(reference=f"../{at}") for at in range(10)), "Done.")
    result = Runner.run_sync(agent(Skills(stock), model), "hi", max_turns=20, run_config=OFFLINE)
    assert result.final_output == "Done."
    assert [text for text in results(result) if "notes.md" not in text] == []


@pytest.mark.parametrize("arguments", ["{", "[]", '{"skill": "pdf"}'])
def test_malformed_arguments_are_answered(arguments: str) -> None:
    """The SDK passes on whatever the model wrote. The answer names the tool and the mistake."""
    stock, _ = shelf("pdf")
    result = Runner.run_sync(agent(Skills(stock), script((load()[0], arguments), "Done.")), "hi", run_config=OFFLINE)
    assert results(result)[0].startswith("Tool 'load_skill_instructions' cannot take these arguments: ")


def load_twice(call: ModelCall) -> Any:
    """Load the same skill twice in each of any number of concurrent conversations."""
    outputs = sum(item.get("type") == "function_call_output" for item in call.input)
    if outputs == 2:
        return [assistant_message("Done.")]
    return [function_call(*load(), call_id=f"{call.input[0]['content']}-{outputs}")]


def test_concurrent_runs_have_turns_of_their_own() -> None:
    """Each reads the skill once, and none gets an answer from another's turn. No state remains afterwards."""
    stock, _ = shelf("pdf")
    activations: list[Any] = []
    stock.observers.add(activations.append)
    skills = Skills(stock)
    mine = agent(skills, ScriptedModel([ModelStep.respond(load_twice)] * 60))

    async def together() -> list[RunResult]:
        runs = (Runner.run(mine, [{"role": "user", "content": str(at)}], run_config=OFFLINE) for at in range(20))
        return await asyncio.gather(*runs)

    finished_runs = asyncio.run(together())
    assert [len(results(result)) for result in finished_runs] == [2] * 20
    assert len(activations) == 20
    del finished_runs
    gc.collect()
    assert skills._turns == {}


def test_each_run_is_a_turn() -> None:
    """The next run sees a change, even if it is streamed."""
    stock, source = shelf("pdf")
    model = script(load(), load(), "a", load(), "b")
    mine = agent(Skills(stock), model)

    async def streamed() -> Any:
        result = Runner.run_streamed(mine, "two", run_config=OFFLINE)
        async for _ in result.stream_events():
            pass
        return result

    Runner.run_sync(mine, "one", run_config=OFFLINE)
    source.put("pdf", SKILL.format("pdf").replace("About", "All about") + "More.\n")
    assert "More." in results(asyncio.run(streamed()))[0]
    assert "All about pdf." in (model.calls[3].system_instructions or "")


def test_concurrent_calls_share_a_turn() -> None:
    """This holds even if the agent has only the tools, so that no earlier call opened the turn."""
    stock, _ = shelf("pdf")
    activations: list[Any] = []
    stock.observers.add(activations.append)
    both = [function_call(*load(), call_id="a"), function_call(*load(), call_id="b")]
    model = ScriptedModel([both, [assistant_message("Done.")]])
    mine = Agent[Any]("one", instructions="Be brief.", tools=[*Skills(stock).tools()], model=model)
    assert len(results(asyncio.run(Runner.run(mine, "hi", run_config=OFFLINE)))) == 2
    assert len(activations) == 1


def test_an_agent_used_as_a_tool_joins_the_turn() -> None:
    """Both agents work on the same task, so a skill that one has loaded is there for the other."""
    stock, _ = shelf("pdf")
    activations: list[Any] = []
    stock.observers.add(activations.append)
    skills = Skills(stock)
    mine = agent(skills, script(load(), ("helper", {"input": "help"}), "Done."))
    mine.tools.append(agent(skills, script(load(), "Helped.")).as_tool("helper", "Helps.", run_config=OFFLINE))
    assert results(asyncio.run(Runner.run(mine, "hi", run_config=OFFLINE)))[-1] == "Helped."
    assert len(activations) == 1


def test_a_run_joins_an_open_turn() -> None:
    """The caller can read its activations."""
    stock, _ = shelf("pdf")
    mine = agent(Skills(stock), script(load(), "a", load(), "b"))
    with stock.turn() as turn:
        Runner.run_sync(mine, "hi", run_config=OFFLINE)
        asyncio.run(Runner.run(mine, "hi", run_config=OFFLINE))
    assert [(activation.skill, activation.by) for activation in turn.activations] == [("pdf", "model")]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_tool_that_asks_waits_for_the_user(allowed: bool) -> None:
    """The run stops with the SDK's own kind of interruption, and continues with the user's answer."""
    stock, files = asking()
    mine = agent(Skills(stock), script(("erase", {"path": "a.txt"}), load(), "Done."))
    stopped = Runner.run_sync(mine, "hi", run_config=OFFLINE)
    [item] = stopped.interruptions
    assert (item.name, files.erased) == ("erase", [])
    state = stopped.to_state()
    state.approve(item) if allowed else state.reject(item)
    result = Runner.run_sync(mine, state, run_config=OFFLINE)
    assert (result.final_output, files.erased) == ("Done.", ["a.txt"] if allowed else [])
    assert ('{"erased": "a.txt"}' in results(result)) is allowed


def test_a_tool_that_asks_is_refused_if_the_sdk_did_not_ask() -> None:
    """The skill's policy holds even if the SDK's approval is switched off."""
    stock, files = asking()
    mine = agent(Skills(stock), script(("erase", {"path": "a.txt"}), "Done."))
    for own_tool in mine.tools:
        own_tool.needs_approval = False  # type: ignore[union-attr]
    result = Runner.run_sync(mine, "hi", run_config=OFFLINE)
    assert "runs only after the user has approved" in results(result)[0]
    assert files.erased == []


def test_a_missing_framework_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "skillshelf.adapters.openai_agents")
    monkeypatch.setitem(sys.modules, "agents", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[openai-agents\]'"):
        importlib.import_module("skillshelf.adapters.openai_agents")
