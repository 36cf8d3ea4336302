"""A whole session on a pseudo-terminal."""

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from skillshelf.agent.sessions import Sessions

Write = Callable[..., Path]


def test_a_session_from_review_to_farewell(tmp_path: Path, write: Write) -> None:
    """A fresh clone is reviewed, a skill is completed and applied, a write is approved by one key, and it ends."""
    write("work/pdf", "Fill in forms.", "Fill in every field.\n")
    model = script(
        tmp_path, "The form is **filled in**.", tool("write_file", path="out.txt", content="done\n"), "Written."
    )
    chat = OnTerminal("--model", model, cwd=tmp_path / "work")
    chat.expect("have not approved")
    chat.expect("pdf (new)")
    chat.expect("[r]eview them now")
    chat.send("r")
    chat.expect("Fill in every field.")
    chat.expect("Trust pdf as it is now?")
    chat.send("y")
    chat.expect("›")
    chat.send("/skills:pd\t")
    chat.expect("~")
    chat.send("\t form.pdf\r")
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
    """The command ends, the prompt comes back, and what follows is answered."""
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
    """A question in between does not take the key away."""
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


def test_ctrl_c_stops_a_command_and_the_chat_goes_on(tmp_path: Path) -> None:
    """A summary that never comes: the prompt is back, and the conversation is as it was."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        said: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart("word " * 500)]),
            ModelResponse(parts=[TextPart("word " * 500)]),
        ]
        with Sessions(str(tmp_path)).create() as session:
            session.append(said * 4)
        words = ("--base-url", address, "--model", "x", "--resume")
        chat = OnTerminal(*words, cwd=tmp_path, env={"SKILLSHELF_WINDOW": "4000"})
        chat.expect("›")
        chat.send("/compact\r")
        chat.expect("asked for a summary")
        silent.accept()
        chat.send("\x03")
        chat.expect("stopped")
        chat.expect("›")
        chat.send("/model\r")
        chat.expect("openai-chat:x")
        chat.expect("›")
        chat.send("\x04")
        assert chat.end() == 0
    with Sessions(str(tmp_path)).open() as again:
        assert again.messages == said * 4


def test_a_skill_that_cannot_be_approved_is_not_asked_about(tmp_path: Path, write: Write) -> None:
    """It is said why, the next one is asked about, and the chat goes on."""
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


def test_a_skill_that_changes_while_it_is_reviewed_stays_out(tmp_path: Path, write: Write) -> None:
    """The yes was for what was shown; it is said, and the chat goes on."""
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


def test_questions_of_calls_side_by_side_come_one_after_the_other(tmp_path: Path) -> None:
    """And what another call gave meanwhile is shown after the answer, not in the middle of the question."""
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


def test_a_session_that_was_killed_is_resumed(tmp_path: Path) -> None:
    """What was said before the kill is there after it."""
    chat = OnTerminal("--model", script(tmp_path, "The answer is 42.", "never"), cwd=tmp_path)
    chat.expect("›")
    chat.send("what is the answer?\r")
    chat.expect("42")
    chat.expect("›")
    os.kill(chat.pid, signal.SIGKILL)
    chat.end()
    again = OnTerminal("--model", script(tmp_path, "As I said."), "--resume", cwd=tmp_path)
    again.expect("›")
    again.send("/export said.md\r")
    again.expect("Written to said.md")
    again.expect("›")
    again.send("\x04")
    assert again.end() == 0
    assert "The answer is 42." in (tmp_path / "said.md").read_text()


def test_history_is_there_across_sessions(tmp_path: Path) -> None:
    """The arrow brings back what was typed before."""
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
