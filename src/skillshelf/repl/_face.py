"""The two faces of a chat, a terminal and a pipe: what commands may do with them."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from rich.console import RenderableType

from skillshelf.agent import AgentCore, Attachment, Settings
from skillshelf.agent.events import Event
from skillshelf.agent.sessions import SessionInfo
from skillshelf.rendering import Cleaned
from skillshelf.text import clean


class ChatFace(Protocol):
    """The face that a command was typed in: a terminal, a pipe, or a test."""

    core: AgentCore
    settings: Settings

    def print(self, *parts: RenderableType) -> None:
        """Show something to the user."""

    def write_escape(self, sequence: str) -> None:
        """Write an escape sequence to the user's terminal. Raises SkillError if there is none."""

    async def attach(self, text: str) -> Sequence[Attachment]:
        """Read the files that a line of the user mentions, and say which they are."""

    async def send(self, events: AsyncIterator[Event]) -> None:
        """Run a turn and show it."""

    def waiting(self, activity: str) -> AbstractContextManager[None]:
        """Show this activity while the block runs."""

    async def review(self) -> None:
        """Let the user decide about skills that are not trusted yet."""

    async def choose_session(self, sessions: Sequence[SessionInfo]) -> str | None:
        """Let the user choose a session, and return its id; None if they choose none, or cannot."""

    async def declare_mine(self) -> None:
        """Ask the user whether this repository is their own, and record it."""

    def note_pending_shown(self) -> None:
        """Note that the user has just been shown the pending skills."""

    def leave(self) -> None:
        """End the chat after this command."""


def clean_output(parts: tuple[RenderableType, ...]) -> Iterator[RenderableType]:
    """Clean everything a command prints, no matter who wrote the command; empty texts are dropped."""
    for part in parts:
        if part != "":
            yield clean(part) if isinstance(part, str) else Cleaned(part)
