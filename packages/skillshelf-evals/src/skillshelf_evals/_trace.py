"""The trace of a trial: everything that checks read, as plain values that survive a restart."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, get_args

from pydantic import BeforeValidator, Discriminator, PlainSerializer, Tag, TypeAdapter

from skillshelf_agent.events import BaseEvent, Event, Usage

if TYPE_CHECKING:
    StoredEvent = Event
else:

    def _kind_of(value: Any) -> str:
        return value.kind if isinstance(value, BaseEvent) else value.get("event", "")

    _as_json = PlainSerializer(BaseEvent.as_json)
    _tagged = [Annotated[kind, _as_json, Tag(kind.kind)] for kind in get_args(Event)]
    StoredEvent = Annotated[reduce(or_, _tagged), Discriminator(_kind_of)]


def _encode_bytes(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode_bytes(value: str | bytes) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class FileState:
    """A file of the workspace after the trial."""

    text: str | None
    """None if the file is not text, or too long to keep."""
    changed: bool
    """True if the file is new, or differs from the one that the case put there."""
    size: int = 0
    """In bytes."""
    data: Annotated[bytes, BeforeValidator(_decode_bytes), PlainSerializer(_encode_bytes)] | None = None
    """The content of a file that is new or changed, for as long as checks are made; None if it is too large.

    The limits are `MAX_FILE_KEPT` and `MAX_FILES_KEPT`."""
    by_check: bool = False
    """True if the agent did not make the file: a command of a `run` check did, after the last turn."""


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command of a `run` check, and how it ended."""

    command: str
    timeout: float
    """Seconds that it was given."""
    exit_code: int | None = None
    """As a shell has it: 128 and more for a signal. None if the command was stopped, or could not be started."""
    stdout: str = ""
    """The end of the output."""
    stderr: str = ""
    cut: int = 0
    """Characters of stdout and stderr that are not kept."""
    timed_out: bool = False
    too_long: bool = False
    """True if the command was stopped for printing too much."""
    error: str = ""
    """Why the command could not be started; empty if it was."""

    @property
    def ending(self) -> str:
        if self.error:
            return f"could not be started: {self.error}"
        if self.timed_out:
            return f"was stopped after {self.timeout:g} s"
        if self.too_long:
            return "was stopped because it printed too much"
        return f"ended with exit code {self.exit_code}"


@dataclass(frozen=True, slots=True)
class Trace:
    """One run through all turns of a case."""

    events: tuple[StoredEvent, ...] = ()
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
    """Why the trial could not be completed: a provider failed, say, or the workspace could not be written.

    Such a trial is neither a pass nor a miss of the skill."""
    unrecorded: bool = False
    """True if the error is that a replay has no answer for a call."""
    messages: tuple[str, ...] = ()
    """The messages of the user."""
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    """The files of the case as they were before the first message, by path. None for one that is not text, and for
    those beyond `MAX_INPUTS_KEPT`."""
    command_runs: tuple[CommandRun, ...] = ()
    """The commands of `run` checks, which are run in the workspace after the last turn."""

    @property
    def answer(self) -> str:
        """The last answer."""
        return self.answers[-1] if self.answers else ""

    @property
    def changed_files(self) -> dict[str, FileState]:
        """The files that the agent created or changed, and those that edits of the case did."""
        return {path: state for path, state in self.files.items() if state.changed}

    def without_data(self) -> Trace:
        """Return the trace as it is kept after its checks are made."""
        files = {path: replace(state, data=None) for path, state in self.files.items()}
        return replace(self, files=files)

    def as_json(self) -> dict[str, Any]:
        # Not in the mode for JSON, which refuses the half characters that file names and answers may hold.
        plain: dict[str, Any] = _adapter().dump_python(self)
        return plain


def trace_from_json(plain: Mapping[str, Any]) -> Trace:
    return _adapter().validate_python(plain)


@cache
def _adapter() -> TypeAdapter[Trace]:
    return TypeAdapter(Trace)
