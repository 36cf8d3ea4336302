"""The sessions of a workspace: a folder of files, named by the time they began."""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from skillshelf.errors import SessionError
from skillshelf.files import is_at_or_inside, state_home, system
from skillshelf.text import clean_line, closest_names, truncate
from skillshelf_agent.sessions._format import (
    COMPACTED_START,
    MESSAGE_START,
    MODEL_START,
    NAME_START,
    REWOUND_START,
    VERSION,
    Header,
    InUse,
    parse_header,
)
from skillshelf_agent.sessions._history import show_invocation
from skillshelf_agent.sessions._journal import Journal
from skillshelf_agent.sessions._session import Session, resume_session, start_session

# Without letters and digits that look like one another.
_ID_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
_NO_HOME = "there is no home folder, and XDG_STATE_HOME is not an absolute path"
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_TITLE = 80
_MAX_HEADER_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session at a glance."""

    id: str
    created: datetime
    changed: datetime
    title: str = ""
    """The user's first message, on one line."""
    name: str = ""
    """The user's name for it."""
    model: str = ""
    messages: int = 0
    """How many messages the current history has."""
    problem: str = ""
    """Why the session cannot be opened; empty if a glance finds nothing wrong."""
    in_use: InUse = field(default_factory=InUse)
    """The model, its address and the policy that were used last."""

    @property
    def about(self) -> str:
        """The user's name for it and their first message, as far as there are any."""
        return " · ".join(filter(None, [self.name, self.title]))


class Sessions:
    """The sessions of one workspace. `home` replaces the user's state folder."""

    def __init__(self, workspace: str, home: str | None = None) -> None:
        self.workspace = os.path.realpath(workspace)
        self.folder: str | None = None
        self.checkpoints: str | None = None
        """The folder for the checkpoints of these sessions."""
        home = home or state_home()
        if home:
            name = _name_folder(self.workspace)
            self.folder = os.path.join(home, "sessions", name)
            self.checkpoints = os.path.join(home, "checkpoints", name)
        self._infos: dict[str, tuple[tuple[int, int, int], SessionInfo]] = {}

    def create(self, model: str = "", in_use: InUse | None = None) -> Session:
        """Return a new session. Its file appears with the first message. `in_use` says more than the `model`."""
        in_use = in_use or InUse(model=model)
        now = datetime.now(UTC)
        suffix = "".join(secrets.choice(_ID_LETTERS) for _ in range(4))
        session_id = f"{now:%Y%m%d-%H%M%S}-{suffix}"
        header = Header(
            skillshelf_session=VERSION,
            id=session_id,
            workspace=self.workspace,
            created=now,
            **in_use.model_dump(),
        )
        file_name = f"{session_id}.jsonl"
        if self.folder is None:
            journal = Journal(file_name, refused=_NO_HOME)
        else:
            journal = Journal(os.path.join(self.folder, file_name))
        return start_session(journal, self.workspace, header)

    def list(self) -> "list[SessionInfo]":
        """Return all sessions, the one changed last first. A damaged one is listed with its problem."""
        infos = [(stat.st_mtime_ns, self._read_info(path, stat)) for path, stat in self._find_files()]
        infos.sort(key=lambda pair: (pair[0], pair[1].created, pair[1].id), reverse=True)
        return [info for _, info in infos]

    def ids(self) -> Sequence[str]:
        """Return the ids of all sessions, the one changed last first, without opening a file."""
        return tuple(_id_of(path) for path in self._list_newest_first())

    def open(self, id_or_prefix: str = "") -> Session:
        """Open a session to go on with it: by its id, the beginning of it, its last four letters, or its name.

        Without an id, the session changed last is opened. Raises SessionError if there is no such session.
        """
        path = self._find_path(id_or_prefix)
        try:
            journal = Journal.open(path)
        except OSError as error:
            raise SessionError(f"The session {path} cannot be opened: {error.strerror}.") from error
        return resume_session(journal, self.workspace)

    def recall_settings(self, id_or_prefix: str = "") -> dict[str, str]:
        """Return the settings that a session was used with last, in the form that `load_settings` takes.

        There are none of a session of an earlier version, and none if the workspace has the file in it: a command of
        the agent could have written them. Raises SessionError if there is no such session.
        """
        path = self._find_path(id_or_prefix)
        if is_at_or_inside(os.path.realpath(path), self.workspace):
            return {}
        try:
            in_use = self._read_info(path, system.stat(path, follow_symlinks=False)).in_use
        except OSError as error:
            raise SessionError(f"The session {path} cannot be opened: {error.strerror}.") from error
        if in_use.base_url is None:
            return {}
        recalled = {"model": in_use.model, "base_url": in_use.base_url}
        return {**recalled, "policy": in_use.policy} if in_use.policy else recalled

    def fork(self, session: Session) -> Session:
        """Return a new session with everything that was said in this one, which stays as it is.

        Raises SessionError if nothing was said yet, or if the copy cannot be written.
        """
        if not session.transcript:
            raise SessionError("The conversation is empty, so there is nothing to fork.")
        forked = self.create(in_use=session.in_use)
        forked.copy_history(session)
        return forked

    def _read_info(self, path: str, stat: os.stat_result) -> SessionInfo:
        """Read a file once for as long as it does not change: completion asks with every key."""
        state = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size
        known = self._infos.get(path)
        if known is None or known[0] != state:
            known = state, read_info(path, stat)
            self._infos[path] = known
        return known[1]

    def _find_path(self, wanted: str) -> str:
        paths = self._list_newest_first()
        if not paths:
            raise SessionError(f"There is no session of {self.workspace} yet.")
        if not wanted:
            return paths[0]

        matching = [path for path in paths if _id_of(path) == wanted]
        if not matching:
            matching = [path for path in paths if _matches(_id_of(path), wanted)]
        if not matching:
            names = {info.id: info.name for info in self.list()}
            matching = [path for path in paths if names.get(_id_of(path)) == wanted]
        if len(matching) > 1:
            matches = ", ".join(_id_of(path) for path in matching[:5])
            raise SessionError(f"{wanted!r} fits {len(matching)} sessions: {matches}.")
        if not matching:
            ids = [_id_of(path) for path in paths]
            closest = closest_names(wanted, ids) or sorted(ids, reverse=True)[:3]
            raise SessionError(
                f"There is no session {wanted[:100]!r} of {self.workspace}. There is {', '.join(closest)}."
            )
        return matching[0]

    def _list_newest_first(self) -> Sequence[str]:
        files = sorted(self._find_files(), key=lambda pair: (pair[1].st_mtime_ns, pair[0]), reverse=True)
        return tuple(path for path, _ in files)

    def _find_files(self) -> Iterator[tuple[str, os.stat_result]]:
        if not self.folder:
            return
        try:
            entries = list(system.scandir(self.folder))
        except FileNotFoundError:
            return
        except OSError as error:
            raise SessionError(f"The sessions in {self.folder} cannot be read: {error.strerror}.") from error

        for entry in entries:
            with suppress(FileNotFoundError):
                stat = entry.stat(follow_symlinks=False)
                # A file is empty if its writer was killed between creating it and writing to it.
                if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False) and stat.st_size:
                    yield entry.path, stat


def read_info(path: str, stat: os.stat_result) -> SessionInfo:
    """Look through a session's file without reading all of it as messages."""
    session_id = _id_of(path)
    changed = datetime.fromtimestamp(stat.st_mtime, UTC)
    try:
        with open(system.open(path, _READ_FLAGS), "rb") as file:
            header = parse_header(file.readline(_MAX_HEADER_BYTES), path)
            if header is None:
                problem = f"The first line of {path} cannot be read."
                return SessionInfo(session_id, changed, changed, problem=problem)
            scan = _LineScan(header.in_use)
            for line in file:
                scan.add(line)
    except SessionError as error:
        return SessionInfo(session_id, changed, changed, problem=str(error))
    except OSError as error:
        return SessionInfo(session_id, changed, changed, problem=f"{path} cannot be read: {error.strerror}.")

    title = truncate(clean_line(" ".join(scan.first_prompt[: 4 * _MAX_TITLE].split())), _MAX_TITLE)
    return SessionInfo(
        session_id,
        header.created,
        changed,
        title,
        truncate(clean_line(scan.name), _MAX_TITLE),
        clean_line(scan.in_use.model),
        scan.message_count,
        in_use=scan.in_use,
    )


class _LineScan:
    """Gathers the facts of a SessionInfo. Only the few lines that hold them are parsed."""

    def __init__(self, in_use: InUse) -> None:
        self.in_use = in_use
        self.name = ""
        self.first_prompt = ""
        self._said = 0
        """How many messages the transcript has."""
        self._compactions: list[tuple[int, int]] = []
        """How many messages of the transcript each compaction stands for, and how many messages took their place."""

    @property
    def message_count(self) -> int:
        compacted, left = self._compactions[-1] if self._compactions else (0, 0)
        return left + self._said - compacted

    def add(self, line: bytes) -> None:
        if line.startswith(MESSAGE_START):
            self._said += 1
            if not self.first_prompt:
                self.first_prompt = _find_prompt([_parse_value(line, "message")])
        elif line.startswith(COMPACTED_START):
            history = _parse_value(line, "compacted")
            if isinstance(history, list):
                self._said = self._said or len(history)
                self._compactions.append((self._said, len(history)))
            self.first_prompt = self.first_prompt or _find_prompt(history)
        elif line.startswith(REWOUND_START):
            position = _parse_value(line, "rewound")
            if isinstance(position, int):
                self._said = position
                self._compactions = [each for each in self._compactions if each[0] <= position]
                self.first_prompt = self.first_prompt if position else ""
        elif line.startswith(MODEL_START):
            with suppress(ValueError, RecursionError):
                self.in_use = InUse.model_validate_json(line)
        elif line.startswith(NAME_START):
            self.name = str(_parse_value(line, "name") or self.name)


def _parse_value(line: bytes, key: str) -> Any:
    try:
        return json.loads(line)[key]
    except (ValueError, RecursionError):
        return None


def _find_prompt(messages: Any) -> str:
    """Return the first thing the user said in messages that are plain JSON values."""
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts", ()) if isinstance(message, dict) else ()
        for part in parts:
            if isinstance(part, dict) and part.get("part_kind") == "user-prompt":
                return show_invocation(_join_text(part.get("content")))
    return ""


def _join_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts: list[Any] = []
    for item in content if isinstance(content, list) else ():
        if not isinstance(item, dict):
            texts.append(item)
        elif not item.get("metadata"):  # notes and attachments have metadata
            texts.append(item.get("content"))
    return " ".join(text for text in texts if isinstance(text, str))


def _id_of(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def _matches(session_id: str, wanted: str) -> bool:
    return session_id.startswith(wanted) or session_id.endswith(f"-{wanted}")


def _name_folder(workspace: str) -> str:
    """Return a folder name that a user can recognise and that is different for each workspace."""
    slug = re.sub(r"[^a-z0-9]+", "-", os.path.basename(workspace).lower()).strip("-")[:40] or "workspace"
    digest = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:8]
    return f"{slug}-{digest}"
