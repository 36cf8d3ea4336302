"""Test the prompt with real keys, without a process: what a key makes of the text, the menu and the queue."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")
pytest.importorskip("rapidfuzz", reason="needs the extra `chat`")

from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput, Output
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console

from skillshelf import MemorySource, Shelf
from skillshelf.settings import Settings
from skillshelf.slash import SKILL_PREFIX, Command, Commands, Suggestion, skill_commands
from skillshelf_agent import Approval
from skillshelf_agent.terminal._approval import Questions
from skillshelf_agent.terminal._commands import filter_by_words
from skillshelf_agent.terminal._footer import Footer
from skillshelf_agent.terminal._keyboard import Keyboard, Line
from skillshelf_agent.terminal._prompt import SlashCompleter, rank_with_typos
from skillshelf_agent.terminal._screen import Screen

SKILLS = {
    "release-notes": {"SKILL.md": "---\nname: release-notes\ndescription: Write them.\n---\nDo.\n"},
}

SENT = {"12": "Fix the test of 2 files", "3": "write the notes", "2": "write the tests"}


def make_commands() -> Commands[None]:
    commands: Commands[None] = Commands(rank_with_typos)
    names = {"help": "", "skills reload": "", "approve": "[MODE]", "why-not": "NAME [REQUEST]"}
    commands.register("", [Command(name, "A command.", lambda *_: None, usage) for name, usage in names.items()])
    sent = [Suggestion(number, meta=text) for number, text in SENT.items()]
    rewind: Command[None] = Command(
        "rewind", "", lambda *_: None, "[NUMBER]", lambda typed: filter_by_words(sent, typed)
    )
    commands.register("", [rewind])
    shelf = Shelf([MemorySource(SKILLS)])
    commands.register(SKILL_PREFIX, skill_commands(lambda: shelf.catalog, lambda *_: None))
    return commands


def list_files(path: str) -> list[str]:
    return [name for name in ("README.md", "src/") if name.startswith(path)]


class Prompt:
    """A footer, and keys for it."""

    def __init__(self, keys: PipeInput) -> None:
        self.footer = Footer(Keyboard(), InMemoryHistory(), Settings())
        self._keys = keys
        self.in_turn = False
        self.todos: list[str] = []
        self.footer.connect(
            SlashCompleter(make_commands(), list_files),
            draw_live=lambda columns, rows: "",
            format_status=lambda columns: "",
            list_todos=lambda: self.todos,
            stop=lambda: None,
            unfold=lambda: None,
            change_policy=lambda: None,
            rewind=lambda: None,
            can_steer=lambda text: self.in_turn and bool(text) and not text.startswith("/"),
            workspace="/",
        )

    @property
    def text(self) -> str:
        return self.footer.buffer.text

    @property
    def marked(self) -> str:
        """The marked entry of the menu."""
        state = self.footer.buffer.complete_state
        return state.current_completion.text if state and state.current_completion else ""

    @property
    def sent(self) -> list[str]:
        return self.footer.queue.list_shown()

    def press(self, keys: str) -> None:
        self._keys.send_text(keys)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0.01)

    async def type(self, text: str) -> None:
        """Press the keys of a text, and wait until it is in the editor."""
        self.press(text)
        await self.until(lambda: self.text.endswith(text))


@asynccontextmanager
async def open_prompt(output: Output | None = None) -> AsyncIterator[Prompt]:
    with create_pipe_input() as keys, create_app_session(input=keys, output=output or DummyOutput()):
        prompt = Prompt(keys)
        async with prompt.footer.running():
            yield prompt


@pytest.mark.parametrize("keys", ["\n", "\\\r", "\x1b\r", "\x1b[13;2u", "\x1b[27;2;13~", "\x1b[27;3;13~"])
def test_a_line_break_is_inserted(keys: str) -> None:
    """By Ctrl+J, a backslash and Enter, Alt+Enter, and Shift+Enter as terminals report it."""

    async def check() -> None:
        async with open_prompt() as prompt:
            prompt.press(f"one{keys}two\r")
            await prompt.until(lambda: prompt.sent == ["one\ntwo"])

    asyncio.run(check())


@pytest.mark.parametrize("typed", ["/rel", "/skills:rel", "/release-notes"])
def test_enter_runs_the_marked_skill(typed: str) -> None:
    """The menu marks the name that was begun, with or without `skills:`."""

    async def check() -> None:
        async with open_prompt() as prompt:
            await prompt.type(typed)
            await prompt.until(lambda: prompt.marked == "/skills:release-notes")
            prompt.press("\r")
            await prompt.until(lambda: prompt.sent == ["/skills:release-notes "])
            assert prompt.text == ""

    asyncio.run(check())


@pytest.mark.parametrize(
    ("typed", "number"), [("write", "3"), ("the test write", "2"), ("notes", "3"), ("2", "2"), ("fix", "12")]
)
def test_words_choose_an_earlier_message(typed: str, number: str) -> None:
    """The menu has the messages with all of them, and Enter takes the first: the number itself, if it is one."""

    async def check() -> None:
        async with open_prompt() as prompt:
            await prompt.type(f"/rewind {typed}")
            await prompt.until(lambda: prompt.marked == number)
            prompt.press("\r")
            await prompt.until(lambda: prompt.sent == [f"/rewind {number}"])

    asyncio.run(check())


def test_enter_completes_a_command_that_needs_arguments() -> None:
    """One whose arguments may be left out runs."""

    async def check() -> None:
        async with open_prompt() as prompt:
            await prompt.type("/wh")
            await prompt.until(lambda: prompt.marked == "/why-not")
            prompt.press("\r")
            await prompt.until(lambda: prompt.text == "/why-not ")
            prompt.press("\x15/app")
            await prompt.until(lambda: prompt.marked == "/approve")
            prompt.press("\r")
            await prompt.until(lambda: prompt.sent == ["/approve "])

    asyncio.run(check())


def test_no_entry_is_marked_that_does_not_begin_as_typed() -> None:
    """The menu forgives typos, but Enter must not run a command that nobody has typed."""

    async def check() -> None:
        async with open_prompt() as prompt:
            await prompt.type("/hlep")
            await prompt.until(lambda: prompt.footer.buffer.complete_state is not None)
            prompt.press("\r")
            await prompt.until(lambda: prompt.sent == ["/hlep"])

    asyncio.run(check())


def test_enter_takes_a_file_that_was_chosen_and_goes_on() -> None:
    """The message is not finished. Without a choice, Enter sends it."""

    async def check() -> None:
        async with open_prompt() as prompt:
            await prompt.type("see @REA")
            await prompt.until(lambda: prompt.footer.buffer.complete_state is not None)
            prompt.press("\x1b[B\r")
            await prompt.until(lambda: prompt.text == "see @README.md ")
            await prompt.type("and @s")
            await prompt.until(lambda: prompt.footer.buffer.complete_state is not None)
            prompt.press("\r")
            await prompt.until(lambda: prompt.sent == ["see @README.md and @s"])

    asyncio.run(check())


def test_tab_takes_the_marked_name_and_adds_a_space() -> None:
    async def check() -> None:
        async with open_prompt() as prompt:
            await prompt.type("/rel")
            await prompt.until(lambda: prompt.marked == "/skills:release-notes")
            prompt.press("\tv1.2\r")
            await prompt.until(lambda: prompt.sent == ["/skills:release-notes v1.2"])

    asyncio.run(check())


def test_a_line_is_given_back_unless_another_one_has_been_begun() -> None:
    async def check() -> None:
        async with open_prompt() as prompt:

            def is_text(text: str) -> bool:
                return prompt.text == text

            for begun, expected in (("", "/foo"), ("new", "new")):
                prompt.press("\x15/foo\r")
                await prompt.until(lambda: prompt.sent == ["/foo"])
                await prompt.footer.next_line()
                prompt.press(begun)
                await prompt.until(partial(is_text, begun))
                prompt.footer.give_back()
                assert prompt.text == expected

    asyncio.run(check())


def test_a_message_during_a_turn_steers_unless_it_is_queued_by_tab() -> None:
    """Commands wait for the end of the turn in any case, and so does what is sent without a turn."""

    async def check() -> None:
        async with open_prompt() as prompt:
            prompt.press("before\r")
            await prompt.until(lambda: prompt.sent == ["before"])
            prompt.in_turn = True
            prompt.press("at the end\t/help\rat once\rsoon\r")
            await prompt.until(lambda: len(prompt.sent) == 5)
            assert prompt.sent == ["at once", "soon", "before", "at the end", "/help"]
            assert [line.shown for line in prompt.footer.queue if line.steers] == ["at once", "soon"]

    asyncio.run(check())


def test_tab_completes_rather_than_queues() -> None:
    """It also does nothing to a command, and turns to a question that waits."""

    async def check() -> None:
        async with open_prompt() as prompt:
            prompt.in_turn = True
            prompt.press("see @REA\t")
            await prompt.until(lambda: prompt.text == "see @README.md ")
            prompt.press("\x15/nothing x\t")
            await prompt.until(lambda: prompt.text == "/nothing x")
            prompt.press("\x15a message")
            await prompt.until(lambda: prompt.text == "a message")
            asking = asyncio.create_task(prompt.footer.keyboard.ask("Allow?", {"y": "yes"}, "no"))
            await prompt.until(lambda: prompt.footer.keyboard.question is not None)
            prompt.press("\ty")
            assert await asking == "yes"
            assert (prompt.text, prompt.sent) == ("a message", [])

    asyncio.run(check())


def test_a_steering_message_that_was_not_taken_is_the_next_line() -> None:
    """Escape gives it back with the others, in the order in which they would have gone."""

    async def check() -> None:
        async with open_prompt() as prompt:
            prompt.in_turn = True
            prompt.press("/help\rfirst\rsecond\r")
            await prompt.until(lambda: len(prompt.sent) == 3)
            assert await prompt.footer.next_line() == "first"
            prompt.press("\x1b")
            await prompt.until(lambda: prompt.text == "second\n/help")
            assert not prompt.footer.queue.remove(Line("second", "second", steers=True))

    asyncio.run(check())


def test_waiting_lines_are_given_back_if_a_question_is_answered_with_a_stop() -> None:
    """Ctrl+C at the question is no different from Ctrl+C elsewhere in the turn."""

    async def check() -> None:
        async with open_prompt() as prompt:
            prompt.in_turn = True
            questions = Questions(Screen(Console(file=io.StringIO())), prompt.footer)
            prompt.press("/help\rfirst\r")
            await prompt.until(lambda: len(prompt.sent) == 2)
            asking = asyncio.create_task(questions.approve(Approval("run_command", {"command": "make"})))
            await prompt.until(lambda: prompt.footer.keyboard.question is not None)
            prompt.press("\x03")
            assert await asking == "no"
            assert (prompt.text, prompt.sent) == ("first\n/help", [])

    asyncio.run(check())


def test_letters_typed_as_a_question_comes_up_answer_nothing() -> None:
    """Messages begin with `y` and `a`, too. They are in the editor, and Tab turns to the question."""

    async def check() -> None:
        async with open_prompt() as prompt:
            keyboard = prompt.footer.keyboard
            keyboard.seconds_to_read = 3600
            answers = {"y": "yes", "a": "always"}
            asking = asyncio.create_task(keyboard.ask("Allow?", answers, "no", is_expected=False))
            await prompt.until(lambda: keyboard.question is not None)
            await prompt.type("also a test")
            assert not asking.done()
            assert keyboard.question
            keyboard.question.unread_until = 0
            prompt.press("\ty")
            assert await asking == "yes"
            assert prompt.text == "also a test"

    asyncio.run(check())


@pytest.mark.parametrize(("tmux", "rows"), [("tmux,1,0", 2), ("", 1)])
def test_a_row_that_was_longer_is_found_again_in_a_narrower_window(
    tmux: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tmux breaks a row with all the cells that were drawn on, even if they are blank again."""
    monkeypatch.delenv("TMUX", raising=False)
    if tmux:
        monkeypatch.setenv("TMUX", tmux)
    written = io.StringIO()
    columns = 100

    async def check() -> None:
        nonlocal columns
        async with open_prompt(Vt100_Output(written, lambda: Size(rows=30, columns=columns))) as prompt:
            for todo in ("x" * 70, "short"):
                prompt.todos = [todo]
                prompt.footer.redraw()
                await prompt.until(lambda todo=todo: todo in written.getvalue())  # type: ignore[misc]
            written.truncate(written.seek(0))
            columns = 40
            prompt.footer.redraw()
            await prompt.until(lambda: "short" in written.getvalue())
            assert f"\x1b[{rows}A\x1b[K" in written.getvalue().replace("\x1b[A", "\x1b[1A")

    asyncio.run(check())


def test_the_hint_at_a_question_that_waits_fits_in_a_narrow_window() -> None:
    """It does not say that a message is being typed if none is."""
    written = io.StringIO()

    async def check() -> None:
        output = Vt100_Output(written, lambda: Size(rows=30, columns=30))
        async with open_prompt(output) as prompt:
            await prompt.type("y")
            asking = asyncio.create_task(prompt.footer.keyboard.ask("Allow?", {"y": "yes"}, "no"))
            await prompt.until(lambda: "typing a message." in written.getvalue())
            prompt.press("\x7f")
            await prompt.until(lambda: "question." in written.getvalue())
            prompt.press("\ty")
            assert await asking == "yes"

    asyncio.run(check())
