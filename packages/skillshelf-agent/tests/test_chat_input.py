"""Lines that a user types out of habit, on a pseudo-terminal."""

import base64
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from pydantic_ai.messages import BinaryContent

from chats import OnTerminal, chat, script, tool
from skillshelf_agent.sessions import Sessions

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


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


def test_a_shell_command_is_shown_and_goes_to_the_model_with_the_next_message(tmp_path: Path) -> None:
    """It runs in the user's shell and environment, in the folder, and not in the agent's sandbox."""
    terminal = OnTerminal(
        "--model", script(tmp_path, "I see."), cwd=tmp_path, env={"SHELL": "/bin/sh", "MY_WORD": "tangerine"}
    )
    terminal.expect("›")
    terminal.send("!pwd; echo $MY_WORD-$((40+2)); exit 3\r")
    terminal.expect("tangerine-42")
    terminal.expect("exit code 3 · the model gets it with your next message")
    terminal.expect("›")
    terminal.send("!!echo not-for-you-$((1+1))\r")
    terminal.expect("not-for-you-2")
    terminal.expect("exit code 0")
    terminal.expect("›")
    terminal.send("what happened?\r")
    terminal.expect("I see.")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    (message,) = sent_messages(tmp_path)
    assert message.startswith('["what happened?"')
    assert "The user ran this command in their own shell" in message
    assert "(exit code 3)" in message
    assert f"| {tmp_path}" in message
    assert "| tangerine-42" in message
    assert "not-for-you" not in message


def test_ctrl_c_ends_a_shell_command_with_everything_it_started(tmp_path: Path) -> None:
    terminal = OnTerminal("--model", script(tmp_path, "I see."), cwd=tmp_path, env={"SHELL": "/bin/sh"})
    terminal.expect("›")
    terminal.send("!echo $$ > pid; sleep 600 & echo waiting-$((1+1)); wait\r")
    terminal.expect("waiting-2")
    terminal.send("\x03")
    terminal.expect("stopped")
    terminal.expect("›")
    group = int((tmp_path / "pid").read_text())
    terminal.wait_until(lambda: not has_group(group))
    terminal.send("and?\r")
    terminal.expect("I see.")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    (message,) = sent_messages(tmp_path)
    assert "(stopped by the user)" in message
    assert "| waiting-2" in message


def has_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_shell_command_that_leaves_a_process_behind_returns_the_prompt(tmp_path: Path) -> None:
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path, env={"SHELL": "/bin/sh"})
    terminal.expect("›")
    terminal.send("!sleep 600 & echo $! > pid; echo begun-$((1+1))\r")
    terminal.expect("begun-2")
    terminal.expect("exit code 0")
    terminal.expect("›")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    terminal.send("exit\r")
    assert terminal.end() == 0


def test_escapes_in_the_output_of_a_shell_command_do_not_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "hostile.txt").write_bytes(b"\x1b]0;owned\x07\x1b[2Jplain \xff\n")
    terminal = OnTerminal("--model", script(tmp_path), cwd=tmp_path, env={"SHELL": "/bin/sh"})
    terminal.expect("›")
    terminal.send("!cat hostile.txt\r")
    terminal.expect("exit code 0")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    assert "owned" not in terminal.raw
    assert "plain" in terminal.raw


def test_without_a_terminal_an_exclamation_mark_is_text(tmp_path: Path) -> None:
    ran = chat("--model", script(tmp_path, "Fine."), "-p", "!touch made", cwd=tmp_path)
    assert ran.stdout == "Fine.\n"
    assert not (tmp_path / "made").exists()
    assert sent_messages(tmp_path) == ['"!touch made"']


def test_a_mentioned_file_is_attached(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "my notes").mkdir(parents=True)
    (work / "app.py").write_text("print('tangerine')\n")
    (work / "my notes/a b.txt").write_text("clementine\n")
    (tmp_path / "outside.txt").write_text("secret\n")
    terminal = OnTerminal("--model", script(tmp_path, "I see."), cwd=work)
    terminal.expect("›")
    terminal.send('compare @app.py, @"my notes/a b.txt" and @../outside.txt\x1b[200~ @my\x1b[201~\r')
    terminal.expect("attached app.py: 1 line, ~")
    terminal.expect("attached my notes/a b.txt: 1 line, ~")
    terminal.expect("@../outside.txt is not a file here")
    terminal.expect("I see.")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    (message,) = sent_messages(work)
    assert "tangerine" in message
    assert "clementine" in message
    assert "secret" not in message


def test_piped_text_attaches_nothing(tmp_path: Path) -> None:
    """Only the words on the command line are the user's."""
    (tmp_path / "a.txt").write_text("tangerine\n")
    (tmp_path / "b.txt").write_text("clementine\n")
    ran = chat("--model", script(tmp_path, "Fine."), "-p", "read @a.txt", cwd=tmp_path, stdin="see @b.txt\n")
    assert ran.returncode == 0
    assert "attached a.txt" in ran.stderr
    (message,) = sent_messages(tmp_path)
    assert "tangerine" in message
    assert "clementine" not in message


def test_an_image_is_pasted_from_the_clipboard(tmp_path: Path) -> None:
    """Words stand for it in the prompt, and Backspace removes them as a whole."""
    (tmp_path / "clipboard.png").write_bytes(PNG)
    programs = tmp_path / "programs"
    programs.mkdir()
    xclip = programs / "xclip"
    xclip.write_text(f"#!/bin/sh\ncase $5 in TARGETS) echo image/png;; *) cat {tmp_path}/clipboard.png;; esac\n")
    xclip.chmod(0o755)
    folder = tmp_path / "work"
    folder.mkdir()
    env = {"DISPLAY": ":0", "WAYLAND_DISPLAY": "", "PATH": f"{programs}:{os.environ['PATH']}"}
    terminal = OnTerminal("--model", script(tmp_path, "A dot."), cwd=folder, env=env)
    terminal.see_idle()
    terminal.send("what is \x16")
    terminal.see("› what is [image #1]")
    terminal.send(" \x16")
    terminal.see("[image #2]")
    terminal.send("\x7f\r")
    terminal.see("attached [image #1]: image/png")
    terminal.see("A dot.")
    terminal.see_idle()
    terminal.send("\x04")
    assert terminal.end() == 0
    sessions = Sessions(str(folder))
    with sessions.open(sessions.ids()[0]) as session:
        [content] = [part.content for message in session.messages for part in _prompts(message)]
    assert [part.data for part in content if isinstance(part, BinaryContent)] == [PNG]


def test_an_image_goes_with_the_message(tmp_path: Path) -> None:
    """By its name in the workspace, and by the absolute path that a terminal inserts for a dropped file."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "shot.png").write_bytes(PNG)
    (tmp_path / "my drop.png").write_bytes(PNG + b"2")
    terminal = OnTerminal("--model", script(tmp_path, "A small square."), cwd=work, columns=200)
    terminal.expect("›")
    dropped = str(tmp_path / "my drop.png").replace(" ", "\\ ")
    terminal.send(f"what is in @shot.png and {dropped} ?\r")
    terminal.expect("attached shot.png: image/png, 1 KiB")
    terminal.expect("my drop.png: image/png, 1 KiB")
    terminal.expect("A small square.")
    terminal.expect("›")
    terminal.send("exit\r")
    assert terminal.end() == 0
    sessions = Sessions(str(work))
    with sessions.open(sessions.ids()[0]) as session:
        (part,) = _prompts(session.messages[0])
    assert [item.data for item in part.content if isinstance(item, BinaryContent)] == [PNG, PNG + b"2"]


def write_editor(folder: Path, commands: str) -> str:
    editor = folder / "my editor"
    editor.write_text(f"#!/bin/sh\n{commands}\n")
    editor.chmod(0o755)
    return f"'{editor}' --wait"


def test_ctrl_g_edits_the_message_in_the_editor(tmp_path: Path) -> None:
    """VISUAL comes before EDITOR, and may have arguments."""
    editor = write_editor(tmp_path, 'test "$1" = --wait && printf "%s and\\nmore\\n" "$(cat "$2")" > "$2"')
    env = {"VISUAL": editor, "EDITOR": "/nonexistent"}
    terminal = OnTerminal("--model", script(tmp_path, "Fine."), cwd=tmp_path, env=env)
    terminal.see_idle()
    terminal.send("first")
    terminal.see("› first")
    terminal.send("\x07")
    terminal.see("first and")
    terminal.see("more")
    terminal.send("\r")
    terminal.see("Fine.")
    terminal.see_idle()
    terminal.send("exit\r")
    assert terminal.end() == 0
    assert sent_messages(tmp_path) == ['"first and\\nmore"']


@pytest.mark.parametrize(
    ("editor", "message"), [("exit 3", "ended with exit code 3"), ("", "which is not a program here")]
)
def test_an_editor_that_fails_leaves_the_text_as_it_was(tmp_path: Path, editor: str, message: str) -> None:
    command = write_editor(tmp_path, editor) if editor else "no-such-editor"
    terminal = OnTerminal("--model", script(tmp_path, "Fine."), cwd=tmp_path, columns=200, env={"VISUAL": command})
    terminal.see_idle()
    terminal.send("first")
    terminal.see("› first")
    terminal.send("\x07")
    terminal.see(message)
    terminal.see("› first")
    terminal.send("\r")
    terminal.see("Fine.")
    terminal.see_idle()
    terminal.send("exit\r")
    assert terminal.end() == 0
    assert sent_messages(tmp_path) == ['"first"']
