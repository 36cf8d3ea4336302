"""Give a shelf to a user's own LangChain agent."""

import asyncio
import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from crowd import BUDGET, ask_about, entry_of, write_skills
from skillshelf import BaseSkill, MemorySource, MissingExtraError, Shelf, tool
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import run

pytest.importorskip("langchain", reason="needs the extra skillshelf[langchain]")

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from faces.langchain import LangChain, Scripted
from skillshelf.adapters.langchain import Skills

SKILL = "---\nname: {0}\ndescription: About {0}.\n---\nBody of {0}.\n"
THREAD: Any = {"configurable": {"thread_id": "one"}}


def shelf(*names: str, skills: tuple[BaseSkill, ...] = ()) -> tuple[Shelf, MemorySource]:
    source = MemorySource({name: {"SKILL.md": SKILL.format(name), "notes.md": f"Notes on {name}."} for name in names})
    return Shelf([ObjectSource(skills), source]), source


def script(*steps: str | tuple[str, dict[str, Any]]) -> Scripted:
    def messages() -> Iterator[AIMessage]:
        for at, step in enumerate(steps):
            if isinstance(step, str):
                yield AIMessage(step)
            else:
                yield AIMessage("", tool_calls=[{"name": step[0], "args": step[1], "id": f"call-{at}"}])

    return Scripted(messages=messages())


def load(**arguments: Any) -> tuple[str, dict[str, Any]]:
    return "load_skill_instructions", {"skill_name": "pdf", **arguments}


def hello(text: str = "hi") -> Any:
    return {"messages": [HumanMessage(text)]}


def results(state: Any) -> list[tuple[str, str]]:
    return [(message.status, message.text) for message in state["messages"] if isinstance(message, ToolMessage)]


class Files(BaseSkill):
    """A code skill whose tool asks first."""

    name = "files"
    description = "Changes files."
    category = "raw"
    instructions = "Call erase."

    def __init__(self) -> None:
        self.erased: list[str] = []

    @tool
    async def erase(self, path: str, config: str = "") -> str:
        """Erase a file."""
        self.erased.append(path + config)
        return f"erased {path}"


def asking() -> tuple[Shelf, Files]:
    files = Files().with_policy({"erase": "ask"})
    return shelf("pdf", skills=(files,))[0], files


def test_the_conformance_scenario_passes() -> None:
    report = asyncio.run(run(LangChain()))
    assert report.passed, report


def test_three_lines_give_an_agent_a_shelf() -> None:
    """A synchronous call without a checkpointer has the listing, and the tools load the skills in it."""
    stock, _ = shelf("pdf")
    model = script(load(reference="notes.md"), "Done.")
    state = create_agent(model, middleware=[Skills(stock)]).invoke(hello())
    assert '<skill name="pdf"' in model.requests[0][0].text
    assert results(state) == [("success", "Notes on pdf.")]
    assert set(state) == {"messages"}


def test_the_users_prompt_and_tools_stay() -> None:
    """The user's system prompt comes first, and their tools stay callable beside those of the shelf."""
    stock, _ = shelf("pdf")
    model = script(("shout", {"text": "hey"}), "Done.")

    def shout(text: str) -> str:
        """Say it loudly."""
        return text.upper()

    agent = create_agent(model, [shout], system_prompt="You are terse.", middleware=[Skills(stock)])
    assert results(agent.invoke(hello())) == [("success", "HEY")]
    assert model.requests[0][0].text == f"You are terse.\n\n{stock.listing().text}"
    assert set(model.offered) == {"shout", "list_skills", "search_skills", "load_skill_instructions"}


def test_refused_references_do_not_end_the_run() -> None:
    """Ten wrong requests in a row each get an answer that suggests a correction."""
    stock, _ = shelf("pdf")
    wrong = [load(reference=f"../{at}") for at in range(10)]
    state = create_agent(script(*wrong, "Done."), middleware=[Skills(stock)]).invoke(hello())
    assert state["messages"][-1].text == "Done."
    assert [status for status, text in results(state) if "notes.md" in text] == ["error"] * 10


class LoadsTwice(Scripted):
    """A model that loads the same skill twice in each of any number of concurrent conversations."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **keywords: Any) -> ChatResult:
        results_so_far = sum(isinstance(message, ToolMessage) for message in messages)
        call = {"name": load()[0], "args": load()[1], "id": f"{messages[-1].id}-{results_so_far}"}
        reply = AIMessage("Done.") if results_so_far == 2 else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def test_concurrent_runs_have_turns_of_their_own() -> None:
    """Each reads the skill once, and none gets an answer from another's turn. No state remains afterwards."""
    stock, _ = shelf("pdf")
    activations: list[Any] = []
    stock.observers.add(activations.append)
    skills = Skills(stock)
    agent: Any = create_agent(LoadsTwice(messages=iter(())), middleware=[skills])

    async def together() -> list[Any]:
        return await asyncio.gather(*(agent.ainvoke(hello(str(at))) for at in range(20)))

    states = asyncio.run(together())
    assert [len(results(state)) for state in states] == [2] * 20
    assert len(activations) == 20
    assert skills._turns == {}


def test_a_streamed_run_is_a_turn_like_any_other() -> None:
    """It has the listing and the tools, and a second load reads nothing."""
    stock, _ = shelf("pdf")
    activations: list[Any] = []
    stock.observers.add(activations.append)
    model = script(load(), load(), "Done.")
    agent: Any = create_agent(model, middleware=[Skills(stock)])

    async def streamed() -> list[Any]:
        return [part async for part in agent.astream(hello(), stream_mode="values")]

    state = asyncio.run(streamed())[-1]
    assert [status for status, text in results(state) if "Body of pdf." in text] == ["success"] * 2
    assert [request[0].text for request in model.requests] == [stock.listing().text] * 3
    assert len(activations) == 1


def test_an_agent_run_by_a_tool_joins_the_turn() -> None:
    """Both agents work on the same task, so a skill that one has loaded is there for the other."""
    stock, _ = shelf("pdf")
    activations: list[Any] = []
    stock.observers.add(activations.append)
    helper: Any = create_agent(script(load(), "Helped."), middleware=[Skills(stock)])

    @langchain_tool
    def delegate() -> str:
        """Ask the helper."""
        return str(helper.invoke(hello())["messages"][-1].text)

    agent: Any = create_agent(script(load(), ("delegate", {}), "Done."), [delegate], middleware=[Skills(stock)])
    assert results(agent.invoke(hello()))[-1] == ("success", "Helped.")
    assert len(activations) == 1


def test_a_run_joins_an_open_turn() -> None:
    """The caller can read its activations, whether the run is synchronous or not."""
    stock, _ = shelf("pdf")
    agent = create_agent(LoadsTwice(messages=iter(())), middleware=[Skills(stock)])
    with stock.turn() as turn:
        agent.invoke(hello())
        asyncio.run(agent.ainvoke(hello()))
    assert [(activation.skill, activation.by) for activation in turn.activations] == [("pdf", "model")]


def test_a_long_conversation_gets_a_note_on_changes_at_its_end() -> None:
    """Within the run the sent messages stay the same, byte for byte. The next run has a new listing."""
    stock, source = shelf("pdf")
    model = script("a", "b", "c")
    agent = create_agent(model, middleware=[Skills(stock)], checkpointer=InMemorySaver())
    agent.invoke(hello("long " * 3000), THREAD)
    source.put("csv", SKILL.format("csv"))
    agent.invoke(hello("two"), THREAD)
    agent.invoke(hello("three"), THREAD)
    first, second, third = model.requests
    assert first[0].text == second[0].text
    assert second[-1].text.startswith("two\n\nThe available skills changed. Added: csv.")
    assert 'name="csv"' in third[0].text
    assert [message.text for message in third[1:] if message.type == "human"][1:] == ["two", "three"]


def test_a_long_conversation_learns_of_its_first_skill() -> None:
    """It began with an empty shelf, so its prompt has no section on skills yet."""
    stock, source = shelf()
    model = script("a", "b")
    agent = create_agent(model, middleware=[Skills(stock)], checkpointer=InMemorySaver())
    agent.invoke(hello("long " * 3000), THREAD)
    source.put("pdf", SKILL.format("pdf"))
    agent.invoke(hello("two"), THREAD)
    assert ['name="pdf"' in "".join(message.text for message in request) for request in model.requests] == [False, True]


def test_a_summary_of_messages_brings_the_listing_up_to_date() -> None:
    """A note is never attached to a message to which it does not belong."""
    stock, source = shelf("pdf")
    model = script("a", ("install", {}), ("install", {}), ("install", {}), "Done.")

    @langchain_tool
    def install() -> str:
        """Put a skill on the shelf."""
        source.put("csv", SKILL.format("csv"))
        stock.reload()
        return "installed " * 3000

    summary = SummarizationMiddleware(script(*["Summary."] * 9), trigger=("messages", 6), keep=("messages", 2))
    agent = create_agent(model, [install], middleware=[summary, Skills(stock)], checkpointer=InMemorySaver())
    agent.invoke(hello("long " * 3000), THREAD)
    agent.invoke(hello("two"), THREAD)
    for request in model.requests[2:]:
        noted = [message.type for message in request[1:] if "skills changed" in message.text]
        assert ('name="csv"' in request[0].text) != bool(noted)
        assert set(noted) <= {"tool", "human"}


@pytest.mark.parametrize(("answer", "erased"), [("approve", ["a.txt"]), ("reject", [])])
def test_a_tool_that_asks_waits_for_the_user(answer: str, erased: list[str]) -> None:
    """The run stops with the framework's own kind of interrupt, and continues with the user's answer."""
    stock, files = asking()
    model = script(("erase", {"path": "a.txt"}), "Done.")
    agent: Any = create_agent(model, middleware=[Skills(stock)], checkpointer=InMemorySaver())
    [interrupt] = agent.invoke(hello(), THREAD)["__interrupt__"]
    assert (interrupt.value["name"], interrupt.value["args"], files.erased) == ("erase", {"path": "a.txt"}, [])
    state = agent.invoke(Command(resume={"type": answer}), THREAD)
    assert files.erased == erased
    assert [status for status, _ in results(state)] == ["success" if erased else "error"]
    assert state["messages"][-1].text == "Done."


class Curious(BaseSkill):
    """A code skill whose tools ask the user while they run, in LangGraph's own way."""

    name, description, instructions = "curious", "Asks.", "Call ask."

    @tool
    def ask(self) -> str:
        """Ask."""
        return f"got {interrupt('Really?')}"

    @tool
    async def ask_later(self) -> str:
        """Ask."""
        return f"got {interrupt('Really?')}"


@pytest.mark.parametrize("name", ["ask", "ask_later"])
def test_a_tool_may_interrupt_the_run_itself(name: str) -> None:
    """An interrupt is not an error of the tool, in synchronous and asynchronous runs alike."""
    for is_async in (False, True):
        stock, _ = shelf(skills=(Curious(),))
        agent: Any = create_agent(script((name, {}), "Done."), middleware=[Skills(stock)], checkpointer=InMemorySaver())

        def run(message: Any, agent: Any = agent, is_async: bool = is_async) -> Any:
            return asyncio.run(agent.ainvoke(message, THREAD)) if is_async else agent.invoke(message, THREAD)

        [question] = run(hello())["__interrupt__"]
        assert question.value == "Really?"
        assert results(run(Command(resume="yes"))) == [("success", "got yes")]


def test_an_interrupted_run_continues_in_another_process() -> None:
    """The checkpoint holds nothing that only the first process knew."""
    stock, files = asking()
    saver = InMemorySaver()
    create_agent(script(("erase", {"path": "a"}), "-"), middleware=[Skills(stock)], checkpointer=saver).invoke(
        hello(), THREAD
    )
    model = script(load(), load(), "Done.")
    agent: Any = create_agent(model, middleware=[Skills(stock)], checkpointer=saver)
    state = asyncio.run(agent.ainvoke(Command(resume={"type": "approve"}), THREAD))
    assert (files.erased, state["messages"][-1].text) == (["a"], "Done.")


def test_a_tool_that_asks_is_refused_without_a_checkpointer() -> None:
    """Without a checkpointer LangChain cannot interrupt a run."""
    stock, files = asking()
    state = create_agent(script(("erase", {"path": "a"}), "Done."), middleware=[Skills(stock)]).invoke(hello())
    [(status, text)] = results(state)
    assert (status, files.erased) == ("error", [])
    assert "runs only after the user has approved" in text


def test_a_thread_id_does_not_replace_a_checkpointer() -> None:
    """An interrupt that cannot be answered would end the run."""
    stock, files = asking()
    agent = create_agent(script(("erase", {"path": "a"}), "Done."), middleware=[Skills(stock)])
    state = agent.invoke(hello(), THREAD)
    assert ([status for status, _ in results(state)], files.erased) == (["error"], [])
    assert state["messages"][-1].text == "Done."


def test_an_argument_may_have_any_name() -> None:
    """A tool may use LangChain's own argument names. An async tool runs in a synchronous run."""
    files = Files().with_policy({"erase": "safe"})
    stock, _ = shelf("pdf", skills=(files,))
    calls = ("erase", {"path": "a", "config": "b"}), ("erase", {"file": "a"})
    state = create_agent(script(*calls, "Done."), middleware=[Skills(stock)]).invoke(hello())
    assert (files.erased, [status for status, _ in results(state)]) == (["ab"], ["success", "error"])


def test_a_missing_framework_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "skillshelf.adapters.langchain")
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[langchain\]'"):
        importlib.import_module("skillshelf.adapters.langchain")


def test_a_crowded_listing_describes_what_fits_the_message() -> None:
    """Without a thread id there is no conversation, and the skills come in their usual order."""
    stock = Shelf([MemorySource(write_skills())])
    model = script("a", "b", "c")
    agent = create_agent(model, middleware=[Skills(stock, budget=BUDGET)], checkpointer=InMemorySaver())
    agent.invoke(hello(ask_about(150)), THREAD)
    agent.invoke(hello(ask_about(170)), THREAD)
    assert entry_of(150) in model.requests[0][0].text
    assert entry_of(170) in model.requests[1][0].text
    create_agent(model, middleware=[Skills(stock, budget=BUDGET)]).invoke(hello(ask_about(150)))
    assert model.requests[2][0].text == stock.listing(budget=BUDGET).text
