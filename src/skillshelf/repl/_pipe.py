"""The agent without a terminal: one message in, the answer out, as text or as one JSON line for each event."""

import sys
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console, RenderableType

from skillshelf.agent import AgentCore, Settings
from skillshelf.agent import events as on
from skillshelf.errors import SkillError
from skillshelf.rendering import cut_words
from skillshelf.repl._commands import fresh_problems, make_commands, run_command
from skillshelf.repl._ending import on_end
from skillshelf.repl._host import shown
from skillshelf.repl._show import call_line, reload_line
from skillshelf.text import clean, clean_line, to_json


class Pipe:
    """The answer goes to standard output; what happened on the way to standard error, for whoever looks."""

    def __init__(self, core: AgentCore, settings: Settings, *, as_json: bool) -> None:
        self.core, self.settings = core, settings
        self._json = as_json
        self._code = 0
        self._console = Console(markup=False, emoji=False, highlight=False)
        self._ended = True
        self.commands = make_commands(self)

    async def run(self, text: str) -> int:
        """The exit code: 0, 1 where the turn failed, or that of the signal that ended it."""
        on_end(self._close)
        try:
            if not await run_command(self, self.commands, text):
                await self.send(self.core.process_message(text))
        except SkillError as error:
            self._show(on.Failed(type(error).__name__, str(error)))
        for problem in fresh_problems(self.commands, set()):
            self._show(on.Notice(problem))
        return self._code

    def print(self, *what: RenderableType) -> None:
        if not self._json:
            self._console.print(*shown(what), sep="\n")
            return
        with self._console.capture() as capture:
            self._console.print(*shown(what), sep="\n")
        self._show(on.Notice(capture.get().strip()))

    async def send(self, events: AsyncIterator[on.Event]) -> None:
        async for event in events:
            self._show(event)

    def waiting(self, what: str) -> AbstractContextManager[None]:
        return nullcontext()

    async def review(self) -> None:
        raise SkillError("Nobody is here to ask. Run `skillshelf trust` in a terminal.")

    def leave(self) -> None:
        """It was the only command anyway."""

    def _close(self, code: int) -> None:
        """The commands of the turn end with it."""
        self._code = code
        self.core.cancel()

    def _show(self, event: on.Event) -> None:
        if isinstance(event, on.Failed):
            self._code = self._code or 1
        if self._json:
            sys.stdout.write(to_json(event.as_json()) + "\n")
        elif isinstance(event, on.Text):
            sys.stdout.write(clean(event.text))
            self._ended = event.text.endswith("\n")
        else:
            self._aside(event)
        sys.stdout.flush()

    def _aside(self, event: on.Event) -> None:
        if not self._ended:
            sys.stdout.write("\n")
            self._ended = True
        line = _line(event)
        if line:
            sys.stdout.flush()
            sys.stderr.write(clean_line(line) + "\n")


def _line(event: on.Event) -> str:
    match event:
        case on.ToolCalled():
            return f"[{call_line(event).plain}]"
        case on.SkillLoaded(skill=skill, by=by):
            return f"[skill {skill} loaded by the {by}]"
        case on.ReferenceLoaded(skill=skill, reference=reference, by=by):
            return f"[reference {skill}/{reference} loaded by the {by}]"
        case on.SkillsReloaded():
            return f"[{reload_line(event)}]"
        case on.Notice(text=text):
            return text
        case on.Failed(message=message):
            return f"skillshelf: {message}"
        case on.ToolReturned(name=name, ok=False, text=text):
            return f"[{name}: {cut_words(text, 200)}]"
    return ""
