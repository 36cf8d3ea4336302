"""Listing folders, finding files by name and searching their lines."""

import posixpath
import time

from skillshelf.errors import FileAccessError
from skillshelf.files import TreeEntry, list_folder, open_folder_below, system
from skillshelf.sources import IgnoreRules
from skillshelf_agent.filetools._access import FileAccess, Parts, is_hidden, show_path
from skillshelf_agent.filetools._limits import MAX_CHARS, MAX_GLOB, MAX_QUOTED_PATTERN, MAX_RESULTS
from skillshelf_agent.filetools._line_search import PatternError, search_lines
from skillshelf_agent.filetools._tree import FileTree, GitIgnore

_NO_MATCHES = "No matches found."


def list_directory(access: FileAccess, path: str) -> str:
    """Return a line for each entry of a folder. Raises FileAccessError."""
    parts = access.resolve(path)
    hidden = 0
    lines: list[str] = []
    notes: list[str] = []

    def note_unread(_: str, reason: str) -> None:
        notes.append(f"[{reason}]")

    with access.explain(path, parts), open_folder_below(access.root, parts) as folder:
        for entry in list_folder(folder, report=note_unread):
            if is_hidden(entry.name):
                hidden += 1
            elif not access.is_denied((*parts, entry.name)):
                lines.append(_describe_entry(entry, parts))

    if hidden:
        notes.append(f"[{hidden} hidden entries omitted; name a hidden path explicitly to include it]")
    return _join_page(lines, notes, noun="entries", if_empty="(empty directory)")


def _describe_entry(entry: TreeEntry, parts: Parts) -> str:
    path = show_path(posixpath.join(*parts, entry.name))
    if entry.kind == "folder":
        return f"{path}/"
    if entry.kind == "other":
        return f"{path}  (not a plain file)"
    try:
        if entry.kind == "link":
            target = system.readlink(entry.name, dir_fd=entry.folder)
            return f"{path}  (link to {show_path(target)})"
        size = system.stat(entry.name, dir_fd=entry.folder, follow_symlinks=False).st_size
        return f"{path}  ({size} bytes)"
    except OSError:
        return f"{path}  (gone)"


def find_files(access: FileAccess, pattern: str, path: str) -> str:
    """Return the paths below a folder that match a glob. Raises FileAccessError."""
    parts = access.resolve(path)
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if pattern.startswith("/") or not names or ".." in names or len(pattern) > MAX_GLOB:
        quoted = pattern[:MAX_QUOTED_PATTERN]
        raise FileAccessError(f"{quoted!r} is not a glob relative to {show_path(path)!r}, such as '**/*.py'.")

    # The same matcher as for ignore files: no pattern takes more than its length times that of the path.
    rule = "/" + "/".join(names)
    if pattern.endswith("/"):
        rule += "/"
    rules = IgnoreRules.parse(rule)
    if rules.refused:
        raise FileAccessError(f"{pattern!r} is not a glob: a `[` or a backslash in it is not understood.")

    max_depth = None if "**" in names else len(names)
    tree = FileTree(access, parts, names)
    lines: list[str] = []
    with access.explain(path, parts), open_folder_below(access.root, parts) as folder:
        for entry in tree.walk(folder, max_depth):
            is_folder = entry.kind == "folder"
            if rules.match(entry.path, is_folder) is None:
                continue
            line = show_path(posixpath.join(*parts, entry.path))
            if is_folder:
                line += "/"
            lines.append(line)
            if len(lines) > MAX_RESULTS:
                break
    return _join_page(lines, tree.notes(), noun="matches", if_empty=_NO_MATCHES)


def search_files(access: FileAccess, pattern: str, path: str, include_glob: str | None, seconds: float) -> str:
    """Return the lines below a folder that match a regular expression. Raises FileAccessError."""
    parts = access.resolve(path)
    glob_names: list[str] = []
    if include_glob:
        if len(include_glob) > MAX_GLOB:
            raise FileAccessError(f"include_glob has more than {MAX_GLOB} characters.")
        glob_names = include_glob.split("/")

    deadline = time.monotonic() + seconds
    tree = FileTree(access, parts, glob_names, ignore=GitIgnore(access, parts), deadline=deadline)
    try:
        with access.explain(path, parts):
            files = tree.read_files(include_glob)
            result = search_lines(files, pattern, limit=MAX_RESULTS, seconds=seconds)
    except PatternError as error:
        raise FileAccessError(f"The pattern {pattern[:MAX_QUOTED_PATTERN]!r} cannot be used: {error}.") from None

    notes = tree.notes()
    if result.has_more:
        notes.insert(0, f"[... truncated at {MAX_RESULTS} matches]")
    if result.timed_out or tree.timed_out:
        notes.append(f"[stopped after {seconds:g} s; narrow the path, the glob or the pattern to search the rest]")
    if result.slow_files:
        slow_files = ", ".join(show_path(slow_file) for slow_file in result.slow_files)
        notes.append(f"[left out, the pattern takes too long on it: {slow_files}]")
    if result.cut_lines:
        notes.append(f"[{result.cut_lines} very long lines were searched in their beginning only]")

    lines = [f"{show_path(match.path)}:{match.number}:{match.text}" for match in result.matches]
    return _join_page(lines, notes, noun="matches", if_empty=_NO_MATCHES)


def _join_page(lines: list[str], notes: list[str], *, noun: str, if_empty: str) -> str:
    """Return lines and notes as one text that is never longer than a page."""
    shown: list[str] = []
    room = MAX_CHARS
    for line in lines:
        room -= len(line) + 1
        if room < 0 or len(shown) >= MAX_RESULTS:
            notes = [f"[... truncated at {len(shown)} {noun}]", *notes]
            break
        shown.append(line)

    if not shown:
        shown.append(if_empty)
    return "\n".join([*shown, *notes])
