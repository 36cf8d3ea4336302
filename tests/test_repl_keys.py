"""Test keys at the prompt, during questions and answers, and keys and signals that end a chat."""

import os
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool

from skillshelf.repl._keyboard import keys_to_text

Write = Callable[..., Path]
SLEEP = tool("run_command", command="echo $$ > pid; exec sleep 60")
UNTIL_TYPED = tool("run_command", command="until [ -e typed ]; do sleep 0.05; done")
"""A command that runs until the test has created the file `typed`."""


def test_keys_typed_before_a_question_do_not_answer_it(tmp_path: Path) -> None:
    """They wait for the next prompt, and the Enter among them does not send it."""
    calls = [UNTIL_TYPED, tool("run_command", command="touch made")]
    chat = OnTerminal("--model", script(tmp_path, *calls, "Done."), cwd=tmp_path)
    chat.expect("›")
    chat.send("go\r")
    chat.expect("Allow run_command?")
    chat.send("y")
    chat.expect("yes")
    chat.send("yay\r")
    (tmp_path / "typed").touch()
    chat.expect("touch made")
    chat.expect("Allow run_command?")
    assert "Done." not in chat.settle()
    assert not (tmp_path / "made").exists()
    chat.send("n")
    chat.expect("Done.")
    chat.expect("› yay")
    assert "yay" not in chat.settle()
    chat.send("\x7f" * 3 + "/exit\r")
    assert chat.end() == 0
    assert not (tmp_path / "made").exists()


def test_keys_typed_before_the_first_question_do_not_answer_it(tmp_path: Path, write: Write) -> None:
    """Keys pressed while the program starts are ignored; only a key after the question starts a review."""
    write("work/pdf")
    chat = OnTerminal("--model", script(tmp_path), cwd=tmp_path / "work")
    chat.send("r")
    chat.expect("[r]eview them now")
    assert "Trust pdf" not in chat.settle()
    chat.send("l")
    chat.expect("› r")
    chat.send("\x7f\x04")
    assert chat.end() == 0


def test_keys_typed_during_an_answer_are_not_echoed(tmp_path: Path) -> None:
    """They become the text of the next prompt, and the terminal is restored at the end."""
    model = script(tmp_path, UNTIL_TYPED, "Done.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    chat.expect("›")
    chat.send("go\r")
    chat.expect("run_command")
    flags = chat.local_flags()
    assert not flags & (termios.ECHO | termios.ICANON)
    assert flags & termios.ISIG
    chat.send("hello\x1b[A there")
    (tmp_path / "typed").touch()
    assert "hello" not in chat.expect("Done.")
    chat.expect("› hello there")
    chat.send("\x15/exit\r")
    chat.wait_until(lambda: bool(chat.local_flags() & termios.ECHO))
    assert chat.end() == 0


@pytest.mark.parametrize("keys", ["\x03", "\x04", "\x1b", "\r", "n"])
def test_ctrl_c_at_a_question_stops_the_turn_and_other_keys_mean_no(tmp_path: Path, keys: str) -> None:
    """After a no the model is informed and continues. After Ctrl+C it is not called again."""
    model = script(tmp_path, tool("run_command", command="touch made"), "I went on.")
    chat = OnTerminal("--model", model, cwd=tmp_path)
    chat.expect("›")
    chat.send("go\r")
    chat.expect("Allow run_command?")
    chat.send(keys)
    if keys == "\x03":
        assert "I went on." not in chat.expect("the conversation so far is kept")
        chat.expect("›")
        chat.send("go on\r")
    chat.expect("I went on.")
    chat.expect("›")
    chat.send("/exit\r")
    assert chat.end() == 0
    assert not (tmp_path / "made").exists()


def wait_for_end(pid: int) -> bool:
    for _ in range(1200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def wait_for_pid(folder: Path) -> int:
    for _ in range(1200):
        if (folder / "pid").exists() and (text := (folder / "pid").read_text()).strip():
            return int(text)
        time.sleep(0.05)
    raise AssertionError("the command did not start")


@pytest.mark.parametrize("closed", [True, False])
def test_closing_the_window_or_a_signal_ends_a_turn(tmp_path: Path, closed: bool) -> None:
    """The running command ends too, the conversation is saved, and the exit code gives the reason."""
    chat = OnTerminal("--model", script(tmp_path, SLEEP), "--policy", "yolo", cwd=tmp_path)
    chat.expect("›")
    chat.send("a remarkable question\r")
    chat.expect("run_command")
    command = wait_for_pid(tmp_path)
    if closed:
        assert chat.hang_up() == 129
    else:
        os.kill(chat.pid, signal.SIGTERM)
        chat.expect("the conversation so far is kept")
        assert chat.end() == 143
    assert wait_for_end(command)
    [saved] = Path.home().rglob("*.jsonl")
    assert "a remarkable question" in saved.read_text()


@pytest.mark.parametrize("closed", [True, False])
def test_closing_the_window_or_a_signal_at_a_question_means_no(tmp_path: Path, closed: bool) -> None:
    chat = OnTerminal("--model", script(tmp_path, tool("run_command", command="touch made")), cwd=tmp_path)
    chat.expect("›")
    chat.send("go\r")
    chat.expect("Allow run_command?")
    if closed:
        assert chat.hang_up() == 129
    else:
        os.kill(chat.pid, signal.SIGTERM)
        assert chat.end() == 143
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("closed", [True, False])
def test_closing_the_window_or_a_signal_ends_a_prompt(tmp_path: Path, closed: bool) -> None:
    """No traceback appears."""
    chat = OnTerminal("--model", script(tmp_path), cwd=tmp_path)
    chat.expect("›")
    if closed:
        assert chat.hang_up() == 129
    else:
        os.kill(chat.pid, signal.SIGTERM)
        assert chat.end() == 143
    assert "Traceback" not in chat.raw


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("hello\r", "hello"),
        ("a\r\nb\r", "a\n\nb"),
        ("\x1b[1;1Rx\x1b[A\x1bOBy", "xy"),
        ("wrng\x7f\x7f\x7frong", "wrong"),
        ("\x04\x1b\x00", ""),
        ("漢\x7f字", "字"),
    ],
)
def test_keys_are_converted_to_text(keys: str, text: str) -> None:
    """The result is the same as at a prompt, without the final Enter."""
    assert keys_to_text(keys) == text


def test_a_notice_of_a_change_on_disk_takes_no_keys(tmp_path: Path, write: Write) -> None:
    """The user is typing a message with letters that the review would use as keys."""
    write("work/pdf")
    chat = OnTerminal("--model", script(tmp_path, "One.", "Two."), cwd=tmp_path / "work")
    chat.expect("[r]eview them now")
    chat.send("r")
    chat.expect("Trust pdf as it is now?")
    chat.send("y")
    chat.expect("›")
    approved_at = len(chat.raw)
    chat.send("half a mess")
    chat.expect("mess")
    write("work/pdf", "Other words.")
    chat.settle(2.5)
    chat.send("a")
    chat.expect("view: /skills trust")  # the terminal redraws only the changed part of the line
    chat.send("ge\r")
    chat.expect("One.")
    chat.expect("pdf changed on disk; the approved version is in use: /skills trust")
    chat.expect("›")
    chat.send("really?\r")
    chat.expect("Two.")
    chat.expect("›")
    chat.send("/skills trust\r")
    chat.expect("Trust pdf as it is now?")
    chat.send("y")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0
    assert "[r]eview" not in chat.raw[approved_at:]
    assert chat.raw.count("changed on disk") == 1


def test_approving_a_new_skill_asks_no_second_question(tmp_path: Path) -> None:
    """Allowing the write with all of it on screen approved it: the skill is in use now and in the next session."""
    text = "---\nname: tidy\ndescription: Tidy up.\n---\n\nTidy up.\n"
    model = script(tmp_path, tool("write_file", path="tidy/SKILL.md", content=text), "Written.")
    chat = OnTerminal("--model", model, cwd=tmp_path)
    chat.expect("›")
    chat.send("write it\r")
    chat.expect("Allow write_file? [y]es [n]o")
    chat.send("y")
    chat.expect("Written.")
    chat.expect("›")
    chat.send("\x04")
    assert chat.end() == 0
    assert "[a]lways" not in chat.raw
    assert "[r]eview them now" not in chat.raw

    again = OnTerminal("--model", script(tmp_path), cwd=tmp_path)
    again.expect("›")
    again.send("/skills\r")
    again.expect("tidy")
    again.expect("›")
    again.send("\x04")
    assert again.end() == 0
    assert "[r]eview them now" not in again.raw


def test_many_skills_are_counted_and_can_be_approved_at_once(tmp_path: Path, write: Write) -> None:
    """Ten are named, and `all` needs a second confirmation."""
    for at in range(12):
        write(f"work/skill-{at:02}")
    chat = OnTerminal("--model", script(tmp_path), cwd=tmp_path / "work")
    shown = chat.expect("[r]eview them now")
    assert "12 skills in this workspace that you have not approved" in shown
    assert ("skill-09 (new)" in shown, "skill-10" in shown, "… and 2 more" in shown) == (True, False, True)
    chat.send("r")
    chat.expect("(1/12) Trust skill-00")
    chat.send("n")
    chat.expect("(2/12) Trust skill-01")
    chat.expect("[a]ll that are left")
    chat.send("a")
    chat.expect("Trust all 11 that are left, 10 of them unseen?")
    chat.send("\r")
    chat.expect("(2/12) Trust skill-01")
    chat.send("a")
    chat.expect("10 of them unseen?")
    chat.send("y")
    chat.expect("›")
    chat.expect("1 to review: /skills trust")
    chat.expect("12 skills")
    chat.send("\x04")
    assert chat.end() == 0
