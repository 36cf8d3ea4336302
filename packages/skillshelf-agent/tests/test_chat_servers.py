"""MCP servers of the user's settings in a chat on a pseudo-terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs the extra `mcp`")
pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool
from prepared import SKILLSHELF

SERVER = str(Path(__file__).with_name("mcp_tools_server.py"))


@pytest.fixture
def gate(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file that the only server of the settings waits for before it starts."""
    config = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    gate = config / "gate"
    (config / "skillshelf").mkdir()
    (config / "skillshelf" / "config.toml").write_text(
        f"[mcp.kit]\ncommand = '{sys.executable}'\nargs = ['{SERVER}', 'waits', '{gate}']\nstart_seconds = 600\n"
    )
    return gate


def test_a_message_says_which_server_it_waits_for(tmp_path: Path, gate: Path) -> None:
    """Escape stops the wait, and a later message is answered with the tools of the server."""
    model = script(tmp_path, tool("kit__add", left=20, right=22), "Done.")
    terminal = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    terminal.see_idle()
    terminal.send("go\r")
    assert "thinking" not in terminal.see("waiting for the MCP server kit")
    terminal.send("\x1b")
    terminal.see("■ stopped")
    terminal.see_idle()

    terminal.send("go on\r")
    terminal.see("waiting for the MCP server kit")
    gate.touch()
    screen = terminal.see("Done.")
    assert "● kit__add 20  42" in screen
    assert "waiting for" not in terminal.see_idle()
    terminal.send("\x04")
    assert terminal.end() == 0


def test_a_restart_of_a_server_can_be_stopped(tmp_path: Path, gate: Path) -> None:
    """The prompt is there again, and the server goes on starting."""
    gate.touch()
    terminal = OnTerminal("--model", script(tmp_path, "Done."), cwd=tmp_path)
    terminal.see_idle()
    terminal.send("/mcp restart kit\r")
    terminal.see("add, environment")
    terminal.see_idle()
    gate.unlink()
    terminal.send("/mcp restart kit\r")
    terminal.see("waiting for the MCP server kit")
    terminal.send("\x1b")
    terminal.see("■ stopped")
    terminal.see_idle()
    terminal.send("\x04")
    assert terminal.end() == 0


def test_a_pipe_names_a_server_that_it_waits_for(tmp_path: Path, gate: Path) -> None:
    """The wait is a line on standard error, and the answer follows."""
    command = [*SKILLSHELF, "chat", "-p", "go", "--model", script(tmp_path, "Done.")]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "[waiting for the MCP server kit]\n"
        gate.touch()
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (0, "Done.\n", "")
