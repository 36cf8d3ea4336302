"""Bundled skills in every framework, attached in three lines: they work, and raw tools ask first."""

import asyncio
import os
import re
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, types

from faces import FACES
from shop_database import write_shop
from sites import Site
from skillshelf import Shelf
from skillshelf.sources.attachable import attach_skill
from skillshelf.testing.conformance import Call, Reply
from weather_service import make_skill

# The other faces have their shelf in another process.
IN_PROCESS = sorted(FACES.keys() - {"mcp-stdio", "mcp-http"})


async def ask(face: str, shelf: Shelf, calls: Sequence[Call]) -> Reply:
    conversation = await FACES[face]().open(shelf)
    try:
        return await conversation.say("Go on.", calls, "Done.")
    finally:
        await conversation.close()


def count_orders(shop: Path) -> int:
    with closing(sqlite3.connect(shop)) as connection:
        ((count,),) = connection.execute("SELECT count(*) FROM orders")
    return int(count)


@pytest.mark.parametrize("face", IN_PROCESS)
def test_a_raw_tool_runs_only_after_a_yes(face: str, tmp_path: Path) -> None:
    """The framework asks in its own way. A no reaches the model as an answer, and the conversation goes on."""
    shop = write_shop(tmp_path)
    shelf = Shelf.open(tmp_path, skills=[attach_skill(f"database=write:{shop}")])
    calls = [
        Call("list_tables", {}),
        Call("run_query", {"sql": "SELECT name FROM customers"}),
        Call("run_statement", {"sql": "DELETE FROM orders"}),
        Call("run_query", {"sql": "SELECT name FROM customers WHERE id = 2"}, approve=True),
        Call("run_statement", {"sql": "DELETE FROM orders WHERE id = 3"}, approve=True),
    ]
    reply = asyncio.run(ask(face, shelf, calls))
    tables, *refusals, rows, changed = reply.results
    assert '<skill name="database"' in reply.system_prompts[0]
    assert "customers" in tables.text
    for refusal in refusals:
        assert re.search("reject|denied|said no|not allow|not approved", refusal.text)
        assert refusal.failed in (True, None)
    assert "Grace" in rows.text
    assert (changed.text, count_orders(shop)) == ("1", 2)
    assert reply.answer == "Done."


def test_a_host_that_starts_the_server_is_asked_too(tmp_path: Path) -> None:
    """`skillshelf serve --with` attaches the skill; over pipes, a host gets a question for each statement."""
    shop = write_shop(tmp_path)
    words = ["-m", "skillshelf", "serve", "-C", str(tmp_path), "--with", f"database=write:{shop}"]
    query = {"sql": "SELECT name FROM customers WHERE id = 2"}
    questions: list[str] = []

    async def answer(context: Any, question: Any) -> types.ElicitResult:
        questions.append(question.message)
        return types.ElicitResult(action="decline" if len(questions) == 1 else "accept", content={})

    async def talk() -> list[types.CallToolResult]:
        server = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
        async with Client(server, elicitation_callback=answer) as client:
            return [await client.call_tool("run_query", query) for _ in range(2)]

    refused, rows = asyncio.run(talk())
    assert [bool(result.is_error) for result in (refused, rows)] == [True, False]
    assert "Grace" not in str(refused.content)
    assert "Grace" in str(rows.content)
    assert all("run_query" in question and "customers" in question for question in questions)


@pytest.mark.parametrize("face", IN_PROCESS)
def test_an_async_skill_fetches(face: str, tmp_path: Path) -> None:
    """The model gets the forecast of a real HTTP service, and an error that names the reference that helps."""
    with Site.running() as site:
        shelf = Shelf.open(tmp_path, skills=[make_skill(site)])
        calls = [
            Call("find_place", {"name": "Nowhere"}),
            Call("load_skill_instructions", {"skill_name": "weather", "reference": "places.md"}),
            Call("find_place", {"name": "Porto"}),
            Call("get_forecast", {"latitude": 41.15, "longitude": -8.61, "days": 1}),
        ]
        reply = asyncio.run(ask(face, shelf, calls))
    unknown, reference, place, forecast = reply.results
    assert "places.md" in unknown.text
    assert unknown.failed in (True, None)
    assert reference.text.startswith("#")
    assert "Portugal" in place.text
    assert "Europe/Lisbon" in forecast.text
