"""The values of slash commands, and what counts as one.

A message is a command when it begins with a slash and a letter or digit, unless a second slash comes in the first word
before any colon: `/usr/bin is missing` and `/a/b/` are messages, `/skills:../x` is a command that does not exist. A
path of one part, `/tmp`, cannot be told from a command: a space before the slash makes anything a message.
"""

import re
from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from skillshelf.text import clean_line

Host = TypeVar("Host")
_FIRST_WORD = re.compile(r"/([^\W_][^\s/:]*+(?::\S*+)?+)(?!\S)")
_SEPARATOR = re.compile(r"[ \t]*+(?:\r?\n)?+")
_SHOWN = 60
# A pasted line can be long, and completion looks at it with every key press.
_MAX_NAME_LENGTH = 1_000


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could be typed next."""

    text: str
    start: int = 0
    """Where it goes: this many characters before the cursor are replaced, as a negative number."""
    label: str = ""
    """What a menu shows of it; empty: the text."""
    meta: str = ""
    cost: int | None = None
    """Tokens."""


@dataclass(frozen=True, slots=True)
class Command(Generic[Host]):
    """Something a person can type after a slash."""

    name: str
    summary: str
    run: Callable[[Host, str], Awaitable[None] | None]
    usage: str = ""
    """What may follow, to show: `NAME [REFERENCE]`. A command with subcommands and no usage takes nothing else."""
    complete: Callable[[str], Sequence[Candidate]] | None = None
    """What could end these arguments. Candidates that begin at 0 replace the last word and are ranked by it here;
    others have been chosen by the command and are taken as they are."""
    cost: int | None = None
    """Tokens that it brings into the conversation, where that is known."""


class Slash(NamedTuple):
    """A message that is a command, taken apart without knowing which commands there are."""

    name: str
    """The first word."""
    arguments: str


class Call(NamedTuple, Generic[Host]):
    """A command that exists, and what it was given."""

    command: Command[Host]
    arguments: str


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A command that does not exist."""

    typed: str
    """Without the slash."""
    nearest: tuple[str, ...] = ()
    """What was perhaps meant, with the slash."""

    def __str__(self) -> str:
        shown = clean_line(self.typed[:_SHOWN]) + ("…" if len(self.typed) > _SHOWN else "")
        asked = f"A name is missing after /{shown}." if self.typed.endswith(":") else f"Unknown command /{shown}."
        hint = f"Did you mean {', '.join(self.nearest)}?" if self.nearest else "Type / and press Tab to see them all."
        return f"{asked} {clean_line(hint)} (To send this as a message, begin with a space.)"


def parse(text: str) -> Slash | None:
    """The command a message is; None for a message."""
    word = _FIRST_WORD.match(text)
    return Slash(word[1], arguments_of(text[word.end() :])) if word else None


def arguments_of(rest: str) -> str:
    """What follows a command, verbatim from the first word or the next line on."""
    return _SEPARATOR.sub("", rest, count=1)


def split_name(typed: str, names: Container[str]) -> tuple[str, int] | None:
    """Return the longest of the names that the text begins with, and where it ends in the text.

    A name may have spaces, and more than one may be typed between its words. It ends at a space or with the line.
    """
    line = typed.partition("\n")[0]
    for end in range(min(len(line), _MAX_NAME_LENGTH), 0, -1):
        is_end_of_word = (end == len(line) or line[end].isspace()) and not line[end - 1].isspace()
        if not is_end_of_word:
            continue
        for name in (line[:end], " ".join(line[:end].split())):
            if name in names:
                return name, end
    return None
