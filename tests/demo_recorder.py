"""Record the conversation of `skillshelf demo`: the real interface, a scripted model, and keys pressed by a typist.

python tests/demo_recorder.py
"""

import asyncio
import io
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

import skillshelf.cli
from skillshelf.cli._recording import Frame
from skillshelf_agent import AgentCore, ChosenModel, Settings
from skillshelf_agent.terminal._approval import Questions
from skillshelf_agent.terminal._footer import Footer
from skillshelf_agent.terminal._keyboard import Keyboard, Tty
from skillshelf_agent.terminal._screen import Screen
from skillshelf_agent.terminal._start import TerminalChat
from skillshelf_agent.terminal._terminal import Terminal
from skillshelf_agent.terminal._views import format_status
from skillshelf_agent.testing import ScriptedModel, read_script

LINES = ("Write the release notes for v1.2.", "/context")
"""The lines that are typed for the user."""
ANSWER = "y"
"""The key that is pressed for the user when the agent asks."""
HERE = Path(__file__).with_name("demo")
HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
WINDOW = 16_000
"""A small window, so that the bar of /context has something to show."""
COLUMNS = 78

Observer = Callable[[Frame], None]


def record_demo() -> list[Frame]:
    """Play the conversation without a terminal, and return what it showed."""
    frames: list[Frame] = []
    console = Console(
        file=FrameFile(frames.append),
        width=COLUMNS,
        color_system="standard",
        no_color=False,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with (
        copy_workspace() as workspace,
        create_pipe_input() as keys,
        create_app_session(input=keys, output=DummyOutput()),
    ):
        typist = Typist(keys, frames.append)

        def open_terminal(footer: Footer) -> Terminal:
            model = ChosenModel(ScriptedModel(*read_script(str(HERE / "script.json"))), "scripted", WINDOW)
            questions = Questions(Screen(console), footer)
            core = AgentCore(model, workspace, approve=questions.approve, ask_variable=questions.ask_variable)
            return DemoTerminal(core, questions, footer, typist, frames.append)

        asyncio.run(TerminalChat(open_terminal, Settings(), typist).run())
    return frames


@contextmanager
def copy_workspace() -> Iterator[str]:
    """Yield a throw-away copy of the workspace. Until it is removed, its neighbour is the home folder."""
    with tempfile.TemporaryDirectory(prefix="skillshelf-demo-") as folder:
        workspace = os.path.join(folder, "workspace")
        shutil.copytree(HERE / "workspace", workspace)
        home = os.path.join(folder, "home")
        os.mkdir(home)

        before = {variable: os.environ.get(variable) for variable in HOMES}
        os.environ.update(dict.fromkeys(HOMES, home))
        try:
            yield workspace
        finally:
            for variable, value in before.items():
                if value is None:
                    os.environ.pop(variable, None)
                else:
                    os.environ[variable] = value


class Typist(Keyboard):
    """A keyboard whose keys are pressed by a program."""

    def __init__(self, keys: PipeInput, observe: Observer) -> None:
        super().__init__()
        self.tty = Tty(keys.fileno())
        self._keys = keys
        self._observe = observe

    async def ask(
        self,
        question: str,
        answers: Mapping[str, str],
        otherwise: str,
        *,
        stopped: str | None = None,
        is_expected: bool = True,
    ) -> str:
        self._observe(Frame("asked", question))
        with run_beside(self.press(ANSWER)):
            return await super().ask(question, answers, otherwise, stopped=stopped)

    async def press(self, keys: str) -> None:
        for key in keys:
            await asyncio.sleep(0)
            self._keys.send_text(key)


class DemoTerminal(Terminal):
    """The real interface, with lines that are typed for the user."""

    def __init__(
        self, core: AgentCore, questions: Questions, footer: Footer, typist: Typist, observe: Observer
    ) -> None:
        super().__init__(core, Settings(), questions, footer)
        self._typist = typist
        self._observe = observe
        self._unread = iter(LINES)

    async def _read_line(self) -> str | None:
        line = next(self._unread, None)
        if line is None:
            return None
        self._observe(Frame("status", format_status(self.core, 0, COLUMNS).strip()))
        with run_beside(self._typist.press(f"{line}\r")):
            text = await super()._read_line()
        self._observe(Frame("typed", line))
        return text


class FrameFile(io.StringIO):
    """A file for a console that turns each piece of output into a frame."""

    def __init__(self, observe: Observer) -> None:
        super().__init__()
        self._observe = observe

    def write(self, text: str) -> int:
        if text.strip():
            self._observe(Frame("shown", text))
        return len(text)


@contextmanager
def run_beside(work: Coroutine[Any, Any, None]) -> Iterator[None]:
    """Run a coroutine while the block runs."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()


if __name__ == "__main__":
    recording = Path(skillshelf.cli.__file__).with_name("demo.json")
    text = json.dumps([asdict(frame) for frame in record_demo()], indent=1, ensure_ascii=False) + "\n"
    recording.write_text(text, encoding="utf-8")
    print(recording)
