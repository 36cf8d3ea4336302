"""Measure the MCP server beside one of the same SDK that does nothing but answer.

    python -m benchmarks.mcp

Both give the same 8 KB for a tool call. They take turns, each time with the same clients: one in this process, then a
hundred over HTTP to servers in processes of their own, each client asking for twenty references, in the revision of
2026-07-28 and in those with a handshake. At the end a thousand sessions of the handshake come to each, and go.
"""

import asyncio
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import mcp_start
from benchmarks.report import HEADINGS, Row, aligned
from skillshelf.shelf import LOAD_TOOL

CLIENTS, REFERENCES, BYTES, SESSIONS = 100, 20, 8192, 1000
_CALLS = 200
# Five sixths of the throughput, for code without a cache for each client.
_MOST = 1.2
# A thousand agents (L03 of the threats).
_MOST_GROWTH = 50 * 1024 * 1024
_MODERN, _HANDSHAKE = "2026-07-28", "legacy"
_IN_MEMORY = "mcp: a cached reference, in memory"
_HTTP = f"mcp: a cached reference over HTTP, {CLIENTS} clients, the server's CPU"
_SESSIONS = f"mcp: the same with handshake sessions, {CLIENTS} clients, the server's CPU"
_SLOWEST = f"mcp: {CLIENTS} clients × {REFERENCES} references over HTTP, p99"
_GROWTH = f"mcp: memory grown by {SESSIONS:,} handshake sessions at once"
_HTTP_ROWS = (_HTTP, _SESSIONS, _SLOWEST, _GROWTH)


def measure(rounds: int, *, over_http: bool = True) -> list[Row]:
    """Measure starts, a call's share of the time, the slowest of a hundred, and memory; over HTTP it takes minutes."""
    try:
        import mcp  # noqa: F401
    except ImportError:
        every = (_IN_MEMORY, *_HTTP_ROWS, *mcp_start.ROWS)
        return [Row(what, None, against="needs skillshelf[mcp]") for what in every]
    starts = mcp_start.measure(15 if over_http else 1)
    with tempfile.TemporaryDirectory(prefix="skillshelf-mcp-") as folder:
        _write(Path(folder))
        ours, bare = asyncio.run(_in_memory(folder, 5 * rounds))
        against = "the same SDK's no-op"
        first = Row(_IN_MEMORY, ours, against=against, other=bare, most_ratio=_MOST)
        if not over_http:
            return [first, *(Row(what, None, against="takes minutes") for what in _HTTP_ROWS), *starts]
        with _serving(folder) as server, _serving("") as other:
            took = asyncio.run(_over_http((server, other), rounds, _MODERN))
            with_sessions = asyncio.run(_over_http((server, other), rounds, _HANDSHAKE))
        grown = []
        for served in (folder, ""):
            with _serving(served) as fresh:
                grown.append(asyncio.run(_growth(fresh)))
    return [
        first,
        Row(_HTTP, _share(took[0]), against=against, other=_share(took[1]), most_ratio=_MOST),
        Row(_SESSIONS, _share(with_sessions[0]), against=against, other=_share(with_sessions[1]), most_ratio=_MOST),
        Row(_SLOWEST, _p99(took[0]), against=against, other=_p99(took[1])),
        Row(_GROWTH, grown[0], "B", against=against, other=grown[1], most=_MOST_GROWTH),
        *starts,
    ]


def _write(folder: Path) -> None:
    references = folder / "bench" / "references"
    references.mkdir(parents=True)
    (folder / "bench" / "SKILL.md").write_text("---\nname: bench\ndescription: For measuring.\n---\n\nGo.\n")
    for at in range(REFERENCES):
        (references / f"{at}.md").write_text(f"{at:02} " + "x" * (BYTES - 3))


async def _in_memory(folder: str, rounds: int) -> tuple[float, float]:
    from mcp import Client

    from skillshelf.mcp import make_server
    from skillshelf.shelf import Shelf

    took: tuple[list[float], list[float]] = [], []
    async with Client(make_server(Shelf.open(folder))) as ours, Client(no_op()) as bare:
        for _ in range(rounds):
            for times, client in zip(took, (ours, bare), strict=True):
                await _call(client, 0)
                start = time.process_time()
                for _ in range(_CALLS):
                    await _call(client, 0)
                times.append((time.process_time() - start) / _CALLS)
    return min(took[0]), min(took[1])


class Pass(list[float]):
    """The time of every call of one pass of all clients, and what the pass took the server."""

    cpu = 0.0


class Serving(NamedTuple):
    url: str
    pid: int

    def cpu(self) -> float:
        """Seconds that the process has worked: the clients share its machine, and their work is not its own."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def _over_http(servers: Sequence[Serving], rounds: int, mode: str) -> list[list[Pass]]:
    took: list[list[Pass]] = [[] for _ in servers]
    for _ in range(rounds):
        for passes, server in zip(took, servers, strict=True):
            passes.append(await _pass(server, mode))
    return took


async def _pass(server: Serving, mode: str) -> Pass:
    from mcp import Client

    done, ready, started = Pass(), asyncio.Barrier(CLIENTS + 1), asyncio.Event()

    async def agent() -> None:
        async with Client(server.url, mode=mode) as client:
            for at in range(REFERENCES):  # reads the files
                await _call(client, at)
            await ready.wait()
            await started.wait()
            for at in range(REFERENCES):
                start = time.perf_counter()
                await _call(client, at)
                done.append(time.perf_counter() - start)

    agents = [asyncio.create_task(agent()) for _ in range(CLIENTS)]
    await ready.wait()
    before = server.cpu()
    started.set()
    await asyncio.gather(*agents)
    done.cpu = server.cpu() - before
    return done


async def _growth(server: Serving) -> float:
    """Bytes by which the process has grown once so many sessions were open at once, and were ended."""
    import httpx2

    limits = httpx2.Limits(max_connections=CLIENTS)
    async with httpx2.AsyncClient(timeout=600, limits=limits) as http:
        await _sessions(http, server.url, 10)
        before = server.memory()
        await _sessions(http, server.url, SESSIONS)
        return float(max(0, server.memory() - before))


async def _sessions(http: Any, url: str, count: int) -> None:
    """Over a hundred connections, by hand: so many clients of the SDK would keep this process busy, not the server."""
    accepted = {"accept": "application/json, text/event-stream"}

    async def post(method: str, headers: dict[str, str], **rest: Any) -> Any:
        answer = await http.post(url, json={"jsonrpc": "2.0", "method": method, **rest}, headers=headers)
        answer.raise_for_status()
        return answer

    async def begin() -> dict[str, str]:
        me = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "many", "version": "1"}}
        begun = await post("initialize", accepted, id=1, params=me)
        headers = {**accepted, "mcp-session-id": begun.headers["mcp-session-id"]}
        await post("notifications/initialized", headers)
        for at in range(3):
            asked = {"name": LOAD_TOOL, "arguments": {"skill_name": "bench", "reference": f"references/{at}.md"}}
            await post("tools/call", headers, id=2 + at, params=asked)
        return headers

    for headers in await asyncio.gather(*(begin() for _ in range(count))):
        (await http.delete(url, headers=headers)).raise_for_status()


async def _call(client: Any, at: int) -> None:
    result = await client.call_tool(LOAD_TOOL, {"skill_name": "bench", "reference": f"references/{at}.md"})
    text = result.content[0].text
    if len(text) != BYTES or not text.startswith(f"{at:02} "):
        raise AssertionError(f"a wrong answer: {text[:80]!r}")


def _share(passes: list[Pass]) -> float:
    return min(one.cpu for one in passes) / (CLIENTS * REFERENCES)


def _p99(passes: list[Pass]) -> float:
    return min(statistics.quantiles(one, n=100)[98] for one in passes)


# -- the other server -------------------------------------------------------------------------------------------------


def no_op() -> Any:
    """A server of the SDK that answers each call with texts it holds."""
    from mcp import types
    from mcp.server import Server

    texts = {f"references/{at}.md": f"{at:02} " + "x" * (BYTES - 3) for at in range(REFERENCES)}
    answers = {path: types.CallToolResult(content=[types.TextContent(text=text)]) for path, text in texts.items()}
    schema = {"type": "object"}
    listed = types.ListToolsResult(tools=[types.Tool(name=LOAD_TOOL, description="Load.", input_schema=schema)])

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return answers[(params.arguments or {})["reference"]]

    return Server("no-op", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=lambda name: schema)


def _serve_no_op() -> None:
    import anyio

    from skillshelf.mcp import MCP_PATH, listen, serve_http

    app = no_op().streamable_http_app(streamable_http_path=MCP_PATH, json_response=True)
    listening = listen("127.0.0.1", 0)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}{MCP_PATH}", file=sys.stderr, flush=True)
    anyio.run(serve_http, app, listening)


@contextlib.contextmanager
def _serving(folder: str) -> Iterator[Serving]:
    """A server process on this folder, or the one that does nothing."""
    ours = ["-m", "skillshelf", "serve", "--http", "--port", "0", "--trust-workspace", "-C", folder]
    words = ours if folder else ["-m", "benchmarks.mcp", "no-op"]
    process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stderr is not None
    try:
        yield Serving(re.findall(r"http://\S+", process.stderr.readline())[0], process.pid)
    finally:
        process.terminate()
        process.wait(10)
        process.stderr.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["no-op"]:
        _serve_no_op()
    else:
        print(aligned(HEADINGS, [row.cells() for row in measure(5)]))
