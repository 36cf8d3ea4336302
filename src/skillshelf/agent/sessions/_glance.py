"""What a look at a session's file tells, without reading all of it as messages."""

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from skillshelf.agent.sessions import _lines as lines
from skillshelf.errors import SessionError
from skillshelf.files import system
from skillshelf.text import clean_line

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TITLE = 80
_HEADER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session at a glance."""

    id: str
    created: datetime
    changed: datetime
    title: str = ""
    """The first message of the person, on one line."""
    model: str = ""
    messages: int = 0
    """In the current history."""
    problem: str = ""
    """Why it cannot be opened; empty where it can, as far as a glance tells."""


def id_of(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def glance(path: str, stat: os.stat_result) -> SessionInfo:
    changed = datetime.fromtimestamp(stat.st_mtime, UTC)
    try:
        with open(system.open(path, _READ), "rb") as file:
            header = lines.read_header(file.readline(_HEADER_BYTES), path)
            if header is None:
                return SessionInfo(id_of(path), changed, changed, problem=f"The first line of {path} cannot be read.")
            seen = _Seen(str(header.get("model", "")))
            for line in file:
                seen.look(line)
    except SessionError as error:
        return SessionInfo(id_of(path), changed, changed, problem=str(error))
    except OSError as error:
        return SessionInfo(id_of(path), changed, changed, problem=f"{path} cannot be read: {error.strerror}.")
    title = clean_line(" ".join(seen.first[: 4 * _TITLE].split()))
    short = title if len(title) <= _TITLE else title[: _TITLE - 1] + "…"
    return SessionInfo(id_of(path), lines.created(header), changed, short, clean_line(seen.model), seen.count)


class _Seen:
    """What a glance at the lines tells; only the few that hold it are parsed."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.first = ""
        self.count = 0

    def look(self, line: bytes) -> None:
        if line.startswith(lines.MESSAGE):
            self.count += 1
            if not self.first:
                self.first = _first_prompt([_value(line, "message")])
        elif line.startswith(lines.COMPACTED):
            history = _value(line, "compacted")
            self.count = len(history) if isinstance(history, list) else self.count
            self.first = self.first or _first_prompt(history)
        elif line.startswith(lines.MODEL):
            self.model = str(_value(line, "model") or self.model)


def _value(line: bytes, key: str) -> Any:
    try:
        return json.loads(line)[key]
    except (ValueError, RecursionError):
        return None


def _first_prompt(messages: Any) -> str:
    for message in messages if isinstance(messages, list) else ():
        for part in message.get("parts", ()) if isinstance(message, dict) else ():
            if isinstance(part, dict) and part.get("part_kind") == "user-prompt":
                return _text(part.get("content"))
    return ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    items = content if isinstance(content, list) else ()
    texts = (item.get("content") if isinstance(item, dict) else item for item in items)
    return " ".join(text for text in texts if isinstance(text, str))
