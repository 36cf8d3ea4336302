"""The bell and the window's title, which call a user who looks elsewhere."""

import asyncio
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console

from agent_kit import agent
from skillshelf_agent import Approval, Settings
from skillshelf_agent.terminal import _terminal
from skillshelf_agent.terminal._alerts import Alerts
from skillshelf_agent.terminal._approval import Questions
from skillshelf_agent.terminal._footer import Footer
from skillshelf_agent.terminal._keyboard import Keyboard, Line
from skillshelf_agent.terminal._screen import Screen
from skillshelf_agent.terminal._terminal import Terminal

ASKS = "\x07\x1b[22;2t\x1b]2;a question waits · skillshelf\x07"
DONE = "\x07\x1b[22;2t\x1b]2;done · skillshelf\x07"
CLEARED = "\x1b]2;skillshelf\x07\x1b[23;2t"


def make_output() -> tuple[Vt100_Output, io.StringIO]:
    written = io.StringIO()
    return Vt100_Output(written, lambda: Size(rows=30, columns=80), term="xterm"), written


@contextmanager
def terminal(folder: Path, *script: object) -> Iterator[tuple[Terminal, io.StringIO]]:
    """Yield a terminal without its footer on the screen, and what is written beside it."""
    output, written = make_output()
    with create_pipe_input() as keys, create_app_session(input=keys, output=output):
        footer = Footer(Keyboard(), InMemoryHistory(), Settings())
        questions = Questions(Screen(Console(file=io.StringIO())), footer)
        output.flush()
        written.truncate(written.seek(0))
        yield Terminal(agent(folder, *script), Settings(), questions, footer), written


@pytest.mark.parametrize(
    ("bell", "title", "expected"),
    [
        (True, True, ASKS + "\x07\x1b]2;done · skillshelf\x07" + CLEARED),
        (True, False, "\x07\x07"),
        (False, True, ASKS[1:] + "\x1b]2;done · skillshelf\x07" + CLEARED),
        (False, False, ""),
    ],
)
def test_each_has_a_setting(bell: bool, title: bool, expected: str) -> None:
    """The old title comes back once, however much news there was."""
    output, written = make_output()
    alerts = Alerts(output, Settings(bell=bell, title=title))
    alerts.clear()
    alerts.call("a question waits")
    alerts.call("done")
    alerts.clear()
    alerts.clear()
    assert written.getvalue() == expected


def test_the_end_of_a_long_turn_calls_until_the_next_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(tmp_path, "One.", "Two.", "Three.") as (chat, written):
        asyncio.run(chat.say("a short one"))
        assert written.getvalue() == ""
        monkeypatch.setattr(_terminal, "_LONG_SECONDS", -1.0)
        asyncio.run(chat.say("a long one"))
        assert written.getvalue() == DONE
        monkeypatch.undo()
        asyncio.run(chat.say("another short one"))
        assert written.getvalue() == DONE + CLEARED


def test_a_line_that_was_sent_meanwhile_is_part_of_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is called to the end of all of it, if all of it took long."""
    now = 100.0

    def take_eight_seconds(_: object) -> str:
        nonlocal now
        now += 8
        return "Done."

    monkeypatch.setattr(_terminal, "time", SimpleNamespace(monotonic=lambda: now))
    with terminal(tmp_path, *[take_eight_seconds] * 3) as (chat, written):
        line = Line("and this", "and this")
        chat.footer.queue.put(line)
        asyncio.run(chat.say("do it"))
        assert written.getvalue() == ""
        chat.footer.queue.remove(line)
        asyncio.run(chat.say(line.text))
        assert written.getvalue() == DONE
        asyncio.run(chat.say("a short one"))
        assert written.getvalue() == DONE + CLEARED


def test_a_turn_that_the_user_stops_does_not_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_terminal, "_LONG_SECONDS", -1.0)
    with terminal(tmp_path, "One.") as (chat, written):

        async def stop() -> None:
            asyncio.get_running_loop().call_soon(chat.interrupt)
            await chat.say("go")

        asyncio.run(stop())
        assert written.getvalue() == ""


def test_a_question_calls_until_it_is_answered(tmp_path: Path) -> None:
    """No text of a model is in the title, whatever the question is about."""
    with terminal(tmp_path) as (chat, written):
        asked: list[str] = []

        async def ask(*_: object, **__: object) -> str:
            asked.append(written.getvalue())
            return "no"

        chat.footer.keyboard.ask = ask  # type: ignore[method-assign]
        asyncio.run(chat.questions.approve(Approval("run_command", {"command": "x\x1b]2;evil\x07"})))
        assert asked == [ASKS]
        assert written.getvalue() == ASKS + CLEARED
