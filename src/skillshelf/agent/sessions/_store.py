"""The sessions of a workspace: a folder of files, named by the time they began."""

import hashlib
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from skillshelf.agent.sessions import _lines as lines
from skillshelf.agent.sessions._glance import SessionInfo, glance, id_of
from skillshelf.agent.sessions._journal import Journal
from skillshelf.agent.sessions._session import Session, begin, resume
from skillshelf.errors import SessionError
from skillshelf.files import state_home, system
from skillshelf.text import closest_names

# Without those that look like another.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"

_HOMELESS = "there is no home folder, and XDG_STATE_HOME is no absolute path"


class Sessions:
    """`home` stands in for the user's state folder."""

    def __init__(self, workspace: str, home: str | None = None) -> None:
        self.workspace = os.path.realpath(workspace)
        home = home or state_home()
        self._glances: dict[str, tuple[tuple[int, int, int], SessionInfo]] = {}
        self.folder = os.path.join(home, "sessions", _folder_name(self.workspace)) if home else None

    def create(self, model: str = "") -> Session:
        """A new session; its file appears with the first message."""
        now = datetime.now(UTC)
        name = f"{now:%Y%m%d-%H%M%S}-{''.join(secrets.choice(_LETTERS) for _ in range(4))}"
        header = {
            "skillshelf_session": lines.VERSION,
            "id": name,
            "workspace": self.workspace,
            "created": now.isoformat(),
            "model": model,
        }
        if self.folder is None:
            return begin(Journal(name + ".jsonl", refused=_HOMELESS), self.workspace, header)
        return begin(Journal(os.path.join(self.folder, name + ".jsonl")), self.workspace, header)

    def list(self) -> "list[SessionInfo]":
        """All of them, the one changed last first. A damaged one is there too, and says so."""
        found = [(stat.st_mtime_ns, self._glance(path, stat)) for path, stat in self._files()]
        found.sort(key=lambda pair: (pair[0], pair[1].created, pair[1].id), reverse=True)
        return [info for _, info in found]

    def ids(self) -> Sequence[str]:
        """Of all of them, the one changed last first; no file is opened."""
        return tuple(map(id_of, self._newest()))

    def open(self, id_or_prefix: str = "") -> Session:
        """To go on with it: by its id, the beginning or the last four letters of it; without one, the newest."""
        path = self._find(id_or_prefix)
        try:
            journal = Journal.hold(path)
        except OSError as error:
            raise SessionError(f"The session {path} cannot be opened: {error.strerror}.") from error
        return resume(journal, self.workspace)

    def _glance(self, path: str, stat: os.stat_result) -> SessionInfo:
        """Each file is read once for as long as it stays as it is: completion asks with every key."""
        state = stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size
        known = self._glances.get(path)
        if known is None or known[0] != state:
            self._glances[path] = known = state, glance(path, stat)
        return known[1]

    def _find(self, asked: str) -> str:
        paths = self._newest()
        if not paths:
            raise SessionError(f"There is no session of {self.workspace} yet.")
        if not asked:
            return paths[0]
        matching = [path for path in paths if id_of(path) == asked] or [path for path in paths if _fits(path, asked)]
        if len(matching) > 1:
            raise SessionError(f"{asked!r} fits {len(matching)} sessions: {', '.join(map(id_of, matching[:5]))}.")
        if not matching:
            raise self._unknown(asked)
        return matching[0]

    def _newest(self) -> Sequence[str]:
        files = sorted(self._files(), key=lambda pair: (pair[1].st_mtime_ns, pair[0]), reverse=True)
        return tuple(path for path, _ in files)

    def _unknown(self, asked: str) -> SessionError:
        ids = [id_of(path) for path, _ in self._files()]
        near = closest_names(asked, ids) or sorted(ids, reverse=True)[:3]
        hint = f" There is {', '.join(near)}." if near else ""
        return SessionError(f"There is no session {asked[:100]!r} of {self.workspace}.{hint}")

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        try:
            entries = list(system.scandir(self.folder)) if self.folder else []
        except FileNotFoundError:
            return
        except OSError as error:
            raise SessionError(f"The sessions in {self.folder} cannot be read: {error.strerror}.") from error
        for entry in entries:
            with suppress(FileNotFoundError):
                stat = entry.stat(follow_symlinks=False)
                # Nothing is in a file whose writer was killed between making it and writing to it.
                if entry.name.endswith(".jsonl") and entry.is_file(follow_symlinks=False) and stat.st_size:
                    yield entry.path, stat


def _folder_name(workspace: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", os.path.basename(workspace).lower()).strip("-")[:40] or "workspace"
    return f"{slug}-{hashlib.sha256(os.fsencode(workspace)).hexdigest()[:8]}"


def _fits(path: str, asked: str) -> bool:
    return id_of(path).startswith(asked) or id_of(path).endswith("-" + asked)
