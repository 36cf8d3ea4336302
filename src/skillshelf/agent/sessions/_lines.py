"""The format of a session's file: JSON lines. The first says what the file is, each other one is a record."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from skillshelf.agent.sessions._history import gap
from skillshelf.errors import SessionError

VERSION = 1
MESSAGE, COMPACTED, MODEL = b'{"message":', b'{"compacted":', b'{"model":'


@dataclass(slots=True)
class Reading:
    """What a file says."""

    header: dict[str, Any]
    messages: list[ModelMessage] = field(default_factory=list)
    """The history as it now is."""
    transcript: list[ModelMessage] = field(default_factory=list)
    """Everything that was said, compacted or not."""
    model: str = ""
    """The one in use last."""
    lost: list[int] = field(default_factory=list)
    """Numbers of lines that cannot be read."""
    torn: bytes = b""
    """The beginning of a last line that was never finished."""
    open_ended: bool = False
    """The last line is whole, but for its newline."""
    spoken: bool = False
    """Whether a message could be read."""

    def take(self, record: dict[str, Any]) -> None:
        if "message" in record:
            messages = _messages([record["message"]])
            self.messages += messages
            self.transcript += messages
            self.spoken = True
        elif "compacted" in record:
            self.messages = _messages(record["compacted"])
            self.transcript = self.transcript or list(self.messages)
            self.spoken = True
        elif "model" in record:
            self.model = str(record["model"])

    def miss(self, number: int, line: bytes) -> None:
        self.lost.append(number)
        if number > 1 and not line.startswith(MODEL):  # its beginning tells that no message is lost with it
            missing = gap(created(self.header))
            self.messages.append(missing)
            self.transcript.append(missing)


def line(record: dict[str, Any]) -> bytes:
    """One record, ready to be written."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"  # half of a surrogate pair has no UTF-8 form


def message_lines(messages: Sequence[ModelMessage]) -> bytes:
    return b"".join(line({"message": message}) for message in plain(messages))


def compacted_line(messages: Sequence[ModelMessage]) -> bytes:
    return line({"compacted": plain(messages)})


def plain(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """The messages as JSON takes them. A tool may return anything: what has no JSON form is kept as its repr."""
    dumped: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json", fallback=repr)
    return dumped


def read(data: bytes, path: str) -> Reading:
    """What is in the file; raises SessionError where that is nothing that can be used."""
    whole, newline, last = data.rpartition(b"\n")
    first, *records = whole.split(b"\n") if newline else [last]
    header = read_header(first, path)
    reading = Reading(header or {}, model=str((header or {}).get("model", "")))
    if header is None:
        reading.miss(1, first)
    for number, record in enumerate(records, 2):
        if record and not _taken(reading, record):
            reading.miss(number, record)
    if last:
        reading.open_ended = not newline or _taken(reading, last)
        reading.torn = b"" if reading.open_ended else last
    if reading.lost and not reading.spoken:
        raise _unusable(path, "holds nothing that can be read")
    return reading


def read_header(first: bytes, path: str) -> dict[str, Any] | None:
    """None where the line is damaged; raises SessionError where the file is none of ours, or of a newer version."""
    try:
        header = json.loads(first)
    except (ValueError, RecursionError):
        return None
    version = header.get("skillshelf_session") if isinstance(header, dict) else None
    if not isinstance(version, int):
        raise _unusable(path, "is no session")
    if version > VERSION:
        raise SessionError(
            f"The session {path} was written by a newer skillshelf (format {version}; this one reads {VERSION}). "
            "Update skillshelf to open it. The file was left as it is."
        )
    return dict(header)


def created(header: dict[str, Any]) -> datetime:
    """When the session began; the beginning of time where the header does not tell."""
    try:
        return datetime.fromisoformat(str(header.get("created"))).astimezone(UTC)
    except (ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)


def _taken(reading: Reading, record: bytes) -> bool:
    try:
        plain_record = json.loads(record)
        if not isinstance(plain_record, dict):
            return False
        reading.take(plain_record)
    except (ValueError, RecursionError):
        return False
    return True


def _messages(plain_messages: list[Any]) -> list[ModelMessage]:
    # By way of JSON once more: only there does the adapter read base64 as bytes.
    return ModelMessagesTypeAdapter.validate_json(json.dumps(plain_messages))


def _unusable(path: str, what: str) -> SessionError:
    return SessionError(
        f"The file {path} {what}. It was left as it is: look into it with an editor, or move it away if you do not "
        "need it."
    )
