"""Test keys at the prompt, during questions and answers, and keys and signals that end a chat."""

import fcntl
import os
import re
import shutil
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool
from skillshelf_agent.terminal._keyboard import keys_to_text
from terminals import PAGER

Write = Callable[..., Path]
HOLD = 'import fcntl, time; f = open("held", "w"); fcntl.flock(f, fcntl.LOCK_EX); time.sleep(60)'
SLEEP = tool("run_command", command=f"exec python3 -c '{HOLD}'")
"""A command that holds a lock while it runs. Its process number means nothing outside its sandbox."""
UNTIL_TYPED = tool("run_command", command="until [ -e typed ]; do sleep 0.05; done")
"""A command that runs until the test has created the file `typed`."""


def test_keys_typed_before_a_question_do_not_answer_it(tmp_path: Path) -> None:
    """A message in the making stays one: Tab turns to the question, and the half-typed line comes back afterwards."""
    calls = [UNTIL_TYPED, tool("run_command", command="touch made")]
    chat = OnTerminal("--model", script(tmp_path, *calls, "Done."), cwd=tmp_path)
    chat.see("›")
    chat.send("go\r")
    chat.see("Allow run_command?")
    chat.send("y")
    chat.see("Esc stops")
    chat.send("yay")
    chat.see("› yay")
    (tmp_path / "typed").touch()
    chat.see("touch made")
    chat.see("Tab answers the question")
    chat.send("y")
    chat.see("› yayy")
    assert not (tmp_path / "made").exists()
    chat.send("\t")
    assert "› yayy" not in chat.see_no("Tab answers")
    chat.send("n")
    chat.see("Done.")
    chat.see("› yayy")
    chat.send("\x7f" * 4 + "/exit\r")
    assert chat.end() == 0
    assert not (tmp_path / "made").exists()


def test_a_question_above_an_empty_prompt_has_the_keyboard(tmp_path: Path) -> None:
    """Even right after the user has erased a message."""
    calls = [UNTIL_TYPED, tool("run_command", command="touch made")]
    chat = OnTerminal("--model", script(tmp_path, *calls, "Done."), cwd=tmp_path)
    chat.see("›")
    chat.send("go\r")
    chat.see("Allow run_command?")
    chat.send("y")
    chat.see("Esc stops")
    chat.send("x")
    chat.see("› x")
    chat.send("\x7f")
    chat.see_no("› x")
    (tmp_path / "typed").touch()
    chat.see("touch made")
    assert "Tab answers" not in chat.see_no("\n›\n")
    chat.send("y")
    chat.see("Done.")
    assert (tmp_path / "made").exists()
    chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0


def test_keys_typed_before_the_first_question_do_not_answer_it(tmp_path: Path, write: Write) -> None:
    """Keys pressed while the program starts are text of the editor."""
    write("work/pdf")
    chat = OnTerminal("--model", script(tmp_path), cwd=tmp_path / "work")
    chat.send("r")
    chat.see("[r]eview them now")
    chat.see("Tab answers the question")
    assert "Trust pdf" not in chat.see("› r")
    chat.send("\tl")
    assert "Trust pdf" not in chat.see_no("Tab answers")
    chat.see("› r")
    chat.send("\x7f\x04")
    assert chat.end() == 0


def test_typing_during_a_turn_is_visible(tmp_path: Path) -> None:
    """The keys appear in the prompt below the work. At the end the terminal is as it was."""
    model = script(tmp_path, UNTIL_TYPED, "Done.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    chat.see("›")
    chat.send("go\r")
    chat.see("Esc stops")
    assert not chat.local_flags() & (termios.ECHO | termios.ICANON)
    chat.send("hello\x1b[D\x1b[D there")
    chat.see("› hel therelo")
    (tmp_path / "typed").touch()
    chat.see("Done.")
    assert chat.see_no("Esc stops").count("hel therelo") == 1
    chat.send("\x05\x15/exit\r")
    chat.wait_until(lambda: bool(chat.local_flags() & termios.ECHO))
    assert chat.end() == 0


def test_a_line_sent_during_a_turn_goes_to_the_model_or_waits_for_the_end(tmp_path: Path) -> None:
    """Enter steers the turn with a message. A command, and a message queued with Tab, wait for its end.

    All stay on the screen where they were answered.
    """
    model = script(tmp_path, UNTIL_TYPED, "One.", "Two.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    chat.see("›")
    chat.send("go\r")
    chat.see("Esc stops")
    chat.send("/approve\rand then?\tand this\r")
    chat.see("steering: and this\n  queued: /approve\n  queued: and then?\n›")
    (tmp_path / "typed").touch()
    chat.see("Two.")
    shown = chat.see_no("queued:")
    texts = ("› go", "● run_command", "› and this", "One.", "› /approve", "Policy: yolo.", "› and then?", "Two.")
    places = [shown.index(text) for text in texts]
    assert places == sorted(places)
    chat.send("\x04")
    assert chat.end() == 0


def test_a_queued_line_can_be_edited_or_dropped(tmp_path: Path) -> None:
    """Up at an empty prompt takes the last one back into the editor."""
    model = script(tmp_path, UNTIL_TYPED, "One.", "Two.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path)
    chat.see("›")
    chat.send("go\r")
    chat.see("run_command until")
    chat.send("first\tsecond\t")
    chat.see("queued: second")
    chat.send("\x1b[A")
    chat.see("queued: first\n› second")
    chat.send("\x15\x1b[A")  # clear the line: the second is dropped
    chat.see("› first")
    chat.see_no("queued:")
    chat.send(" of all\t")
    chat.see("queued: first of all")
    (tmp_path / "typed").touch()
    chat.see("Two.")
    shown = chat.see_idle()
    assert "› first of all" in shown
    assert "second" not in shown
    chat.send("\x04")
    assert chat.end() == 0


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_stopping_a_turn_gives_the_queued_lines_back(tmp_path: Path, key: str) -> None:
    """They are not sent: they stand in the editor, before the text that was there."""
    chat = OnTerminal("--model", script(tmp_path, SLEEP, "Hello."), "--policy", "yolo", cwd=tmp_path)
    chat.see("›")
    chat.send("go\r")
    chat.see("Esc stops")
    wait_for_start(tmp_path)
    chat.send("second\tfirst\rhalf")
    chat.see("steering: first\n  queued: second\n› half")
    chat.send(key)
    chat.see("the conversation so far is kept")
    shown = chat.see_no("Esc stops")
    assert "› first\n  second\n  half" in shown
    assert "queued:" not in shown
    assert wait_for_end(tmp_path)
    chat.send("\r")
    chat.see("Hello.")
    chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0


def test_escape_closes_the_menu_and_swallows_no_key(tmp_path: Path) -> None:
    """The text stays as it was typed, the next letter is a letter, and Enter sends."""
    chat = OnTerminal("--model", script(tmp_path, "Hello."), cwd=tmp_path)
    chat.see("›")
    chat.send("/app")
    chat.see("what may be done without asking")
    chat.send("\x1b")
    chat.see_no("what may be done without asking")
    chat.send("t")
    chat.see("› /appt")
    chat.send("\x7frove\r")
    chat.see("Policy: ask.")
    chat.send("\x04")
    assert chat.end() == 0


def test_a_message_of_several_lines_is_shown_as_such(tmp_path: Path) -> None:
    chat = OnTerminal("--model", script(tmp_path, "Hello."), cwd=tmp_path)
    chat.see("›")
    chat.send("one\ntwo")
    chat.see("› one\n  two")
    chat.send("\r")
    chat.see("Hello.")
    assert "› one\n  two" in chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0


def test_escape_at_an_idle_prompt_leaves_the_text_alone(tmp_path: Path) -> None:
    chat = OnTerminal("--model", script(tmp_path, "Hello."), cwd=tmp_path)
    chat.see("›")
    chat.send("hello")
    chat.see("› hello")
    chat.send("\x1b")
    chat.settle(0.3)
    chat.send("!")
    chat.see("› hello!")
    chat.send("\x03\x04")
    assert chat.end() == 0


def test_ctrl_c_clears_the_line_and_leaves_when_pressed_twice(tmp_path: Path) -> None:
    chat = OnTerminal("--model", script(tmp_path), cwd=tmp_path)
    chat.see("›")
    chat.send("not sent")
    chat.see("› not sent")
    chat.send("\x03")
    assert "Press Ctrl+C again" not in chat.see_idle()
    chat.send("\x03")
    chat.see("Press Ctrl+C again to leave")
    chat.send("\x03")
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


def wait_for_start(folder: Path) -> None:
    """Wait until the command holds its lock."""
    for _ in range(1200):
        if (folder / "held").exists() and not _can_lock(folder / "held"):
            return
        time.sleep(0.05)
    raise AssertionError("the command did not start")


def wait_for_end(folder: Path) -> bool:
    """Return whether the command let its lock go within a minute."""
    for _ in range(1200):
        if _can_lock(folder / "held"):
            return True
        time.sleep(0.05)
    return False


def _can_lock(path: Path) -> bool:
    with path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("closed", [True, False])
def test_closing_the_window_or_a_signal_ends_a_turn(tmp_path: Path, closed: bool) -> None:
    """The running command ends too, the conversation is saved, and the exit code gives the reason."""
    chat = OnTerminal("--model", script(tmp_path, SLEEP), "--policy", "yolo", cwd=tmp_path)
    chat.expect("›")
    chat.send("a remarkable question\r")
    chat.expect("run_command")
    wait_for_start(tmp_path)
    if closed:
        assert chat.hang_up() == 129
    else:
        os.kill(chat.pid, signal.SIGTERM)
        chat.expect("the conversation so far is kept")
        assert chat.end() == 143
    assert wait_for_end(tmp_path)
    [saved] = Path.home().rglob("sessions/*/*.jsonl")
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
    chat.expect("pdf changed since your review: the approved version is in use. /skills trust")
    chat.expect("half a mess")
    chat.send("age\r")
    chat.expect("One.")
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
    assert chat.raw.count("changed since your review") == 1


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
    assert "12 skills are waiting for your review" in shown
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


def test_ctrl_o_shows_results_in_full(tmp_path: Path) -> None:
    """The last one comes first, also during a turn, and the half-typed line is there afterwards."""
    commands = [tool("run_command", command=f"seq {at}1 {at}9") for at in (1, 2)]
    model = script(tmp_path, *commands, UNTIL_TYPED, "Done.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path, env=PAGER)
    chat.see("›")
    chat.send("\x0f")
    chat.see("There is no result and no reasoning yet")
    chat.send("go\r")
    chat.see("until [ -e typed ]")
    chat.see("21 (+8 lines)")
    chat.send("half\x0f")
    shown = chat.see("(end)")
    assert "\n29\n" in shown
    assert shown.index("run_command seq 21 29\n") < shown.index("run_command seq 11 19\n") < shown.index("\n19\n")
    (tmp_path / "typed").touch()
    chat.send("\r")
    chat.see("Done.")
    chat.see("› half")
    chat.send("\x15\x04")
    assert chat.end() == 0


def test_ctrl_o_shows_earlier_results_while_a_question_waits(tmp_path: Path) -> None:
    """The question is there again afterwards, and no key of the pager has answered it."""
    model = script(tmp_path, tool("read_file", path="notes.txt"), tool("run_command", command="touch made"), "Done.")
    (tmp_path / "notes.txt").write_text("the first note\nthe second note\n")
    chat = OnTerminal("--model", model, cwd=tmp_path, env=PAGER)
    chat.see_idle()
    chat.send("go\r")
    chat.see("Allow run_command?")
    chat.send("\x0f")
    chat.see("the second note")
    shown = chat.see("(end)")
    assert "Allow run_command?" not in shown
    chat.send("\r")
    chat.see("Allow run_command?")
    chat.send("y")
    chat.see("Done.")
    assert (tmp_path / "made").exists()
    chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")
@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("", id="question"),
        pytest.param("\x0f", id="pager", marks=pytest.mark.skipif(shutil.which("less") is None, reason="needs less")),
        pytest.param("r", id="line"),
    ],
)
def test_ctrl_z_suspends_the_chat_at_a_question(tmp_path: Path, keys: str) -> None:
    """Keys typed in the shell do not answer it, and after `fg` it is there again, with the pager or line over it."""
    model = script(tmp_path, tool("read_file", path="notes.txt"), tool("run_command", command="touch made"), "Done.")
    (tmp_path / "notes.txt").write_text("the first note\nthe second note\n")
    shell = [shutil.which("bash") or "", "--norc", "--noediting", "-i"]
    chat = OnTerminal("--model", model, cwd=tmp_path, shell=shell, env={"PAGER": "less", "MANPAGER": ""})
    chat.see("›")
    chat.send("go\r")
    chat.see("Allow run_command?")
    above, closing_key = {
        "": ("Allow run_command?", ""),
        "\x0f": ("the second note", "q"),
        "r": ("What should the model know?", "\r"),
    }[keys]
    chat.send(keys)
    chat.see(above)
    chat.send("\x1a")
    chat.expect("Stopped")  # the shell may say so before the pager has given back the screen
    if keys == "\x0f":
        chat.see_no(above)
    chat.send("echo in the $((40 + 2))nd shell\n")
    chat.see("in the 42nd shell")
    chat.send("clear; fg\n")
    chat.see_no("in the 42nd shell")
    chat.see(above)
    chat.send(closing_key)
    chat.see("Allow run_command?")
    chat.send("y")
    chat.see("Done.")
    assert (tmp_path / "made").exists()
    chat.see_no("Esc stops")
    chat.send("\x04")
    chat.see("To go on with this session")
    chat.send("exit\n")
    assert chat.end() == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell with job control")
def test_ctrl_z_suspends_the_chat_during_a_turn(tmp_path: Path) -> None:
    """The shell gets the terminal, and after `fg` the turn and the half-typed line are still there."""
    model = script(tmp_path, UNTIL_TYPED, "Done.")
    shell = [shutil.which("bash") or "", "--norc", "--noediting", "-i"]
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path, shell=shell)
    chat.see("›")
    chat.send("go\r")
    chat.see("Esc stops")
    chat.send("half")
    chat.see("› half")
    chat.send("\x1a")
    chat.see("Stopped")
    chat.send("echo in the $((40 + 2))nd shell\n")
    chat.see("in the 42nd shell")
    chat.send("fg\n")
    chat.see("› half")
    (tmp_path / "typed").touch()
    chat.see("Done.")
    chat.see_no("Esc stops")
    chat.send("\x15\x04")
    assert re.search(r"Spent: [\d,]+ tokens in, \d+ out", chat.see("To go on with this session"))
    chat.send("exit\n")
    assert chat.end() == 0


def test_the_output_of_a_command_is_shown_while_it_runs(tmp_path: Path) -> None:
    """The last lines are replaced in place; at the end they fold to one line, or stay if the command failed."""
    command = "seq 1 30; echo to stderr >&2; until [ -e typed ]; do sleep 0.05; done; echo broken >&2; exit 3"
    chat = OnTerminal(
        "--model", script(tmp_path, tool("run_command", command=command), "Done."), "--policy", "yolo", cwd=tmp_path
    )
    chat.see("›")
    chat.send("go\r")
    shown = chat.see("│ to stderr")
    assert "│ 30" in chat.see("│ 30")
    assert "│ 20" not in shown
    (tmp_path / "typed").touch()
    shown = chat.see("│ [exit code: 3]")
    assert "│ broken" in shown
    chat.see("Done.")
    chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0
