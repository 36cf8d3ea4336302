"""The checkpoints of a session on disk: for each turn that changed files, a list of the changes and their contents.

Both files only grow. A content is on disk before the record that needs it, and the record before the change is made.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from skillshelf.files import (
    NotPlainFile,
    NotPrivate,
    hash_content,
    make_private_folders,
    read_at,
    read_private,
    system,
    write_all,
)
from skillshelf_agent.checkpoints import _limits
from skillshelf_agent.checkpoints._states import Look, PathState

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = ".jsonl"
_CONTENTS = ".contents"
_TURN_NAME = re.compile(r"(\d{4,9})\.jsonl")


class FileChange(BaseModel):
    """What changed at one path in a turn."""

    path: str
    before: PathState
    after: PathState
    in_command: bool = False
    """True if it changed while a command ran. Nobody can tell whether the command did it, or the user meanwhile."""


class _StoredContent(BaseModel):
    digest: str
    offset: int
    size: int


@dataclass(slots=True)
class TurnRecord:
    """A turn that changed files."""

    number: int
    message: str
    """The beginning of the user's message, on one line."""
    changes: dict[str, FileChange] = field(default_factory=dict)
    begun: datetime | None = None
    """When the user's message was sent. None in checkpoints of earlier versions."""
    is_undone: bool = False
    is_rewound: bool = False
    """True if the message is no longer in the conversation."""
    is_told: bool = True
    """False if the model does not know yet that the turn was taken back, brought back or rewound."""
    left: list[str] = field(default_factory=list)
    """The paths that the last undo left as they were."""
    places: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Where each content is, by digest: its offset and size."""

    def set_rewound(self) -> None:
        self.is_rewound = True
        # If the files went back as well, they are again as the conversation has them.
        self.is_told = self.is_undone and not self.left

    @property
    def effective_changes(self) -> list[FileChange]:
        """The changes that left something different, in order of path."""
        return [self.changes[path] for path in sorted(self.changes) if not is_same(self.changes[path])]


def is_same(change: FileChange) -> bool:
    return change.before == change.after


class TurnFiles:
    """The two files of a turn. They appear with the first record."""

    def __init__(self, folder: str, record: TurnRecord) -> None:
        self.record = record
        self._base = os.path.join(folder, f"{record.number:04}")
        self._folder = folder

    def add_changes(self, changes: Sequence[FileChange], contents: Sequence[Look] = ()) -> None:
        """Record changes, after the contents that take them back. Raises OSError; then none of them is recorded."""
        make_private_folders(self._folder)
        records: list[dict[str, Any]] = []
        if not self.record.changes:
            begun = self.record.begun.isoformat() if self.record.begun else None
            records.append({"turn": self.record.number, "message": self.record.message, "begun": begun})
        places = self._store(contents)
        records += [{"content": place.model_dump()} for place in places]
        records += [{"change": change.model_dump(mode="json")} for change in changes]
        self._append_records(records)
        self.record.places |= {place.digest: (place.offset, place.size) for place in places}
        self.record.changes |= {change.path: change for change in changes}

    def _store(self, contents: Sequence[Look]) -> list[_StoredContent]:
        """Append the contents that are not stored yet, and return where they are."""
        fresh = {look.state.digest: look.data for look in contents if look.state.digest}
        fresh = {digest: data for digest, data in fresh.items() if digest not in self.record.places}
        if not fresh:
            return []
        data = b"".join(fresh.values())
        offset = _append(self._base + _CONTENTS, data) - len(data)
        places: list[_StoredContent] = []
        for digest, content in fresh.items():
            places.append(_StoredContent(digest=digest, offset=offset, size=len(content)))
            offset += len(content)
        return places

    def mark_undone(self, is_undone: bool, left: Sequence[str]) -> None:
        """Record that the turn was taken back, or brought back again. Raises OSError."""
        self._append_records([{"undone": is_undone, "left": list(left)}])
        self.record.is_undone = is_undone
        self.record.left = list(left)
        self.record.is_told = False

    def mark_rewound(self) -> None:
        """Record that the message is no longer in the conversation. Raises OSError."""
        self._append_records([{"rewound": True}])
        self.record.set_rewound()

    def mark_told(self) -> None:
        """Record that the model knows. Raises OSError."""
        self._append_records([{"told": True}])
        self.record.is_told = True

    def read(self, digest: str) -> bytes | None:
        """Return a content, or None if it is not here or damaged."""
        place = self.record.places.get(digest)
        if place is None:
            return None
        offset, size = place
        try:
            fd = system.open(self._base + _CONTENTS, _READ)
        except OSError:
            return None
        try:
            data = read_at(fd, offset, size, offset + size)
        except OSError:
            return None
        finally:
            system.close(fd)
        return data if hash_content(data) == digest else None

    def _append_records(self, records: Sequence[dict[str, Any]]) -> None:
        lines = [json.dumps(record).encode() for record in records]
        # The newline before them ends a line that a crash has cut off.
        _append(self._base + _LIST, b"\n" + b"\n".join(lines) + b"\n")


def _append(path: str, data: bytes) -> int:
    """Append to a file and force it to disk. Return its new size. If that fails, the file is as it was."""
    fd = system.open(path, _APPEND, 0o600)
    try:
        size = system.fstat(fd).st_size
        try:
            write_all(fd, data)
            system.fsync(fd)
        except OSError:
            with suppress(OSError):
                system.ftruncate(fd, size)
            raise
    finally:
        system.close(fd)
    return size + len(data)


def load_turns(folder: str) -> list[TurnFiles]:
    """Return the turns of a session, the oldest first. Records that cannot be read are left out."""
    try:
        names = sorted(system.listdir(folder))
    except OSError:
        return []
    turns: list[TurnFiles] = []
    for name in names:
        match = _TURN_NAME.fullmatch(name)
        if not match:
            continue
        try:
            data = read_private(os.path.join(folder, name))
        except (OSError, NotPlainFile, NotPrivate):
            continue
        turns.append(TurnFiles(folder, _parse_turn(int(match[1]), data)))
    return turns


def _parse_turn(number: int, data: bytes) -> TurnRecord:
    record = TurnRecord(number, "")
    for line in data.split(b"\n"):
        with suppress(ValueError, ValidationError, RecursionError):
            _apply_record(record, json.loads(line))
    return record


def _apply_record(record: TurnRecord, value: Any) -> None:
    if not isinstance(value, dict):
        return
    if "turn" in value:
        record.message = str(value.get("message", ""))
        if value.get("begun"):
            record.begun = datetime.fromisoformat(str(value["begun"]))
    elif "content" in value:
        place = _StoredContent.model_validate(value["content"])
        record.places[place.digest] = (place.offset, place.size)
    elif "change" in value:
        change = FileChange.model_validate(value["change"])
        record.changes[change.path] = change
    elif "undone" in value:
        record.is_undone = bool(value["undone"])
        left = value.get("left")
        record.left = [path for path in left if isinstance(path, str)] if isinstance(left, list) else []
        record.is_told = False
    elif "rewound" in value:
        record.set_rewound()
    elif "told" in value:
        record.is_told = True


class _StoredTurn(NamedTuple):
    """The files of one turn, for the bound."""

    modified: float
    size: int
    base: str


def remove_old(home: str) -> None:
    """Remove the oldest checkpoints of all sessions and workspaces, down to the limits. The newest always stays.

    Whatever cannot be removed now is tried again at the next turn that changes files.
    """
    stored = sorted(_list_stored(home), reverse=True)
    oldest = time.time() - _limits.KEPT_DAYS * 86_400
    total = 0
    for position, turn in enumerate(stored):
        total += turn.size
        is_over = position >= _limits.KEPT_TURNS or total > _limits.KEPT_BYTES or turn.modified < oldest
        if is_over and position > 0:
            for ending in (_LIST, _CONTENTS):
                with suppress(OSError):
                    system.unlink(turn.base + ending)
            for folder in (os.path.dirname(turn.base), os.path.dirname(os.path.dirname(turn.base))):
                with suppress(OSError):  # not empty
                    system.rmdir(folder)


def _list_stored(home: str) -> Iterator[_StoredTurn]:
    for workspace in _list_folder(home):
        for session in _list_folder(workspace):
            for path in _list_folder(session):
                if _TURN_NAME.fullmatch(os.path.basename(path)):
                    base = path.removesuffix(_LIST)
                    size = 0
                    modified = 0.0
                    for ending in (_LIST, _CONTENTS):
                        with suppress(OSError):
                            info = system.stat(base + ending, follow_symlinks=False)
                            size += info.st_size
                            modified = max(modified, info.st_mtime)
                    yield _StoredTurn(modified, size, base)


def _list_folder(path: str) -> list[str]:
    try:
        return [os.path.join(path, name) for name in system.listdir(path)]
    except OSError:
        return []
