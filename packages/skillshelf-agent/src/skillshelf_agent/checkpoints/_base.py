"""The contents of the workspace before a command runs, so that whatever it changes can be brought back.

They are in a file without a name, which the system removes when the process ends, however that happens. What a turn did
change is written to its checkpoint as soon as the command is over.
"""

from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Iterable
from typing import NamedTuple

from skillshelf.files import hash_content, make_private_folders, read_at, system, write_all
from skillshelf_agent.checkpoints import _limits
from skillshelf_agent.checkpoints._states import (
    ABSENT_STATE,
    BLOCKED_STATE,
    Look,
    PathState,
    look_at,
    may_hold_secrets,
)
from skillshelf_agent.checkpoints._sweep import Seen, Sweep
from skillshelf_agent.filetools import show_path

_MAX_NAMED = 10
_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Known(NamedTuple):
    """An entry as it was at the last sweep."""

    seen: Seen
    digest: str
    """Empty if the content was not copied."""


class ObservedChange(NamedTuple):
    """A path that changed between two sweeps."""

    path: str
    before: PathState
    after: Look


class ContentFile:
    """Contents by their hash, in an open file without a name."""

    def __init__(self, folder: str) -> None:
        make_private_folders(folder)
        path = os.path.join(folder, f"base-{secrets.token_hex(8)}")
        self._fd = system.open(path, _NEW_FILE, 0o600)
        self._close = weakref.finalize(self, os.close, self._fd)
        system.unlink(path)
        self._places: dict[str, tuple[int, int]] = {}
        self.size = 0

    def __contains__(self, digest: str) -> bool:
        return digest in self._places

    def add(self, digest: str, data: bytes) -> None:
        """Append a content. If that fails, the file is as it was."""
        if digest in self._places:
            return
        try:
            write_all(self._fd, data)
        except OSError:
            os.lseek(self._fd, self.size, os.SEEK_SET)
            raise
        self._places[digest] = (self.size, len(data))
        self.size += len(data)

    def read(self, digest: str) -> bytes | None:
        """Return a content, or None if it is not there."""
        place = self._places.get(digest)
        if place is None:
            return None
        offset, size = place
        data = read_at(self._fd, offset, size, self.size)
        return data if hash_content(data) == digest else None

    def close(self) -> None:
        self._close()


class BaseCopy:
    """The covered files of a workspace as they were at the last sweep, with the contents of most of them."""

    def __init__(self, root: str, folder: str) -> None:
        """`folder`: where the contents are, outside the workspace."""
        self.problem = ""
        """Why the last sweep is not all that it should be; empty if it is."""
        self._reported_unread: set[str] = set()
        self._root = root
        self._folder = folder
        self._known: dict[str, Known] = {}
        self._last_sweep = Sweep()
        self._contents: ContentFile | None = None

    @property
    def size(self) -> int:
        """The number of entries of the last sweep."""
        return len(self._known)

    def read(self, digest: str) -> bytes | None:
        return self._contents.read(digest) if self._contents else None

    def refresh(self, found: Sweep) -> None:
        """Take over a sweep from before a command, and copy the files that are new or changed since the last one."""
        known = {path: self._carry_over(path, seen) for path, seen in found.entries.items()}
        self._known = known
        self._last_sweep = found
        self.problem = self._report_unread(found)
        missing = [path for path, entry in known.items() if not entry.digest and entry.seen.kind in ("file", "link")]
        missing.sort(key=lambda path: known[path].seen.modified, reverse=True)
        try:
            self._copy(missing)
        except OSError as error:
            self.problem = f"copying the files failed: {error.strerror or error}"

    def observe(self, found: Sweep) -> list[ObservedChange]:
        """Return everything that changed since the last sweep, and take over this one."""
        changes: list[ObservedChange] = []
        self.problem = self._report_unread(found)
        for path in self._find_suspects(found):
            before = self._state_of(path)
            after = self._look(path)
            if path in found.entries:
                self._known[path] = Known(found.entries[path], self._try_to_add(after))
            else:
                self._known.pop(path, None)
                if found.is_skipped(path) or after.state.has_content or after.state.kind == "folder":
                    continue  # it may still be there, but is no longer covered
                after = Look(ABSENT_STATE)
            is_unknown = before.kind == "absent" and self._last_sweep.is_skipped(path)
            if after.state != before and not is_unknown:
                changes.append(ObservedChange(path, before, after))
        self._last_sweep = found
        return changes

    def close(self) -> None:
        if self._contents:
            self._contents.close()

    def _report_unread(self, found: Sweep) -> str:
        """Return a problem if there are folders that could not be read, each of them once."""
        unread = sorted(set(found.unread) - self._reported_unread)
        self._reported_unread.update(unread)
        if not unread:
            return ""
        return f"{', '.join(show_path(path) for path in unread[:_MAX_NAMED])} could not be looked into"

    def _look(self, path: str) -> Look:
        try:
            return look_at(self._root, path.split("/"), limit=self._limit_for(path))
        except OSError as error:
            self.problem = f"{show_path(path)} cannot be read: {error.strerror or error}"
            return Look(BLOCKED_STATE)

    def _carry_over(self, path: str, seen: Seen) -> Known:
        entry = self._known.get(path)
        if entry is None or entry.seen.stamp != seen.stamp:
            return Known(seen, "")
        # Still unproven if it was: after the command, the content decides.
        return Known(seen._replace(is_fresh=seen.is_fresh or entry.seen.is_fresh), entry.digest)

    def _find_suspects(self, found: Sweep) -> Iterable[str]:
        suspects: list[str] = []
        for path, seen in found.entries.items():
            entry = self._known.get(path)
            if entry is None or entry.seen.stamp != seen.stamp or entry.seen.mode != seen.mode:
                is_suspect = True
            else:
                is_suspect = entry.seen.is_fresh and bool(entry.digest)  # the stamp of a fresh file proves nothing
            if is_suspect:
                suspects.append(path)
        suspects += [path for path in self._known if path not in found.entries]
        return suspects

    def _state_of(self, path: str) -> PathState:
        entry = self._known.get(path)
        if entry is None:
            return ABSENT_STATE
        seen = entry.seen
        if seen.kind == "folder":
            return PathState(kind="folder", mode=seen.mode)
        if seen.kind == "link":
            return PathState(kind="link", size=seen.size, digest=entry.digest)
        stamp = () if entry.digest else seen.stamp
        return PathState(kind="file", mode=seen.mode, size=seen.size, digest=entry.digest, stamp=stamp)

    def _copy(self, missing: list[str]) -> None:
        if self._contents and self._contents.size > 2 * _limits.COPIED_BYTES:
            # Mostly old versions by now. The files are copied again, a part before each command.
            self._contents.close()
            self._contents = None
            self._known = {path: Known(entry.seen, "") for path, entry in self._known.items()}

        room = _limits.COPIED_BYTES - sum(entry.seen.size for entry in self._known.values() if entry.digest)
        for path in missing[: _limits.FILES_AT_ONCE]:
            seen = self._known[path].seen
            if seen.size > min(room, self._limit_for(path)):
                continue
            look = self._look(path)
            self._known[path] = Known(seen, self._add_content(look))
            room -= len(look.data)

    def _add_content(self, look: Look) -> str:
        """Store a content, and return its digest."""
        if not look.state.digest:
            return ""
        if self._contents is None:
            self._contents = ContentFile(self._folder)
        self._contents.add(look.state.digest, look.data)
        return look.state.digest

    def _try_to_add(self, look: Look) -> str:
        """Store a content, and return its digest; an empty string if it cannot be stored."""
        try:
            return self._add_content(look)
        except OSError as error:
            self.problem = f"copying the files failed: {error.strerror or error}"
            return ""

    def _limit_for(self, path: str) -> int:
        """Return how many bytes of a file may be copied: none of one that may hold secrets."""
        return -1 if may_hold_secrets(path) else _limits.FILE_BYTES
