"""Lines that a user types out of habit, on a pseudo-terminal."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, chat, script, tool

from skillshelf.agent.sessions import Sessions


def sent_messages(folder: Path) -> list[str]:
    """Return the texts of the user's messages in the latest session, as JSON."""
    sessions = Sessions(str(folder))
    with sessions.open(sessions.ids()[0]) as session:
        return [json.dumps(part.content, default=repr) for message in session.messages for part in _prompts(message)]


def _prompts(message: Any) -> list[Any]:
    return [part for part in message.parts if part.part_kind == "user-prompt"]


@pytest.mark.parametrize("word", ["exit", "quit", "/exit", "/quit"])
def test_the_words_that_leave_a_shell_leave_the_chat(tmp_path: Path, word: str) -> None:
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path)
    terminal.expect("›")
    terminal.send(f"{word}\r")
    assert terminal.end() == 0


def test_clear_begins_a_new_session(tmp_path: Path) -> None:
    terminal = OnTerminal("--model", script(tmp_path, "First.", "Second."), cwd=tmp_path)
    terminal.expect("›")
    terminal.send("one\r")
    terminal.expect("First.")
    terminal.expect("›")
    terminal.send("/clear\r")
    terminal.expect("A new session.")
    terminal.expect("›")
    terminal.send("exit now\r")
    terminal.expect("Second.")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    assert sent_messages(tmp_path) == ['"exit now"']


def test_copy_gives_the_last_answer_to_the_terminal(tmp_path: Path) -> None:
    terminal = OnTerminal("--model", script(tmp_path, "Grüße, **Welt**."), cwd=tmp_path)
    terminal.expect("›")
    terminal.send("/copy\r")
    terminal.expect("There is no answer to copy yet.")
    terminal.expect("›")
    terminal.send("hello\r")
    terminal.expect("Welt")
    terminal.expect("›")
    terminal.send("/copy\r")
    terminal.expect("The last answer (16 characters)")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    encoded = base64.b64encode("Grüße, **Welt**.".encode()).decode()
    assert f"\x1b]52;c;{encoded}\x07" in terminal.raw


def test_copy_without_a_terminal_is_refused(tmp_path: Path) -> None:
    model = script(tmp_path, "Done.")
    assert chat("--model", model, "-p", "hello", cwd=tmp_path).returncode == 0
    ran = chat("--model", model, "--continue", "-p", "/copy", cwd=tmp_path)
    assert ran.returncode == 1
    assert "needs a terminal" in ran.stderr


def test_a_message_on_the_command_line_begins_the_chat(tmp_path: Path) -> None:
    terminal = OnTerminal("--model", script(tmp_path, "First.", "Second."), "why?", cwd=tmp_path)
    terminal.expect("› why?")
    terminal.expect("First.")
    terminal.expect("›")
    terminal.send("and then?\r")
    terminal.expect("Second.")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    assert sent_messages(tmp_path) == ['"why?"', '"and then?"']


def test_a_message_without_a_terminal_is_answered_once(tmp_path: Path) -> None:
    ran = chat("--model", script(tmp_path, "Because."), "why?", cwd=tmp_path)
    assert ran.stdout == "Because.\n"


def test_two_messages_on_the_command_line_are_refused(tmp_path: Path) -> None:
    ran = chat("--model", script(tmp_path), "why?", "-p", "how?", cwd=tmp_path)
    assert ran.returncode == 2
    assert "there are two messages" in ran.stderr


def test_init_lets_the_agent_write_guidance_with_approval(tmp_path: Path) -> None:
    write = tool("write_file", path="AGENTS.md", content="# Rules\n")
    terminal = OnTerminal("--model", script(tmp_path, write, "Written."), cwd=tmp_path)
    terminal.expect("›")
    terminal.send("/init the tests\r")
    terminal.expect("+# Rules")
    terminal.expect("Allow write_file?")
    terminal.send("y")
    terminal.expect("Written.")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    assert (tmp_path / "AGENTS.md").read_text() == "# Rules\n"
    (request,) = sent_messages(tmp_path)
    assert "Write an AGENTS.md" in request
    assert "What matters most: the tests" in request
