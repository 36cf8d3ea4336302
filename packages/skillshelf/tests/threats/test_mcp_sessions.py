"""M06: clients that open sessions over HTTP and abandon them."""

import asyncio
import contextlib
import threading
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

import httpx2
from mcp import Client

from skillshelf import BaseSkill, Shelf, tool
from skillshelf.mcp import ConnectionLimits
from skillshelf.sources import ObjectSource
from test_mcp_http import HEADERS, INITIALIZE
from test_mcp_serving import serve

LIST_TOOLS = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Sessions:
    """Opens sessions of the handshake revisions, one request at a time."""

    def __init__(self, http: httpx2.AsyncClient, port: int) -> None:
        self._http = http
        self.url = f"http://127.0.0.1:{port}/mcp"

    async def open(self) -> str:
        answer = await self._http.post(self.url, json=INITIALIZE, headers=HEADERS)
        assert answer.status_code == 200, answer.text
        session = answer.headers["mcp-session-id"]
        await self.post(session, INITIALIZED)
        return str(session)

    async def post(self, session: str, body: Any = LIST_TOOLS) -> int:
        headers = {**HEADERS, "mcp-session-id": session}
        return (await self._http.post(self.url, json=body, headers=headers)).status_code

    def stream(self, session: str) -> Any:
        """Open the standing stream of a session."""
        headers = {"accept": "text/event-stream", "mcp-session-id": session}
        return self._http.stream("GET", self.url, headers=headers)


def test_m06_abandoned_sessions_lock_no_client_out() -> None:
    """A new session ends the one that was unused longest. Sessions in use go on."""

    async def use(port: int) -> list[int]:
        async with httpx2.AsyncClient(timeout=30) as http:
            sessions = Sessions(http, port)
            mine = await sessions.open()
            abandoned = [await sessions.open() for _ in range(2)]
            for _ in range(10):
                assert await sessions.post(mine) == 200
                abandoned.append(await sessions.open())
            return [await sessions.post(each) for each in (mine, *abandoned)]

    statuses = serve(ConnectionLimits(), use, max_sessions=3)
    assert statuses == [200, *[404] * 10, 200, 200]


def test_m06_requests_for_unknown_sessions_end_no_session() -> None:
    """A session that its client ended makes room as well, and nobody can end one by naming others."""

    async def use(port: int) -> list[int]:
        async with httpx2.AsyncClient(timeout=30) as http:
            sessions = Sessions(http, port)
            mine = [await sessions.open() for _ in range(3)]
            for at in range(10):
                assert await sessions.post(f"{at:032x}", INITIALIZE) == 404
                answer = await http.post(sessions.url, json=LIST_TOOLS, headers=HEADERS)  # opens none
                assert answer.status_code == 400
            await http.delete(sessions.url, headers={"mcp-session-id": mine.pop()})
            mine.append(await sessions.open())
            return [await sessions.post(each) for each in mine]

    assert serve(ConnectionLimits(), use, max_sessions=3) == [200, 200, 200]


def test_m06_a_call_in_progress_outlives_open_streams_and_those_outlive_idle_sessions() -> None:
    """So a hundred sessions that are kept open by their streams lock nobody out either, and end no call."""
    called = threading.Event()
    go = threading.Event()

    class Slow(BaseSkill):
        name = "slow"
        description = "Waits."
        instructions = "Call wait."
        category = "raw"

        @tool
        def wait(self) -> str:
            """Wait."""
            called.set()
            go.wait(60)
            return "done"

    async def use(port: int) -> None:
        async with httpx2.AsyncClient(timeout=30) as http, contextlib.AsyncExitStack() as streams:
            sessions = Sessions(http, port)
            async with Client(sessions.url, mode="legacy") as client:
                call = asyncio.create_task(client.call_tool("wait", {}))
                await asyncio.to_thread(called.wait, 60)

                listening = await sessions.open()
                await streams.enter_async_context(sessions.stream(listening))
                idle = await sessions.open()
                second = await sessions.open()
                assert await sessions.post(idle) == 404
                assert await sessions.post(listening) == 200

                await streams.enter_async_context(sessions.stream(second))
                await sessions.open()
                assert await sessions.post(second) == 404

                go.set()
                assert not (await call).is_error

    serve(ConnectionLimits(), use, Shelf([ObjectSource([Slow().with_policy({"wait": "safe"})])]), max_sessions=3)
