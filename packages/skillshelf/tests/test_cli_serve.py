"""Start `skillshelf serve` as a user does, and check its messages and requirements."""

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra skillshelf[mcp]")

from mcp import Client, StdioServerParameters, types
from mcp.client.stdio import stdio_client

import prepared

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
SERVE = [sys.executable, "-m", "skillshelf", "serve"]


def test_a_port_in_use_is_reported(tmp_path: Path, run: Run) -> None:
    """The message suggests another port."""
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        port = occupied.getsockname()[1]
        code, _, message = run("serve", "-C", str(tmp_path), "--http", "--port", str(port))
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}: " in message
    assert "Choose another one with --port" in message


def test_the_listing_follows_the_settings_and_the_options(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the chat, an option counts before the settings."""
    write("pdf", body="Read the form first.\n")
    monkeypatch.setenv("SKILLSHELF_DISCLOSURE", "catalog")
    options = ["serve", "-C", str(tmp_path), "--trust-workspace"]
    assert "<instructions>" not in read_listing(options)
    assert "Read the form first." in read_listing([*options, "--disclosure", "full"])
    small = read_listing([*options, "--disclosure", "auto", "--budget", "20"])
    assert "<available_skills>" not in small


def read_listing(options: list[str]) -> str:
    """Return the resource `skill://listing` of a server with these options."""

    async def main() -> str:
        program, *arguments = prepared.command(*options)
        server = StdioServerParameters(command=program, args=arguments, env=dict(os.environ))
        async with Client(stdio_client(server)) as client:
            [contents] = (await client.read_resource("skill://listing")).contents
            assert isinstance(contents, types.TextResourceContents)
            return contents.text

    return asyncio.run(main())


def test_version_1_of_the_sdk_is_too_old(tmp_path: Path) -> None:
    """Other frameworks install it. The message says what to install, as it does without any."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("class ClientSession: ...\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(SERVE, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "is missing or too old. Run: pip install 'skillshelf[mcp]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_disclosure_is_refused(run: Run) -> None:
    """The message names the forms."""
    code, _, message = run("serve", "--disclosure", "all")
    assert code == 2
    assert "it must be one of auto, catalog, full" in message


def test_a_wrong_option_shows_the_usage_of_the_command(run: Run) -> None:
    """The usage of the whole program would not help."""
    code, _, message = run("serve", "--nope")
    assert code == 2
    assert message.startswith("usage: skillshelf serve ")
    assert "unrecognized arguments: --nope" in message


def test_an_edit_that_needs_approval_is_reported_while_serving(tmp_path: Path, write: Write) -> None:
    """Otherwise its author would wonder why nothing changes. The advice can be pasted for any folder name."""
    folder = tmp_path / "a b"
    folder.mkdir()
    process = subprocess.Popen(
        [*SERVE, "-C", str(folder), "--http", "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert process.stderr
    try:
        [url] = re.findall(r"http://\S+", process.stderr.readline())
        (folder / "late").mkdir()
        (folder / "late" / "SKILL.md").write_text("---\nname: late\ndescription: Late.\n---\nBody.\n")
        asyncio.run(ask(url))
        message = process.stderr.readline()
    finally:
        process.kill()
        process.communicate()
    assert message.startswith("late is waiting for your review, and can't be used until then.")
    assert f"`skillshelf trust -C '{folder.resolve()}'`" in message


async def ask(url: str) -> None:
    """Make the server check the folder, because a watcher may not have seen the edit yet."""
    async with Client(url) as client:
        await client.call_tool("list_skills", {})


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_the_server_runs_with_a_closed_standard_stream(tmp_path: Path, closed: str) -> None:
    """Some supervisors start programs this way."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = f'exec "$@" {closed}'
    command = [*SERVE, "-C", str(tmp_path), "--http", "--port", str(port)]
    process = subprocess.Popen(["sh", "-c", line, "sh", *command], stderr=subprocess.DEVNULL)
    try:
        assert reaches(port, process)
    finally:
        process.kill()
        process.wait()


def reaches(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Return True if the port accepts a connection within a time that suffices on any machine."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def test_without_standard_input_the_server_exits(tmp_path: Path) -> None:
    """A pipe that never existed has no client."""
    completed = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *SERVE, "-C", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (completed.returncode, completed.stdout) == (0, "")
    assert "Traceback" not in completed.stderr
