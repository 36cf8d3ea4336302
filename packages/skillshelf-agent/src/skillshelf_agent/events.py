"""The events of a turn: one stream of values that every interface and every check reads.

`Event` is the union of all of them, so a type checker knows the fields of an event from its class or from its `kind`:

    async for event in core.process_message("Hello."):
        if event.kind == "text":
            print(event.text)
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args


@dataclass(frozen=True, slots=True)
class BaseEvent:
    """The base of all events. `kind` names the event in JSON."""

    kind: ClassVar[str] = ""
    side: str = field(default="", kw_only=True)
    """The skill in whose side conversation this happened; empty for the main conversation."""

    def as_json(self) -> dict[str, Any]:
        """Return the event as `skillshelf chat --json` writes it. `side` is there only if it says something."""
        plain = {"event": self.kind, **asdict(self)}
        if not self.side:
            del plain["side"]
        return plain


@dataclass(frozen=True, slots=True)
class Text(BaseEvent):
    """A piece of the model's answer, as it arrives."""

    kind: ClassVar[Literal["text"]] = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Thinking(BaseEvent):
    """A piece of the model's reasoning, if the provider shows it."""

    kind: ClassVar[Literal["thinking"]] = "thinking"
    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled(BaseEvent):
    kind: ClassVar[Literal["tool_call"]] = "tool_call"
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolOutput(BaseEvent):
    """Output of a command or script that is still running: standard output and standard error as they arrive.

    The result has the output, too. If much arrives at once, only its end is reported here.
    """

    kind: ClassVar[Literal["tool_output"]] = "tool_output"
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ToolReturned(BaseEvent):
    kind: ClassVar[Literal["tool_result"]] = "tool_result"
    id: str
    name: str
    text: str
    ok: bool
    """False if the tool failed or the call was refused."""
    refused: bool = False
    """True if the user or a policy did not allow the call, so the tool did not run."""


@dataclass(frozen=True, slots=True)
class FileWritten(BaseEvent):
    """A tool of the agent wrote a file. The result of its call follows."""

    kind: ClassVar[Literal["file_written"]] = "file_written"
    id: str
    path: str
    """As the model wrote it."""
    diff: str
    """The change as a unified diff; empty if the file has the same content as before."""
    confirmed: bool = False
    """True if the user said yes to this very change. If not, the policy, a rule or an earlier answer allowed it."""


@dataclass(frozen=True, slots=True)
class SkillLoaded(BaseEvent):
    """A skill's instructions entered the conversation."""

    kind: ClassVar[Literal["skill_loaded"]] = "skill_loaded"
    skill: str
    by: Literal["model", "user"]
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class SkillInvoked(BaseEvent):
    """The user invoked a skill: `/skills:<name>`."""

    kind: ClassVar[Literal["skill_invoked"]] = "skill_invoked"
    skill: str
    text: str
    """What the user wrote after its name."""


@dataclass(frozen=True, slots=True)
class Steered(BaseEvent):
    """A message that the user sent during the turn goes to the model, with the results of the tools so far."""

    kind: ClassVar[Literal["steered"]] = "steered"
    text: str


@dataclass(frozen=True, slots=True)
class SideStarted(BaseEvent):
    """A skill with `context: fork` began to run in a side conversation.

    The events with its name in `side` follow. Its result is that of the tool call, or the answer.
    """

    kind: ClassVar[Literal["side_started"]] = "side_started"
    skill: str
    task: str
    model: str
    """The model that answers there."""


@dataclass(frozen=True, slots=True)
class ReferenceLoaded(BaseEvent):
    kind: ClassVar[Literal["reference_loaded"]] = "reference_loaded"
    skill: str
    reference: str
    by: Literal["model", "user"]
    size: int


@dataclass(frozen=True, slots=True)
class LoadRepeated(BaseEvent):
    """The same instructions or reference were loaded again in this turn; no file was read."""

    kind: ClassVar[Literal["load_repeated"]] = "load_repeated"
    skill: str
    reference: str
    """Empty for the instructions."""
    by: Literal["model", "user"]
    size: int


@dataclass(frozen=True, slots=True)
class ReferenceDenied(BaseEvent):
    """The model asked for a reference that is not on a skill's list, or cannot be read."""

    kind: ClassVar[Literal["reference_denied"]] = "reference_denied"
    skill: str
    reference: str
    reason: str


@dataclass(frozen=True, slots=True)
class SkillsReloaded(BaseEvent):
    kind: ClassVar[Literal["skills_reloaded"]] = "skills_reloaded"
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage(BaseEvent):
    """The tokens and the price of a model call, or of several: usages can be added."""

    kind: ClassVar[Literal["usage"]] = "usage"
    input: int
    output: int
    cached: int = 0
    """The part of the input that came from the provider's prompt cache."""
    cost: float | None = None
    """US dollars; None if the price is not known."""

    def __add__(self, other: Usage) -> Usage:
        """Add two usages. The price of the sum is known only if both prices are: a part of it would look like all."""
        cost = None
        if self.cost is not None and other.cost is not None:
            cost = self.cost + other.cost
        return Usage(self.input + other.input, self.output + other.output, self.cached + other.cached, cost)


NOTHING_SPENT = Usage(0, 0, cost=0.0)


@dataclass(frozen=True, slots=True)
class Notice(BaseEvent):
    """Something the user should know. The turn goes on."""

    kind: ClassVar[Literal["notice"]] = "notice"
    text: str


@dataclass(frozen=True, slots=True)
class Retrying(BaseEvent):
    """A model call failed for a reason that may pass, and is made again after a pause. The turn goes on."""

    kind: ClassVar[Literal["retrying"]] = "retrying"
    reason: str
    seconds: float
    """The length of the pause, which begins now."""
    attempt: int
    """The number of this retry, from 1."""
    of: int
    """How many retries there are at most."""


@dataclass(frozen=True, slots=True)
class ServerAwaited(BaseEvent):
    """The turn waits for an MCP server that is still starting. A second event follows when the wait is over."""

    kind: ClassVar[Literal["server_awaited"]] = "server_awaited"
    server: str
    over: bool = False
    """True if the server is ready now, or has failed."""


@dataclass(frozen=True, slots=True)
class Failed(BaseEvent):
    """The turn ended early. The conversation so far is kept."""

    kind: ClassVar[Literal["error"]] = "error"
    code: str
    """The kind of error, for a program: the name of its class in words, such as `skill-not-found`."""
    message: str


@dataclass(frozen=True, slots=True)
class Finished(BaseEvent):
    """The turn is over. `text` is the whole answer."""

    kind: ClassVar[Literal["finished"]] = "finished"
    text: str
    stopped: bool = False
    """True if the user stopped it."""


Event: TypeAlias = (
    Text
    | Thinking
    | ToolCalled
    | ToolOutput
    | ToolReturned
    | FileWritten
    | SkillLoaded
    | SkillInvoked
    | Steered
    | SideStarted
    | ReferenceLoaded
    | LoadRepeated
    | ReferenceDenied
    | SkillsReloaded
    | Usage
    | Notice
    | Retrying
    | ServerAwaited
    | Failed
    | Finished
)
"""Any event of the stream. `isinstance(value, Event)` works, as with a class."""

_CLASS_BY_KIND: dict[str, type[Event]] = {cls.kind: cls for cls in get_args(Event)}


def from_json(plain: dict[str, Any]) -> Event:
    """Return the event that `as_json` described, even if the description went through JSON text."""
    values: dict[str, Any] = {}
    for name, value in plain.items():
        values[name] = tuple(value) if isinstance(value, list) else value
    return _CLASS_BY_KIND[values.pop("event")](**values)
