"""What a face has to offer so that the scenario can run through it. Its model is scripted; all else is real."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from skillshelf.shelf import Shelf

Promise = Literal["each-call", "approval", "errors-marked"]
"""What a face may declare that it cannot keep.

`each-call`: the listing is made anew for each model call, not only for each message.
`approval`: a tool whose permission is `ask` runs once the person has agreed.
`errors-marked`: a result says whether it is an error.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the scripted model makes."""

    tool: str
    arguments: dict[str, Any]
    approve: bool = False
    """What the person answers if they are asked about it."""


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
    ends: tuple[str, ...] = ()
    """What the last message of each request said, for a face that tells there what changed on the shelf."""


class Conversation(Protocol):
    """A conversation with an agent of the framework, on one shelf."""

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        """Send a user message. The model makes these calls, one in each of its turns, and then gives the answer."""

    async def close(self) -> None:
        """Let go of what was opened."""


class Face(Protocol):
    """A framework, a protocol or a program through which a model reaches a shelf.

    It may have `exceptions: Mapping[Promise, str]`: what it cannot keep, and why. A report shows them.
    """

    name: str

    async def open(self, shelf: Shelf) -> Conversation:
        """An agent on this shelf, with the adapter as a user would write it."""


def exceptions_of(face: Face) -> Mapping[Promise, str]:
    """What the face declares; most have nothing to declare, and need not say so."""
    declared: Mapping[Promise, str] = getattr(face, "exceptions", {})
    return declared
