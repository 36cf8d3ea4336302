"""Test the start of a chat on a pseudo-terminal: the prompt comes first, and the agent behind it."""

import os
import signal
import termios
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, chat, script

Write = Callable[..., Path]
GATE = """
import os
import sys

HEAVY = {
    "markdown_it", "openai", "pydantic", "pydantic_ai", "pygments", "rapidfuzz",
    "skillshelf_agent._core", "skillshelf_agent.terminal._terminal", "skillshelf.slash", "skillshelf.trust",
}
of_the_installation = set(sys.modules)


class Gate:
    def find_spec(self, name, path=None, target=None):
        if name in HEAVY:
            sys.meta_path.remove(self)
            with open(os.environ["GATE"] + ".modules", "w") as file:
                file.write("\\n".join(set(sys.modules) - of_the_installation))
            open(os.environ["GATE"]).read()


sys.meta_path.insert(0, Gate())
"""


class Gate:
    """Holds a chat back at its first heavy import, until it is opened."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(GATE)
        self._path = folder / "gate"
        os.mkfifo(self._path)
        self.env = {"GATE": str(self._path), "PYTHONPATH": str(folder)}

    def open(self) -> None:
        """Let the imports go on. Waits until the chat is at the gate."""
        self._path.write_text("")

    def list_modules(self) -> set[str]:
        """Return the modules that were imported before the first heavy one. To be read after the gate was opened."""
        return set(Path(f"{self._path}.modules").read_text().splitlines())


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path / "gate")


def test_the_prompt_needs_only_prompt_toolkit_and_rich(tmp_path: Path, gate: Gate) -> None:
    """The prompt is on the screen, and takes keys, while the first heavy import is held back."""
    terminal = OnTerminal("--model", script(tmp_path, "Done."), cwd=tmp_path, env=gate.env)
    terminal.see(" starting…")
    terminal.send("hel")
    terminal.see("› hel")
    gate.open()
    terminal.see("/help")
    modules = gate.list_modules()
    libraries = {module.partition(".")[0] for module in modules} & set(packages_distributions())
    assert libraries - {"coverage", "skillshelf"} == {"prompt_toolkit", "rich", "wcwidth"}
    assert "skillshelf_agent.terminal._footer" in modules
    terminal.send("lo\r")
    terminal.see("› hello")
    terminal.see("Done.")
    terminal.see_idle()
    terminal.send("\x04")
    assert terminal.end() == 0


def test_lines_sent_before_the_agent_is_ready_are_answered_in_order(tmp_path: Path, gate: Gate) -> None:
    """They wait visibly, and Ctrl+C gives them back."""
    terminal = OnTerminal("--model", script(tmp_path, "First answer.", "Second answer."), cwd=tmp_path, env=gate.env)
    terminal.see(" starting…")
    terminal.send("one\r")
    terminal.see("queued: one")
    terminal.send("\x03")
    terminal.see_no("queued")
    terminal.see("› one")
    terminal.send("\r")
    terminal.see("queued: one")
    terminal.send("two\r")
    terminal.see("queued: two")
    gate.open()
    screen = terminal.see("Second answer.")
    assert screen.index("› one") < screen.index("First answer.") < screen.index("› two")
    terminal.see_idle()
    terminal.send("/exit\r")
    assert terminal.end() == 0


def test_the_review_and_the_menu_come_when_the_agent_is_ready(tmp_path: Path, write: Write, gate: Gate) -> None:
    """A command that was typed before opens the menu then, and its letters answer no question."""
    write("work/pdf")
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path / "work", env=gate.env)
    terminal.see(" starting…")
    terminal.send("/mod")
    terminal.see("› /mod")
    gate.open()
    terminal.see("Tab answers the question")
    terminal.see("/model")
    terminal.send("\tl")
    terminal.see_no("Tab answers the question")
    terminal.send("\x15\x04")
    assert terminal.end() == 0


@pytest.mark.parametrize("keys", ["\x04", "\x03\x03"])
def test_leaving_before_the_agent_is_ready(tmp_path: Path, gate: Gate, keys: str) -> None:
    """The chat ends without a greeting."""
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path, env=gate.env)
    terminal.see(" starting…")
    terminal.send("x")
    terminal.see("› x")
    terminal.send("\x7f" + keys)
    gate.open()
    assert terminal.end() == 0
    assert "/help" not in terminal.screen()


def test_a_signal_before_the_agent_is_ready_ends_the_chat(tmp_path: Path, gate: Gate) -> None:
    """The terminal is as it was."""
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path, env=gate.env)
    terminal.see(" starting…")
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.see_no("starting")
    gate.open()
    terminal.wait_until(lambda: bool(terminal.local_flags() & termios.ECHO))
    assert terminal.end() == 128 + signal.SIGTERM


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--model", "script:nowhere.json"], id="a missing script"),
        pytest.param(["--model", "anthropic:"], id="a model without a name"),
        pytest.param(["--resume", "nowhere", "--model"], id="an unknown session"),
        pytest.param(["--frozen", "--model"], id="frozen"),
        pytest.param(["--mcp", "nowhere", "--model"], id="an unknown server"),
    ],
)
def test_an_error_at_the_start_is_reported_as_without_a_terminal(
    tmp_path: Path, write: Write, options: list[str]
) -> None:
    """The prompt goes away; the message and the exit code are the same."""
    write("work/pdf")
    if options[-1] == "--model":
        options = [*options, script(tmp_path)]
    expected = chat(*options, "-p", "hi", cwd=tmp_path / "work")
    assert expected.returncode > 0

    terminal = OnTerminal(*options, cwd=tmp_path / "work", columns=300)
    assert terminal.end() == expected.returncode
    screen = terminal.screen()
    assert expected.stderr.strip().splitlines()[-1] in screen
    assert "›" not in screen
    assert "starting" not in screen


def test_a_terminal_that_cannot_move_the_cursor_is_told_what_to_use(tmp_path: Path) -> None:
    """A chat draws its screen anew with every key. One message and its answer need no such terminal."""
    model = script(tmp_path, "Hello.")
    terminal = OnTerminal("--model", model, cwd=tmp_path, env={"TERM": "dumb"})
    assert terminal.end() == 2
    assert "TERM=dumb" in terminal.raw
    assert "skillshelf chat -p" in terminal.raw
    assert "\x1b" not in terminal.raw

    terminal = OnTerminal("--model", model, "-p", "Hi.", cwd=tmp_path, env={"TERM": "dumb"})
    assert terminal.end() == 0
    assert "Hello." in terminal.raw
    assert "\x1b" not in terminal.raw
