"""Test a chat on a pseudo-terminal when the server fails, the terminal changes, or the input is unusual."""

import os
import re
import shutil
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, script, tool
from openai_api import Broken, Fault, OpenAIApi, Step, chunk

UNTIL_TYPED = tool("run_command", command="until [ -e typed ]; do sleep 0.05; done")
"""A command that runs until the test has created the file `typed`."""
_COLOR = re.compile(r"\x1b\[(?:[0-9]+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")


@contextmanager
def chat_with_server(folder: Path, *steps: Step) -> Iterator[tuple[OnTerminal, OpenAIApi]]:
    """Yield an idle chat whose model is served by a script."""
    api = OpenAIApi(steps)
    with api.serve() as url:
        chat = OnTerminal("--base-url", url, "--model", "tiny", cwd=folder)
        chat.see_idle()
        yield chat, api


def test_escape_stops_an_answer_that_stalls(tmp_path: Path) -> None:
    """The beginning stays on the screen and in the conversation, and the next message is answered."""
    with chat_with_server(tmp_path, Broken([chunk("The beginning ")], "hang"), "The end.") as (chat, api):
        chat.send("go\r")
        chat.see("The beginning")
        chat.send("\x1b")
        assert "The beginning" in chat.see("stopped")
        chat.see_idle()
        chat.send("go on\r")
        chat.see("The end.")
        assert "The beginning" in str(api.requests[1]["messages"])
        chat.see_idle()
        chat.send("\x04")
        assert chat.end() == 0


def test_a_connection_that_breaks_in_the_answer_keeps_its_beginning(tmp_path: Path) -> None:
    """The message says what broke, and the next message is answered."""
    with chat_with_server(tmp_path, Broken([chunk("The beginning ")], "cut"), "The end.") as (chat, api):
        chat.send("go\r")
        screen = chat.see("broke")
        assert screen.index("The beginning") < screen.index("broke")
        chat.see_idle()
        chat.send("go on\r")
        chat.see("The end.")
        assert "The beginning" in str(api.requests[1]["messages"])
        chat.see_idle()
        chat.send("\x04")
        assert chat.end() == 0


def test_escape_ends_the_countdown_to_another_try(tmp_path: Path) -> None:
    """A server that is busy is not asked again, and the next message is answered."""
    busy = Fault(429, '{"error": {"message": "slow down"}}', {"content-type": "application/json", "retry-after": "50"})
    with chat_with_server(tmp_path, busy, "The end.") as (chat, api):
        chat.send("go\r")
        chat.see("trying again in 50 s")
        chat.wait_until(lambda: bool(re.search(r"trying again in [1-4]?\d s", chat.screen())))
        chat.send("\x1b")
        chat.see_idle()
        assert len(api.requests) == 1
        chat.send("go on\r")
        chat.see("The end.")
        chat.see_idle()
        chat.send("\x04")
        assert chat.end() == 0


def test_the_window_can_change_its_size_during_a_turn(tmp_path: Path) -> None:
    """The work, the half-typed line and the status line fit a narrow window, and a wide one again."""
    model = script(tmp_path, UNTIL_TYPED, "Done.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path, rows=30)
    chat.see_idle()
    chat.send("go\r")
    chat.see("Esc stops")
    chat.send("half of a line")
    chat.see("› half of a line")
    chat.resize(40, 20)
    chat.send("\x05, and the rest of it that is longer")
    chat.see("t is longer")  # broken at the edge
    screen = chat.see("Esc stops")
    assert all(len(line) <= 40 for line in screen.splitlines())
    chat.resize(100, 30)
    chat.send("!")
    chat.see("› half of a line, and the rest of it that is longer!")
    (tmp_path / "typed").touch()
    chat.see("Done.")
    screen = chat.see_no("Esc stops")
    assert screen.count("half of a line") == 1
    chat.send("\x15\x04")
    assert chat.end() == 0


def test_without_color_nothing_is_colored(tmp_path: Path) -> None:
    """Neither the answer nor the prompt, the menu and the status line."""
    model = script(tmp_path, tool("run_command", command="echo out; exit 3"), "# Head\n\n`code` and [link](x)\n")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path, env={"NO_COLOR": "1"})
    chat.see_idle()
    chat.send("/mod")
    chat.see("/model")
    chat.send("\x1b\x15")
    chat.see_idle()
    chat.send("go\r")
    chat.see("`code` and")
    chat.see_idle()
    chat.send("\x04")
    assert chat.end() == 0
    assert _COLOR.findall(chat.raw) == []


def test_a_long_paste_folds_and_is_sent_whole(tmp_path: Path) -> None:
    """The conversation gets every line; the screen shows how many there are."""
    lines = [f"line {number}" for number in range(300)]
    with chat_with_server(tmp_path, "Read.") as (chat, api):
        chat.send("look: \x1b[200~" + "\r".join(lines) + "\x1b[201~ end")
        chat.see("› look: [pasted 300 lines] end")
        chat.send("\r")
        chat.see("Read.")
        assert "line 299" not in chat.see_idle()
        assert api.requests[0]["messages"][-1]["content"] == "look: " + "\n".join(lines) + " end"
        chat.send("\x04")
        assert chat.end() == 0


def test_pasted_tabs_are_sent_as_tabs(tmp_path: Path) -> None:
    """They complete nothing, and are shown as blanks."""
    with chat_with_server(tmp_path, "Read.") as (chat, api):
        chat.send("\x1b[200~if x:\r\tgo()\r/he\t\x1b[201~")
        chat.see("go()")
        chat.see("/he")
        chat.send(".\r")
        chat.see("Read.")
        assert api.requests[0]["messages"][-1]["content"] == "if x:\n\tgo()\n/he\t."
        chat.see_idle()
        chat.send("\x04")
        assert chat.end() == 0


def test_a_chat_that_was_stopped_from_outside_takes_the_terminal_back(tmp_path: Path) -> None:
    """Another program may have changed its modes. The turn and the half-typed line go on, in the same place."""
    model = script(tmp_path, UNTIL_TYPED, "Done.")
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path, is_fresh=True)
    chat.see_idle()
    chat.send("go\r")
    chat.see("Esc stops")
    chat.send("half")
    chat.see("› half")
    os.kill(chat.pid, signal.SIGSTOP)
    os.waitpid(chat.pid, os.WUNTRACED)
    chat.switch_echo_on()
    os.kill(chat.pid, signal.SIGCONT)
    chat.wait_until(lambda: not chat.local_flags() & (termios.ECHO | termios.ICANON))
    chat.send(" a line")
    screen = chat.see("› half a line")
    assert (screen.count("Esc stops"), screen.count("half")) == (1, 1)
    (tmp_path / "typed").touch()
    assert chat.see("Done.").count("half a line") == 1
    chat.see_no("Esc stops")
    chat.send("\x15\x04")
    assert chat.end() == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_chat_that_its_shell_continues_begins_on_a_line_of_its_own(tmp_path: Path) -> None:
    """The lines that the shell wrote meanwhile stay, and the footer is below them."""
    model = script(tmp_path, UNTIL_TYPED, "Done.")
    shell = [shutil.which("bash") or "", "--norc", "-i"]
    chat = OnTerminal("--model", model, "--policy", "yolo", cwd=tmp_path, shell=shell, env={"PS1": "$ "})
    chat.see_idle()
    chat.send("go\r")
    chat.see("Esc stops")
    chat.send("half")
    chat.see("› half")
    group = os.tcgetpgrp(chat.terminal)
    os.killpg(group, signal.SIGSTOP)
    chat.see("Stopped")
    chat.send("fg\r")
    chat.wait_until(lambda: "› half" in chat.screen().partition("$ fg")[2])
    chat.send(" a line")
    screen = chat.see("› half a line")
    assert screen.index("Stopped") < screen.index("$ fg") < screen.index("› half a line")
    (tmp_path / "typed").touch()
    chat.see("Done.")
    chat.send("\x15\x04")
    chat.see("To go on with this session")
    chat.send("exit\r")
    assert chat.end() == 0
