"""One conversation and its file."""

import os
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage

from skillshelf.agent.sessions import _lines as lines
from skillshelf.agent.sessions._history import sendable, stripped
from skillshelf.agent.sessions._journal import Journal
from skillshelf.agent.sessions._lines import Reading
from skillshelf.errors import SessionError


class Session:
    """Use as a context manager, or close it: while it is open, no other process can write to it."""

    def __init__(self, journal: Journal, workspace: str, reading: Reading) -> None:
        self.path = journal.path
        self.id = os.path.basename(journal.path).removesuffix(".jsonl")
        self.workspace = workspace
        self.created = lines.created(reading.header)
        self.messages: list[ModelMessage] = reading.messages
        """The current history: what the model is given."""
        self.transcript: list[ModelMessage] = reading.transcript
        """Everything that was said, also what compaction took out of the history."""
        self.model = reading.model
        """The one in use last."""
        self.notes: tuple[str, ...] = ()
        """What could not be read, in words for the person."""
        self._journal = journal

    def append(self, messages: Sequence[ModelMessage]) -> None:
        """Add to the history. On the disk when this returns; SessionError where it is only in memory."""
        if not messages:
            return
        kept = [stripped(message) for message in messages]
        self.messages += kept
        self.transcript += kept
        self._journal.add(lines.message_lines(kept))
        self._journal.save()

    def replace(self, messages: Sequence[ModelMessage]) -> None:
        """Go on with another history, a compacted one. What was before stays in the file."""
        self.messages = [stripped(message) for message in messages]
        self.transcript = self.transcript or list(self.messages)
        self._journal.add(lines.compacted_line(self.messages))
        self._journal.save()

    def use(self, model: str) -> None:
        """From here on this model answers. Before the first message that waits for it."""
        if model == self.model:
            return
        self.model = model
        self._journal.add(lines.line({"model": model}))
        if self._journal.begun:
            self._journal.save()

    def close(self) -> None:
        """Let another process have it. What is in memory stays."""
        self._journal.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def begin(journal: Journal, workspace: str, header: dict[str, Any]) -> Session:
    """A session whose file appears with its first message."""
    journal.add(lines.line(header))
    return Session(journal, workspace, Reading(header, model=str(header.get("model", ""))))


def resume(journal: Journal, workspace: str) -> Session:
    """The session in a file, made fit to go on: what is torn is set aside, what is lost is said."""
    try:
        reading = lines.read(journal.read(), journal.path)
    except SessionError:
        journal.close()
        raise
    session = Session(journal, workspace, reading)
    session.notes = tuple(_notes(session, journal, reading, _mended(journal, reading)))
    session.messages = sendable(reading.messages)
    return session


def _mended(journal: Journal, reading: Reading) -> bool:
    """See to it that the next record begins a line; whether a torn one was set aside for that."""
    aside = bool(reading.torn) and journal.set_aside(reading.torn)
    if reading.open_ended or (reading.torn and not aside):
        journal.add(b"\n")
    return aside


def _notes(session: Session, journal: Journal, reading: Reading, aside: bool) -> list[str]:
    notes = []
    if reading.torn:
        where = f"It was moved to {session.path}.torn." if aside else "It was left in the file."
        notes.append(f"The last line of session {session.id} was never finished ({len(reading.torn)} bytes). {where}")
    if reading.lost:
        numbers = ", ".join(map(str, reading.lost[:20])) + (" …" if len(reading.lost) > 20 else "")
        which = f"Line {numbers}" if len(reading.lost) == 1 else f"Lines {numbers}"
        notes.append(f"{which} of {session.path} cannot be read. The conversation goes on with the rest.")
    if journal.refused:
        notes.append(f"{session.path} cannot be written ({journal.refused}): what is said from here on is not saved.")
    return notes
