"""Test a chat whose window changes its size, also while another program has it."""

import os
import shlex
import sys
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script
from multiplexer import chat_in_tmux, needs_tmux
from skillshelf_agent.terminal._footer import breaks_lines_anew

EDITOR = """\
import signal, sys, time
from pathlib import Path

resized = []
signal.signal(signal.SIGWINCH, lambda *_: resized.append(1))
print("\\x1b[2J\\x1b[5;1Hthe editor's text\\x1b[1;1H", end="", flush=True)
while not Path("seen").exists():
    time.sleep(0.05)
"""


@needs_tmux
def test_a_window_that_gets_narrower_shows_the_footer_once(tmp_path: Path) -> None:
    """The terminal breaks the typed text anew, and no part of the footer stays as a copy.

    Nothing is at work meanwhile: a line that the chat wrote just before it learned of the new width can stay.
    """
    long_answer = "\n\n".join(f"Paragraph {number}." for number in range(40))
    model = script(tmp_path, long_answer)
    with chat_in_tmux("--model", model, "--policy", "yolo", cwd=tmp_path, columns=100, rows=30) as chat:
        chat.see("skill")
        chat.send("begin")
        chat.press("Enter")
        chat.see("Paragraph 39.")
        chat.see("tokens · yolo")
        chat.send("typed text that is longer than the narrow window will be")
        chat.see("window will be\n")

        for columns, mark in ((40, "α"), (90, "β"), (33, "γ"), (60, "δ"), (100, "ε")):
            chat.resize(columns, 30)
            chat.send(mark)
            chat.see(mark)
        chat.see("window will beαβγδε")
        for text in ("typed text", "tokens · yolo", "Paragraph 39."):
            chat.see_once(text)


def test_a_window_that_changes_under_an_editor_is_left_to_it(tmp_path: Path) -> None:
    """The chat neither erases nor draws anything while the user's editor has the terminal."""
    editor = tmp_path / "editor.py"
    editor.write_text(EDITOR)
    command = shlex.join([sys.executable, str(editor)])
    chat = OnTerminal("--model", script(tmp_path, "Done."), cwd=tmp_path, env={"EDITOR": command, "VISUAL": ""})
    chat.see_idle()
    chat.send("half of a line")
    chat.see("› half of a line")
    chat.send("\x07")
    chat.see("the editor's text")
    written = len(chat.raw)
    chat.resize(60, 20)
    chat.settle()
    chat.resize(80, 20)
    chat.settle()
    assert chat.raw[written:] == ""
    (tmp_path / "seen").touch()
    chat.see("› half of a line")
    chat.send("\x15\x04")
    assert chat.end() == 0


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "xterm-256color", "XTERM_VERSION": "XTerm(379)"}, False),
        ({"TERM": "tmux-256color", "TMUX": "x", "XTERM_VERSION": "XTerm(379)"}, True),
        ({"TERM": "screen", "STY": "x"}, False),
        ({"TERM": "rxvt-unicode"}, False),
        ({"TERM": "linux"}, False),
    ],
)
def test_terminals_that_cut_lines_are_known(environment: dict[str, str], expected: bool) -> None:
    """In the few terminals that cut lines off, nothing above the footer may be erased."""
    assert breaks_lines_anew({**environment, "HOME": os.sep}) is expected
