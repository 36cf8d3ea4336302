"""What a face must offer so that the scenario can run through it.

The model of a face is scripted; everything else is real.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from skillshelf.shelf import Shelf

Promise = Literal["each-call", "approval", "errors-marked"]
"""What a face may declare that it cannot keep.

`each-call`: the listing is rebuilt for each model call, not only for each message.
`approval`: a tool whose permission is `ask` runs once the user has approved the call.
`errors-marked`: a result says whether it is an error.
"""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the scripted model makes."""

    tool: str
    arguments: dict[str, Any]
    approve: bool = False
    """The user's answer, if the face asks about the call."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool call, as the model got it."""

    text: str
    failed: bool | None = None
    """Whether it was marked as an error; None if the framework has no such mark."""


@dataclass(frozen=True, slots=True)
class Reply:
    """Everything that happened between a user message and its answer."""

    system_prompts: tuple[str, ...]
    """The system prompt of each model call."""
    tools: tuple[str, ...]
    """The names of the tools that the model was offered."""
    results: tuple[Result, ...]
    """The results of the tool calls, in order."""
    answer: str
    last_messages: tuple[str, ...] = ()
    """The last message of each request, for a face that announces changes of the shelf there."""


class FaceConversation(Protocol):
    """A conversation with an agent of the framework, on one shelf."""

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        """Send a user message. The model makes these calls, one in each of its turns, and then gives the answer."""

    async def close(self) -> None:
        """Release everything that was opened."""


class Face(Protocol):
    """A framework, a protocol or a program through which a model reaches a shelf.

    It may have `exceptions: Mapping[Promise, str]`: the promises it cannot keep, and why. A report shows them.
    """

    name: str

    async def open(self, shelf: Shelf) -> FaceConversation:
        """Start an agent on this shelf, with the adapter as a user would write it."""


def exceptions_of(face: Face) -> Mapping[Promise, str]:
    """Return the promises that a face declares it cannot keep. A face without the attribute keeps all."""
    exceptions: Mapping[Promise, str] = getattr(face, "exceptions", {})
    return exceptions
