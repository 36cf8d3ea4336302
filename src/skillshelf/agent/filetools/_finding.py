"""Listing folders, finding files by name and searching their lines."""

import math
import posixpath
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from skillshelf.agent.filetools._access import FileAccess, Parts, is_hidden, show_path
from skillshelf.agent.filetools._reading import MAX_CHARS, is_binary
from skillshelf.agent.filetools._search import PatternError, search_lines
from skillshelf.errors import FileAccessError
from skillshelf.files import (
    NotPlainFile,
    TreeEntry,
    list_folder,
    open_below,
    open_folder_below,
    open_plain,
    read_at,
    read_file,
    system,
    walk,
)
from skillshelf.sources import VERSION_CONTROL_FOLDERS, IgnoreRules

MAX_RESULTS = 1000
MAX_SEARCHED_FILE = 10 * 1024 * 1024
_MAX_WALKED = 100_000
_MAX_GLOB = 500
_MAX_IGNORE_BYTES = 64 * 1024
_NAMED = 10
"""How many of the skipped files are named."""


def list_directory(access: FileAccess, path: str) -> str:
    """Return a line for each entry of a folder. Raises FileAccessError."""
    parts = access.resolve(path)
    hidden = 0
    lines: list[str] = []
    notes: list[str] = []
    with access.explain(path, parts), open_folder_below(access.root, parts) as folder:
        for entry in list_folder(folder, report=lambda _, reason: notes.append(f"[{reason}]")):
            if is_hidden(entry.name):
                hidden += 1
            elif not access.is_denied((*parts, entry.name)):
                lines.append(_describe(access, entry, parts))
    if hidden:
        notes.append(f"[{hidden} hidden entries omitted; name a hidden path explicitly to include it]")
    return _join(lines, notes, "entries", "(empty directory)")


def find_files(access: FileAccess, pattern: str, path: str) -> str:
    """Return the paths below a folder that match a glob. Raises FileAccessError."""
    parts = access.resolve(path)
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if pattern.startswith("/") or not names or ".." in names or len(pattern) > _MAX_GLOB:
        raise FileAccessError(f"{pattern[:200]!r} is not a glob relative to {show_path(path)!r}, such as '**/*.py'.")
    # The same matcher as for ignore files: no pattern takes more than its length times that of the path.
    rules = IgnoreRules.parse("/" + "/".join(names) + ("/" if pattern.endswith("/") else ""))
    tree = _Tree(access, parts, names)

    lines: list[str] = []
    with access.explain(path, parts), open_folder_below(access.root, parts) as folder:
        for entry in tree.walk(folder, max_depth=None if "**" in names else len(names)):
            if rules.match(entry.path, entry.kind == "folder") is not None:
                slash = "/" if entry.kind == "folder" else ""
                lines.append(show_path(posixpath.join(*parts, entry.path)) + slash)
                if len(lines) > MAX_RESULTS:
                    break
    return _join(lines, tree.notes(), "matches", "No matches found.")


def search_files(access: FileAccess, pattern: str, path: str, include_glob: str | None, seconds: float) -> str:
    """Return the lines below a folder that match a regular expression. Raises FileAccessError."""
    parts = access.resolve(path)
    names = include_glob.split("/") if include_glob else []
    if include_glob and len(include_glob) > _MAX_GLOB:
        raise FileAccessError(f"include_glob has more than {_MAX_GLOB} characters.")
    deadline = time.monotonic() + seconds
    tree = _Tree(access, parts, names, ignore=_GitIgnore(access, parts), deadline=deadline)

    try:
        with access.explain(path, parts):
            files = tree.read_files(include_glob)
            result = search_lines(files, pattern, limit=MAX_RESULTS, seconds=seconds)
    except PatternError as error:
        raise FileAccessError(f"The pattern {pattern[:200]!r} cannot be used: {error}.") from None

    lines = [f"{show_path(found)}:{number}:{text}" for found, number, text in result.lines]
    notes = tree.notes()
    if result.more:
        notes.insert(0, f"[... truncated at {MAX_RESULTS} matches]")
    if result.timed_out or tree.timed_out:
        notes.append(f"[stopped after {seconds:g} s; narrow the path, the glob or the pattern to search the rest]")
    if result.slow:
        notes.append(f"[left out, the pattern takes too long on it: {', '.join(map(show_path, result.slow))}]")
    if result.long_lines:
        notes.append(f"[{result.long_lines} very long lines were searched in their beginning only]")
    return _join(lines, notes, "matches", "No matches found.")


@dataclass(slots=True)
class _Tree:
    """The files below a folder that a tool looks at, and a record of those it left out."""

    access: FileAccess
    parts: Parts
    named: list[str]
    """The names in the glob: what it names is looked at, though it is hidden."""
    ignore: "_GitIgnore | None" = None
    deadline: float = math.inf
    """When the walk ends: ignore files can make it slow without letting a single file through to the search."""
    timed_out: bool = False
    hidden: int = 0
    ignored: int = 0
    walked: int = 0
    skipped: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def walk(self, folder: int, max_depth: int | None = None) -> Iterator[TreeEntry]:
        """Yield the entries below an open folder that this tool shows."""
        if max_depth is None:
            entries = walk(folder, self._enters, self._report)
        else:
            entries = walk(folder, self._enters, max_depth=max_depth)
        for entry in entries:
            self.walked += 1
            if self.walked > _MAX_WALKED:
                return
            if time.monotonic() > self.deadline:
                self.timed_out = True
                return
            if self._is_shown(entry):
                yield entry

    def read_files(self, glob: str | None) -> Iterator[tuple[str, bytes]]:
        """Yield the path and the content of each text file to search."""
        try:
            with open_folder_below(self.access.root, self.parts) as folder:
                device = system.fstat(folder).st_dev
                for entry in self.walk(folder):
                    full = posixpath.join(*self.parts, entry.path)
                    if entry.kind != "file" or not _fits_glob(glob, entry.path, full):
                        continue
                    data = self._read(entry, full, device)
                    if data is not None and not is_binary(data):
                        yield full, data
        except NotPlainFile:
            # The path may be that of a single file. If it is not, reading it says what is wrong.
            page = read_file(self.access.root, self.parts, 0, MAX_SEARCHED_FILE + 1)
            if page.size > MAX_SEARCHED_FILE:
                self.skipped.append("/".join(self.parts))
            elif not is_binary(page.data):
                yield "/".join(self.parts), page.data

    def notes(self) -> list[str]:
        """Return a line for each kind of thing that was left out."""
        notes = []
        if self.walked > _MAX_WALKED:
            notes.append(f"[stopped after {_MAX_WALKED:,} files and folders; narrow the path]")
        if self.skipped:
            notes.append(f"[{len(self.skipped)} files skipped (too large or unreadable): {_some(self.skipped)}]")
        if self.unread:
            notes.append(f"[{len(self.unread)} folders not read whole: {_some(self.unread)}]")
        if self.ignored:
            notes.append(f"[{self.ignored} entries ignored by .gitignore; name their path to search them]")
        if self.hidden:
            notes.append(f"[{self.hidden} hidden entries omitted; name a hidden path explicitly to include it]")
        return notes

    def _report(self, path: str, reason: str) -> None:
        self.unread.append(f"{posixpath.join(*self.parts, path)} ({reason})")

    def _is_shown(self, entry: TreeEntry) -> bool:
        parts = (*self.parts, *entry.path.split("/"))
        if self.access.is_denied(parts):
            return False
        if is_hidden(entry.name) and not self._names_hidden():
            self.hidden += 1
            return False
        if self.ignore and self.ignore.covers(parts, entry.kind == "folder"):
            self.ignored += 1
            return False
        return True

    def _enters(self, entry: TreeEntry) -> bool:
        parts = (*self.parts, *entry.path.split("/"))
        if self.access.is_denied(parts):
            return False
        if entry.name in VERSION_CONTROL_FOLDERS and entry.name not in self.named:
            return False
        if is_hidden(entry.name) and not self._names_hidden():
            return False
        if self.ignore:
            if self.ignore.covers(parts, True):
                return False
            self.ignore.load(parts, entry.folder)
        return True

    def _names_hidden(self) -> bool:
        return any(is_hidden(name) and name not in (".", "..") for name in self.named)

    def _read(self, entry: TreeEntry, full: str, device: int) -> bytes | None:
        try:
            fd, info = open_plain(entry.name, entry.folder, device)
        except (OSError, NotPlainFile):
            self.skipped.append(full)
            return None
        try:
            if info.st_size > MAX_SEARCHED_FILE:
                self.skipped.append(full)
                return None
            return read_at(fd, 0, MAX_SEARCHED_FILE, info.st_size)
        except OSError:
            self.skipped.append(full)
            return None
        finally:
            system.close(fd)


class _GitIgnore:
    """The .gitignore files on the way to a folder and below it, read as plain text. Git is not asked."""

    def __init__(self, access: FileAccess, parts: Parts) -> None:
        self._rules: dict[Parts, IgnoreRules] = {}
        for depth in range(len(parts) + 1):
            with suppress(OSError, NotPlainFile), open_below(access.root, parts[:depth]) as folder:
                self._read(parts[:depth], folder)

    def load(self, parts: Parts, parent: int) -> None:
        """Take in the .gitignore of a folder, which lies in the open folder `parent`."""
        with suppress(OSError, NotPlainFile), open_below(parent, parts[-1:]) as folder:
            self._read(parts, folder)

    def covers(self, parts: Parts, is_folder: bool) -> bool:
        """Return True if a rule leaves this path out. The nearest file that has a rule for it decides."""
        for depth in range(len(parts) - 1, -1, -1):
            rules = self._rules.get(parts[:depth])
            verdict = rules.verdict("/".join(parts[depth:]), is_folder) if rules else None
            if verdict is not None:
                return verdict
        return False

    def _read(self, parts: Parts, folder: int) -> None:
        fd, _ = open_plain(".gitignore", folder, system.fstat(folder).st_dev)
        try:
            text = system.pread(fd, _MAX_IGNORE_BYTES, 0).decode(errors="replace")
        finally:
            system.close(fd)
        self._rules[parts] = IgnoreRules.parse(text)


def _describe(access: FileAccess, entry: TreeEntry, parts: Parts) -> str:
    shown = show_path(posixpath.join(*parts, entry.name))
    if entry.kind == "folder":
        return f"{shown}/"
    if entry.kind == "other":
        return f"{shown}  (not a plain file)"
    with suppress(OSError):
        if entry.kind == "link":
            return f"{shown}  (link to {show_path(system.readlink(entry.name, dir_fd=entry.folder))})"
        size = system.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False).st_size
        return f"{shown}  ({size} bytes)"
    return f"{shown}  (gone)"


def _fits_glob(glob: str | None, path: str, full: str) -> bool:
    """Return True if a file matches a glob in which `*` also spans folders, from the workspace or the start."""
    if not glob:
        return True
    anywhere = glob.removeprefix("**/")
    return any(fnmatchcase(candidate, form) for candidate in (path, full) for form in (glob, anywhere))


def _join(lines: list[str], notes: Iterable[str], noun: str, nothing: str) -> str:
    """Return lines and notes as one text that is never longer than a page."""
    shown: list[str] = []
    room = MAX_CHARS
    cut = ""
    for line in lines:
        room -= len(line) + 1
        if room < 0 or len(shown) >= MAX_RESULTS:
            cut = f"[... truncated at {len(shown)} {noun}]"
            break
        shown.append(line)
    ending = [cut, *notes] if cut else list(notes)
    if not shown:
        shown.append(nothing)
    return "\n".join([*shown, *ending])


def _some(paths: list[str]) -> str:
    more = ", ..." if len(paths) > _NAMED else ""
    return ", ".join(map(show_path, paths[:_NAMED])) + more
