"""Run whole sessions on a pseudo-terminal."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from chats import OnTerminal, script, tool
from skillshelf_agent.sessions import Sessions

Write = Callable[..., Path]


def test_a_session_runs_from_review_to_exit(tmp_path: Path, write: Write) -> None:
    """The user reviews a fresh clone, completes and applies a skill, approves a write with one key, and leaves.

    A name with a typo stays in the prompt.
    """
    write("work/pdf", "Fill in forms.", "Fill in every field.\n")
    model = script(
        tmp_path, "The form is **filled in**.", tool("write_file", path="out.txt", content="done\n"), "Written."
    )
    chat = OnTerminal("--model", model, cwd=tmp_path / "work")
    chat.expect("waiting for your review")
    chat.expect("pdf (new)")
    chat.expect("[r]eview them now")
    chat.send("r")
    chat.expect("Fill in every field.")
    chat.expect("Trust pdf as it is now?")
    chat.send("y")
    chat.expect("›")
    chat.send("/pfd\r")
    chat.expect("Unknown command /pfd. Did you mean /skills:pdf?")
    chat.see("begin with a space.)\n› /pfd")
    chat.send("\x7f\x7fd")
    chat.see("Fill in forms.  ~")
    chat.send("\t")
    chat.see("› /skills:pdf")
    chat.send("form.pdf\r")
    chat.expect("skill pdf")
    chat.expect("filled in")
    chat.expect("›")
    chat.send("write it down\r")
    chat.expect("+done")
    chat.expect("Allow write_file?")
    chat.send("y")
    chat.expect("Written.")
    chat.expect("›")
    chat.send("/exit\r")
    assert chat.end() == 0
    assert (tmp_path / "work/out.txt").read_text() == "done\n"


def test_ctrl_c_stops_the_turn_and_keeps_the_session(tmp_path: Path) -> None:
    """The running command ends, the prompt returns, and the next message is answered."""
    model = script(tmp_path, tool("run_command", command="sleep 60"), "Still here.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    chat.expect("›")
    chat.send("wait\r")
    chat.expect("run_command")
    chat.send("\x03")
    chat.expect("stopped")
    chat.expect("›")
    chat.send("hello?\r")
    chat.expect("Still here.")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0


def test_ctrl_c_stops_the_turn_after_a_question(tmp_path: Path) -> None:
    """A question during the turn does not disable the key."""
    model = script(tmp_path, tool("run_command", command="sleep 60"), "Still here.")
    chat = OnTerminal("--model", model, cwd=tmp_path)
    chat.expect("›")
    chat.send("wait\r")
    chat.expect("Allow run_command?")
    chat.send("y")
    chat.expect("yes")
    chat.expect("run_command")
    chat.send("\x03")
    chat.expect("stopped")
    chat.expect("›")
    chat.send("hello?\r")
    chat.expect("Still here.")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0


def test_ctrl_c_stops_a_command_and_the_chat_continues(tmp_path: Path) -> None:
    """The summary never arrives; the prompt returns, and the conversation is unchanged."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        messages: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart("word " * 500)]),
            ModelResponse(parts=[TextPart("word " * 500)]),
        ]
        with Sessions(str(tmp_path)).create() as session:
            session.append(messages * 4)
        options = ("--base-url", address, "--model", "x", "--resume")
        chat = OnTerminal(*options, cwd=tmp_path, env={"SKILLSHELF_WINDOW": "4000"})
        chat.see_idle()
        chat.send("/compact\r")
        chat.expect("asked for a summary")
        silent.accept()
        chat.send("\x03")
        chat.expect("stopped")
        chat.expect("›")
        chat.send("/model\r")
        chat.expect("openai-chat:x, 4,000 tokens")  # the name alone is in the status line, too
        chat.expect("›")
        chat.send("\x04")
        assert chat.end() == 0
    with Sessions(str(tmp_path)).open() as again:
        assert again.messages == messages * 4


def test_a_skill_that_cannot_be_approved_is_skipped(tmp_path: Path, write: Write) -> None:
    """The reason is shown, the review continues with the next skill, and so does the chat."""
    write("work/bad")
    os.mkfifo(tmp_path / "work/bad/pipe")
    write("work/good")
    chat = OnTerminal("--model", script(tmp_path, "Hello."), cwd=tmp_path / "work")
    chat.expect("[r]eview them now")
    chat.send("r")
    chat.expect("it is a FIFO")
    chat.expect("bad cannot be trusted")
    chat.expect("Trust good as it is now?")
    chat.send("y")
    chat.expect("›")
    chat.send("hi\r")
    chat.expect("Hello.")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0


def test_an_edit_at_an_idle_prompt_is_announced_at_once(tmp_path: Path, write: Write) -> None:
    pytest.importorskip("watchfiles")
    write("mine/pdf")
    chat = OnTerminal("--model", script(tmp_path), "--trust-workspace", cwd=tmp_path / "mine")
    chat.see_idle()
    edits = iter(range(1000))
    chat.wait_until(lambda: bool(write("mine/pdf", f"Edit {next(edits)}.")) and "changed pdf" in chat.raw)
    chat.send("\x04")
    assert chat.end() == 0


def test_a_skill_that_changes_during_its_review_is_not_approved(tmp_path: Path, write: Write) -> None:
    """The approval covered only the displayed version. The change is reported, and the chat continues."""
    write("work/pdf")
    chat = OnTerminal("--model", script(tmp_path, "Hello."), cwd=tmp_path / "work")
    chat.expect("[r]eview them now")
    chat.send("r")
    chat.expect("Trust pdf as it is now?")
    write("work/pdf", "Other words.")
    chat.send("y")
    chat.expect("changed")
    chat.expect("[r]eview them now")
    chat.send("l")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0


def test_questions_of_concurrent_calls_come_one_at_a_time(tmp_path: Path) -> None:
    """The result of another call appears after the answer, not in the middle of the question."""
    calls = [tool("run_command", command="echo first"), tool("run_command", command="echo second")]
    model = script(tmp_path, [*calls, tool("list_directory", path=".")], "Both ran.")
    chat = OnTerminal("--model", model, cwd=tmp_path)
    chat.expect("›")
    chat.send("go\r")
    chat.expect("Allow run_command?")
    with pytest.raises(AssertionError, match="did not appear"):
        chat.expect("● list_directory", seconds=1)
    chat.send("y")
    chat.expect("command: echo second")
    chat.expect("Allow run_command?")
    chat.send("y")
    chat.expect("Both ran.")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0


def test_a_killed_session_can_be_resumed(tmp_path: Path) -> None:
    """The conversation before the kill is still there."""
    chat = OnTerminal("--model", script(tmp_path, "The answer is 42.", "never"), cwd=tmp_path)
    chat.expect("›")
    chat.send("what is the answer?\r")
    chat.see("42")
    chat.see_idle()
    os.kill(chat.pid, signal.SIGKILL)
    chat.end()
    again = OnTerminal("--model", script(tmp_path, "As I said."), "--resume", cwd=tmp_path)
    again.see_idle()
    again.send("/export said.md\r")
    again.expect("Written to said.md")
    again.expect("›")
    again.send("\x04")
    assert again.end() == 0
    assert "The answer is 42." in (tmp_path / "said.md").read_text()


def test_input_history_spans_sessions(tmp_path: Path) -> None:
    """The up arrow recalls earlier input."""
    first = OnTerminal("--model", script(tmp_path, "one"), cwd=tmp_path)
    first.expect("›")
    first.send("a remarkable question\r")
    first.expect("one")
    first.expect("›")
    first.send("\x04")
    first.end()
    second = OnTerminal("--model", script(tmp_path, "two"), cwd=tmp_path)
    second.expect("›")
    second.send("\x1b[A")
    second.expect("a remarkable question")
    second.send("\r")
    second.expect("two")
    second.expect("›")
    second.send("\x04")
    assert second.end() == 0


def test_a_hostile_answer_does_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    """Escapes in text, in tool arguments and in results are written out."""
    evil = "\x1b[2J\x1b]0;owned\x07\x9b31m"
    model = script(tmp_path, tool("run_command", command=f"printf '{evil}'"), f"Look {evil} here.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    chat.expect("›")
    chat.send("go\r")
    chat.expect("Look")
    chat.expect("here.")
    chat.expect("›")
    chat.send("\x04")
    chat.end()
    assert "\x1b]0;owned" not in chat.raw
    assert "\x9b31m" not in chat.raw
    assert "<U+001B>" in chat.raw
