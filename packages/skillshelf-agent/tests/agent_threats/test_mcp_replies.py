"""MCP servers of the agent that answer with too much: the call fails, and nothing is kept."""

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")

from pydantic_ai.exceptions import ToolFailed

from sites import Site
from skillshelf_agent.servers import ServerSettings, ToolServers

Request = Mapping[str, Any]
Answer = Callable[[BaseHTTPRequestHandler, Request], None]

MEGABYTE = b"x" * 1_000_000
OK = b"200 OK\r\n"
JSON = b"Content-Type: application/json\r\n"
EVENTS = b"Content-Type: text/event-stream\r\n"
TOOL = {"name": "ask", "inputSchema": {"type": "object"}}
TEXT = {"type": "text", "text": "yes"}
PARTS = b'{"jsonrpc":"2.0","id":1,"result":{"content":[' + b"{}," * 300_000


def result(**members: Any) -> Answer:
    def answer(page: BaseHTTPRequestHandler, request: Request) -> None:
        message = {"jsonrpc": "2.0", "id": request["id"], "result": members}
        page.wfile.write(b"HTTP/1.1 " + OK + JSON + b"\r\n" + json.dumps(message).encode())

    return answer


def raw(head: bytes, body: bytes) -> Answer:
    def answer(page: BaseHTTPRequestHandler, request: Request) -> None:
        with suppress(OSError):
            page.wfile.write(b"HTTP/1.1 " + head + b"\r\n" + body)

    return answer


def endless(sent: list[int], head: bytes, start: bytes) -> Answer:
    """Send until it is interrupted, or half a gigabyte. `sent` gets the lengths."""

    def answer(page: BaseHTTPRequestHandler, request: Request) -> None:
        with suppress(OSError):
            page.wfile.write(b"HTTP/1.1 " + head + b"\r\n" + start)
            for _ in range(500):
                page.wfile.write(MEGABYTE)
                sent.append(len(MEGABYTE))

    return answer


def ask(site: Site, special: Mapping[str, Answer] | None = None) -> tuple[str, list[str]]:
    """Call the tool of a server that has answers of its own to some methods.

    Return the reply or the failure, and the notices for the user.
    """
    answers = {
        "initialize": result(
            protocolVersion="2025-11-25", capabilities={"tools": {}}, serverInfo={"name": "hostile", "version": "1"}
        ),
        "tools/list": result(tools=[TOOL]),
        "tools/call": result(content=[TEXT]),
        **(special or {}),
    }

    def serve(page: BaseHTTPRequestHandler) -> None:
        request = json.loads(page.rfile.read(int(page.headers.get("Content-Length", 0))) or "{}")
        if page.command == "POST" and request["method"] in answers:
            answers[request["method"]](page, request)
        else:
            page.wfile.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")

    async def run() -> tuple[str, list[str]]:
        async with ToolServers([ServerSettings(name="kit", url=site.url("/mcp"))]) as servers:
            await servers.wait_until_settled()
            try:
                reply = await servers.call("kit__ask", {})
            except ToolFailed as error:
                reply = str(error)
            return reply, servers.take_notices()

    site.pages["/mcp"] = serve
    return asyncio.run(run())


@pytest.fixture
def site() -> Iterator[Site]:
    with Site.running() as site:
        yield site


def test_the_server_of_these_tests_works(site: Site) -> None:
    assert ask(site) == ("yes", [])


@pytest.mark.parametrize(
    ("head", "start", "reason"),
    [
        (OK + JSON, b"[", "the server sent a message over 32 MiB"),
        (OK + EVENTS, b"data: ", "the server sent a message over 32 MiB"),
        (b"400 Bad Request\r\n" + JSON, b"[", "answered with an error"),
        (
            b"307 Temporary Redirect\r\nLocation: /mcp\r\n" + EVENTS,
            b"data: x\n\n" * 10,
            "ended the connection during the call",
        ),
    ],
    ids=["JSON", "an event", "an error", "a redirect"],
)
def test_an_endless_answer_is_cut(site: Site, head: bytes, start: bytes, reason: str) -> None:
    """The call fails, and the connection ends."""
    sent: list[int] = []
    failure, _ = ask(site, {"tools/call": endless(sent, head, start)})
    assert reason in failure
    assert sum(sent) < 100_000_000


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (JSON, PARTS),
        (EVENTS, b"data: " + PARTS + b"\n\n"),
        (EVENTS, b': "\r\ndata: ' + PARTS + b"\r\n\r\n"),
    ],
    ids=["JSON", "an event", "an event after a quotation mark"],
)
def test_an_answer_with_too_many_values_is_not_parsed(site: Site, head: bytes, body: bytes) -> None:
    """The errors about 300,000 parts that are none, in 900 KB, would take 1.6 GB."""
    failure, _ = ask(site, {"tools/call": raw(OK + head, body)})
    assert "the server sent a message with over 100,000 values" in failure


def test_a_server_cannot_name_an_encoding_that_hides_the_values(site: Site) -> None:
    """In EBCDIC a bracket is another byte. Events are UTF-8."""
    event = ("data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": [TEXT]}}) + "\n\n").encode("cp037")
    head = OK + b"Content-Type: text/event-stream; charset=cp037\r\n"
    failure, _ = ask(site, {"tools/call": raw(head, event)})
    assert "ended the connection during the call" in failure


def test_a_compressed_answer_is_refused(site: Site) -> None:
    """None was asked for, and a small one can be huge when unpacked."""
    head = OK + b"Content-Encoding: gzip\r\n" + JSON
    failure, _ = ask(site, {"tools/call": raw(head, gzip.compress(MEGABYTE * 100))})
    assert "the server sent a compressed message" in failure


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        ([TOOL | {"description": "x" * 1_000_000}], "its tool list is over 4 MiB"),
        ([TOOL] * 40_000, "the server sent a message with over 100,000 values"),
    ],
    ids=["long", "many"],
)
def test_an_endless_tool_list_is_refused(site: Site, tools: list[Any], reason: str) -> None:
    """Each page names a next one. The agent goes on without the server."""
    _, (notice,) = ask(site, {"tools/list": result(tools=tools, nextCursor="more")})
    assert "The MCP server kit cannot be used" in notice
    assert reason in notice


def test_a_regular_expression_of_a_server_is_not_run(site: Site) -> None:
    """This one would take centuries. A structured result is passed on as it is."""
    schema = {"type": "object", "properties": {"word": {"type": "string", "pattern": "^(a+)+$"}}}
    call = result(content=[], structuredContent={"word": "a" * 60 + "!"})
    answers = {"tools/list": result(tools=[TOOL | {"outputSchema": schema}]), "tools/call": call}
    reply, _ = ask(site, answers)
    assert "aaa!" in reply
