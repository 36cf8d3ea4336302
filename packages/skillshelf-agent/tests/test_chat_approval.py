"""The question before a tool runs, on a real terminal and with the keys that a person presses."""

from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool
from skillshelf.sandbox import find_sandbox
from terminals import PAGER


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


@pytest.mark.skipif(not find_sandbox(), reason="there is no sandbox here")
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


def test_each_question_says_that_a_command_is_not_sandboxed(tmp_path: Path) -> None:
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


def test_a_write_without_a_question_shows_its_diff(tmp_path: Path) -> None:
    """The first and last lines are on the screen when it happens, and Ctrl+O shows the rest."""
    (tmp_path / "app.py").write_text("one\ntwo\nthree\n")
    new_file = "".join(f"line {number}\n" for number in range(40))
    model = script(
        tmp_path,
        tool("edit_file", path="app.py", old_text="two", new_text="\x1b[2Jtoo"),
        tool("write_file", path="new.txt", content=new_file),
        "Done.",
    )
    terminal = OnTerminal("--model", model, "--policy", "auto-edit", cwd=tmp_path, rows=60, env=PAGER)
    terminal.see_idle()
    terminal.send("go\r")
    terminal.see("Done.")
    screen = terminal.see_idle()
    assert "● edit_file app.py  +1 −1\n" in screen
    assert "  │ 2 -two\n  │ 2 +<U+001B>[2Jtoo\n" in screen
    assert "● write_file new.txt  +40\n  │    @@ -0,0 +1,40 @@\n  │  1 +line 0\n" in screen
    assert "  │ … 29 more lines: Ctrl+O shows all …\n" in screen
    assert "+line 20" not in screen
    assert "  │ 40 +line 39\n" in screen
    terminal.send("\x0f")
    assert "+line 20" in terminal.see("(end)")
    terminal.send("\r")
    leave(terminal)


def test_a_change_that_the_user_allowed_is_not_shown_again(tmp_path: Path) -> None:
    """With `always`, the next ones are."""
    writes = [tool("write_file", path=name, content=f"text of {name}\n") for name in ("a.txt", "b.txt")]
    terminal = OnTerminal("--model", script(tmp_path, *writes, "Done."), cwd=tmp_path)
    terminal.see_idle()
    terminal.send("go\r")
    terminal.see("Allow write_file?")
    terminal.send("a")
    terminal.see("Done.")
    screen = terminal.see_idle()
    assert screen.count("+text of a.txt") == 1
    assert "● write_file b.txt  +1\n  │   @@ -0,0 +1 @@\n  │ 1 +text of b.txt\n" in screen
    leave(terminal)


def test_shift_tab_goes_through_the_policies(tmp_path: Path) -> None:
    """Also while the model works: the next call follows the new one. No number of presses leads to yolo."""
    wait = tool("run_command", command="echo begun; until [ -e typed ]; do sleep 0.05; done")
    model = script(tmp_path, wait, tool("write_file", path="a.txt", content="x\n"), "Done.")
    terminal = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    terminal.see("· yolo ·")
    terminal.see_idle()
    terminal.send("go\r")
    terminal.see("│ begun")  # it was allowed before the policy changes
    for mode in ("ask", "auto-edit", "read-only", "ask", "auto-edit"):
        terminal.send("\x1b[Z")
        terminal.see(f"· {mode} ·")
    (tmp_path / "typed").touch()
    assert "● write_file a.txt  +1\n" in terminal.see("Done.")
    leave(terminal)


def test_an_answered_question_stays_broken_between_words(tmp_path: Path) -> None:
    """The keys that it offered can be read on a narrow screen, too."""
    terminal = start(tmp_path, "echo one", columns=46)
    terminal.see("[p]ermanently")
    terminal.send("y")
    terminal.see("Done.")
    screen = terminal.see_idle()
    for label in ("[y]es", "[n]o", "[r]efuse", "[a]lways", "[p]ermanently"):
        assert label in screen
    leave(terminal)
