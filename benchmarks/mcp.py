"""Measure the MCP server beside one of the same SDK that does nothing but answer.

    python -m benchmarks.mcp

Both give the same 8 KB for a tool call. They take turns, each time with the same clients: one in this process, then a
hundred over HTTP to servers in processes of their own, each client asking for twenty references.
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

from benchmarks.report import HEADINGS, Row, aligned

CLIENTS, REFERENCES, BYTES = 100, 20, 8192
_CALLS = 200
# At least nine tenths of the throughput.
_MOST = 1.11
_MODE = "2026-07-28"
_LOAD = "load_skill_instructions"
_IN_MEMORY = "mcp: a cached reference, in memory"
_HTTP = f"mcp: a cached reference over HTTP, {CLIENTS} clients, the server's CPU"
_SLOWEST = f"mcp: {CLIENTS} clients × {REFERENCES} references over HTTP, p99"


def measure(rounds: int, *, over_http: bool = True) -> list[Row]:
    """A call's share of the time, and the slowest of a hundred; over HTTP it takes a minute."""
    try:
        import mcp  # noqa: F401
    except ImportError:
        return [Row(what, None, against="needs skillshelf[mcp]") for what in (_IN_MEMORY, _HTTP, _SLOWEST)]
    with tempfile.TemporaryDirectory(prefix="skillshelf-mcp-") as folder:
        _write(Path(folder))
        ours, bare = asyncio.run(_in_memory(folder, 5 * rounds))
        first = Row(_IN_MEMORY, ours, against="the same SDK's no-op", other=bare, most_ratio=_MOST)
        if not over_http:
            return [first, *(Row(what, None, against="takes a minute") for what in (_HTTP, _SLOWEST))]
        with _serving(folder) as server, _serving("") as other:
            took = asyncio.run(_over_http((server, other), rounds))
    against = "the same SDK's no-op"
    return [
        first,
        Row(_HTTP, _share(took[0]), against=against, other=_share(took[1]), most_ratio=_MOST),
        Row(_SLOWEST, _p99(took[0]), against=against, other=_p99(took[1])),
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


async def _over_http(servers: Sequence[Serving], rounds: int) -> list[list[Pass]]:
    took: list[list[Pass]] = [[] for _ in servers]
    for _ in range(rounds):
        for passes, server in zip(took, servers, strict=True):
            passes.append(await _pass(server))
    return took


async def _pass(server: Serving) -> Pass:
    from mcp import Client

    done, ready, started = Pass(), asyncio.Barrier(CLIENTS + 1), asyncio.Event()

    async def agent() -> None:
        async with Client(server.url, mode=_MODE) as client:
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


async def _call(client: Any, at: int) -> None:
    result = await client.call_tool(_LOAD, {"skill_name": "bench", "reference": f"references/{at}.md"})
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
    listed = types.ListToolsResult(tools=[types.Tool(name=_LOAD, description="Load.", input_schema=schema)])

    async def list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return listed

    async def call_tool(ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return answers[(params.arguments or {})["reference"]]

    return Server("no-op", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=lambda name: schema)


def _serve_no_op() -> None:
    import anyio

    from skillshelf.mcp import serve_http
    from skillshelf.mcp.http import PATH, listen

    app = no_op().streamable_http_app(streamable_http_path=PATH, json_response=True)
    listening = listen("127.0.0.1", 0)
    print(f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}", file=sys.stderr, flush=True)
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
