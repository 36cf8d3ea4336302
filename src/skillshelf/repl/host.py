"""What a command can do with the face it was typed in."""

from collections.abc import AsyncIterator
from typing import Protocol

from rich.console import RenderableType

from skillshelf.agent.core import AgentCore
from skillshelf.agent.events import Event
from skillshelf.agent.settings import Settings


class Host(Protocol):
    """A terminal, a pipe, or a test."""

    core: AgentCore
    settings: Settings

    def print(self, *what: RenderableType) -> None:
        """Show something to the person."""

    async def send(self, events: AsyncIterator[Event]) -> None:
        """Run a turn, and show it."""

    async def review(self) -> None:
        """Let the person decide about skills that are not trusted yet."""

    def leave(self) -> None:
        """This was the last command."""
