"""Copies of skills' folders for their scripts to run from."""

import os
import secrets
import shutil
import tempfile
import time
import weakref
from contextlib import suppress

from skillshelf.errors import SkillError, TrustError
from skillshelf.files import NotPlainFile, make_private_folders, mounts_below, open_folder, system, try_lock
from skillshelf.sources import DirectorySource, Source
from skillshelf.trust._source import TrustedSource
from skillshelf.trust._trees import COPIED_FILES, Snapshot, TreeCopy, make_copy, take_snapshot

_COMPILED_ENDINGS = (".pyc", ".pyo")
_COMPILED_FOLDER = "__pycache__"
_PREFIX = "skillshelf-"
_SECONDS_TO_LOCK = 3600.0
"""A folder of which no process holds the lock is left alone for so long: its process may be about to take it."""


class ScriptFolders:
    """Private copies of skills' folders, each in the version that its source serves.

    A script runs from such a copy, so that what runs is what the user was asked about, whatever happens to the files of
    the skill meanwhile. The copies last as long as this object.
    """

    def __init__(self, parent: str | None = None) -> None:
        """Make the copies in a new folder below `parent`, by default the system's temporary folder."""
        self._parent = parent
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._copies: dict[str, TreeCopy] = {}

    def get(self, source: Source, key: str) -> TreeCopy:
        """Return a copy of a skill's folder. Raises SkillError if there is no such folder, or no whole one."""
        if isinstance(source, TrustedSource):
            approved = source.find_copy(key)
            if approved is None:
                raise TrustError("The approved copy of the skill is missing or damaged. The user can review it again.")
            return self._copy(approved.folder, COPIED_FILES, approved.snapshot)

        if not isinstance(source, DirectorySource):
            raise SkillError("The skill has no folder of its own: only skills in folders have scripts.")
        snapshot = take_snapshot(source.root, key, mounts_below(source.root)).snapshot
        if snapshot.fault:
            raise SkillError(f"The skill's scripts cannot be run: {snapshot.fault}.")
        return self._copy(source.root, key, snapshot)

    def verify(self, tree: str) -> None:
        """Raise SkillError unless the copy with this content is still as it was made."""
        copy = self._copies.get(tree)
        if copy is None or not copy.is_intact():
            raise SkillError("The script was not run: its copy was changed after the user was asked about it.")

    def _copy(self, root: str, folder: str, snapshot: Snapshot) -> TreeCopy:
        wanted = _leave_out_compiled(snapshot)
        known = self._copies.get(wanted.tree)
        if known is not None and known.is_intact():
            return known
        try:
            copy = make_copy(root, folder, wanted, f"{self._make_home()}/{secrets.token_hex(8)}")
        except TrustError:
            raise SkillError("The skill's files are being changed right now. Try again.") from None
        except OSError as error:
            raise SkillError(f"The skill's files cannot be copied: {error.strerror or error}.") from None
        self._copies[wanted.tree] = copy
        return copy

    def _make_home(self) -> str:
        if self._home is None:
            if self._parent is not None:
                make_private_folders(self._parent)
                _remove_abandoned(self._parent)
            self._home = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=self._parent, ignore_cleanup_errors=True)
            lock = open_folder(self._home.name)
            weakref.finalize(self, system.close, lock)
            with suppress(OSError):  # a file system without locks: there, nothing is removed
                try_lock(lock)
        return self._home.name


def _remove_abandoned(parent: str) -> None:
    """Remove the folders of processes that were killed. A living process holds the lock on its folder."""
    oldest = time.time() - _SECONDS_TO_LOCK
    for name in system.listdir(parent):
        path = os.path.join(parent, name)
        with suppress(OSError, NotPlainFile):  # no folder; or another process is doing the same
            if not name.startswith(_PREFIX) or system.stat(path, follow_symlinks=False).st_mtime > oldest:
                continue
            folder = open_folder(path)
            try:
                if try_lock(folder):
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                system.close(folder)


def _leave_out_compiled(snapshot: Snapshot) -> Snapshot:
    """Leave out compiled Python: it would run in place of the script that the user has read."""
    entries = []
    for entry in snapshot.entries:
        is_compiled = entry.path.endswith(_COMPILED_ENDINGS) or _COMPILED_FOLDER in entry.path.split("/")
        if not is_compiled:
            entries.append(entry)
    return snapshot._replace(entries=tuple(entries))
