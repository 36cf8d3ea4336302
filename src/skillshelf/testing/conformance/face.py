"""What a face has to offer so that the scenario can run through it. Its model is scripted; all else is real."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from skillshelf.shelf import Shelf


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the scripted model makes."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """What the model got back."""

    text: str
    failed: bool | None = None
    """Whether it was marked as an error; None where the framework has no such mark."""


@dataclass(frozen=True, slots=True)
class Said:
    """One user message, answered."""

    systems: tuple[str, ...]
    """What stood in the system prompt, model call by model call."""
    tools: tuple[str, ...]
    """The names of the tools that the model was offered."""
    results: tuple[Result, ...]
    """Of the tool calls, in order."""
    answer: str


class Conversation(Protocol):
    """A conversation with an agent of the framework, on one shelf."""

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        """Send a user message. The model makes these calls, one in each of its turns, and then gives the answer."""

    async def close(self) -> None:
        """Let go of what was opened."""


class Face(Protocol):
    """A framework, a protocol or a program through which a model reaches a shelf."""

    name: str

    async def open(self, shelf: Shelf) -> Conversation:
        """An agent on this shelf, with the adapter as a user would write it."""
