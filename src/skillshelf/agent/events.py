"""What happens while a message is answered, as values. The one stream that drives every face and every check."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened. `kind` names it in JSON."""

    kind: ClassVar[str] = ""

    def as_json(self) -> dict[str, Any]:
        return {"event": self.kind, **asdict(self)}


@dataclass(frozen=True, slots=True)
class Text(Event):
    """A piece of the model's answer, as it comes."""

    kind = "text"
    text: str


@dataclass(frozen=True, slots=True)
class Thinking(Event):
    """A piece of the model's reasoning, where the provider shows it."""

    kind = "thinking"
    text: str


@dataclass(frozen=True, slots=True)
class ToolCalled(Event):
    kind = "tool_call"
    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolReturned(Event):
    kind = "tool_result"
    id: str
    name: str
    text: str
    ok: bool
    """False where the tool failed, or the call was refused."""


@dataclass(frozen=True, slots=True)
class SkillLoaded(Event):
    """A skill's instructions entered the conversation."""

    kind = "skill_loaded"
    skill: str
    by: Literal["model", "user", "shelf"]
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class SkillInvoked(Event):
    """The person asked for a skill by name: `/skills:<name>`."""

    kind = "skill_invoked"
    skill: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ReferenceLoaded(Event):
    kind = "reference_loaded"
    skill: str
    reference: str
    by: Literal["model", "user", "shelf"]
    size: int


@dataclass(frozen=True, slots=True)
class ReferenceDenied(Event):
    """The model asked for something that is not on a skill's list, or is gone."""

    kind = "reference_denied"
    skill: str
    reference: str
    reason: str


@dataclass(frozen=True, slots=True)
class SkillsReloaded(Event):
    kind = "skills_reloaded"
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage(Event):
    """What one model call took. `cost` is in US dollars; None where the price is not known."""

    kind = "usage"
    input: int
    output: int
    cached: int = 0
    """Of the input, what the provider had in its prompt cache."""
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Notice(Event):
    """Something the person should know; the turn goes on."""

    kind = "notice"
    text: str


@dataclass(frozen=True, slots=True)
class Failed(Event):
    """The turn ended early. What was said up to here is kept."""

    kind = "error"
    error: str
    """The class of what went wrong, for a program."""
    message: str


@dataclass(frozen=True, slots=True)
class Finished(Event):
    """The turn is over; `text` is the whole answer."""

    kind = "finished"
    text: str
    stopped: bool = False
    """Whether the person stopped it."""


_KINDS = {cls.kind: cls for cls in Event.__subclasses__()}


def from_json(plain: dict[str, Any]) -> Event:
    """An event from what `as_json` made of it, also after a way through JSON."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    return _KINDS[str(values.pop("event"))](**values)
