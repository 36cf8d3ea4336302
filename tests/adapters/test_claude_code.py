"""The shelf in Claude Code itself, the program that comes with the SDK: only the paid model is a script."""

import asyncio
import json
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


def talk(home: Path, stock: MemorySource, *turns: list[Step]) -> tuple[list[dict[str, Any]], list[str]]:
    """What the model was sent, call by call, and the results. A skill `csv` comes after the first turn."""
    api = MessagesApi([step for turn in turns for step in turn])

    async def run(url: str) -> list[str]:
        # Nothing of the person's own, and nobody to call but the script.
        env = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "HOME": str(home)}
        env |= {"CLAUDE_CONFIG_DIR": str(home), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        own = ClaudeAgentOptions(env=env, cwd=home, setting_sources=[])
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
