"""The trace of a trial: everything that checks read, as plain values that survive a restart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from skillshelf.agent.events import Event, Usage, from_json


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the workspace after the trial."""

    text: str | None
    """None if the file is not text, or too long to keep."""
    changed: bool
    """True if the file is new, or differs from the one that the case put there."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One run through all turns of a case."""

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
    """Why the trial could not be made: a provider failed, say, or the workspace could not be written.

    Such a trial is neither a pass nor a miss of the skill."""
    unrecorded: bool = False
    """True if the error is that a replay has no answer for a call."""

    @property
    def answer(self) -> str:
        """The last answer."""
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
            "unrecorded": self.unrecorded,
        }


def trace_from_json(plain: Mapping[str, Any]) -> Trace:
    return Trace(
        events=tuple(from_json(event) for event in plain["events"]),
        answers=tuple(plain["answers"]),
        systems=tuple(plain["systems"]),
        files={path: FileState(**state) for path, state in plain["files"].items()},
        removed=tuple(plain["removed"]),
        usage=Usage(**plain["usage"]),
        seconds=plain["seconds"],
        error=plain["error"],
        unrecorded=plain["unrecorded"],
    )
