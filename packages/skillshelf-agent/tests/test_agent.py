"""AgentCore: a message goes in, events come out, and the model gets the shelf."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse

from agent_kit import User, agent, of, prompts, requests, say
from crowd import BUDGET, ask_about, entry_of, write_skills
from skillshelf import BaseSkill, MemorySource, Shelf, tool
from skillshelf.sandbox import find_sandbox
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.slash import SKILL_PREFIX, CommandCall, Commands, skill_commands
from skillshelf_agent import AgentCore, Policy
from skillshelf_agent.events import (
    Event,
    Failed,
    Finished,
    LoadRepeated,
    ReferenceDenied,
    ReferenceLoaded,
    SkillInvoked,
    SkillLoaded,
    SkillsReloaded,
    Text,
    ToolCalled,
    ToolReturned,
    Usage,
    from_json,
)
from skillshelf_agent.sessions import Sessions
from skillshelf_agent.testing import ScriptedModel, call, fail
from skillshelf_evals import Outcome, Trace

Write = Callable[..., Path]
NEW = "---\nname: greet\ndescription: Say hello.\n---\n\nSay hello in Latin.\n"


def test_the_answer_comes_as_text_and_is_whole_at_the_end(tmp_path: Path) -> None:
    """The answer arrives in pieces, and the last event has all of it."""
    events = say(agent(tmp_path, "One two three four five."), "count")
    assert "".join(event.text for event in of(events, Text)) == "One two three four five."
    assert len(of(events, Text)) > 1
    assert events[-1] == Finished("One two three four five.")


def test_each_model_call_has_the_listing_in_its_system_prompt(tmp_path: Path, write: Write) -> None:
    """The system prompt of every call has the listing, byte for byte the same while nothing changes."""
    write("pdf", "Fill in forms.")
    core = agent(tmp_path, call("list_skills"), "a", "b")
    say(core, "one", "two")
    systems = {request.system for request in requests(core)}
    assert len(requests(core)) == 3
    assert len(systems) == 1
    assert '<skill name="pdf">Fill in forms.' in systems.pop()


def test_the_history_has_no_skill_text_that_was_not_loaded(tmp_path: Path, write: Write) -> None:
    """The listing is in the system prompt and nowhere else."""
    write("pdf", "Fill in forms.", "SECRET-BODY\n")
    core = agent(tmp_path, "a", "b")
    say(core, "one", "two")
    assert "SECRET-BODY" in requests(core)[0].system
    assert "SECRET-BODY" not in repr(core.conversation.messages)
    assert "Fill in forms" not in repr(core.conversation.messages)


def test_loads_are_events_in_the_order_they_happen(tmp_path: Path, write: Write) -> None:
    """Instructions, a denied reference, from which the model recovers, and a reference."""
    write("pdf", references__forms_md="# Forms\n")
    core = agent(
        tmp_path,
        call("load_skill_instructions", skill_name="pdf"),
        call("load_skill_instructions", skill_name="pdf", reference="../../etc/passwd"),
        call("load_skill_instructions", skill_name="pdf", reference="forms.md"),
        "Done.",
    )
    events = say(core, "fill it in")
    loads = [event for event in events if isinstance(event, SkillLoaded | ReferenceLoaded | ReferenceDenied)]
    assert loads[0] == SkillLoaded("pdf", "model", 7)
    assert isinstance(loads[1], ReferenceDenied)
    assert "references/forms.md" in loads[1].reason
    assert loads[2] == ReferenceLoaded("pdf", "references/forms.md", "model", 8)
    assert [event.ok for event in of(events, ToolReturned)] == [True, False, True]
    assert events[-1] == Finished("Done.")


def test_a_repeated_load_is_an_event_of_its_own(tmp_path: Path, write: Write) -> None:
    """Those who count loads see it, and the number of `skill_loaded` and `reference_loaded` stays the same."""
    write("pdf", references__forms_md="# Forms\n")
    load = call("load_skill_instructions", skill_name="pdf", reference="forms.md")
    events = say(agent(tmp_path, load, load, "Done."), "fill it in")
    assert of(events, ReferenceLoaded) == [ReferenceLoaded("pdf", "references/forms.md", "model", 8)]
    assert of(events, LoadRepeated) == [LoadRepeated("pdf", "references/forms.md", "model", 8)]
    assert from_json(of(events, LoadRepeated)[0].as_json()) == of(events, LoadRepeated)[0]


def test_no_code_skill_takes_the_name_of_the_agent_s_own_tools(tmp_path: Path) -> None:
    """The gate decides by a tool's name, so the skill's tool is left out and reported; its others stay."""

    class FilesSkill(BaseSkill):
        name = "files"
        description = "Reads files. Use when reading."

        @tool
        def read_file(self, path: str) -> str:
            """Read a file."""
            return "from the skill"

        @tool
        def count_files(self) -> str:
            """Count the files."""
            return "seven"

    (tmp_path / "a.txt").write_text("from the disk")
    core = agent(tmp_path, call("read_file", path="a.txt"), call("count_files"), "Done.")
    core.shelf.attach(FilesSkill())
    returned = of(say(core, "read"), ToolReturned)
    assert "from the disk" in returned[0].text
    assert returned[1].text == "seven"
    assert [note.code for note in core.shelf.catalog.diagnostics] == ["tool-taken"]


def test_a_skill_attached_between_two_messages_has_its_tools_in_the_next(tmp_path: Path) -> None:
    """The agent need not be made anew."""

    class LateSkill(BaseSkill):
        name = "late"
        description = "Comes late. Use when late."
        instructions = "Call `arrive`."

        @tool
        def arrive(self) -> str:
            """Arrive."""
            return "arrived"

    core = agent(tmp_path, "Hello.", call("arrive"), "Done.")
    say(core, "hi")
    core.shelf.attach(LateSkill())
    events = say(core, "come")
    assert [event.text for event in of(events, ToolReturned)] == ["arrived"]
    assert "arrive" not in requests(core)[0].tools
    assert "arrive" in requests(core)[1].tools


def test_an_invoked_skill_is_a_user_message(tmp_path: Path, write: Write) -> None:
    """The message names the skill and has all of its instructions and the arguments."""
    write("pdf", body="Fill in every field.\n")
    core = agent(tmp_path, "Done.")
    events = say(core, "/skills:pdf form.pdf today")
    assert of(events, SkillInvoked) == [SkillInvoked("pdf", "form.pdf today")]
    assert of(events, SkillLoaded) == [SkillLoaded("pdf", "user", 21)]
    message = requests(core)[0].messages[-1].parts[-1].content
    assert message.startswith('Apply Skill "pdf"')
    assert "Fill in every field." in message
    assert "form.pdf today" in message


def test_the_arguments_of_a_skill_are_the_same_in_the_library_and_at_the_terminal(tmp_path: Path, write: Write) -> None:
    """Indentation and the last line break are part of the arguments."""
    write("pdf")
    typed = "/skills:pdf\n    if x:\n        y()\n"
    core = agent(tmp_path, "Done.", "Done.")
    invoked: list[tuple[str, str]] = []
    commands: Commands[None] = Commands()
    commands.register(
        SKILL_PREFIX,
        skill_commands(lambda: core.shelf.catalog, lambda _, name, arguments: invoked.append((name, arguments))),
    )
    command_call = commands.find(typed)
    assert isinstance(command_call, CommandCall)
    command_call.command.run(None, command_call.arguments)

    [event] = of(say(core, typed), SkillInvoked)
    assert invoked == [(event.skill, event.text)] == [("pdf", "    if x:\n        y()\n")]


def test_a_skill_for_the_user_alone_is_invocable_and_not_listed(tmp_path: Path) -> None:
    """`disable-model-invocation` hides a skill from the model, not from the user."""
    skill = tmp_path / "deploy" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("---\nname: deploy\ndescription: Ship.\ndisable-model-invocation: true\n---\nShip it.\n")
    core = agent(tmp_path, "Done.")
    events = say(core, "/skills:deploy")
    assert events[-1] == Finished("Done.")
    assert '"deploy"' not in requests(core)[0].system


def test_an_unknown_skill_fails_before_the_model_is_asked(tmp_path: Path, write: Write) -> None:
    """The message suggests the closest names."""
    write("pdf")
    core = agent(tmp_path, "never")
    (event,) = say(core, "/skills:pfd")
    assert isinstance(event, Failed)
    assert "pdf" in event.message
    assert requests(core) == []


def test_a_skill_the_agent_writes_works_in_the_same_session(tmp_path: Path) -> None:
    """It is reloaded, announced to the model, listed and can be loaded."""
    core = agent(
        tmp_path,
        call("write_file", path="skills/greet/SKILL.md", content=NEW),
        call("load_skill_instructions", skill_name="greet"),
        "Salve!",
    )
    events = say(core, "make a skill and use it")
    written, loaded = of(events, ToolReturned)
    assert "Skills reloaded: added greet." in written.text
    assert "Say hello in Latin." in loaded.text
    assert of(events, SkillsReloaded) == [SkillsReloaded(("greet",), (), ())]
    assert '<skill name="greet">' in requests(core)[1].system


def test_an_edit_of_a_skill_reloads_it(tmp_path: Path, write: Write) -> None:
    """The tool result names the skill, and the next load has the new text."""
    write("pdf", body="Old text.\n")
    core = agent(
        tmp_path,
        call("edit_file", path="pdf/SKILL.md", old_text="Old text.", new_text="New text."),
        call("load_skill_instructions", skill_name="pdf"),
        "ok",
    )
    edited, loaded = of(say(core, "change it"), ToolReturned)
    assert "changed pdf" in edited.text
    assert "New text." in loaded.text


def test_a_reference_the_agent_writes_can_be_loaded(tmp_path: Path, write: Write) -> None:
    """The files beside a SKILL.md belong to the skill, too."""
    write("pdf", references__a_md="a")
    core = agent(
        tmp_path,
        call("write_file", path="pdf/references/b.md", content="NEW REFERENCE"),
        call("load_skill_instructions", skill_name="pdf", reference="b.md"),
        "ok",
    )
    assert "NEW REFERENCE" in of(say(core, "add it"), ToolReturned)[1].text


def test_other_writes_reload_nothing(tmp_path: Path, write: Write) -> None:
    """A plain file is not part of a skill."""
    write("pdf")
    core = agent(tmp_path, call("write_file", path="notes.txt", content="x"), "ok")
    events = say(core, "note it")
    assert of(events, SkillsReloaded) == []
    assert "Skills" not in of(events, ToolReturned)[0].text


def test_a_failed_write_reloads_nothing(tmp_path: Path, write: Write) -> None:
    """An edit that does not match leaves the shelf alone."""
    write("pdf")
    core = agent(tmp_path, call("edit_file", path="pdf/SKILL.md", old_text="not there", new_text="x"), "ok")
    events = say(core, "edit")
    assert of(events, SkillsReloaded) == []
    assert not of(events, ToolReturned)[0].ok


def test_a_broken_save_keeps_the_last_good_skill_and_says_what_is_wrong(tmp_path: Path, write: Write) -> None:
    """The model learns what to fix, and the skill still works."""
    write("pdf", body="Good text.\n")
    core = agent(
        tmp_path,
        call("write_file", path="pdf/SKILL.md", content="---\nname: pdf\ndescription: [broken\n"),
        call("load_skill_instructions", skill_name="pdf"),
        "ok",
    )
    broken, loaded = of(say(core, "break it"), ToolReturned)
    assert "Fix:" in broken.text
    assert "Good text." in loaded.text


def test_an_edit_by_another_program_is_seen_at_the_next_turn(tmp_path: Path, write: Write) -> None:
    """Without a watcher, the sweep that opens a turn finds it."""
    write("pdf", "Old description.")
    core = agent(tmp_path, "a", "b")
    say(core, "one")
    write("pdf", "New description.")
    write("second", "Another.")
    events = say(core, "two")
    assert of(events, SkillsReloaded) == [SkillsReloaded(("second",), ("pdf",), ())]
    assert "New description." in requests(core)[1].system


def test_a_removed_skill_is_gone_at_the_next_turn(tmp_path: Path, write: Write) -> None:
    """It is neither listed nor can it be loaded."""
    path = write("gone")
    core = agent(tmp_path, "a", call("load_skill_instructions", skill_name="gone"), "b")
    say(core, "one")
    path.unlink()
    events = say(core, "two")
    assert of(events, SkillsReloaded)[0].removed == ("gone",)
    assert '"gone"' not in requests(core)[1].system
    assert not of(events, ToolReturned)[0].ok


def test_a_change_in_a_long_conversation_leaves_the_prefix_as_it_was(tmp_path: Path, write: Write) -> None:
    """The earlier prompt stays byte-identical. The change is announced at the end, in requests only."""
    write("pdf", "Fill in forms.")
    core = agent(tmp_path, "word " * 3000, "b", "c", "d")
    say(core, "long " * 2000, "more")
    write("second", "Another skill.")
    say(core, "two", "three")
    before, announced, after = requests(core)[1:]
    assert before.system == announced.system == after.system
    assert "Another skill." in announced.messages[-1].parts[-1].content
    earlier = after.messages[: len(announced.messages)]
    assert list(map(read_contents, announced.messages)) == list(map(read_contents, earlier))
    assert "Another skill." not in repr(core.conversation.messages)


def read_contents(message: Any) -> list[str]:
    """Return the texts of a message, without the times."""
    return [part.content for part in message.parts]


def test_usage_is_reported_for_each_model_call(tmp_path: Path) -> None:
    """The session's usage is the sum."""
    core = agent(tmp_path, call("list_skills"), "done")
    usages = of(say(core, "go"), Usage)
    assert len(usages) == 2
    assert core.conversation.spent.input == sum(usage.input for usage in usages)


def test_usages_add_up_to_a_price_only_if_all_prices_are_known() -> None:
    """An unknown price makes the sum unknown, in either order: the known part alone would look like the whole."""
    known = Usage(1, 2, 3, 0.5)
    unknown = Usage(10, 20)
    assert known + known == Usage(2, 4, 6, 1.0)
    assert known + unknown == unknown + known == Usage(11, 22, 3)


def test_the_session_and_an_eval_give_the_same_sum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two calls has a price: neither the session nor the outcome of a trial shows that price as the whole."""
    prices = iter([0.25, None])  # float(None) fails, as an unknown model does
    monkeypatch.setattr(ModelResponse, "cost", lambda response: SimpleNamespace(total_price=next(prices)))
    core = agent(tmp_path, call("list_skills"), "done")
    priced, unpriced = of(say(core, "go"), Usage)
    outcome = Outcome("case", "with", 1, (), Trace(usage=priced), judging=unpriced)
    assert core.conversation.spent == outcome.usage
    assert core.conversation.spent.cost is None


def test_a_session_without_a_model_call_cost_nothing(tmp_path: Path) -> None:
    assert agent(tmp_path).conversation.spent == Usage(0, 0, cost=0.0)


def test_the_tools_are_those_of_a_coding_agent(tmp_path: Path) -> None:
    """Tools to read, write, edit, list, find and search files, to run commands and to find skills."""
    core = agent(tmp_path, "ok")
    say(core, "hi")
    assert set(requests(core)[0].tools) == {
        "read_file", "write_file", "edit_file", "list_directory", "find_files", "search_files", "run_command",
        "list_skills", "search_skills", "load_skill_instructions",
    }  # fmt: skip


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/hostname", "link/outside.txt"])
def test_file_tools_stay_in_the_workspace(tmp_path: Path, path: str) -> None:
    """They cannot leave it by going up, by an absolute path or through a link."""
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside.txt").write_text("OUTSIDE")
    (root / "link").symlink_to(tmp_path)
    core = agent(root, call("read_file", path=path), call("write_file", path=path, content="x"), "ok")
    events = say(core, "look")
    assert [event.ok for event in of(events, ToolReturned)] == [False, False]
    assert (tmp_path / "outside.txt").read_text() == "OUTSIDE"


def test_commands_run_in_the_workspace_without_the_keys_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands see the folder, but not the keys."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    core = agent(tmp_path, call("run_command", command="pwd; env"), "ok")
    text = of(say(core, "where"), ToolReturned)[0].text
    assert str(tmp_path) in text
    assert "sk-secret" not in text


@pytest.mark.skipif(not find_sandbox(), reason="there is no sandbox here")
def test_commands_write_in_the_workspace_and_nowhere_else(tmp_path: Path) -> None:
    """Not beside it, not in the home, not through a child process. Reading works."""
    root = tmp_path / "work"
    root.mkdir()
    tries = "echo x > in.txt; echo x > ../out.txt; sh -c 'echo x > ~/out.txt'; echo x > $(mktemp); cat /etc/hostname"
    core = agent(root, call("run_command", command=tries), "ok")
    text = of(say(core, "go"), ToolReturned)[0].text
    tried = (root / "in.txt", tmp_path / "out.txt", Path.home() / "out.txt")
    assert [path.name for path in tried if path.exists()] == ["in.txt"]
    assert Path("/etc/hostname").read_text().strip() in text


@pytest.mark.skipif(not find_sandbox(), reason="there is no sandbox here")
def test_a_sandboxed_command_reports_as_any_other(tmp_path: Path) -> None:
    """Exit codes, missing programs and time limits are as without a sandbox."""
    core = agent(
        tmp_path,
        call("run_command", command="exit 3"),
        call("run_command", command="no-such-program"),
        call("run_command", command="sleep 60", timeout_seconds=0.5),
        "ok",
    )
    texts = [event.text for event in of(say(core, "go"), ToolReturned)]
    assert ["3" in texts[0], "not found" in texts[1], "imed out" in texts[2]] == [True] * 3


class Shop(BaseSkill):
    """A code skill with a tool that is safe and one that is not."""

    name = "shop"
    description = "Prices and orders."
    instructions = "Call price, then order."

    @tool
    def price(self, item: str) -> int:
        """The price of an item."""
        return len(item)

    @tool
    async def order(self, item: str) -> str:
        """Order an item."""
        return f"ordered {item}"


def test_tools_of_code_skills_are_the_models_too(tmp_path: Path) -> None:
    """Safe tools run, others ask the user, and wrong arguments come back as a message."""
    user = User("yes", "no")
    skill = Shop().with_policy({"order": "ask"})
    script = [call("price", item="tea"), call("order", item="tea"), call("order", item="gold"), call("price", item=[1])]
    core = AgentCore(ScriptedModel(*script, "ok"), WorkspaceSkills(tmp_path, [skill]), approve=user)
    results = of(say(core, "shop"), ToolReturned)
    assert [(result.text, result.ok) for result in results[:2]] == [("3", True), ("ordered tea", True)]
    assert not results[2].ok
    assert "item" in results[3].text
    assert [(question.tool, question.arguments) for question in user.questions] == [
        ("order", {"item": "tea"}),
        ("order", {"item": "gold"}),
    ]


def test_a_provider_that_fails_during_an_answer_leaves_the_beginning_of_it(tmp_path: Path) -> None:
    """There is one error event, and the conversation goes on from there."""
    core = agent(tmp_path, fail(ConnectionError("reset by peer"), after="Half an ans"), "Whole answer.")
    events = say(core, "question")
    assert isinstance(events[-1], Failed)
    assert "Half an ans" in repr(core.conversation.messages)
    assert say(core, "again")[-1] == Finished("Whole answer.")
    assert "question" in requests(core)[1].text


def test_cancelling_stops_the_turn_and_keeps_the_answer_so_far(tmp_path: Path) -> None:
    """The next message goes on as if the user had interrupted."""
    core = agent(tmp_path, "One two three four five six seven.", "ok")

    async def stop_after_the_first_words() -> list[object]:
        events: list[object] = []
        async for event in core.process_message("count"):
            events.append(event)
            if isinstance(event, Text):
                core.cancel()
        return events

    events = asyncio.run(stop_after_the_first_words())
    last = events[-1]
    assert isinstance(last, Finished)
    assert last.stopped
    assert "One two" in repr(core.conversation.messages)
    assert say(core, "go on")[-1] == Finished("ok")


def test_cancelling_during_a_command_ends_the_command(tmp_path: Path) -> None:
    """Tool calls without a result do not break the conversation, and no later message is lost."""
    core = agent(tmp_path, call("run_command", command="sleep 60"), "a", "b", "c")

    async def stop_at_the_call() -> None:
        async for event in core.process_message("wait"):
            if isinstance(event, ToolCalled):
                asyncio.get_running_loop().call_later(0.2, core.cancel)

    asyncio.run(asyncio.wait_for(stop_at_the_call(), 20))
    say(core, "one", "two", "three")
    assert prompts(core) == ["wait", "one", "two", "three"]
    assert [prompt in requests(core)[-1].text for prompt in ("wait", "one", "two", "three")] == [True] * 4


def test_a_failure_before_the_first_word_loses_no_message(tmp_path: Path) -> None:
    """The message is in the history when the next one is sent."""
    core = agent(tmp_path, fail(ConnectionError("no route")), fail(ConnectionError("no route")), "a", "b")
    say(core, "one", "two", "three", "four")
    assert prompts(core) == ["one", "two", "three", "four"]


def test_a_reader_who_goes_away_stops_the_turn(tmp_path: Path) -> None:
    """Closing the stream ends the run, and its events do not appear in the next one."""
    core = agent(tmp_path, call("run_command", command="sleep 60"), "ok")

    async def leave_and_come_back() -> list[Event]:
        stream = core.process_message("count")
        async for event in stream:
            if isinstance(event, ToolCalled):
                break
        await asyncio.wait_for(stream.aclose(), 20)
        return [event async for event in core.process_message("again")]

    events = asyncio.run(leave_and_come_back())
    assert [type(event) for event in events] == [Text, Usage, Finished]


def test_a_second_message_at_the_same_time_is_refused(tmp_path: Path) -> None:
    """A conversation has one turn at a time."""
    core = agent(tmp_path, "One two three four five.", "never")

    async def both() -> tuple[list[Event], list[Event]]:
        first = core.process_message("one")
        begun = [await anext(first)]
        second = [event async for event in core.process_message("two")]
        return [*begun, *[event async for event in first]], second

    first, second = asyncio.run(both())
    assert first[-1] == Finished("One two three four five.")
    assert [type(event) for event in second] == [Failed]


def test_a_tool_that_waits_does_not_block_the_event_loop(tmp_path: Path) -> None:
    """A plain method runs in a thread."""

    class Slow(BaseSkill):
        name = "slow"
        description = "Waits."
        instructions = "Call wait."

        @tool
        def wait(self) -> str:
            """Wait until the event loop has done something else."""
            waiting.set()
            return "waited" if loop_went_on.wait(30) else "the event loop stood still"

    waiting = threading.Event()
    loop_went_on = threading.Event()
    core = AgentCore(ScriptedModel(call("wait"), "ok"), WorkspaceSkills(tmp_path, [Slow()]))

    async def go_on_meanwhile() -> list[Event]:
        async def go_on() -> None:
            while not waiting.is_set():
                await asyncio.sleep(0.01)
            loop_went_on.set()

        going = asyncio.create_task(go_on())
        events = [event async for event in core.process_message("go")]
        await going
        return events

    assert [event.text for event in of(asyncio.run(go_on_meanwhile()), ToolReturned)] == ["waited"]


def test_reload_skills_returns_what_changed(tmp_path: Path, write: Write) -> None:
    """The result is a Delta, as from the shelf."""
    core = agent(tmp_path, "ok")
    write("pdf")
    assert core.reload_skills().added == ("pdf",)
    assert not core.reload_skills()


@pytest.mark.parametrize(
    "event",
    [
        Text("a"),
        ToolCalled("1", "read_file", {"path": "a", "nested": {"list": [1, 2]}}),
        SkillsReloaded(("a",), (), ("b",)),
        Usage(1, 2, 3, 0.5),
        Finished("done", stopped=True),
    ],
)
def test_an_event_survives_json(event: Event) -> None:
    """An event is the same after it was written as JSON and read back."""
    assert from_json(json.loads(json.dumps(event.as_json()))) == event


def test_full_disclosure_puts_all_instructions_into_every_request(tmp_path: Path, write: Write) -> None:
    """Each model call carries the whole text of every skill, whatever the budget."""
    bodies = [f"Step {number} of the work.\n" * 20 for number in range(30)]
    for number, body in enumerate(bodies):
        write(f"skill-{number}", "Does it.", body=body)
    core = AgentCore(
        ScriptedModel(call("list_skills"), "a", "b"), tmp_path, policy=Policy("yolo"), disclosure="full", budget=100
    )
    say(core, "one", "two")
    assert len(requests(core)) == 3
    for request in requests(core):
        assert [body for body in bodies if body not in request.system] == []


def test_a_crowded_listing_describes_what_fits_each_message(tmp_path: Path) -> None:
    """The system prompt stays as it was sent, and a later message has a note."""
    core = AgentCore(
        ScriptedModel("long " * 3000, "b", "c", "d"),
        WorkspaceSkills(tmp_path, Shelf([MemorySource(write_skills())])),
        budget=BUDGET,
    )
    say(core, ask_about(150), ask_about(170), "thanks!", ask_about(170))
    first, second, third, fourth = requests(core)
    assert entry_of(150) in first.system
    assert {second.system, third.system, fourth.system} == {first.system}
    assert entry_of(170) in str(second)
    assert str(fourth).count(entry_of(170)) == 1
    assert entry_of(170) not in str(core.conversation.messages)
    assert core.listing.tokens <= BUDGET


def test_a_resumed_conversation_describes_the_skills_it_has_loaded(tmp_path: Path) -> None:
    """They are known from the history."""
    shelf = Shelf([MemorySource(write_skills())])
    core = AgentCore(
        ScriptedModel(call("load_skill_instructions", skill_name="skill-190"), "a", "b"),
        WorkspaceSkills(tmp_path, shelf),
        budget=BUDGET,
        sessions=Sessions(str(tmp_path)),
    )
    say(core, "hello")
    session = core.conversation.id
    core.new_session()
    core.resume(session)
    say(core, ask_about(20))
    assert entry_of(190) in requests(core)[-1].system
