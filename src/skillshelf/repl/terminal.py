"""The agent in a terminal."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext, suppress

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from rich.console import Console, RenderableType
from rich.syntax import Syntax
from rich.text import Text

from skillshelf import places
from skillshelf.agent.core import AgentCore
from skillshelf.agent.events import Event
from skillshelf.agent.policy import Answer, Approval
from skillshelf.agent.settings import Settings
from skillshelf.agent.trust import review_text, summary
from skillshelf.characters import clean, clean_line
from skillshelf.errors import MissingExtraError, SkillError
from skillshelf.repl.commands import make_commands, run_command
from skillshelf.repl.complete import SlashCompleter, workspace_files
from skillshelf.repl.keys import ask_key
from skillshelf.repl.show import Screen
from skillshelf.repl.views import Page
from skillshelf.slash import complete

_KEYS = {"y": "yes", "n": "no", "a": "always"}


class Terminal:
    """A conversation on a screen: one prompt after the other."""

    def __init__(self, core: AgentCore, settings: Settings, console: Console) -> None:
        self.core, self.settings, self.console = core, settings, console
        core.approve = self.approve
        self.screen = Screen(console)
        self.commands = make_commands(self)
        self._left = False
        self._asked: set[tuple[str, str]] = set()
        self._pending = 0

    def print(self, *what: RenderableType) -> None:
        self.console.print(*(clean(one) if isinstance(one, str) else one for one in what if one != ""), sep="\n")

    def leave(self) -> None:
        self._left = True

    async def run(self) -> int:
        """Until the person leaves."""
        session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=SlashCompleter(self.commands, lambda path: workspace_files(self.core.skills.root, path)),
            complete_while_typing=True,
            key_bindings=_bindings(),
            bottom_toolbar=self._status,
            multiline=False,
            enable_history_search=False,
        )
        self._greet()
        with self._watching():
            while not self._left:
                await self._ask_about_changes()
                await asyncio.to_thread(self._warm)
                try:
                    with patch_stdout():
                        text = await session.prompt_async([("bold", "› ")])
                except KeyboardInterrupt:
                    continue
                except EOFError:
                    break
                if text.strip():
                    await self.say(text)
        return 0

    async def say(self, text: str) -> None:
        """What a person does with a line: a command, or a message."""
        try:
            if not await run_command(self, self.commands, text):
                await self.send(self.core.process_message(text))
        except SkillError as error:
            self.console.print(Text(clean(str(error)), "red"))

    async def send(self, events: AsyncIterator[Event]) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self.core.cancel)
        try:
            self.screen.waiting()
            async for event in events:
                self.screen.show(event)
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            self.screen.pause()

    async def approve(self, approval: Approval) -> Answer:
        """Asked in the middle of a turn: one key decides."""
        self.screen.pause()
        for name, value in approval.arguments.items():
            if not (approval.diff and name in ("content", "old_text", "new_text", "replacements")):
                self.console.print(Text.assemble((f"{clean_line(name)}: ", "dim"), clean(str(value))))
        if approval.diff:
            self.console.print(Syntax(clean(approval.diff), "diff", theme="ansi_dark", background_color="default"))
        question = f"Allow {clean_line(approval.tool)}? [y]es [n]o [a]lways in this session "
        answer = await ask_key(question, _KEYS, "no")
        self.console.print(Text(f"{answer}", "dim"))
        return answer  # type: ignore[return-value]  # one of _KEYS

    async def review(self) -> None:
        """One skill after the other, with everything in it; the default is no."""
        pending = self.core.skills.pending
        if not pending:
            self.print("Every skill of this workspace is as you agreed to it.")
        for at, one in enumerate(pending, 1):
            self.console.print(Page(clean(review_text(one))))
            question = f"({at}/{len(pending)}) Trust {clean_line(one.name)} as it is now? [y]es [n]o [q]uit "
            answer = await ask_key(question, {"y": "yes", "n": "no", "q": "quit"}, "no")
            self.console.print(Text(answer, "dim"))
            if answer == "quit":
                break
            if answer == "yes":
                self.core.skills.approve([one])
        self._asked.update(self._waiting())
        self._pending = len(self._asked & self._waiting())
        self.core.reload_skills()

    async def _ask_about_changes(self) -> None:
        pending = self.core.skills.pending
        self._pending = len(pending)
        fresh = [one for one in pending if (one.key, one.tree) not in self._asked]
        if not fresh:
            return
        self._asked.update(self._waiting())
        self.console.print(Text("Skills of this workspace that you have not agreed to:", "yellow"))
        for one in fresh:
            self.console.print(Text(f"  {clean_line(summary(one))}", "yellow"))
        question = "[r]eview them now, or [l]ater with /skills trust "
        if await ask_key(question, {"r": "review", "l": "later"}, "later") == "review":
            await self.review()

    def _waiting(self) -> set[tuple[str, str]]:
        return {(one.key, one.tree) for one in self.core.skills.pending}

    def _greet(self) -> None:
        line = Text.assemble(
            ("skillshelf", "bold"), f"  {clean_line(self.core.model.name)}  {self._count()}  ", ("/help", "dim")
        )
        self.print(line, Text(self.core.model.note, "dim") if self.core.model.note else "")

    def _status(self) -> FormattedText:
        core = self.core
        filled = core.used / max(1, core.model.window)
        context = "<1%" if 0 < filled < 0.01 else f"{filled:.0%}"
        cost = (
            f"${core.spent.cost:.4f}"
            if core.spent.cost is not None
            else f"{core.spent.input + core.spent.output:,} tokens"
        )
        waiting = self._pending
        parts = [core.model.name, f"context {context}", cost, core.policy.mode, self._count()]
        parts += [f"{waiting} to review: /skills trust"] if waiting else []
        return FormattedText([("", clean_line(" " + " · ".join(parts)))])

    def _count(self) -> str:
        count = len(self.core.shelf.catalog)
        return f"{count:,} skill{'s' * (count != 1)}"

    def _warm(self) -> None:
        """Prepare what the first key would wait for: names and words of a shelf that changed."""
        complete(self.commands, "/skills:qxzqxz")

    def _watching(self) -> AbstractContextManager[object]:
        with suppress(MissingExtraError):
            if not self.core.skills.frozen:
                return self.core.shelf.watch(lambda delta: self._warm())
        return nullcontext()  # the sweep of each turn sees what changed


def _history() -> History:
    home = places.state_home()
    if home is None:
        return InMemoryHistory()
    try:
        os.makedirs(home, mode=0o700, exist_ok=True)
        path = os.path.join(home, "history")
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return bindings
