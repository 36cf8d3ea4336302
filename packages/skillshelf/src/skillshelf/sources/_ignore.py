"""Ignore files in the syntax of .gitignore, for folders that are walked from the top.

Such files come with the skills and cannot be trusted. A path is matched name by name, and a name by the expression that
`fnmatch` makes of a pattern, which never goes back over what a `*` took: no pattern costs more than its length times
that of the path. docs/adr/0004 compares it with the pathspec library.
"""

import re
from collections.abc import Callable
from fnmatch import translate
from typing import NamedTuple, Self

from skillshelf.files import NotPlainFile, Page, file_stamp, read_file, system
from skillshelf.sources._limits import MAX_IGNORE_BYTES, MAX_IGNORE_LINES

IGNORE_FILE = ".skillshelfignore"
MISSING = -1
"""The stamp of something that does not exist; no hash is -1."""
_TRY_AGAIN = 0
"""A stamp that no file has, so that the file is read again."""

_Segment = Callable[[str], object] | None
"""Tests a name against the pattern between two slashes. None stands for `**`, any number of folders."""

_NEVER = "".__eq__  # no name is empty
_MAGIC = re.compile(r"[*?\[\\]")
# Possessive: the first `]` of a class is an item, even if the class then has no end.
_PIECE = re.compile(r"\\(?P<escaped>.)|\[(?P<negation>[!^]?+)(?P<items>]?+(?:[^]\\[]|\[(?!:))*+)]|.", re.DOTALL)
_RANGE = re.compile(r"(?P<first>.)-(?P<last>.)", re.DOTALL)


class _NotUnderstood(Exception):
    """A pattern has an unfinished `[` or backslash, or a class with an escape, a name or a backward range."""


class _IgnoreRule(NamedTuple):
    line: int
    is_negated: bool
    only_folders: bool
    segments: tuple[_Segment, ...]


class IgnoreRules:
    """The rules of an ignore file. False if there are none."""

    def __init__(self, rules: tuple[_IgnoreRule, ...] = (), refused: tuple[int, ...] = ()) -> None:
        self.rules = rules
        self.refused = refused
        """The lines with a pattern that isn't understood and doesn't count."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text of an ignore file. Nothing fails."""
        rules = []
        refused = []
        for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
            try:
                rule = _parse_rule(number, line)
            except _NotUnderstood:
                refused.append(number)
                continue
            if rule:
                rules.append(rule)
        return cls(tuple(rules), tuple(refused))

    def __len__(self) -> int:
        return len(self.rules)

    def match(self, path: str, is_dir: bool) -> int | None:
        """Return the number of the line that ignores a path, or None. The path is relative to the root.

        Only the path itself is matched. The caller must not enter an ignored folder: no `!` brings back what is inside.
        """
        rule = self._decisive_rule(path, is_dir)
        if rule is None or rule.is_negated:
            return None
        return rule.line

    def verdict(self, path: str, is_dir: bool) -> bool | None:
        """Return True if a rule ignores the path, False if one with `!` keeps it, None if no rule fits it."""
        rule = self._decisive_rule(path, is_dir)
        if rule is None:
            return None
        return not rule.is_negated

    def _decisive_rule(self, path: str, is_dir: bool) -> _IgnoreRule | None:
        """Return the last rule that fits."""
        names = path.split("/")
        for rule in reversed(self.rules):
            if (is_dir or not rule.only_folders) and _fits(rule.segments, names):
                return rule
        return None


def _fits(segments: tuple[_Segment, ...], names: list[str]) -> bool:
    """Match names against segments. Each `**` takes as few names as it can.

    If that fails, the last `**` takes one name more. No earlier one has to be tried again.
    """
    segment = 0
    name = 0
    retry: tuple[int, int] | None = None
    while name < len(names):
        fits = segments[segment] if segment < len(segments) else _NEVER
        if fits is None:
            segment += 1
            retry = (segment, name)
        elif fits(names[name]):
            segment += 1
            name += 1
        elif retry:
            retry = (retry[0], retry[1] + 1)
            segment, name = retry
        else:
            return False
    return segment == len(segments)


def _parse_rule(number: int, line: str) -> _IgnoreRule | None:
    line = line.removesuffix("\r")
    pattern = line.rstrip(" ")
    backslashes = len(pattern) - len(pattern.rstrip("\\"))
    if pattern != line and backslashes % 2:
        pattern += " "  # the first of the spaces was escaped
    if not pattern or pattern.startswith("#"):
        return None

    is_negated = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    only_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    is_anchored = "/" in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    segments = [_compile_segment(segment) for segment in pattern.split("/")]
    if segments[-1] is None:
        segments.append(bool)  # a final /** is everything inside a folder, not the folder: one name at least
    if not is_anchored:
        segments.insert(0, None)
    return _IgnoreRule(number, is_negated, only_folders, tuple(segments))


def _compile_segment(segment: str) -> _Segment:
    """Return a test for names that match the pattern between two slashes."""
    if len(segment) > 1 and not segment.strip("*"):
        return None
    if not _MAGIC.search(segment):
        return segment.__eq__
    return re.compile(translate(_PIECE.sub(_as_fnmatch, segment))).match


def _as_fnmatch(piece: re.Match[str]) -> str:
    """Return a character or class of a pattern as `fnmatch` writes it, which has no escapes and negates with `!`."""
    if piece["escaped"]:
        return f"[{piece['escaped']}]" if piece["escaped"] in "*?[" else piece["escaped"]
    if piece["items"] is None:
        if piece[0] in "[\\":
            raise _NotUnderstood
        return piece[0]

    items = piece["items"]
    if any(range["first"] > range["last"] for range in _RANGE.finditer(items)):
        raise _NotUnderstood
    return f"[!{items}]" if piece["negation"] else f"[{items}]"


class IgnoreFile:
    """The ignore file of a root, which is read again when it changes."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._read_stamp: int | None = None
        self.rules = IgnoreRules()
        self.lines: list[str] = []
        """The lines that count."""
        self.fault = ""
        """Why the file could not be read whole; empty if it was, or does not exist."""

    def update(self, fd: int) -> int:
        """Read the file in the open root if it has changed. Return the stamp of the version that was read."""
        try:
            info = system.stat(IGNORE_FILE, dir_fd=fd, follow_symlinks=False)
            stamp = hash(file_stamp(info))
        except OSError:
            stamp = MISSING
        if stamp != self._read_stamp:
            self._read_stamp = self._read(stamp)
        return self._read_stamp

    def covers(self, key: str) -> bool:
        """Return True if the rules leave out the folder at a key."""
        return bool(self.rules.rules) and self.rules.match(key, True) is not None

    def _read(self, stamp: int) -> int:
        self.lines = []
        self.fault = ""
        if stamp != MISSING:
            try:
                self._take_lines(read_file(self._root, [IGNORE_FILE], 0, MAX_IGNORE_BYTES))
            except NotPlainFile as error:
                self.fault = error.reason
            except OSError as error:
                self.fault = error.strerror or "unknown fault"
                stamp = _TRY_AGAIN
        self.rules = IgnoreRules.parse("\n".join(self.lines))
        if self.rules.refused and not self.fault:
            self.fault = f"the pattern on line {self.rules.refused[0]} is not understood"
        return stamp

    def _take_lines(self, page: Page) -> None:
        lines = page.data.decode(errors="replace").split("\n")
        if page.size > MAX_IGNORE_BYTES or len(lines) > MAX_IGNORE_LINES:
            self.fault = f"only {MAX_IGNORE_LINES} lines and {MAX_IGNORE_BYTES} bytes of it count"
        self.lines = lines[:MAX_IGNORE_LINES]
