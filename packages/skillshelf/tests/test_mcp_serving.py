"""Test the HTTP server's connections: beginning, end, and state shared by several connections of a client."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

import httpx2
from mcp import Client

from mcp_kit import invoke
from skillshelf import Shelf
from skillshelf.mcp import ConnectionLimits, http_app, listen, make_server, serve_http
from test_mcp_http import HEADERS, INITIALIZE, TOKEN, load, run_server

Write = Callable[..., Path]


def test_an_invoked_skill_is_open_on_every_connection_of_the_client(tmp_path: Path, write: Write) -> None:
    """A client opens several connections for concurrent calls, and new ones later."""
    path = write("deploy", body="Steps.\n", references__a_md="A.", references__b_md="B.")
    path.write_text(path.read_text().replace("---\n\n", "disable-model-invocation: true\n---\n\n", 1))

    async def main(url: str) -> list[str]:
        async with Client(url) as client:
            name = await invoke(client, "deploy")
        async with Client(url) as first_client, Client(url) as second_client:
            right = await asyncio.gather(
                load(first_client, skill_name=name, reference="a.md"),
                load(second_client, skill_name=name, reference="b.md"),
            )
        async with Client(url) as stranger:
            wrong = [await load(stranger, skill_name=each) for each in ("deploy", "deploy#0123456789", "x" + name)]
        return [*right, *wrong]

    with run_server(tmp_path) as server:
        first, second, *refused = asyncio.run(main(server.url))
    assert (first, second) == ("A.", "B.")
    assert all(answer.startswith("There is no skill named") for answer in refused)


def test_answers_are_sent_without_waiting_for_acknowledgements() -> None:
    """Without TCP_NODELAY the kernel collects small packets, which costs 40 ms per call."""
    with listen("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_repeated_security_headers_are_refused(tmp_path: Path) -> None:
    """With two values the server cannot know which one is meant."""
    with run_server(tmp_path, SKILLSHELF_TOKEN=TOKEN) as server:
        for name, values in {
            "authorization": ("Bearer wrong", f"Bearer {TOKEN}"),
            "origin": ("https://evil.example", "https://evil.example"),
        }.items():
            headers = [*HEADERS.items(), *((name, value) for value in values)]
            assert httpx2.post(server.url, json=INITIALIZE, headers=headers).status_code == 400


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_with_listeners_stops_cleanly(tmp_path: Path, write: Write, mode: str) -> None:
    """Listening clients receive the end of the stream, and standard error stays empty."""
    write("pdf")

    async def main(server: Any) -> tuple[int, str]:
        async with Client(server.url, mode=mode) as client:
            if mode == "legacy":
                await client.list_tools()
                return await end(server)
            async with client.listen(resources_list_changed=True) as events:
                outcome = await end(server)
                assert [event async for event in events] == []  # the stream ends; a lost stream would raise
                return outcome

    async def end(server: Any) -> tuple[int, str]:
        server.process.terminate()
        code = await asyncio.to_thread(server.process.wait, 30)
        return code, server.errors.read()

    with run_server(tmp_path) as server:
        code, stderr = asyncio.run(main(server))
    assert (code, stderr) == (-signal.SIGTERM, "")


def test_a_client_that_disconnects_early_is_not_logged(tmp_path: Path) -> None:
    """It is not an error of the server, and such lines would bury real errors in the log."""
    with run_server(tmp_path) as server:
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
        assert server.errors.read() == ""


HEALTH = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n"


def serve(
    limits: ConnectionLimits, use: Callable[[int], Awaitable[Any]], shelf: Shelf | None = None, **options: Any
) -> Any:
    """Serve a shelf, an empty one by default, in this process with the given limits, and call `use` with the port."""

    async def main() -> Any:
        listening = listen("127.0.0.1", 0)
        app = http_app(make_server(shelf or Shelf([])), **options)
        running = asyncio.create_task(serve_http(app, listening, limits))
        try:
            return await use(listening.getsockname()[1])
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    return asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize(
    ("incomplete", "answer"),
    [
        (b"", b""),
        (b"POST /m", b""),
        (POST, b"HTTP/1.1 408 Request Timeout\r\n"),
        (POST + b"{", b"HTTP/1.1 408 Request Timeout\r\n"),
        (HEALTH + b"GET /he", b"HTTP/1.1 200 OK\r\n"),
        (HEALTH + POST + b"{", b"HTTP/1.1 200 OK\r\n"),
    ],
    ids=["nothing", "half a line", "no body", "half a body", "half a second request", "half a second body"],
)
def test_a_request_that_never_completes_is_cut_off(incomplete: bytes, answer: bytes) -> None:
    """The missing part does not matter, nor whether the connection has served a request before."""

    async def use(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if incomplete.startswith(HEALTH):
            writer.write(HEALTH)
            first = await reader.readuntil(b"}")
            writer.write(incomplete[len(HEALTH) :])
            return first + await reader.read()
        writer.write(incomplete)
        return await reader.read()  # until the connection closes

    received = serve(ConnectionLimits(request_seconds=0.2), use)
    assert received[: len(answer)] == answer
    assert bool(received) == bool(answer)


@pytest.mark.parametrize("begun", [b"POST /m", POST, POST + b"{"], ids=["half a line", "no body", "half a body"])
def test_an_incomplete_pipelined_request_is_cut_off(begun: bytes) -> None:
    """The first request is answered, and the rest of the second never comes."""

    async def use(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEALTH + begun)
        return await reader.read()

    assert serve(ConnectionLimits(request_seconds=0.2), use).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_connection_stays_open_while_requests_arrive_in_time() -> None:
    """The limit applies to each request, not to the connection."""

    async def use(port: int) -> list[bytes]:
        asking = await asyncio.open_connection("127.0.0.1", port)
        idle = await asyncio.open_connection("127.0.0.1", port)
        idle_end = asyncio.create_task(idle[0].read())
        answers = []
        while not idle_end.done():  # until the limit has passed since both connections opened
            asking[1].write(HEALTH)
            answers.append(await asking[0].readuntil(b"}"))
            await asyncio.sleep(0.1)
        asking[1].write(HEALTH)
        answers.append(await asking[0].readuntil(b"}"))
        return answers

    answers = serve(ConnectionLimits(request_seconds=2.0), use)
    assert len(answers) > 2
    assert all(answer.endswith(b'{"status":"ok"}') for answer in answers)


def test_an_idle_connection_is_closed() -> None:
    """This includes a connection that was used before; its client can open another."""

    async def use(port: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEALTH)
        return await reader.read()  # until the connection closes

    assert serve(ConnectionLimits(request_seconds=0.2), use).endswith(b'{"status":"ok"}')


def test_a_connection_over_the_limit_gets_503() -> None:
    """Existing connections are still served, and a free place goes to the next one."""

    async def ask(connection: Any) -> bytes:
        connection[1].write(HEALTH)
        return bytes((await connection[0].readuntil(b"\r\n")).split()[1])

    async def use(port: int) -> list[bytes]:
        allowed = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        before = [await ask(connection) for connection in allowed]
        excess = await asyncio.open_connection("127.0.0.1", port)
        refused = await ask(excess)
        assert b"Try again later." in await excess[0].read()  # read to the end: it is closed

        await allowed[0][0].readuntil(b"}")
        still = await ask(allowed[0])
        allowed[1][1].write(HEALTH.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        await allowed[1][0].read()  # returns when the server has closed it
        after = await ask(await asyncio.open_connection("127.0.0.1", port))
        return [*before, refused, still, after]

    assert serve(ConnectionLimits(connections=3), use) == [b"200", b"200", b"200", b"503", b"200", b"200"]


def test_a_flood_of_connections_is_closed_without_an_answer() -> None:
    """The server accepts a few connections over its limit to explain the refusal, and no more."""

    async def use(port: int) -> list[bytes]:
        flood = [await asyncio.open_connection("127.0.0.1", port) for _ in range(200)]
        ends = asyncio.as_completed([connection[0].read() for connection in flood])
        return [await next(ends) for _ in range(200 - 3 - 64)]

    assert serve(ConnectionLimits(connections=3), use) == [b""] * 133
