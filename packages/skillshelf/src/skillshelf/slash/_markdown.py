"""Markdown commands as slash commands, and the message that one becomes."""

from collections.abc import Awaitable, Callable, Container, Sequence

from skillshelf.shelf.workspace_skills import MarkdownCommand
from skillshelf.slash._commands import SKILL_PREFIX, Command, FaceT, parse_command
from skillshelf.slash._skills import fill_placeholders
from skillshelf.text.tokens import Counter

Send = Callable[[FaceT, MarkdownCommand, str], Awaitable[None] | None]
"""Called with the face, the command, and the arguments."""


def markdown_commands(
    find: Callable[[], Sequence[MarkdownCommand]], send: Send[FaceT], counter: Counter, taken: Container[str]
) -> Callable[[], Sequence[Command[FaceT]]]:
    """Return a function for `register("", …)` that lists a slash command for each Markdown command.

    Those whose name is taken or cannot be typed are left out.
    """
    found: Sequence[MarkdownCommand] = ()
    made: tuple[Command[FaceT], ...] = ()

    def make(command: MarkdownCommand) -> Command[FaceT]:
        def run(face: FaceT, arguments: str) -> Awaitable[None] | None:
            return send(face, command, arguments)

        usage = command.argument_hint or " ".join(f"[{name}]" for name in command.arguments)
        return Command(command.name, command.description, run, usage, cost=counter(command.text))

    def list_commands() -> Sequence[Command[FaceT]]:
        nonlocal found, made
        now = find()
        if now is not found:  # as it is nearly always: this is called at each key
            found = now
            made = tuple(make(command) for command in now if command.name not in taken and _can_be_typed(command.name))
        return made

    return list_commands


def expand_command(command: MarkdownCommand, arguments: str) -> str:
    """Return the message that a command with these arguments becomes.

    Placeholders are replaced as in a skill that declares arguments; arguments without a place follow the text.
    """
    filled = fill_placeholders(command.text, arguments, command.arguments)
    if filled.is_complete:
        return filled.text
    return f"{filled.text.rstrip()}\n\n{arguments}"


def _can_be_typed(name: str) -> bool:
    return parse_command(f"/{name}") == (name, "") and not name.startswith(SKILL_PREFIX)
