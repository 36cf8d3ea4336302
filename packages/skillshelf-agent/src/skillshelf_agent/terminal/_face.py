"""The two faces of a chat, a terminal and a pipe: what commands may do with them, and what both do alike."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rich.console import RenderableType

from skillshelf.text import clean
from skillshelf.text.rendering import Cleaned

if TYPE_CHECKING:
    from rich.text import Text

    from skillshelf_agent import AgentCore, Attachment, FoundAttachments, Settings
    from skillshelf_agent.events import Event
    from skillshelf_agent.sessions import SentMessage, SessionInfo


NO_OPTIONS: Mapping[str, object] = {}


class OpenedAgent(NamedTuple):
    """An agent, and what it was opened with."""

    core: AgentCore
    settings: Settings
    options: Mapping[str, object]
    """The settings that were given on the command line. They win over those that a session was used with."""


class ChatFace(Protocol):
    """The face that a command was typed in: a terminal, a pipe, or a test."""

    core: AgentCore
    settings: Settings
    options: Mapping[str, object]
    """The settings that were given on the command line."""

    def print(self, *parts: RenderableType) -> None:
        """Show something to the user."""

    def print_diff(self, title: Text, diff: str) -> None:
        """Show the change of a file to the user."""

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

    async def confirm(self, question: str) -> bool:
        """Return True if the user agrees; False if there is nobody to ask."""

    def offer_sessions(self, sessions: Sequence[SessionInfo]) -> None:
        """Show the user the sessions that they can resume."""

    def offer_messages(self, messages: Sequence[SentMessage]) -> None:
        """Show the user the messages that they can go back to."""

    def offer_text(self, text: str) -> None:
        """Give the user a text to edit and send."""

    def offer_models(self, names: Sequence[str]) -> None:
        """Show the user the models that they can choose."""

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


_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def call_on_end_signal(close: Callable[[int], None]) -> None:
    """Call `close` in the running loop, with the exit code for the signal, when a signal ends the program."""
    loop = asyncio.get_running_loop()
    for number in _ENDING_SIGNALS:
        is_ignored = signal.getsignal(number) is signal.SIG_IGN  # under nohup
        if is_ignored:
            continue
        with suppress(ValueError, RuntimeError):  # outside the main thread, signals belong to the caller
            loop.add_signal_handler(number, close, 128 + number)


_MAX_PROBLEMS = 5
"""Lines about files that were not attached. A pasted text can be full of words that begin with `@`."""


def describe_attachments(core: AgentCore, found: FoundAttachments) -> Iterator[str]:
    """Yield a line for each attached file, and for each that could not be attached."""
    for attachment in found.attachments:
        yield f"attached {attachment.name}: {_describe_size(core, attachment)}"
    yield from found.problems[:_MAX_PROBLEMS]
    if len(found.problems) > _MAX_PROBLEMS:
        yield f"… and {len(found.problems) - _MAX_PROBLEMS} more that were not attached"


def _describe_size(core: AgentCore, attachment: Attachment) -> str:
    return f"{attachment.summary}, ~{attachment.count_tokens(core.shelf.counter):,} tokens"
