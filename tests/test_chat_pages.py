"""Long texts in the chat: a review and a diff are read page by page, and the question stays in sight."""

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool

Write = Callable[..., Path]

STEPS = "".join(f"Step {number} of the work.\n" for number in range(1, 101))


def test_a_long_review_opens_in_a_pager(tmp_path: Path, write: Write) -> None:
    """Closing it leads to the question, with the heading of the skill above it."""
    write("work/pdf", "Fill in forms.", STEPS)
    chat = OnTerminal("--model", script(tmp_path), cwd=tmp_path / "work", rows=24)
    chat.expect("[r]eview them now")
    chat.send("r")
    chat.expect("lines 1–23 of 113")
    chat.send("G")
    chat.expect("Step 100 of the work.")
    chat.expect("(end)")
    chat.send("q")
    chat.expect("Trust pdf as it is now?")
    chat.send("y")
    chat.expect("approved pdf")
    chat.send("\x04")
    assert chat.end() == 0


def test_a_long_diff_leaves_the_question_in_sight(tmp_path: Path) -> None:
    """The rest of it is a key away."""
    model = script(tmp_path, tool("write_file", path="steps.txt", content=STEPS), "Written.")
    chat = OnTerminal("--model", model, cwd=tmp_path, rows=24)
    chat.expect("›")
    chat.send("write the steps\r")
    shown = chat.see("Allow write_file?")
    assert "+Step 1 of the work." in shown
    assert "[v]iew all of it" in shown
    chat.send("v")
    chat.expect("write_file · lines 1–23 of")
    chat.send("q")
    chat.expect("Allow write_file?")
    chat.send("y")
    chat.expect("Written.")
    chat.send("\x04")
    assert chat.end() == 0
    assert (tmp_path / "steps.txt").read_text() == STEPS
