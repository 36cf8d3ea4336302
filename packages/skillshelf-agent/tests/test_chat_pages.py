"""Long texts in the chat: a review and a diff are read page by page, and the question stays in sight."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool
from terminals import PAGER

Write = Callable[..., Path]

STEPS = "".join(f"Step {number} of the work.\n" for number in range(1, 101))


def test_a_long_review_opens_in_the_pager(tmp_path: Path, write: Write) -> None:
    """Closing it leads to the question, with the heading of the skill above it."""
    write("work/pdf", "Fill in forms.", STEPS)
    chat = OnTerminal("--model", script(tmp_path), cwd=tmp_path / "work", rows=24, env=PAGER)
    chat.expect("[r]eview them now")
    chat.send("r")
    chat.expect("Step 100 of the work.")
    chat.expect("(end)")
    chat.send("\r")
    chat.expect("Trust pdf as it is now?")
    chat.send("y")
    chat.expect("approved pdf")
    chat.send("\x04")
    assert chat.end() == 0


def test_a_long_diff_leaves_the_question_in_sight(tmp_path: Path) -> None:
    """The rest of it is a key away."""
    model = script(tmp_path, tool("write_file", path="steps.txt", content=STEPS), "Written.")
    chat = OnTerminal("--model", model, cwd=tmp_path, rows=24, env=PAGER)
    chat.expect("›")
    chat.send("write the steps\r")
    shown = chat.see("Allow write_file?")
    assert "+Step 1 of the work." in shown
    assert "[v]iew all of it" in shown
    assert "+Step 50 of the work." not in shown
    chat.send("v")
    chat.expect("+Step 50 of the work.")
    chat.expect("(end)")
    chat.send("\r")
    chat.expect("Allow write_file?")
    chat.send("y")
    chat.expect("Written.")
    chat.send("\x04")
    assert chat.end() == 0
    assert (tmp_path / "steps.txt").read_text() == STEPS


@pytest.mark.skipif(shutil.which("less") is None, reason="needs less")
def test_less_shows_colours_and_gives_the_screen_back(tmp_path: Path) -> None:
    model = script(tmp_path, tool("run_command", command="seq 1 5000"), "Done.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path, rows=20, env={"PAGER": "", "MANPAGER": ""})
    chat.see_idle()
    chat.send("go\r")
    chat.see("Done.")
    chat.see_idle()
    chat.send("\x0f")
    shown = chat.see("\n12\n")
    assert "run_command seq 1 5000" in shown
    assert "ESC[" not in shown
    chat.send("G")
    chat.see("\n5000\n")
    chat.send("q")
    chat.see("Done.")
    chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0
