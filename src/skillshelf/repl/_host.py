"""What a command can do with the face it was typed in."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from rich.console import RenderableType

from skillshelf.agent import AgentCore, Settings
from skillshelf.agent.events import Event
from skillshelf.rendering import Cleaned
from skillshelf.text import clean


class Host(Protocol):
    """A terminal, a pipe, or a test."""

    core: AgentCore
    settings: Settings

    def print(self, *what: RenderableType) -> None:
        """Show something to the person."""

    async def send(self, events: AsyncIterator[Event]) -> None:
        """Run a turn, and show it."""

    def waiting(self, what: str) -> AbstractContextManager[None]:
        """Show that this is going on."""

    async def review(self) -> None:
        """Let the person decide about skills that are not trusted yet."""

    def leave(self) -> None:
        """This was the last command."""


def shown(what: tuple[RenderableType, ...]) -> Iterator[RenderableType]:
    """What a face prints of what a command gave it: whoever made it, it is cleaned."""
    for one in what:
        if one != "":
            yield clean(one) if isinstance(one, str) else Cleaned(one)
