"""Measure how long a host waits for `skillshelf serve`: from starting the process to its answer to `initialize`.

    python -m benchmarks.mcp_start

It takes turns with a server of the same SDK that has one tool and does nothing. Python finds the bytecode of every
module, as after an installation with pip, except in the last row: there it compiles all of them, as on the first start
after an installation with uv.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.clock import bytecode_environment
from benchmarks.report import HEADINGS, Row, aligned

_WALL = "mcp: a process starts and answers initialize over stdio"
_CPU = "mcp: the same, CPU"
_COMPILING = "mcp: the same without bytecode, CPU"
ROWS = (_WALL, _CPU, _COMPILING)
# Codex and Claude Code begin their first turn without a server that is late.
_MOST = 1.15
_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
_BARE = """
import anyio
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[types.Tool(name="nothing", input_schema={"type": "object"})])

async def main():
    server = Server("bare", on_list_tools=list_tools)
    async with stdio_server() as (source, sink):
        await server.run(source, sink, server.create_initialization_options())

anyio.run(main)
"""


class Start(NamedTuple):
    """What one start took, in seconds."""

    wall: float
    cpu: float


def measure(pairs: int) -> list[Row]:
    """Return a row for each of `ROWS`, from as many starts of either server in turn."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-start-") as folder:
        workspace = Path(folder, "workspace")
        _write_skill(workspace)
        bare = [sys.executable, "-c", _BARE]
        ours = [sys.executable, "-m", "skillshelf", "serve", "-C", str(workspace)]
        with_bytecode = bytecode_environment(f"{folder}/bytecode")
        without = {**bytecode_environment(f"{folder}/empty"), "PYTHONDONTWRITEBYTECODE": "1"}

        _take_turns((ours, bare), with_bytecode, 1)  # compiles everything
        warm = _take_turns((ours, bare), with_bytecode, pairs)
        cold = _take_turns((ours, bare), without, max(1, pairs // 3))

    against = "a bare server of the SDK"
    return [
        Row(_WALL, _wall(warm[0]), against=against, other=_wall(warm[1]), most_ratio=_MOST),
        Row(_CPU, _cpu(warm[0]), against=against, other=_cpu(warm[1]), most_ratio=_MOST),
        Row(_COMPILING, _cpu(cold[0]), against=against, other=_cpu(cold[1]), most_ratio=_MOST),
    ]


def _write_skill(workspace: Path) -> None:
    folder = workspace / ".skillshelf" / "skills" / "bench"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: bench\ndescription: For measuring.\n---\n\nGo.\n")


def _take_turns(commands: Sequence[list[str]], environment: dict[str, str], rounds: int) -> list[list[Start]]:
    starts: list[list[Start]] = [[] for _ in commands]
    for _ in range(rounds):
        for command, taken in zip(commands, starts, strict=True):
            taken.append(_start(command, environment))
    return starts


def _start(command: list[str], environment: dict[str, str]) -> Start:
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        wall = time.perf_counter() - began
        if b'"serverInfo"' not in answer:
            raise AssertionError(f"a wrong answer: {answer[:200]!r}")
        return Start(wall, _cpu_seconds(process.pid))
    finally:
        process.kill()
        process.communicate()


def _cpu_seconds(process: int) -> float:
    """Return the time all threads of a process have run, which the kernel counts in nanoseconds."""
    threads = Path(f"/proc/{process}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def _wall(starts: Sequence[Start]) -> float:
    return statistics.median(start.wall for start in starts)


def _cpu(starts: Sequence[Start]) -> float:
    return statistics.median(start.cpu for start in starts)


if __name__ == "__main__":
    print(aligned(HEADINGS, [row.cells() for row in measure(15)]))
