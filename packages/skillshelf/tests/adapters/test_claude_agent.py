"""Give a shelf to a user's own program with the Claude Agent SDK."""

import asyncio
import importlib
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from crowd import BUDGET, ask_about, entry_of, write_skills
from skillshelf import BaseSkill, MemorySource, MissingExtraError, Shelf, tool
from skillshelf.errors import SettingsError
from skillshelf.listing import parse
from skillshelf.sources import ObjectSource
from skillshelf.testing.conformance import Call, Reply, run

pytest.importorskip("claude_agent_sdk", reason="needs the extra skillshelf[claude-agent]")

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ToolPermissionContext,
    query,
)

from faces.claude_agent import ClaudeAgent, ScriptedClaude
from skillshelf.adapters.claude_agent import Skills

SKILL = "---\nname: {0}\ndescription: About {0}.\n---\nBody of {0}.\n"


def shelf(*names: str, skills: tuple[BaseSkill, ...] = ()) -> tuple[Shelf, MemorySource]:
    source = MemorySource({name: {"SKILL.md": SKILL.format(name), "notes.md": f"Notes on {name}."} for name in names})
    return Shelf([ObjectSource(skills), source]), source


def load(**arguments: Any) -> Call:
    return Call("load_skill_instructions", {"skill_name": "pdf", **arguments})


async def ask(options: ClaudeAgentOptions, *calls: Call) -> ScriptedClaude:
    """Run one query in which the model makes these calls."""
    claude = ScriptedClaude(options, (calls, "Done."))
    async for _ in query(prompt="hi", options=options, transport=claude):
        pass
    return claude


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


ERASE = Call("erase", {"path": "a.txt"})
MAY_ERASE = "mcp__skillshelf__erase"
by_a_rule = pytest.mark.filterwarnings("ignore:can_use_tool will not be invoked")


def asking() -> tuple[Shelf, Files]:
    files = Files().with_policy({"erase": "ask"})
    return shelf("pdf", skills=(files,))[0], files


def test_the_conformance_scenario_passes() -> None:
    report = asyncio.run(run(ClaudeAgent()))
    assert report.passed, report


def test_the_conformance_kit_sees_the_notes() -> None:
    """A conversation is one client: its system prompt stays, and each change appears once, beside the next message."""
    stock, source = shelf("pdf")
    first = stock.listing().text

    async def talk() -> list[Reply]:
        conversation = await ClaudeAgent().open(stock)
        replies = [await conversation.say("one", (), "a")]
        source.put("ocr", SKILL.format("ocr"))
        replies += [await conversation.say("two", [load()], "b"), await conversation.say("three", (), "c")]
        await conversation.close()
        return replies

    one, two, three = asyncio.run(talk())
    assert [reply.system_prompts for reply in (one, two, three)] == [(first,), (first, first), (first,)]
    assert [["Added: ocr." in end for end in reply.last_messages] for reply in (one, two, three)] == [
        [False],
        [True, True],
        [False],
    ]


def test_three_lines_give_a_query_a_shelf() -> None:
    """The system prompt has the listing, and the tools load the skills in it."""
    stock, _ = shelf("pdf")
    claude = asyncio.run(ask(Skills(stock).options(), load(reference="notes.md")))
    assert claude.system_prompts == [stock.listing().text] * 2
    assert [(result.text, result.failed) for result in claude.results] == [("Notes on pdf.", False)]


def test_refused_references_do_not_end_the_query() -> None:
    """Ten wrong requests in a row each get an answer that suggests a correction."""
    stock, _ = shelf("pdf")
    claude = asyncio.run(ask(Skills(stock).options(), *(load(reference=f"../{at}") for at in range(10))))
    assert len(claude.system_prompts) == 11
    assert [result.failed for result in claude.results if "notes.md" in result.text] == [True] * 10


@pytest.mark.parametrize(
    ("prompt", "field"),
    [
        ("You are terse.", "prompt"),
        ({"type": "custom", "prompt": "You are terse."}, "prompt"),
        ({"type": "file", "path": "system.md"}, "prompt"),
        ({"type": "preset", "preset": "claude_code", "append": "You are terse."}, "append"),
    ],
)
def test_the_users_system_prompt_stays(tmp_path: Path, prompt: Any, field: str) -> None:
    """It comes before the listing in each form that the SDK has. A session does not hold on to an old listing."""
    stock, _ = shelf("pdf")
    (tmp_path / "system.md").write_text("You are terse.")
    result: Any = Skills(stock).options(ClaudeAgentOptions(system_prompt=prompt, cwd=tmp_path)).system_prompt
    assert (result[field], result["snapshot"]) == (f"You are terse.\n\n{stock.listing().text}", False)


def test_the_users_other_options_stay() -> None:
    """Their servers, hooks and allowed tools join those of the shelf, and their options object is not modified."""
    stock, _ = shelf("pdf")

    async def say_monday(*_: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "It is Monday."}}

    server: Any = {"type": "stdio", "command": "true"}
    own = ClaudeAgentOptions(
        model="claude-opus-5",
        mcp_servers={"mine": server},
        allowed_tools=["Read"],
        hooks={"UserPromptSubmit": [HookMatcher(hooks=[say_monday])], "Stop": [HookMatcher(hooks=[say_monday])]},
    )
    options = Skills(stock).options(own)
    assert [len(matchers) for matchers in (options.hooks or {}).values()] == [2, 1, 1]
    assert (options.model, list(dict(options.mcp_servers))) == ("claude-opus-5", ["mine", "skillshelf"])
    assert options.allowed_tools[:2] == ["Read", "mcp__skillshelf__list_skills"]
    assert (own.allowed_tools, own.mcp_servers, own.system_prompt) == (["Read"], {"mine": server}, None)
    assert asyncio.run(ask(options)).context == ["It is Monday."]


def test_a_file_of_servers_is_refused() -> None:
    """The adapter cannot add to the file, and ignoring it silently would be worse."""
    with pytest.raises(SettingsError, match="Write a dict of servers"):
        Skills(shelf("pdf")[0]).options(ClaudeAgentOptions(mcp_servers="servers.json"))


def test_a_client_gets_changes_with_its_next_message() -> None:
    """Each message is a turn: it carries the change once, and the system prompt stays as it was sent."""
    stock, source = shelf("pdf", "ocr")
    options = Skills(stock).options()
    claude = ScriptedClaude(options, ([load(), load()], "a"), ([load()], "b"), ([], "c"))
    activations: list[Any] = []
    stock.observers.add(activations.append)

    async def talk() -> list[str]:
        async with ClaudeSDKClient(options, claude) as client:
            for text in ("one", "two", "three"):
                await client.query(text)
                _ = [message async for message in client.receive_response()]
                source.put("pdf", SKILL.format("pdf").replace("About", "All about"))
        return claude.system_prompts

    assert len(set(asyncio.run(talk()))) == 1
    [note] = claude.context
    assert note.startswith("The available skills changed. Changed: pdf.")
    assert "All about pdf." in note
    assert [activation.skill for activation in activations] == ["pdf", "pdf"]


def test_a_client_learns_that_all_skills_are_gone() -> None:
    """The system prompt still lists the removed skills."""
    stock, source = shelf("pdf")
    options = Skills(stock).options()
    source.remove("pdf")
    assert asyncio.run(ask(options)).context == ["No skills are available any more."]


def count_utf16_units(text: str) -> int:
    """Return the length of a text as Claude Code counts it."""
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.parametrize("body", ["long " * 2_200, "\N{GRINNING FACE}" * 6_000])
def test_a_note_too_long_for_claude_code_asks_to_load_again(body: str) -> None:
    """Claude Code shows up to 10,000 UTF-16 units.

    The system prompt has the old instructions, which are out of date.
    """
    stock, source = shelf("pdf")
    options = Skills(stock, disclosure="full").options()
    source.put("pdf", SKILL.format("pdf") + body)
    [note] = asyncio.run(ask(options)).context
    assert [(skill.name, skill.instructions) for skill in parse(note)] == [("pdf", None)]
    assert "Instructions you have been shown may have changed: load them again." in note


@pytest.mark.parametrize("count", [150, 3_000])
def test_a_short_note_accounts_for_every_skill(count: int) -> None:
    """Each skill is named, or counted among those that a search finds."""
    stock, source = shelf("pdf")
    options = Skills(stock, budget=20_000).options()
    for at in range(count):
        source.put(f"skill-{at}", SKILL.format(f"skill-{at}").replace("About", "All there is to say " * 5))
    [note] = asyncio.run(ask(options)).context
    more = re.search(r"(\d+) more skills are not named here: search_skills finds them", note)
    assert len(parse(note)) + int(more[1] if more else 0) == count + 1
    assert count_utf16_units(note) <= 10_000


def test_a_compacted_conversation_gets_its_notes_again() -> None:
    """The note repeats everything that is not in the system prompt. A subagent's compaction does not count."""
    stock, source = shelf("pdf")
    options = Skills(stock).options()
    source.put("ocr", SKILL.format("ocr"))
    assert "Added: ocr." in asyncio.run(ask(options)).context[0]
    hooks: Any = options.hooks
    [matcher] = hooks["SessionStart"]

    def compact(**whose: str) -> Any:
        return asyncio.run(matcher.hooks[0]({"source": "compact", **whose}, None, {"signal": None}))

    source.put("csv", SKILL.format("csv"))
    stock.reload()
    assert compact(agent_id="a1") == {}
    assert "Added: csv." in asyncio.run(ask(options)).context[0]
    output = compact()["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert {skill.name for skill in parse(output["additionalContext"])} >= {"ocr", "csv"}
    assert asyncio.run(ask(options)).context == []


def test_concurrent_queries_have_turns_of_their_own() -> None:
    """Each reads the skill once, and none gets an answer from another's turn."""
    stock, _ = shelf("pdf")
    activations: list[Any] = []
    stock.observers.add(activations.append)
    skills = Skills(stock)

    async def together() -> list[ScriptedClaude]:
        return await asyncio.gather(*(ask(skills.options(), load(), load()) for _ in range(20)))

    assert [len(claude.results) for claude in asyncio.run(together())] == [2] * 20
    assert len(activations) == 20


def test_a_query_joins_an_open_turn() -> None:
    """The caller can read its activations."""
    stock, _ = shelf("pdf")
    with stock.turn() as turn:
        asyncio.run(ask(Skills(stock).options(), load()))
        asyncio.run(ask(Skills(stock).options(), load()))
    assert [(activation.skill, activation.by) for activation in turn.activations] == [("pdf", "model")]


@pytest.mark.parametrize("allowed", [True, False])
def test_a_tool_that_asks_waits_for_the_user(allowed: bool) -> None:
    """The SDK's own callback is called for it, and not for the tools that need no permission."""
    stock, files = asking()
    tools_asked: list[str] = []

    async def answer_request(name: str, arguments: Any, context: Any) -> Any:
        tools_asked.append(name)
        return (
            PermissionResultAllow(updated_input={"path": "b.txt"}) if allowed else PermissionResultDeny(message="No.")
        )

    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the SDK warns if options bypass the callback
        options = Skills(stock).options(ClaudeAgentOptions(can_use_tool=answer_request))
        claude = asyncio.run(ask(options, load(), ERASE))
    assert tools_asked == [MAY_ERASE]
    assert files.erased == (["b.txt"] if allowed else [])
    assert claude.results[1].text == ('{"erased": "b.txt"}' if allowed else "No.")


def test_a_permission_covers_one_call() -> None:
    """A later call that skips the callback is refused, even if a rule allows the tool."""
    stock, files = asking()

    async def answer_request(name: str, arguments: Any, context: Any) -> Any:
        options.allowed_tools.append(name)  # as Claude Code does after "don't ask again"
        return PermissionResultAllow()

    options = Skills(stock).options(ClaudeAgentOptions(can_use_tool=answer_request))
    claude = asyncio.run(ask(options, ERASE, ERASE))
    assert files.erased == ["a.txt"]
    assert "runs only after the user has approved" in claude.results[1].text


@by_a_rule
def test_a_permission_covers_only_its_arguments() -> None:
    """The user approved one of two concurrent calls. The other was let through by a rule, and is refused."""
    stock, files = asking()

    async def answer_request(name: str, arguments: Any, context: Any) -> Any:
        return PermissionResultAllow()

    async def approve_erasing(*_: Any) -> Any:
        await can_use_tool(MAY_ERASE, ERASE.arguments, ToolPermissionContext())
        return {}

    options = Skills(stock).options(ClaudeAgentOptions(can_use_tool=answer_request))
    options.allowed_tools.append(MAY_ERASE)
    can_use_tool: Any = options.can_use_tool
    hooks: Any = options.hooks
    hooks["UserPromptSubmit"].append(HookMatcher(hooks=[approve_erasing]))
    claude = asyncio.run(ask(options, Call("erase", {"path": "b.txt"}), ERASE))
    assert files.erased == ["a.txt"]
    assert [result.failed for result in claude.results] == [True, False]


@by_a_rule
def test_a_permission_ends_with_its_message() -> None:
    """The turn broke off after the user approved a call. The same call in the next turn needs a new approval."""
    stock, files = asking()

    async def answer_request(name: str, arguments: Any, context: Any) -> Any:
        return PermissionResultAllow()

    options = Skills(stock).options(ClaudeAgentOptions(can_use_tool=answer_request))
    options.allowed_tools.append(MAY_ERASE)
    can_use_tool: Any = options.can_use_tool
    asyncio.run(can_use_tool(MAY_ERASE, ERASE.arguments, ToolPermissionContext()))
    claude = asyncio.run(ask(options, ERASE))
    assert (files.erased, claude.results[0].failed) == ([], True)


def test_tools_without_permission_run_in_dont_ask_mode() -> None:
    """In the mode `dontAsk` Claude Code denies unlisted tools without calling the callback."""

    async def answer_request(name: str, arguments: Any, context: Any) -> Any:
        raise AssertionError

    own = ClaudeAgentOptions(can_use_tool=answer_request, permission_mode="dontAsk")
    allowed = Skills(asking()[0]).options(own).allowed_tools
    assert "mcp__skillshelf__load_skill_instructions" in allowed
    assert "mcp__skillshelf__erase" not in allowed


def test_without_a_callback_a_tool_that_asks_never_runs() -> None:
    """Claude Code is not instructed to let it through."""
    stock, files = asking()
    claude = asyncio.run(ask(Skills(stock).options(), ERASE))
    assert (files.erased, claude.results[0].failed) == ([], True)


def test_a_missing_framework_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "skillshelf.adapters.claude_agent")
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'skillshelf\[claude-agent\]'"):
        importlib.import_module("skillshelf.adapters.claude_agent")


def test_a_crowded_listing_is_followed_by_what_fits_the_message() -> None:
    """The system prompt is made before the first message, so the descriptions come in notes, each once."""
    options = Skills(Shelf([MemorySource(write_skills())]), budget=BUDGET).options()
    claude = ScriptedClaude(options, ([], "a"), ([], "b"), ([], "c"))

    async def talk() -> None:
        async with ClaudeSDKClient(options, claude) as client:
            for at in (150, 170, 150):
                await client.query(ask_about(at))
                _ = [message async for message in client.receive_response()]

    asyncio.run(talk())
    assert len(set(claude.system_prompts)) == 1
    first, second = claude.context
    assert entry_of(150) in first
    assert entry_of(170) in second
    assert entry_of(150) not in second
