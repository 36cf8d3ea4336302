"""The format of a session's file: JSON lines. The first is a header, each other one is a record."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, StrictInt, ValidationError, ValidatorFunctionWrapHandler, field_validator
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from skillshelf.errors import SessionError
from skillshelf.settings import Mode, without_secrets
from skillshelf_agent.sessions._history import make_gap

VERSION = 1
MESSAGE_START = b'{"message":'
COMPACTED_START = b'{"compacted":'
MODEL_START = b'{"model":'
NAME_START = b'{"name":'
SIDE_START = b'{"side":'
REWOUND_START = b'{"rewound":'
_NOT_MESSAGES = MODEL_START, NAME_START, SIDE_START, REWOUND_START

_UNKNOWN_TIME = datetime.fromtimestamp(0, UTC)


class _Forgiving(BaseModel):
    """Fields with a default have it if their value is wrong."""

    @field_validator("*", mode="wrap")
    @classmethod
    def _forgive(cls, value: Any, validate: ValidatorFunctionWrapHandler, info: Any) -> Any:
        field = cls.model_fields[info.field_name]
        try:
            valid = validate(value)
        except ValidationError:
            if field.is_required():
                raise
            return field.default
        return valid.astimezone(UTC) if isinstance(valid, datetime) else valid


class InUse(_Forgiving):
    """What a conversation goes on with when it is resumed."""

    model: str = ""
    base_url: str | None = None
    """The address of the user's own server, without a key; empty for a provider. None if it is not known."""
    policy: Mode | Literal[""] = ""


class Header(_Forgiving):
    """The first line of a session's file. Only the version must be right."""

    skillshelf_session: StrictInt
    """The version of the format."""
    id: str = ""
    workspace: str = ""
    created: datetime = _UNKNOWN_TIME
    model: str = ""
    base_url: str | None = None
    policy: Mode | Literal[""] = ""

    @property
    def in_use(self) -> InUse:
        return InUse(model=self.model, base_url=self.base_url, policy=self.policy)


@dataclass(frozen=True, slots=True)
class SideTranscript:
    """A side conversation: a skill with `context: fork` that ran in a conversation of its own."""

    skill: str
    model: str
    messages: list[ModelMessage]
    call_id: str = ""
    """The tool call that asked for it; empty if the user did."""
    position: int = 0
    """How many messages of the transcript were saved before it."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """A shorter history."""

    position: int
    """How many messages of the transcript it stands for."""
    messages: list[ModelMessage]


@dataclass(slots=True)
class SessionContent:
    """Everything a session's file says."""

    header: Header
    messages: list[ModelMessage] = field(default_factory=list)
    """The current history."""
    transcript: list[ModelMessage] = field(default_factory=list)
    """The whole conversation, compacted or not."""
    compactions: list["Compaction"] = field(default_factory=list)
    """The shorter histories that replaced the one before, in order."""
    sides: list[SideTranscript] = field(default_factory=list)
    """The side conversations, in the order of their ends."""
    in_use: InUse = field(default_factory=InUse)
    """The model, its address and the policy that were used last."""
    name: str = ""
    """The user's name for it."""
    lost_lines: list[int] = field(default_factory=list)
    """The numbers of lines that cannot be read."""
    torn_end: bytes = b""
    """The beginning of a last line that was never finished."""
    lacks_newline: bool = False
    """True if the last line is whole except for its newline."""
    has_messages: bool = False

    def add_record(self, record: dict[str, Any]) -> None:
        if "message" in record:
            messages = _parse_messages([record["message"]])
            self.messages += messages
            self.transcript += messages
            self.has_messages = True
        elif "compacted" in record:
            self.replace(_parse_messages(record["compacted"]))
            self.has_messages = True
        elif "rewound" in record:
            self.rewind(record["rewound"])
        elif "side" in record:
            self.sides.append(_parse_side(record["side"], len(self.transcript)))
        elif "model" in record:
            self.in_use = InUse.model_validate(record)
        elif "name" in record:
            self.name = str(record["name"])

    def replace(self, messages: list[ModelMessage]) -> None:
        """Go on with a shorter history."""
        self.messages = messages
        self.transcript = self.transcript or list(messages)
        self.compactions.append(Compaction(len(self.transcript), list(messages)))

    def rewind(self, position: int) -> None:
        """Leave out the messages of the transcript from this index on. Raises ValueError if there is no such index."""
        if type(position) is not int or not 0 <= position <= len(self.transcript):  # not isinstance: True is an int
            raise ValueError(f"the transcript has no message {position!r}")
        del self.transcript[position:]
        self.compactions = [each for each in self.compactions if each.position <= position]
        self.sides = [side for side in self.sides if side.position <= position]
        last = self.compactions[-1] if self.compactions else Compaction(0, [])
        self.messages = [*last.messages, *self.transcript[last.position :]]

    def add_lost_line(self, number: int, line: bytes) -> None:
        self.lost_lines.append(number)
        was_message = number > 1 and not line.startswith(_NOT_MESSAGES)
        if was_message:
            missing = make_gap(self.header.created)
            self.messages.append(missing)
            self.transcript.append(missing)


def format_record(record: dict[str, Any]) -> bytes:
    """Return one record as a line, ready to be written."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"  # half of a surrogate pair has no UTF-8 form


def format_messages(messages: Sequence[ModelMessage]) -> bytes:
    """Return a record for each message."""
    return b"".join(format_record({"message": message}) for message in dump_messages(messages))


def format_compacted(messages: Sequence[ModelMessage]) -> bytes:
    """Return the record of a history that replaces the one before it."""
    return format_record({"compacted": dump_messages(messages)})


def format_side(side: SideTranscript) -> bytes:
    """Return the record of a side conversation."""
    messages = dump_messages(side.messages)
    plain = {"skill": side.skill, "model": side.model, "call": side.call_id, "messages": messages}
    return format_record({"side": plain})


def dump_messages(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Return the messages as JSON values, without a key in an address.

    A tool may return anything: a value without a JSON form becomes its repr.
    """
    dumped: list[dict[str, Any]] = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json", fallback=repr)
    for message in dumped:
        if message.get("provider_url"):
            message["provider_url"] = without_secrets(message["provider_url"])
    return dumped


def parse_content(data: bytes, path: str) -> SessionContent:
    """Read a whole file. Raises SessionError if there is nothing in it that can be used."""
    whole, newline, last = data.rpartition(b"\n")
    first, *records = whole.split(b"\n") if newline else [last]

    header = parse_header(first, path)
    if header is None:
        content = SessionContent(Header(skillshelf_session=VERSION))
        content.add_lost_line(1, first)
    else:
        content = SessionContent(header, in_use=header.in_use)

    for number, line in enumerate(records, start=2):
        if line and not _add_line(content, line):
            content.add_lost_line(number, line)
    if last:
        is_whole = not newline or _add_line(content, last)
        content.lacks_newline = is_whole
        content.torn_end = b"" if is_whole else last

    if content.lost_lines and not content.has_messages:
        raise _explain_unusable(path, "holds nothing that can be read")
    return content


def parse_header(first: bytes, path: str) -> Header | None:
    """Read the first line. Return None if it is damaged.

    Raises SessionError if the file is not a session, or is one of a newer version.
    """
    try:
        values = json.loads(first)
    except (ValueError, RecursionError):
        return None
    try:
        header = Header.model_validate(values)
    except ValidationError:
        raise _explain_unusable(path, "is not a session") from None
    if header.skillshelf_session > VERSION:
        raise SessionError(
            f"The session {path} was written by a newer skillshelf (format {header.skillshelf_session}; this one reads "
            f"{VERSION}). Update skillshelf to open it. The file was left as it is."
        )
    return header


def _add_line(content: SessionContent, line: bytes) -> bool:
    try:
        record = json.loads(line)
        if not isinstance(record, dict):
            return False
        content.add_record(record)
    except (ValueError, RecursionError):
        return False
    return True


def _parse_side(plain: Any, position: int) -> SideTranscript:
    if not isinstance(plain, dict):
        raise ValueError("a side conversation must be a mapping")
    return SideTranscript(
        skill=str(plain.get("skill", "")),
        model=str(plain.get("model", "")),
        messages=_parse_messages(plain.get("messages", [])),
        call_id=str(plain.get("call", "")),
        position=position,
    )


def _parse_messages(values: list[Any]) -> list[ModelMessage]:
    # Through JSON once more: only from JSON does the adapter read base64 as bytes.
    return ModelMessagesTypeAdapter.validate_json(json.dumps(values))


def _explain_unusable(path: str, problem: str) -> SessionError:
    return SessionError(
        f"The file {path} {problem}. It was left as it is: look into it with an editor, or move it away if you do not "
        "need it."
    )
