"""One conversation and its file."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage

from skillshelf.errors import SessionError
from skillshelf_agent.sessions._format import (
    Header,
    InUse,
    SessionContent,
    SideTranscript,
    format_compacted,
    format_messages,
    format_record,
    format_side,
    parse_content,
)
from skillshelf_agent.sessions._history import make_sendable, strip_system_prompt
from skillshelf_agent.sessions._journal import Journal

_MAX_LINE_NUMBERS = 20


class Session:
    """A saved conversation. Close it, or use it as a context manager: while it is open, it is locked for others."""

    def __init__(self, journal: Journal, workspace: str, content: SessionContent) -> None:
        self.path = journal.path
        self.id = os.path.basename(journal.path).removesuffix(".jsonl")
        self.workspace = workspace
        self.created = content.header.created
        self.notes: tuple[str, ...] = ()
        """What could not be read, in words for the user."""
        self._content = content
        self._journal = journal

    @property
    def messages(self) -> list[ModelMessage]:
        """The current history: what the model gets."""
        return self._content.messages

    @property
    def transcript(self) -> list[ModelMessage]:
        """The whole conversation, including the messages that compaction took out of the history."""
        return self._content.transcript

    @property
    def sides(self) -> list[SideTranscript]:
        """The side conversations of skills that ran apart. The model gets only their results."""
        return self._content.sides

    @property
    def in_use(self) -> InUse:
        """The model, its address and the policy that were used last."""
        return self._content.in_use

    @property
    def model(self) -> str:
        """The model used last."""
        return self.in_use.model

    @property
    def name(self) -> str:
        """The user's name for it, or an empty string."""
        return self._content.name

    def append(self, messages: Sequence[ModelMessage]) -> None:
        """Add to the history. It is on disk when this returns; SessionError means that it is only in memory."""
        if not messages:
            return
        saved = [strip_system_prompt(message) for message in messages]
        self._content.messages += saved
        self._content.transcript += saved
        self._journal.add(format_messages(saved))
        self._journal.save()

    def replace(self, messages: Sequence[ModelMessage]) -> None:
        """Go on with another, compacted history. The earlier one stays in the file."""
        self._content.replace([strip_system_prompt(message) for message in messages])
        self._journal.add(format_compacted(self.messages))
        self._journal.save()

    def rewind(self, position: int) -> None:
        """Go on without the messages of the transcript from this index on. They stay in the file.

        The history is the one that was there before the message at this index. Raises ValueError if there is no such
        index.
        """
        self._content.rewind(position)
        self._journal.add(format_record({"rewound": position}))
        self._journal.save()

    def copy_history(self, other: "Session") -> None:
        """Begin with all messages of another session. They are on disk when this returns; otherwise SessionError."""
        self._content.transcript = list(other.transcript)
        self._journal.add(format_messages(self.transcript))
        self._content.messages = list(other.messages)
        if self.messages != self.transcript:
            self._content.replace(self.messages)
            self._journal.add(format_compacted(self.messages))
        self._journal.save()

    def add_side(self, side: SideTranscript) -> None:
        """Keep a side conversation. It is on disk when this returns; SessionError means that it is only in memory."""
        self.sides.append(dataclasses.replace(side, position=len(self.transcript)))
        self._journal.add(format_side(side))
        self._journal.save()

    def use(self, in_use: InUse) -> None:
        """Record what answers from here on. Before the first message, that waits for the first save."""
        if in_use == self.in_use:
            return
        self._content.in_use = in_use
        self._record({"model": in_use.model, **in_use.model_dump(exclude_defaults=True)})

    def rename(self, name: str) -> None:
        """Record the user's name for the session. Before the first message, that waits for the first save."""
        self._content.name = name
        self._record({"name": name})

    def _record(self, record: dict[str, Any]) -> None:
        self._journal.add(format_record(record))
        if self._journal.has_file:
            self._journal.save()

    def close(self) -> None:
        """Let another process have the session. The messages stay in memory."""
        self._journal.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start_session(journal: Journal, workspace: str, header: Header) -> Session:
    """Return a session whose file appears with its first message."""
    journal.add(format_record(header.model_dump(mode="json")))
    return Session(journal, workspace, SessionContent(header, in_use=header.in_use))


def resume_session(journal: Journal, workspace: str) -> Session:
    """Return the session in a file, ready to go on: a torn end is moved away, and losses are noted."""
    try:
        content = parse_content(journal.read(), journal.path)
    except SessionError:
        journal.close()
        raise

    content.messages = make_sendable(content.messages)
    session = Session(journal, workspace, content)
    torn_end_moved = bool(content.torn_end) and journal.move_torn_end(content.torn_end)
    if content.lacks_newline or (content.torn_end and not torn_end_moved):
        journal.add(b"\n")  # the next record must begin a line
    session.notes = tuple(_describe_losses(session, journal, content, torn_end_moved))
    return session


def _describe_losses(session: Session, journal: Journal, content: SessionContent, torn_end_moved: bool) -> list[str]:
    notes = []
    if content.torn_end:
        place = f"It was moved to {session.path}.torn." if torn_end_moved else "It was left in the file."
        size = len(content.torn_end)
        notes.append(f"The last line of session {session.id} was never finished ({size} bytes). {place}")
    if content.lost_lines:
        numbers = ", ".join(str(number) for number in content.lost_lines[:_MAX_LINE_NUMBERS])
        if len(content.lost_lines) > _MAX_LINE_NUMBERS:
            numbers += " …"
        lines = "Line" if len(content.lost_lines) == 1 else "Lines"
        notes.append(f"{lines} {numbers} of {session.path} cannot be read. The conversation goes on with the rest.")
    if journal.refused:
        notes.append(f"{session.path} cannot be written ({journal.refused}): messages from here on are not saved.")
    return notes
