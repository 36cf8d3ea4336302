"""`skillshelf serve` as somebody starts it: what it says, and what it needs."""

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra skillshelf[mcp]")

from mcp import Client

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]
SERVE = [sys.executable, "-m", "skillshelf", "serve"]


def test_a_port_that_is_taken_is_named(tmp_path: Path, run: Run) -> None:
    """With what to do about it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, told = run("serve", "-C", str(tmp_path), "--http", "--port", str(port))
    assert code == 1
    assert f"cannot listen on 127.0.0.1:{port}: " in told
    assert "Choose another one with --port" in told


def test_a_wrong_option_is_told_with_the_usage_of_the_command(run: Run) -> None:
    """Not with that of the whole program."""
    code, _, told = run("serve", "--nope")
    assert code == 2
    assert told.startswith("usage: skillshelf serve ")
    assert "unrecognized arguments: --nope" in told


def test_an_edit_that_waits_for_the_person_is_told_while_it_serves(tmp_path: Path, write: Write) -> None:
    """Else its author would wonder why nothing changes; and the advice can be pasted, whatever the folder's name."""
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
        told = process.stderr.readline()
    finally:
        process.kill()
        process.communicate()
    assert told.startswith("Not served, because you have not approved them as they are now: late.")
    assert f"`skillshelf trust -C '{folder.resolve()}'`" in told


async def ask(url: str) -> None:
    """The server looks at the folder, though no watcher may have told it yet."""
    async with Client(url) as client:
        await client.call_tool("list_skills", {})


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_is_closed_ends_nothing(tmp_path: Path, closed: str) -> None:
    """Some supervisors start a program so. It serves all the same."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    line = f'exec "$@" {closed}'
    words = [*SERVE, "-C", str(tmp_path), "--http", "--port", str(port)]
    process = subprocess.Popen(["sh", "-c", line, "sh", *words], stderr=subprocess.DEVNULL)
    try:
        assert reaches(port, process)
    finally:
        process.kill()
        process.wait()


def reaches(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Within a time that no slow machine needs."""
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            time.sleep(0.05)
    return False


def test_without_standard_input_it_ends_as_at_its_end(tmp_path: Path) -> None:
    """There is nobody to serve over a pipe that was never there."""
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *SERVE, "-C", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert "Traceback" not in done.stderr
