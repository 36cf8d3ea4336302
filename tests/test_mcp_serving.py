"""The HTTP server's connections: how they begin, how they end, and what holds over several of one client."""

import asyncio
import re
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

import httpx2
from mcp import Client
from test_mcp_http import HEADERS, INITIALIZE, TOKEN, load, serving

from skillshelf import MemorySource, Shelf
from skillshelf.mcp import http_app, make_server, serve_http
from skillshelf.mcp import serving as server_module
from skillshelf.mcp.serving import listen

Write = Callable[..., Path]


def test_what_the_person_invoked_holds_over_all_connections_of_a_client(tmp_path: Path, write: Write) -> None:
    """Of calls at once each comes on its own, and after a while all are new: the name in the prompt lets them in."""
    path = write("deploy", body="Steps.\n", references__a_md="A.", references__b_md="B.")
    path.write_text(path.read_text().replace("---\n\n", "disable-model-invocation: true\n---\n\n", 1))

    async def main(url: str) -> list[str]:
        async with Client(url) as client:
            [message] = (await client.get_prompt("deploy", {})).messages
        content: Any = message.content
        [name] = set(re.findall(r"deploy#\w+", content.text))
        async with Client(url) as one, Client(url) as other:
            right = await asyncio.gather(
                load(one, skill_name=name, reference="a.md"), load(other, skill_name=name, reference="b.md")
            )
        async with Client(url) as stranger:
            wrong = [await load(stranger, skill_name=each) for each in ("deploy", "deploy#0123456789", "x" + name)]
        return [*right, *wrong]

    with serving(tmp_path) as server:
        first, second, *refused = asyncio.run(main(server.url))
    assert (first, second) == ("A.", "B.")
    assert all(answer.startswith("There is no skill named") for answer in refused)


def test_answers_are_sent_without_waiting_for_word_of_the_first_half() -> None:
    """40 ms a call, otherwise: the kernel gathers small packets unless it is told not to."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_headers_that_decide_are_to_come_once(tmp_path: Path) -> None:
    """Which of two is meant, nobody can say."""
    with serving(tmp_path, "--token", TOKEN) as server:
        for name, values in {
            "authorization": ("Bearer wrong", f"Bearer {TOKEN}"),
            "origin": ("https://evil.example", "https://evil.example"),
        }.items():
            headers = [*HEADERS.items(), *((name, value) for value in values)]
            assert httpx2.post(server.url, json=INITIALIZE, headers=headers).status_code == 400


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_with_listeners_ends_quietly(tmp_path: Path, write: Write, mode: str) -> None:
    """Whoever listens is told that it is over, and nothing is said on standard error."""
    write("pdf")

    async def main(server: Any) -> tuple[int, str]:
        async with Client(server.url, mode=mode) as client:
            if mode == "legacy":
                await client.list_tools()
                return await end(server)
            async with client.listen(resources_list_changed=True) as events:
                told = await end(server)
                assert [event async for event in events] == []  # it ends; a stream that is lost raises
                return told

    async def end(server: Any) -> tuple[int, str]:
        server.process.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.process.wait, 30)
        return code, server.process.stderr.read()

    with serving(tmp_path) as server:
        code, told = asyncio.run(main(server))
    assert (code, told) == (-signal.SIGTERM, "")


def test_who_leaves_in_the_middle_is_not_reported(tmp_path: Path) -> None:
    """It is no error of the server's, and a log full of it would hide those that are."""
    with serving(tmp_path) as server:
        for revision in ("2025-11-25", "2026-07-28"):
            head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                connection.sendall(
                    f"POST /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-protocol-version: {revision}\r\n{head}"
                    "content-length: 100\r\n\r\n{".encode()
                )
        assert server.post().status_code == 200
        server.process.terminate()
        server.process.wait(30)
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""


def test_a_connection_that_asks_for_nothing_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that asks in time stays."""
    monkeypatch.setattr(server_module, "REQUEST_SECONDS", 0.2)
    shelf = Shelf([MemorySource({})])

    async def main() -> tuple[bytes, bytes]:
        listening = listen("127.0.0.1", 0)
        running = asyncio.create_task(serve_http(http_app(make_server(shelf)), listening))
        port = listening.getsockname()[1]
        idle, asking = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        ask = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
        asking[1].write(ask)
        await asking[0].readuntil(b"}")
        closed = await idle[0].read()
        asking[1].write(ask)
        again = await asking[0].readuntil(b"}")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return closed, again

    closed, again = asyncio.run(main())
    assert closed == b""
    assert again.endswith(b'{"status":"ok"}')
