"""The shelf in Claude Code itself, the program that comes with the SDK: only the paid model is a script."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk", reason="needs the extra: pip install 'skillshelf[claude-agent]'")

import claude_agent_sdk as sdk
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage
from messages_api import MessagesApi, Step

from skillshelf import MemorySource, Shelf
from skillshelf.adapters.claude_agent import Skills

LOAD = "mcp__skillshelf__load_skill_instructions"

if not (Path(sdk.__file__).parent / "_bundled" / "claude").exists():
    pytest.skip("this build of the SDK comes without Claude Code", allow_module_level=True)


def skill(name: str) -> dict[str, str]:
    return {
        "SKILL.md": f"---\nname: {name}\ndescription: About {name}.\n---\nBody of {name}.\n",
        "notes.md": f"Notes on {name}.",
    }


def alone(url: str, home: Path) -> dict[str, str]:
    """Nothing of the person's own, and nobody to call but the script."""
    quiet = {"CLAUDE_CONFIG_DIR": str(home / "config"), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    return {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": str(home), **quiet}


def talk(home: Path, stock: MemorySource, *turns: list[Step]) -> tuple[list[dict[str, Any]], list[str]]:
    """What the model was sent, call by call, and the results. A skill `csv` comes after the first turn."""
    api = MessagesApi([step for turn in turns for step in turn])

    async def run(url: str) -> list[str]:
        own = ClaudeAgentOptions(env=alone(url, home), cwd=home, setting_sources=[])
        results = []
        async with ClaudeSDKClient(Skills(Shelf([stock])).options(own)) as client:
            for _ in turns:
                await client.query("Go on.")
                async for message in client.receive_response():
                    if isinstance(message, ResultMessage):
                        results.append(message.result or "")
                stock.put("csv", skill("csv"))
        return results

    with api.serving() as url:
        results = asyncio.run(asyncio.wait_for(run(url), 60))
    return api.requests, results


def test_claude_code_offers_the_shelf_and_loads_from_it(tmp_path: Path) -> None:
    """The tools and the listing are before the model from its first call; refusals are answers; changes are told."""
    load = (LOAD, {"skill_name": "pdf"})
    outside = (LOAD, {"skill_name": "pdf", "reference": "../../etc/passwd"})
    requests, results = talk(tmp_path, MemorySource({"pdf": skill("pdf")}), [load, "First."], [outside, "Second."])
    assert results == ["First.", "Second."]
    for request in requests:
        assert LOAD in [tool["name"] for tool in request["tools"]]
        assert '<skill name=\\"pdf\\"' in json.dumps(request["system"])
    said = [json.dumps(request["messages"]) for request in requests]
    assert ["Body of pdf." in one for one in said] == [False, True, True, True]
    assert ["Added: csv." in one for one in said] == [False, False, True, True]
    assert "does not offer the reference" in said[3]


def test_claude_code_has_the_tools_of_the_server_at_once(tmp_path: Path) -> None:
    """`skillshelf serve` over pipes, as people put it in their configuration."""
    home = tmp_path / ".claude" / "skills" / "pdf"
    home.mkdir(parents=True)
    (home / "SKILL.md").write_text(skill("pdf")["SKILL.md"])
    words = ["-m", "skillshelf", "serve", "--trust-workspace", "-C", str(tmp_path)]
    api = MessagesApi([("mcp__shelf__load_skill_instructions", {"skill_name": "pdf"}), "Done."])

    async def run(url: str) -> None:
        server: Any = {"command": sys.executable, "args": words}
        own = ClaudeAgentOptions(
            env=alone(url, tmp_path),
            cwd=tmp_path,
            setting_sources=[],
            mcp_servers={"shelf": server},
            allowed_tools=["mcp__shelf"],
        )
        async with ClaudeSDKClient(own) as client:
            while [one["status"] for one in (await client.get_mcp_status())["mcpServers"]] != ["connected"]:
                await asyncio.sleep(0.1)
            await client.query("Go on.")
            async for _ in client.receive_response():
                pass

    with api.serving() as url:
        asyncio.run(asyncio.wait_for(run(url), 60))
    assert {f"mcp__shelf__{name}" for name in ("list_skills", "search_skills", "load_skill_instructions")} <= {
        tool["name"] for tool in api.requests[0]["tools"]
    }
    assert "Body of pdf." in json.dumps(api.requests[1]["messages"])
