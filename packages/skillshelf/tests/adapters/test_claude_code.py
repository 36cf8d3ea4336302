"""Give a shelf to Claude Code itself, the program that comes with the SDK. Only the model is scripted."""

import asyncio
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="needs the extra: pip install 'skillshelf[claude-agent]'")

import claude_agent_sdk as sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, ResultMessage

from adapters.messages_api import MessagesApi
from skillshelf import MemorySource, Shelf
from skillshelf.adapters.claude_agent import Skills

LOAD = "mcp__skillshelf__load_skill_instructions"

if not (Path(sdk.__file__).parent / "_bundled" / "claude").exists():
    pytest.skip("this build of the SDK comes without Claude Code", allow_module_level=True)


SKILL = "---\nname: {0}\ndescription: {1}\n---\nBody of {0}.\n"


def skill(name: str) -> dict[str, str]:
    return {"SKILL.md": SKILL.format(name, f"About {name}."), "notes.md": f"Notes on {name}."}


def isolate(url: str, home: Path) -> dict[str, str]:
    """Return an environment without the user's settings, in which only the scripted model can be reached."""
    quiet = {"CLAUDE_CONFIG_DIR": str(home / "config"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": str(home), **quiet}


def talk(
    home: Path, stock: MemorySource, added: Mapping[str, str | dict[str, str]], api: MessagesApi, *messages: str
) -> tuple[list[str], list[str]]:
    """Send the messages, and return the conversation at each model call, and the results.

    The skills in `added` are put on the shelf after the first message.
    """

    async def monday(*_: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "It is Monday."}}

    async def run(url: str) -> list[str]:
        hooks: Any = {"SessionStart": [HookMatcher(hooks=[monday])]}
        own = ClaudeAgentOptions(env=isolate(url, home), cwd=home, setting_sources=[], hooks=hooks)
        results = []
        async with ClaudeSDKClient(Skills(Shelf([stock])).options(own)) as client:
            for message in messages:
                await client.query(message)
                async for answer in client.receive_response():
                    if isinstance(answer, ResultMessage):
                        results.append(answer.result or "")
                for name, content in added.items():
                    stock.put(name, content)
        return results

    with api.serve() as url:
        results = asyncio.run(asyncio.wait_for(run(url), 60))
    return [json.dumps(request["messages"]) for request in api.requests], results


def test_claude_code_offers_the_shelf_and_loads_from_it(tmp_path: Path) -> None:
    """The model has the tools and the listing from its first call. Refusals are answers, and changes are announced."""
    load = (LOAD, {"skill_name": "pdf"})
    outside = (LOAD, {"skill_name": "pdf", "reference": "../../etc/passwd"})
    api, stock = MessagesApi([load, "First.", outside, "Second."]), MemorySource({"pdf": skill("pdf")})
    conversations, results = talk(tmp_path, stock, {"csv": skill("csv")}, api, "One.", "Two.")
    assert results == ["First.", "Second."]
    for request in api.requests:
        assert LOAD in [tool["name"] for tool in request["tools"]]
        assert '<skill name=\\"pdf\\"' in json.dumps(request["system"])
    assert ["Body of pdf." in conversation for conversation in conversations] == [False, True, True, True]
    assert ["Added: csv." in conversation for conversation in conversations] == [False, False, True, True]
    assert "does not offer the reference" in conversations[3]


def test_claude_code_shows_a_long_note_whole(tmp_path: Path) -> None:
    """Claude Code truncates notes over 10,000 characters, so all skills are named with less text for each."""
    long = skill("pdf")["SKILL.md"]
    stock = MemorySource({"pdf": long + "Old. " * 2200})
    added = {
        f"skill-{at}": SKILL.format(f"skill-{at}", f"About number {at}, " + "and so on " * 20) for at in range(100)
    }
    conversations, _ = talk(
        tmp_path, stock, {"pdf": long + "New. " * 2200, **added}, MessagesApi(["1.", "2."]), "One.", "Two."
    )
    assert "Output too large" not in conversations[1]
    assert "load them again" in conversations[1]
    assert set(re.findall(r"skill-\d+", conversations[1])) == set(added)
    assert 'name=\\"pdf\\"' in conversations[1]


@pytest.mark.parametrize("dropped", ["/clear", "/compact"])
def test_claude_code_gets_the_note_again_after_dropping_it(tmp_path: Path, dropped: str) -> None:
    """The system prompt is still the first one. The output of the host's own hook stays."""
    api, stock = MessagesApi(["First.", "Second.", "Third."]), MemorySource({"pdf": skill("pdf")})
    conversations, _ = talk(tmp_path, stock, {"csv": skill("csv")}, api, "One.", "Two.", dropped, "Three.")
    assert ["Second." in conversation for conversation in conversations] == [False, False, False]
    assert [conversation.count("Added: csv.") for conversation in conversations] == [0, 1, 1]
    assert "It is Monday." in conversations[2]


def test_claude_code_gets_the_note_again_after_compacting_within_a_turn(tmp_path: Path) -> None:
    """The next model call has the summary and the note."""
    load = (LOAD, {"skill_name": "pdf"})
    api, stock = MessagesApi(["First.", load, "Second."], full_at=2), MemorySource({"pdf": skill("pdf")})
    conversations, results = talk(tmp_path, stock, {"csv": skill("csv")}, api, "One.", "Two.")
    assert results == ["First.", "Second."]
    assert "They went on." in conversations[2]
    assert [conversation.count("Added: csv.") for conversation in conversations] == [0, 1, 1]


def test_claude_code_has_the_tools_of_the_server_at_once(tmp_path: Path) -> None:
    """`skillshelf serve` runs over pipes, as users configure it."""
    home = tmp_path / ".claude" / "skills" / "pdf"
    home.mkdir(parents=True)
    (home / "SKILL.md").write_text(skill("pdf")["SKILL.md"])
    arguments = ["-m", "skillshelf", "serve", "--trust-workspace", "-C", str(tmp_path)]
    api = MessagesApi([("mcp__shelf__load_skill_instructions", {"skill_name": "pdf"}), "Done."])

    async def run(url: str) -> None:
        server: Any = {"command": sys.executable, "args": arguments}
        own = ClaudeAgentOptions(
            env=isolate(url, tmp_path),
            cwd=tmp_path,
            setting_sources=[],
            mcp_servers={"shelf": server},
            allowed_tools=["mcp__shelf"],
        )
        async with ClaudeSDKClient(own) as client:
            while [server["status"] for server in (await client.get_mcp_status())["mcpServers"]] != ["connected"]:
                await asyncio.sleep(0.1)
            await client.query("Go on.")
            async for _ in client.receive_response():
                pass

    with api.serve() as url:
        asyncio.run(asyncio.wait_for(run(url), 60))
    assert {f"mcp__shelf__{name}" for name in ("list_skills", "search_skills", "load_skill_instructions")} <= {
        tool["name"] for tool in api.requests[0]["tools"]
    }
    assert "Body of pdf." in json.dumps(api.requests[1]["messages"])
