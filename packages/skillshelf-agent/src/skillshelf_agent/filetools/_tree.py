"""The files below a folder that the tools show, and a record of those they leave out."""

import math
import posixpath
import time
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Literal

from skillshelf.files import (
    NotPlainFile,
    TreeEntry,
    open_below,
    open_folder_below,
    open_plain,
    read_at,
    read_file,
    system,
    walk,
)
from skillshelf.sources import VERSION_CONTROL_FOLDERS, IgnoreRules
from skillshelf_agent.filetools._access import FileAccess, Parts, is_hidden, show_path
from skillshelf_agent.filetools._limits import MAX_IGNORE_BYTES, MAX_NAMED_FILES, MAX_SEARCHED_FILE, MAX_WALKED
from skillshelf_agent.filetools._reading import is_binary


class FileTree:
    """The files below a folder that a tool shows, and a record of those it leaves out."""

    def __init__(
        self,
        access: FileAccess,
        parts: Parts,
        glob_names: list[str],
        *,
        ignore: "GitIgnore | None" = None,
        deadline: float = math.inf,
    ) -> None:
        """`parts` leads to the folder. A glob with a hidden name in its `glob_names` makes the tree show hidden files.

        `deadline`: when the walk ends. Ignore files can make it slow without letting a single file through to a search.
        """
        self.timed_out = False
        self._access = access
        self._parts = parts
        self._glob_names = glob_names
        self._shows_hidden = any(is_hidden(name) and name not in (".", "..") for name in glob_names)
        self._ignore = ignore
        self._deadline = deadline

        self._walked = 0
        self._hidden = 0
        self._ignored = 0
        self._skipped_files: list[str] = []
        self._unread_folders: list[str] = []

    def walk(self, folder: int, max_depth: int | None = None) -> Iterator[TreeEntry]:
        """Yield the entries below an open folder that this tool shows."""
        if max_depth is None:
            entries = walk(folder, self._should_enter, self._report_unread)
        else:  # without reports: each folder at that depth would be in one
            entries = walk(folder, self._should_enter, max_depth=max_depth)

        for entry in entries:
            self._walked += 1
            if self._walked > MAX_WALKED:
                return
            if time.monotonic() > self._deadline:
                self.timed_out = True
                return

            reason = self._reason_to_omit(entry)
            if reason is None:
                yield entry
            elif reason == "hidden":
                self._hidden += 1
            elif reason == "ignored":
                self._ignored += 1

    def read_files(self, glob: str | None) -> Iterator[tuple[str, bytes]]:
        """Yield the path and the content of each text file to search. The folder may also be a single file."""
        try:
            with open_folder_below(self._access.root, self._parts) as folder:
                yield from self._read_files_below(folder, glob)
        except NotPlainFile:
            # If the path is not that of a single file either, reading it says what is wrong.
            path = "/".join(self._parts)
            page = read_file(self._access.root, self._parts, 0, MAX_SEARCHED_FILE + 1)
            if page.size > MAX_SEARCHED_FILE:
                self._skipped_files.append(path)
            elif not is_binary(page.data):
                yield path, page.data

    def notes(self) -> list[str]:
        """Return a line for each kind of thing that was left out."""
        notes: list[str] = []
        if self._walked > MAX_WALKED:
            notes.append(f"[stopped after {MAX_WALKED:,} files and folders; narrow the path]")
        if self._skipped_files:
            names = _name_some(self._skipped_files)
            notes.append(f"[{len(self._skipped_files)} files skipped (too large or unreadable): {names}]")
        if self._unread_folders:
            names = _name_some(self._unread_folders)
            notes.append(f"[{len(self._unread_folders)} folders not read whole: {names}]")
        if self._ignored:
            notes.append(f"[{self._ignored} entries ignored by .gitignore; name their path to search them]")
        if self._ignore and self._ignore.refused:
            notes.append(f"[{self._ignore.refused} patterns in .gitignore files are not understood and do not count]")
        if self._hidden:
            notes.append(f"[{self._hidden} hidden entries omitted; name a hidden path explicitly to include it]")
        return notes

    def _should_enter(self, entry: TreeEntry) -> bool:
        if entry.name in VERSION_CONTROL_FOLDERS and entry.name not in self._glob_names:
            return False
        if self._reason_to_omit(entry) is not None:
            return False
        if self._ignore:
            self._ignore.load(self._parts_of(entry), entry.folder)
        return True

    def _reason_to_omit(self, entry: TreeEntry) -> Literal["denied", "hidden", "ignored"] | None:
        parts = self._parts_of(entry)
        if self._access.is_denied(parts):
            return "denied"
        if is_hidden(entry.name) and not self._shows_hidden:
            return "hidden"
        if self._ignore and self._ignore.covers(parts, is_folder=entry.kind == "folder"):
            return "ignored"
        return None

    def _parts_of(self, entry: TreeEntry) -> Parts:
        return (*self._parts, *entry.path.split("/"))

    def _report_unread(self, path: str, reason: str) -> None:
        self._unread_folders.append(f"{posixpath.join(*self._parts, path)} ({reason})")

    def _read_files_below(self, folder: int, glob: str | None) -> Iterator[tuple[str, bytes]]:
        device = system.fstat(folder).st_dev
        for entry in self.walk(folder):
            path = posixpath.join(*self._parts, entry.path)
            if entry.kind != "file" or not _matches_glob(glob, entry.path, path):
                continue
            data = self._read(entry, device)
            if data is None:
                self._skipped_files.append(path)
            elif not is_binary(data):
                yield path, data

    def _read(self, entry: TreeEntry, device: int) -> bytes | None:
        """Return a file's content, or None if it is too large or cannot be read."""
        try:
            fd, info = open_plain(entry.name, entry.folder, device)
        except (OSError, NotPlainFile):
            return None
        try:
            if info.st_size > MAX_SEARCHED_FILE:
                return None
            return read_at(fd, 0, MAX_SEARCHED_FILE, info.st_size)
        except OSError:
            return None
        finally:
            system.close(fd)


class GitIgnore:
    """The .gitignore files on the way to a folder and below it, read as plain text. Git is not started."""

    def __init__(self, access: FileAccess, parts: Parts) -> None:
        self._rules: dict[Parts, IgnoreRules] = {}
        """The rules of each folder that has some."""
        self.refused = 0
        """The number of patterns that are not understood."""
        for depth in range(len(parts) + 1):
            with suppress(OSError, NotPlainFile), open_below(access.root, parts[:depth]) as folder:
                self._read(parts[:depth], folder)

    def load(self, parts: Parts, parent: int) -> None:
        """Add the .gitignore of a folder, which is in the open folder `parent`."""
        with suppress(OSError, NotPlainFile), open_below(parent, parts[-1:]) as folder:
            self._read(parts, folder)

    def covers(self, parts: Parts, *, is_folder: bool) -> bool:
        """Return True if a rule leaves this path out. The nearest file that has a rule for it decides."""
        for depth in range(len(parts) - 1, -1, -1):
            rules = self._rules.get(parts[:depth])
            if rules is None:
                continue
            verdict = rules.verdict("/".join(parts[depth:]), is_folder)
            if verdict is not None:
                return verdict
        return False

    def _read(self, parts: Parts, folder: int) -> None:
        fd, _ = open_plain(".gitignore", folder, system.fstat(folder).st_dev)
        try:
            text = system.pread(fd, MAX_IGNORE_BYTES, 0).decode(errors="replace")
        finally:
            system.close(fd)
        self._rules[parts] = IgnoreRules.parse(text)
        self.refused += len(self._rules[parts].refused)


def _matches_glob(glob: str | None, path: str, full_path: str) -> bool:
    """Return True if a file matches a glob in which `*` also spans folders.

    The glob may start at the searched folder (`path`) or at the workspace (`full_path`).
    """
    if not glob:
        return True
    for pattern in (glob, glob.removeprefix("**/")):
        if fnmatchcase(path, pattern) or fnmatchcase(full_path, pattern):
            return True
    return False


def _name_some(paths: list[str]) -> str:
    names = ", ".join(show_path(path) for path in paths[:MAX_NAMED_FILES])
    if len(paths) > MAX_NAMED_FILES:
        names += ", ..."
    return names
