"""Run `skillshelf serve` as a host does: as a real process, over real pipes."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

from mcp import Client, StdioServerParameters, types

import prepared

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "skillshelf", "serve", "-C", str(folder), *options]


def talk(command: list[str], use: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def main() -> Any:
        server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
        async with Client(server, **options) as client:
            return await use(client)

    return asyncio.run(asyncio.wait_for(main(), 60))


def converse(command: list[str], expected: int, *lines: str) -> tuple[list[dict[str, Any]], str, int]:
    """Send the lines, read the expected number of answers, and leave. Raise if any line of output is not JSON."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(line + "\n" for line in lines))
        process.stdin.flush()
        lines_read = [process.stdout.readline() for _ in range(expected)]
        rest, complaints = process.communicate(timeout=60)
    return [json.loads(line) for line in (*lines_read, *rest.splitlines())], complaints, process.returncode


async def first_text(client: Client, **arguments: Any) -> str:
    result = await client.call_tool("load_skill_instructions", arguments)
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_host_loads_a_skill_and_sees_an_edit(tmp_path: Path, write: Callable[..., Path], mode: str) -> None:
    """The edit is visible after a second at most."""
    path = write("pdf", body="Old.\n", references__forms_md="Fields.")

    async def use(client: Client) -> None:
        assert "Old." in await first_text(client, skill_name="pdf")
        assert await first_text(client, skill_name="pdf", reference="forms.md") == "Fields."
        path.write_text(path.read_text().replace("Old.", "New."))
        await asyncio.sleep(1.1)
        assert "New." in await first_text(client, skill_name="pdf")

    talk(prepared.command("serve", "-C", str(tmp_path), "--trust-workspace"), use, mode=mode)


WITHOUT_WATCHFILES = "import sys; sys.modules['watchfiles'] = None; from skillshelf.cli import main; sys.exit(main())"


@pytest.mark.parametrize("watched", [True, False])
def test_a_host_is_notified_of_a_new_skill(tmp_path: Path, write: Callable[..., Path], watched: bool) -> None:
    """The watcher sees the file, or the server sweeps on its own. The client never has to ask."""
    server_command = command(tmp_path, "--trust-workspace")
    if watched:
        pytest.importorskip("watchfiles", reason="a watcher needs skillshelf[watch]")
    else:
        server_command = [server_command[0], "-c", WITHOUT_WATCHFILES, *server_command[3:]]
    write("pdf")
    methods: list[str] = []

    async def hear(message: Any) -> None:
        methods.append(message.method)

    async def use(client: Client) -> None:
        write("paint")
        for _ in range(500):
            await asyncio.sleep(0.1)
            if len(methods) >= 2:
                return

    talk(server_command, use, mode="legacy", message_handler=hear)
    assert methods == ["notifications/resources/list_changed", "notifications/prompts/list_changed"]


def test_unapproved_skills_are_not_served(tmp_path: Path, write: Callable[..., Path]) -> None:
    """A fresh clone shows none of its text to a host. Standard error tells the user how to approve it."""
    write("pdf", description="From the clone.")
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_skills", "arguments": {}}}
    answers, complaints, code = converse(command(tmp_path), 2, json.dumps(INITIALIZE), json.dumps(ask))
    assert code == 0
    assert "From the clone." not in json.dumps(answers)
    assert "pdf is waiting for your review" in complaints


def test_standard_output_carries_only_the_protocol(tmp_path: Path, write: Callable[..., Path]) -> None:
    """This holds for any input, including invalid requests, which are answered.

    The server exits when the client leaves.
    """
    write("pdf")
    deep = "[" * 100_000 + "]" * 100_000
    request = '{"jsonrpc":"2.0","params":{"id":8,"a":' + deep + '},"id":7,"method":"tools/call"}'
    batch = '[{"jsonrpc":"2.0","id":9,"method":"ping"}]'
    answer = '{"jsonrpc":"2.0","id":10,"result":' + deep + "}"
    ask = "\ufeff" + json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    lines = [json.dumps(INITIALIZE), "no json", deep, request, " ", batch, answer, '{"jsonrpc":"2.0"}', "\0", ask]
    answers, complaints, code = converse(command(tmp_path, "--trust-workspace"), 9, *lines)
    assert code == 0
    assert "MCP over standard input and output" in complaints
    assert sorted(answer["id"] for answer in answers if "result" in answer) == [1, 2]
    assert [(answer["id"], answer["error"]["code"]) for answer in answers if "error" in answer] == [
        (None, -32700),
        (None, -32600),
        (None, -32600),
        (None, -32600),
        (None, -32600),
        (None, -32600),
        (None, -32700),
    ]


def test_an_invalid_request_is_answered(tmp_path: Path) -> None:
    """The sender waits for an answer, unless it is a notification."""
    lines = [
        json.dumps(INITIALIZE),
        '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"x"}',
        '{"jsonrpc":"2.0","id":"six","method":"tools/call","params":{"name":"list_skills","arguments":{"a":"\\ud800"}}}',
        '{"jsonrpc":"2.0","method":"notifications/progress","params":"x"}',
        '{"jsonrpc":"2.0","id":null,"method":"tools/list","params":"x"}',
        '{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list","params":"x"}',
        '{"jsonrpc":"2.0","id":7,"method":"ping"}',
    ]
    answers, _, code = converse(command(tmp_path, "--trust-workspace"), 6, *lines)
    assert code == 0
    assert {answer["id"]: answer.get("error", {}).get("code") for answer in answers} == {
        1: None,
        5: -32600,
        "six": -32600,
        None: -32600,
        7: None,
    }


def test_ten_megabytes_of_arguments_are_refused(tmp_path: Path, write: Callable[..., Path]) -> None:
    """The tool's answer is short and names the argument, and the next call is served."""
    write("pdf", body="Body.\n")

    async def use(client: Client) -> None:
        refused = await client.call_tool("load_skill_instructions", {"skill_name": "x" * 10_000_000})
        assert refused.is_error
        [block] = refused.content
        assert isinstance(block, types.TextContent)
        assert "longer than 1,000,000 characters" in block.text
        assert len(block.text) < 500
        assert "Body." in await first_text(client, skill_name="pdf")

    talk(prepared.command("serve", "-C", str(tmp_path), "--trust-workspace"), use)


LOAD = {"skill_name": "pdf", "reference": "big.md"}


@pytest.mark.parametrize("leave", [lambda process: process.stdin.close(), lambda process: process.stdout.close()])
def test_the_server_ends_if_the_client_does_not_read_its_answers(
    tmp_path: Path, write: Callable[..., Path], leave: Callable[[Any], None]
) -> None:
    """It makes no difference which pipe the client closes, and the exit is clean."""
    write("pdf", references__big_md="abcdefgh" * 100_000)
    pipe = subprocess.PIPE
    server_command = command(tmp_path, "--trust-workspace")
    with subprocess.Popen(server_command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        process.stdout.readline()
        for at in range(50):
            params = {"name": "load_skill_instructions", "arguments": {**LOAD, "offset": 8 * at}}
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": at, "method": "tools/call", "params": params}))
            process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.read(1)  # the server now waits in the middle of an answer longer than the pipe
        leave(process)
        try:
            code = process.wait(30)
        finally:
            process.kill()
        assert code == 0
        assert "Traceback" not in process.stderr.read()


PRINTING = """
import os, sys, anyio
from skillshelf import BaseSkill, Shelf, tool
from skillshelf.mcp import make_server, serve_stdio
from skillshelf.sources import ObjectSource

class Noisy(BaseSkill):
    name, description, instructions, category = "noisy", "Prints.", "Call shout.", "raw"

    @tool
    def shout(self) -> str:
        print("printed", flush=True)
        os.system("echo echoed")
        return repr(sys.stdin.read())

anyio.run(serve_stdio, make_server(Shelf([ObjectSource([Noisy().with_policy({"shout": "safe"})])])))
print("after")
"""


def test_output_of_a_tool_stays_out_of_the_protocol() -> None:
    """It goes to standard error, and the tool reads an empty standard input. Both are restored when the server ends."""
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "shout", "arguments": {}}}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PRINTING], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(INITIALIZE) + "\n" + json.dumps(ask) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        rest, printed = process.communicate(timeout=60)
    assert answers[1]["result"]["content"][0]["text"] == "''"
    assert (printed, rest) == ("printed\nechoed\n", "after\n")


def test_ctrl_c_ends_the_server(tmp_path: Path) -> None:
    """The exit is immediate, although standard input is still open."""
    process = subprocess.Popen(
        command(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == INITIALIZE["id"]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT


def test_the_server_imports_no_agent_library_and_over_a_pipe_no_http(tmp_path: Path) -> None:
    """A host starts the server for every session, so it must start fast."""
    code = (
        "import sys, skillshelf.mcp, skillshelf.cli._serve, skillshelf.shelf.workspace_skills;"
        "print([name for name in ('pydantic_ai', 'prompt_toolkit', 'skillshelf_agent', 'h11') if name in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout == "[]\n"
