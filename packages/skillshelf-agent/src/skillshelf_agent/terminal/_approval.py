"""What the agent asks the user at a terminal: whether a tool may run, and the value of a variable."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.text import Text

from skillshelf.sandbox import Sandbox
from skillshelf.text import clean, clean_line
from skillshelf_agent import SHELL, WRITING, Answer, Approval, Refusal, SkillScript, VariableRequest
from skillshelf_agent.terminal._alerts import QUESTION
from skillshelf_agent.terminal._footer import Footer
from skillshelf_agent.terminal._quotes import Argument, Diff, Excerpt
from skillshelf_agent.terminal._screen import Screen

_STOP = "stop"
"""The answer of Ctrl+C: no, and the turn ends."""

_SHOWN_WITH_SCRIPT = ("skill_name", "script", "network")
_BACKGROUND = "background"
_SHOWN_IN_DIFF = ("content", "old_text", "new_text", "replacements")
# Longer content is shown in part: neither its beginning nor the question may be pushed off the screen.
_MAX_ARGUMENT_ROWS = 20
_MIN_DIFF_ROWS = 10
_QUESTION_ROWS = 14
"""The rows that the question and everything around the diff may need."""
_MAX_FILES = 5
_OBEYED = "SKILL.md, AGENTS.md, CLAUDE.md"


@dataclass(frozen=True, slots=True)
class _Choice:
    """A key, and the answer that it gives."""

    key: str
    answer: str
    label: str
    effect: str = ""
    """What the answer does here, if its label does not say it all."""

    @property
    def words(self) -> str:
        """The label without the mark of its key."""
        return self.label.replace("[", "").replace("]", "")


_REASON = _Choice("r", "reason", "[r]efuse and say why")
_VIEW = _Choice("v", "view", "[v]iew all of it")


class Questions:
    """Asks the user, one question at a time."""

    def __init__(self, screen: Screen, footer: Footer) -> None:
        self.screen = screen
        self.lock = asyncio.Lock()
        """Held while a question is on the screen: nothing else may be printed or asked."""
        self._console = screen.console
        self._footer = footer
        self._keyboard = footer.keyboard
        self._shown: dict[str, Sandbox] = {}
        """The sandbox that the last question about each tool described."""

    async def approve(self, approval: Approval) -> Answer:
        """Ask in the middle of a turn whether a tool may run."""
        async with self._asking():
            answer = await self._ask_about_call(approval)
            if answer == _STOP:
                self._footer.stop_work()
                return "no"
        return answer  # type: ignore[return-value]  # one of the answers

    async def ask_variable(self, request: VariableRequest) -> str | None:
        """Ask in the middle of a turn for a variable of a script. Return None if the user does not give one."""
        async with self._asking():
            return await self._ask_for_value(request)

    async def ask_line(self, question: str, *, hidden: bool) -> str:
        """Ask in the middle of a turn for a line that only a skill gets. Return an empty one if the user gives none."""
        async with self._asking():
            if hidden:
                return await self._read_unseen(clean_line(question))
            return await self._keyboard.ask_line(f"{clean_line(question)} (Enter for none):")

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[None]:
        """Call the user to a question in the middle of a turn."""
        async with self.lock:
            self.screen.pause()
            self._footer.alerts.call(QUESTION)
            try:
                yield
            finally:
                self._footer.alerts.clear()
                self.screen.show_waiting()

    async def _ask_about_call(self, approval: Approval) -> str | Refusal:
        """Show a tool call and return the answer: yes, reviewed, no, always, rule, _STOP, or a refusal and why."""
        console = self._console
        parts = _describe(approval, max(_MIN_DIFF_ROWS, console.height - _QUESTION_ROWS))
        excerpts = [Excerpt(console, content, max_rows, key=_VIEW.key) for content, max_rows in parts]
        if approval.script is not None:
            console.print(Text(clean_line(_introduce_script(approval.script)), "bold"))
        if approval.repeated:
            console.print(Text("The file changed after you allowed this. The change is now:", "yellow"))
        console.print(*excerpts, sep="")
        _print_warnings(approval, console)
        self._print_sandbox(approval)

        choices = _list_choices(approval)
        for choice in choices:
            if choice.effect:
                console.print(Text(f"  {choice.key}  {clean_line(choice.effect)}", "dim"))
        is_all_seen = not any(excerpt.hidden_rows for excerpt in excerpts)
        if not is_all_seen:
            choices.insert(3, _VIEW)

        while True:
            answer = await self._ask_for_key(approval, choices)
            if answer == "yes" and approval.diff and is_all_seen:
                return "reviewed"
            if answer == "reason":
                reason = await self._keyboard.ask_line("What should the model know?")
                if reason:
                    return Refusal(reason)
                continue
            if answer != "view":
                return answer

            await self._keyboard.show_in_pager(console, Group(*(content for content, _ in parts)))
            is_all_seen = True

    async def _ask_for_key(self, approval: Approval, choices: Sequence[_Choice]) -> str:
        """Return the answer of the key that is pressed, and leave its words on the screen."""
        question = " ".join([_ask_whether(approval), *(choice.label for choice in choices)])
        answer = await self._keyboard.ask(
            question,
            {choice.key: choice.answer for choice in choices},
            "no",
            stopped=_STOP,
            is_expected=False,
        )
        words = next((choice.words for choice in choices if choice.answer == answer), "no")
        self._console.print(Text(words, "dim"))
        return answer

    def _print_sandbox(self, approval: Approval) -> None:
        """Say what the program can do: in full at first and when it changes, otherwise in a sentence."""
        sandbox = approval.sandbox
        if sandbox is None:
            return
        is_known = self._shown.get(approval.tool) == sandbox
        self._shown[approval.tool] = sandbox
        text = sandbox.short_summary if is_known else sandbox.summary
        self._console.print(Text(clean_line(text), "dim" if sandbox else "yellow"))

    async def _ask_for_value(self, request: VariableRequest) -> str | None:
        """Return the value, from the environment or typed unseen, or None if the user does not give one."""
        name = clean_line(request.name)
        self._console.print(
            Text(
                f"The skill {clean_line(request.skill)} asks for {name} for its scripts. They get it until the session "
                "ends; nothing else does, and it is not saved.",
                "yellow",
            )
        )
        if request.in_environment:
            answers = {"y": "yes", "t": "type", "n": "no"}
            answer = await self._keyboard.ask(
                f"Give them {name} from your environment? [y]es [t]ype another [n]o", answers, "no"
            )
            self._console.print(Text(answer, "dim"))
            if answer == "yes":
                return os.environ.get(request.name)
            if answer == "no":
                return None
        return await self._read_unseen(name) or None

    async def _read_unseen(self, name: str) -> str:
        value = await self._keyboard.read_secret(f"{name} (not shown; Enter for none): ")
        self._console.print(Text("given" if value else "not given", "dim"))
        return value


def _list_choices(approval: Approval) -> list[_Choice]:
    """Return the answers that make sense here. Each says what it does, and does no more."""
    if approval.repetition is not None:
        return [_Choice("y", "yes", "[y]es, go on"), _Choice("n", "no", "[n]o, stop here"), _REASON]

    choices = [_Choice("y", "yes", "[y]es"), _Choice("n", "no", "[n]o"), _REASON]
    if approval.can_be_lasting:
        choices.append(_Choice("a", "always", "[a]lways", f"until you leave: {_describe_always(approval)}"))
    rule = approval.offered_rule
    if rule is not None:
        without_network = ", without the network" if approval.sandbox else ""
        effect = f"from now on, in this workspace: {rule.target}{without_network}"
        choices.append(_Choice("p", "rule", "[p]ermanently", effect))
    return choices


def _ask_whether(approval: Approval) -> str:
    if approval.repetition is not None:
        return "Go on?"
    return f"Allow {clean_line(approval.tool)}?"


def _describe(approval: Approval, diff_rows: int) -> list[tuple[RenderableType, int]]:
    """Return what the call is about, in parts, each with the number of rows it may take at first."""
    arguments = [
        Argument(name, value)
        for name, value in approval.arguments.items()
        if value is not None
        and not (approval.diff and name in _SHOWN_IN_DIFF)
        and not (approval.script and name in _SHOWN_WITH_SCRIPT)
        and not (approval.tool == SHELL and name == _BACKGROUND)
    ]
    if approval.path and not approval.path.endswith(f"/{approval.arguments.get('path')}"):
        arguments.append(Argument("file", approval.path))  # the model spelled the path differently

    parts: list[tuple[RenderableType, int]] = []
    if arguments:
        parts.append((Group(*arguments), _MAX_ARGUMENT_ROWS))
    if approval.diff:
        parts.append((Diff(clean(approval.diff)), diff_rows))
    if approval.script is not None:
        parts.append((Argument(approval.script.path, approval.script.text.rstrip("\n")), _MAX_ARGUMENT_ROWS))
    return parts


def _introduce_script(script: SkillScript) -> str:
    """Say what would run, with everything that the script gets beyond the folder."""
    words = [f"{script.path} of the skill {script.skill}, with its content {script.tree[:12]}"]
    if script.dependencies is not None:
        words.append(f"with the packages {', '.join(script.dependencies.packages)}")
    if script.variables:
        words.append(f"with the variables {', '.join(script.variables)}")
    words.append("WITH THE NETWORK" if script.network else "without the network")
    return ", ".join(words) + "."


def _print_warnings(approval: Approval, console: Console) -> None:
    if approval.repetition is not None:
        console.print(Text(f"{approval.repetition} It may be going in circles.", "yellow"))
    if approval.server:
        console.print(Text(f"A tool of the MCP server {clean_line(approval.server)}.", "dim"))
    if approval.changes_instructions:
        console.print(Text("The agent obeys this file, so each change of it is asked about.", "yellow"))
    if approval.tool == SHELL and approval.arguments.get(_BACKGROUND):
        console.print(Text("It runs in the background until it ends, /jobs kill ends it, or you leave.", "yellow"))
    for file in approval.unreviewed[:_MAX_FILES]:
        console.print(Text(clean_line(str(file)), "yellow"))
    if len(approval.unreviewed) > _MAX_FILES:
        console.print(Text(f"{len(approval.unreviewed) - _MAX_FILES} more files are not approved.", "yellow"))
    script = approval.script
    if script is not None and approval.sandbox is not None and not script.network and approval.sandbox.network:
        console.print(Text("The network cannot be blocked on this system: the script can use it.", "yellow"))


def _describe_always(approval: Approval) -> str:
    """Return what the key `a` would allow, and no more than it allows."""
    if approval.tool == SHELL:
        return "this very command"
    if approval.script is not None:
        network = ", with the network" if approval.script.network else ""
        return f"this script while it stays as it is, with any arguments{network}"
    if approval.tool in WRITING:
        return f"every write_file and edit_file, but not of {_OBEYED}"
    return f"{approval.tool} with these very arguments"
