"""Slash commands: what counts as one, and the registry of those there are.

A message is a command if it begins with a slash and a letter or digit, unless a second slash comes in the first word
before any colon: `/usr/bin is missing` and `/a/b/` are messages, `/skills:../x` is a command that does not exist. A
path of one part, `/tmp`, cannot be told from a command. A space before the slash makes anything a message.

`/skills:NAME` invokes a skill, and so does `/NAME` if no command has that name.
"""

import re
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from skillshelf.errors import SettingsError
from skillshelf.slash._ranking import NameIndex, Rank, rank
from skillshelf.text import clean_line, closest_names, truncate

FaceT = TypeVar("FaceT")
T = TypeVar("T")

SKILL_PREFIX = "skills:"
"""The prefix of the commands that invoke skills. It may be left out."""
ENTRY_POINTS = "skillshelf.slash_commands"
"""The group of entry points whose functions are called with `register`."""

_FIRST_WORD = re.compile(r"/([^\W_][^\s/:]*+(?::\S*+)?+)(?!\S)")
_SEPARATOR = re.compile(r"[ \t]*+(?:\r?\n)?+")
_MAX_SHOWN = 60
_MAX_COMPARED = 200
# A pasted line can be long, and completion looks at it with every key press.
_MAX_NAME_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Something that could be typed next."""

    text: str
    start: int = 0
    """Where it goes, as a negative number: so many characters before the cursor are replaced."""
    label: str = ""
    """The text that a menu shows instead, if any."""
    meta: str = ""
    cost: int | None = None
    """Tokens."""


@dataclass(frozen=True, slots=True)
class Command(Generic[FaceT]):
    """Something a user can type after a slash."""

    name: str
    summary: str
    run: Callable[[FaceT, str], Awaitable[None] | None]
    usage: str = ""
    """What may follow the name, for display: `NAME [REFERENCE]`. A command with subcommands and no usage takes nothing
    else."""
    complete: Callable[[str], Sequence[Suggestion]] | None = None
    """Suggests endings for the arguments typed so far. Suggestions with a start of 0 replace the last word and are
    ranked by it; others were chosen by the command and are taken as they are."""
    cost: int | None = None
    """Tokens that it adds to the conversation, if known."""


class SlashMessage(NamedTuple):
    """A message that has the form of a command, whether or not the command exists."""

    name: str
    """The first word, without the slash."""
    arguments: str


class CommandCall(NamedTuple, Generic[FaceT]):
    """A command that exists, and its arguments."""

    command: Command[FaceT]
    arguments: str


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A command that does not exist. As a string: what to tell the user."""

    typed: str
    """Without the slash."""
    nearest: tuple[str, ...] = ()
    """Commands that were perhaps meant, with the slash."""

    def __str__(self) -> str:
        shown = clean_line(truncate(self.typed, _MAX_SHOWN))

        if self.typed.endswith(":"):
            problem = f"A name is missing after /{shown}."
        else:
            problem = f"Unknown command /{shown}."

        hint = "Type / and press Tab to see them all."
        if self.nearest:
            hint = f"Did you mean {', '.join(self.nearest)}?"
        return f"{problem} {clean_line(hint)} (To send this as a message, begin with a space.)"


def parse_command(text: str) -> SlashMessage | None:
    """Take a command apart into name and arguments. Return None for a message."""
    word = _FIRST_WORD.match(text)
    if word is None:
        return None
    return SlashMessage(word[1], strip_separator(text[word.end() :]))


def strip_separator(rest: str) -> str:
    """Return the arguments that follow a command's name: verbatim from the first word or the next line on."""
    return _SEPARATOR.sub("", rest, count=1)


class NameMatch(NamedTuple):
    """A name that a text begins with."""

    name: str
    end: int
    """Where it ends in the text."""


def find_name(typed: str, names: Container[str]) -> NameMatch | None:
    """Return the longest of the names that the text begins with.

    A name may have spaces, and more than one may be typed between its words. It ends at a space or with the line.
    """
    line = typed.partition("\n")[0]
    for end in range(min(len(line), _MAX_NAME_LENGTH), 0, -1):
        is_end_of_word = (end == len(line) or line[end].isspace()) and not line[end - 1].isspace()
        if not is_end_of_word:
            continue
        for name in (line[:end], " ".join(line[:end].split())):
            if name in names:
                return NameMatch(name, end)
    return None


CommandList = Sequence[Command[FaceT]] | Callable[[], Sequence[Command[FaceT]]]
"""Commands, or a function that lists them each time it is called."""


class Register(Protocol):
    """The callback that an extension gets: `register("db ", [Command("migrate", …)])` adds `/db migrate`."""

    def __call__(self, prefix: str, commands: CommandList[Any]) -> None: ...


class RegisteredCommand(NamedTuple, Generic[FaceT]):
    """A command under the name that a user types."""

    spelling: str
    """Without the slash."""
    prefix: str
    owner: str
    command: Command[FaceT]


class ResolvedCommand(NamedTuple, Generic[FaceT]):
    """The command that a text begins with."""

    entry: RegisteredCommand[FaceT]
    end: int
    """Where its name ends in the text."""


class CommandGroup(NamedTuple, Generic[FaceT]):
    """Commands that were registered together."""

    prefix: str
    owner: str
    commands: CommandList[FaceT]


class CommandTable(Generic[FaceT]):
    """All commands at one moment. If two have the same name, the one registered first wins."""

    def __init__(self, groups: Sequence[CommandGroup[FaceT]], commands: Sequence[Sequence[Command[FaceT]]]) -> None:
        self.groups = groups
        self.entries: dict[str, RegisteredCommand[FaceT]] = {}
        for group, members in zip(groups, commands, strict=True):
            for command in members:
                spelling = group.prefix + command.name
                if spelling not in self.entries and command.name and spelling.isprintable():
                    self.entries[spelling] = RegisteredCommand(spelling, group.prefix, group.owner, command)

        self.prefixes = sorted({group.prefix for group in groups} | {""}, key=len, reverse=True)
        self._scopes: dict[str, tuple[list[RegisteredCommand[FaceT]], NameIndex]] = {}

    def find_scope(self, typed: str) -> str:
        """Return the longest prefix that the text begins with."""
        return next(prefix for prefix in self.prefixes if typed.startswith(prefix))

    def list_scope(self, scope: str) -> tuple[list[RegisteredCommand[FaceT]], NameIndex]:
        """Return the commands of a prefix, and their names ready for ranking. The empty prefix has all commands."""
        if scope not in self._scopes:
            entries = [entry for entry in self.entries.values() if entry.prefix == scope or not scope]
            # `/rel` begins the name of a skill, but not that of `/skills reload`.
            typable = (scope, SKILL_PREFIX)
            names = [entry.command.name if entry.prefix in typable else entry.spelling for entry in entries]
            spellings = [entry.spelling.removeprefix(scope) for entry in entries]
            summaries = [entry.command.summary for entry in entries]
            self._scopes[scope] = entries, NameIndex(names, spellings, summaries)
        return self._scopes[scope]

    def resolve(self, typed: str) -> ResolvedCommand[FaceT] | None:
        """Return the command with the longest name that the text begins with, or else the skill."""
        for prefix in ("", SKILL_PREFIX):
            match = find_name(prefix + typed, self.entries)
            if match is not None:
                return ResolvedCommand(self.entries[match.name], match.end - len(prefix))
        return None

    def suggest_instead(self, typed: str, scope: str) -> UnknownCommand:
        """Return an answer to a command that does not exist, with the names under a prefix that come closest."""
        entries, _ = self.list_scope(scope)
        spellings: dict[str, list[str]] = {}
        for entry in entries:
            spellings.setdefault(entry.command.name, []).append(f"/{entry.spelling}")

        wanted = typed.removeprefix(scope).strip().lower()[:_MAX_COMPARED]
        begun = [name for name in spellings if name.lower().startswith(wanted)]
        closest = closest_names(wanted, spellings) if wanted else ()
        nearest = [spelling for name in dict.fromkeys([*begun, *closest]) for spelling in spellings[name][:2]]
        return UnknownCommand(typed, tuple(nearest[:3]))


class Commands(Generic[FaceT]):
    """The registry: the face's commands, the skills' and those of extensions.

    The face owns the names: an extension cannot take one that exists.
    """

    def __init__(self, rank: Rank = rank) -> None:
        self.rank = rank
        """How completion ranks names. The default forgives no typos."""
        self.problems: dict[str, str] = {}
        """The last error, by owner, in code that lists or completes the owner's commands."""
        self._groups: tuple[CommandGroup[FaceT], ...] = ()
        self._listed: list[tuple[Command[FaceT], ...]] = []
        self._table: CommandTable[FaceT] = CommandTable((), ())

    def register(self, prefix: str, commands: CommandList[FaceT], *, owner: str = "skillshelf") -> None:
        """Add commands under a prefix. A callable is called each time, so its list may change.

        Raises SettingsError if a name is taken or cannot be typed, and then adds none of them.
        """
        group = CommandGroup(prefix, owner, commands if callable(commands) else tuple(commands))
        taken = dict(self.table().entries)
        for command in self._list_group(group):
            spelling = prefix + command.name
            if spelling in taken:
                raise SettingsError(f"/{spelling} is a command of {taken[spelling].owner!r}; {owner!r} cannot add it.")
            if parse_command(f"/{spelling}") is None or not spelling.isprintable() or spelling != spelling.strip():
                raise SettingsError(f"{owner!r} cannot add a command that cannot be typed: {f'/{spelling}'!r}.")
            taken[spelling] = RegisteredCommand(spelling, prefix, owner, command)
        self._groups += (group,)

    def register_entry_points(self) -> list[str]:
        """Let installed packages add commands. Return a message for each package that failed and added nothing."""
        from importlib.metadata import entry_points  # 20 ms that only an interactive start pays

        failures = []
        for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, point.value)):
            before = self._groups
            try:
                point.load()(self._make_register(point.name))
            except Exception as error:  # an extension may raise anything; the others and the face go on
                self._groups = before
                failures.append(f"The commands of {point.name!r} ({point.value}) are left out: {_describe(error)}")
        return failures

    def table(self) -> CommandTable[FaceT]:
        """Return all commands as they are now."""
        listed = [self._list_group(group) for group in self._groups]
        if listed != self._listed or self._table.groups is not self._groups:
            self._listed = listed
            self._table = CommandTable(self._groups, listed)
        return self._table

    def find(self, text: str) -> CommandCall[FaceT] | UnknownCommand | None:
        """Return the command that a message calls, with its arguments. Return None for a message."""
        if parse_command(text) is None:
            return None

        typed = text[1:]
        table = self.table()
        resolved = table.resolve(typed)
        if resolved is None:
            first_word = typed.split(maxsplit=1)[0]
            return table.suggest_instead(first_word, table.find_scope(typed))

        entry = resolved.entry
        arguments = strip_separator(typed[resolved.end :])
        takes_only_subcommands = not entry.command.usage and f"{entry.spelling} " in table.prefixes
        if arguments and takes_only_subcommands:
            subcommand = arguments.split(maxsplit=1)[:1]
            return table.suggest_instead(" ".join([entry.spelling, *subcommand]), table.find_scope(typed))
        return CommandCall(entry.command, arguments)

    def call_extension(self, owner: str, function: Callable[[], Sequence[T]]) -> tuple[T, ...]:
        """Call an extension's code in the middle of a key press: a failure is noted, and typing goes on."""
        try:
            return tuple(function())
        except Exception as error:
            self.problems[owner] = _describe(error)
            return ()

    def _list_group(self, group: CommandGroup[FaceT]) -> tuple[Command[FaceT], ...]:
        if callable(group.commands):
            return self.call_extension(group.owner, group.commands)
        return tuple(group.commands)

    def _make_register(self, owner: str) -> Register:
        return lambda prefix, commands: self.register(prefix, commands, owner=owner)


def _describe(error: Exception) -> str:
    if isinstance(error, SettingsError):
        return str(error)
    return f"{type(error).__name__}: {error}"
