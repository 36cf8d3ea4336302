"""The question before a tool runs, on a real terminal and with the keys that a person presses."""

from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool

from skillshelf.agent import can_confine


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))


def start(
    folder: Path, *commands: str, options: tuple[str, ...] = (), columns: int = 100, rows: int = 40
) -> OnTerminal:
    """Return a chat whose model runs these commands, each after a question."""
    model = script(folder, *(tool("run_command", command=command) for command in commands), "Done.")
    terminal = OnTerminal("--model", model, *options, cwd=folder, columns=columns, rows=rows)
    terminal.see_idle()
    terminal.send("go\r")
    return terminal


def leave(terminal: OnTerminal) -> None:
    terminal.see("Done.")
    terminal.see_idle()
    terminal.send("\x04")
    assert terminal.end() == 0


@pytest.mark.skipif(not can_confine(), reason="commands cannot be confined here")
def test_what_a_command_can_do_is_listed_once(tmp_path: Path) -> None:
    """Later questions have a sentence instead, and fit on a small screen."""
    terminal = start(tmp_path, "echo one", "echo two", columns=40, rows=12)
    terminal.expect("It can write in this folder only. Still")
    terminal.expect("open: ")
    terminal.expect("Allow run_command?")
    terminal.send("y")
    terminal.expect("echo two")
    sentence = terminal.expect("Allow run_command?")
    assert "It can write in this folder only, read" in sentence
    assert "open: " not in sentence
    screen = terminal.see("[p]ermanently")
    assert "echo two" in screen
    terminal.send("y")
    leave(terminal)


def test_each_question_says_that_a_command_is_not_confined(tmp_path: Path) -> None:
    """Not only the first one."""
    terminal = start(tmp_path, "echo one", "echo two", options=("--no-sandbox",))
    for _ in range(2):
        terminal.expect("It can do everything you can do")
        terminal.expect("Allow run_command?")
        terminal.send("y")
    leave(terminal)


def test_the_words_of_an_answer_stay_on_the_screen(tmp_path: Path) -> None:
    """They are those that the question offered."""
    terminal = start(tmp_path, "echo one", "echo two", "date")
    for key, words in (("a", "always"), ("p", "permanently"), ("r", "refuse and say why")):
        terminal.expect("[p]ermanently")
        terminal.send(key)
        assert terminal.expect(words).split("\n")[-1].strip() == words
    terminal.expect("What should the model know?")
    terminal.send("not today\r")
    leave(terminal)
