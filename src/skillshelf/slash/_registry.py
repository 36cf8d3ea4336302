"""The commands there are: the host's, the skills' and those that others add. The host owns names and collisions."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from skillshelf.errors import SettingsError
from skillshelf.slash._command import Call, Command, Host, UnknownCommand, arguments_of, parse, split_name
from skillshelf.slash._ranking import Names, Rank, rank
from skillshelf.text import closest_names

T = TypeVar("T")
ENTRY_POINTS = "skillshelf.commands"
"""The group of entry points whose functions are given the `register` callback."""
Given = Sequence[Command[Host]] | Callable[[], Sequence[Command[Host]]]
# Of what is typed, as much as a message about it needs.
_LOOKED_AT = 200


class Register(Protocol):
    """What an extension is given: `register("db ", [Command("migrate", …)])` adds `/db migrate`."""

    def __call__(self, prefix: str, commands: Given[Any]) -> None: ...


class Entry(NamedTuple, Generic[Host]):
    """A command under the name a person types."""

    spelling: str
    """Without the slash."""
    prefix: str
    owner: str
    command: Command[Host]


class Source(NamedTuple, Generic[Host]):
    prefix: str
    owner: str
    given: Given[Host]


class Table(Generic[Host]):
    """All commands at one moment. Where two have one name, the one that was registered first is taken."""

    def __init__(self, sources: Sequence[Source[Host]], given: Sequence[Sequence[Command[Host]]]) -> None:
        self.sources = sources
        self.entries: dict[str, Entry[Host]] = {}
        for source, commands in zip(sources, given, strict=True):
            for command in commands:
                spelling = source.prefix + command.name
                if spelling not in self.entries and command.name and spelling.isprintable():
                    self.entries[spelling] = Entry(spelling, source.prefix, source.owner, command)
        self.prefixes = sorted({source.prefix for source in sources} | {""}, key=len, reverse=True)
        self._scopes: dict[str, tuple[list[Entry[Host]], Names]] = {}

    def scope(self, typed: str) -> str:
        """The longest prefix that what is typed begins with."""
        return next(prefix for prefix in self.prefixes if typed.startswith(prefix))

    def within(self, scope: str) -> tuple[list[Entry[Host]], Names]:
        """The commands of a prefix, ready to be ranked; all of them for none."""
        if scope not in self._scopes:
            entries = [entry for entry in self.entries.values() if entry.prefix == scope or not scope]
            spellings = [entry.spelling.removeprefix(scope) for entry in entries]
            names = [entry.command.name for entry in entries]
            self._scopes[scope] = entries, Names(names, spellings, [entry.command.summary for entry in entries])
        return self._scopes[scope]

    def resolve(self, typed: str) -> tuple[Entry[Host], int] | None:
        """Return the command with the longest name that the text begins with, and where the name ends."""
        match = split_name(typed, self.entries)
        if match is None:
            return None
        spelling, end = match
        return self.entries[spelling], end

    def unknown(self, typed: str, through: str) -> UnknownCommand:
        """What to say of a command that does not exist; `through` is as much of it as counts."""
        scope = self.scope(typed)
        entries = self.within(scope)[0]
        wanted = through.removeprefix(scope).strip().lower()[:_LOOKED_AT]
        spellings: dict[str, list[str]] = {}
        for entry in entries:
            spellings.setdefault(entry.command.name, []).append(f"/{entry.spelling}")
        near = closest_names(wanted, spellings) if wanted else tuple(spellings)[:3]
        return UnknownCommand(through, tuple(name for bare in near for name in spellings[bare][:2])[:3])


class Commands(Generic[Host]):
    """What a person types is a slash, a prefix and a command's name."""

    def __init__(self, rank: Rank = rank) -> None:
        self.rank = rank
        """How completion ranks names; the default forgives no typos."""
        self.problems: dict[str, str] = {}
        """By owner, the last thing that went wrong in code that completes or lists its commands."""
        self._sources: tuple[Source[Host], ...] = ()
        self._given: list[tuple[Command[Host], ...]] = []
        self._table: Table[Host] = Table((), ())

    def register(self, prefix: str, commands: Given[Host], *, owner: str = "skillshelf") -> None:
        """Add commands under a prefix; a callable is asked each time, so what it lists may change.

        Raises SettingsError for a name that somebody has already, and then adds none of them.
        """
        source = Source(prefix, owner, commands if callable(commands) else tuple(commands))
        taken = dict(self.table().entries)
        for command in self._ask(source):
            spelling = prefix + command.name
            if spelling in taken:
                raise SettingsError(f"/{spelling} is a command of {taken[spelling].owner!r}; {owner!r} cannot add it.")
            if parse("/" + spelling) is None or not spelling.isprintable() or spelling != spelling.strip():
                raise SettingsError(f"{owner!r} cannot add a command that nobody can type: {'/' + spelling!r}.")
            taken[spelling] = Entry(spelling, prefix, owner, command)
        self._sources += (source,)

    def register_entry_points(self, group: str = ENTRY_POINTS) -> list[str]:
        """Let installed packages add commands. One that fails adds nothing and is named in the answer."""
        from importlib.metadata import entry_points  # 20 ms that only an interactive start pays

        failed = []
        for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
            before = self._sources
            try:
                point.load()(self._register_for(point.name))
            except Exception as error:  # whatever an extension does, the others and the host go on
                self._sources = before
                failed.append(f"The commands of {point.name!r} ({point.value}) are left out: {_said(error)}")
        return failed

    def _register_for(self, owner: str) -> Register:
        return lambda prefix, commands: self.register(prefix, commands, owner=owner)

    def table(self) -> Table[Host]:
        """All commands as they are now."""
        given = [self._ask(source) for source in self._sources]
        if given != self._given or self._table.sources is not self._sources:
            self._given, self._table = given, Table(self._sources, given)
        return self._table

    def find(self, text: str) -> Call[Host] | UnknownCommand | None:
        """The command that a message is, with its arguments; None for a message."""
        if parse(text) is None:
            return None
        typed, table = text[1:], self.table()
        resolved = table.resolve(typed)
        if resolved is None:
            return table.unknown(typed, typed.split(maxsplit=1)[0])
        entry, end = resolved
        arguments = arguments_of(typed[end:])
        if arguments and not entry.command.usage and f"{entry.spelling} " in table.prefixes:
            subcommand = arguments.split(maxsplit=1)[:1]
            return table.unknown(typed, " ".join([entry.spelling, *subcommand]))
        return Call(entry.command, arguments)

    def _ask(self, source: Source[Host]) -> tuple[Command[Host], ...]:
        given = source.given
        return self.attempt(source.owner, given) if callable(given) else tuple(given)

    def attempt(self, owner: str, ask: Callable[[], Sequence[T]]) -> tuple[T, ...]:
        """Ask code of somebody else in the middle of a key press: a failure is noted, and typing goes on."""
        try:
            return tuple(ask())
        except Exception as error:
            self.problems[owner] = _said(error)
            return ()


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if not isinstance(error, SettingsError) else str(error)
