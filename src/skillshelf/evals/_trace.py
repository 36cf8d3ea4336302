"""What happened in one trial of a case: the record that checks read, as plain values that survive a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from skillshelf.agent.events import Event, Usage, from_json


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the workspace after the trial."""

    text: str | None
    """None for what is no text, or too long to keep."""
    changed: bool
    """Whether it differs from what the case put there; true for a file that is new."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run of all turns of a case."""

    events: tuple[Event, ...] = ()
    answers: tuple[str, ...] = ()
    """The answer to each message."""
    systems: tuple[str, ...] = ()
    """The system prompt of each model call."""
    files: Mapping[str, FileState] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    """Files of the case that are gone."""
    usage: Usage = field(default_factory=lambda: Usage(0, 0))
    seconds: float = 0.0
    error: str = ""
    """What kept the trial from being one: a provider that failed, a workspace that could not be made.

    Neither a pass nor a miss of the skill."""

    @property
    def answer(self) -> str:
        return self.answers[-1] if self.answers else ""

    def as_json(self) -> dict[str, Any]:
        return {
            "events": [event.as_json() for event in self.events],
            "answers": list(self.answers),
            "systems": list(self.systems),
            "files": {path: asdict(state) for path, state in self.files.items()},
            "removed": list(self.removed),
            "usage": asdict(self.usage),
            "seconds": self.seconds,
            "error": self.error,
        }


def trace_from_json(plain: Mapping[str, Any]) -> Trace:
    return Trace(
        tuple(from_json(event) for event in plain["events"]),
        tuple(plain["answers"]),
        tuple(plain["systems"]),
        {path: FileState(**state) for path, state in plain["files"].items()},
        tuple(plain["removed"]),
        Usage(**plain["usage"]),
        plain["seconds"],
        plain["error"],
    )
