"""Ignore files in the syntax of .gitignore, for folders that are walked from the top.

Such files come with the skills and cannot be trusted. A path is matched name by name, and a name by a regular
expression that never goes back over what a `*` took, so no pattern costs more than its length times that of the path.
That is why this is not the pathspec library: its pattern for `*a*a*a*a*a*b` takes 5 seconds for a name of 100 letters.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, Self

from skillshelf.files import NotPlainFile, Page, file_stamp, read_file, system

IGNORE_FILE = ".skillshelfignore"
_MAX_BYTES = 64 * 1024
_MAX_LINES = 1000
_MAX_PATTERN = 4096  # no path is longer, and a longer pattern takes long to compile
MISSING = -1
"""The stamp of something that does not exist; no hash is -1."""
_TRY_AGAIN = 0
"""A stamp that no file has, so that the file is read again."""

_Segment = Callable[[str], object] | None
"""Tests a name against the pattern between two slashes. None stands for `**`, any number of folders."""

_NEVER = "".__eq__  # no name is empty
_MAGIC = re.compile(r"[*?\[\\]")
_CLASS_ITEM = re.compile(r"\[:(?P<named>[^]]*):]|(?P<first>\\.|[^\\])(-(?P<last>\\.|[^]\\]))?", re.DOTALL)
_NAMED_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\0-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": " \t\n\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class _Rule(NamedTuple):
    line: int
    is_negated: bool
    only_folders: bool
    segments: tuple[_Segment, ...]


class IgnoreRules:
    """The rules of an ignore file. False if there are none."""

    def __init__(self, rules: tuple[_Rule, ...] = ()) -> None:
        self.rules = rules

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text of an ignore file. Patterns that git cannot make sense of are left out; nothing fails."""
        rules = []
        for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
            rule = _parse_rule(number, line)
            if rule:
                rules.append(rule)
        return cls(tuple(rules))

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

    def _decisive_rule(self, path: str, is_dir: bool) -> _Rule | None:
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


def _parse_rule(number: int, line: str) -> _Rule | None:
    line = line.removesuffix("\r")
    pattern = line.rstrip(" ")
    backslashes = len(pattern) - len(pattern.rstrip("\\"))
    if pattern != line and backslashes % 2:
        pattern += " "  # the first of the spaces was escaped
    if not pattern or pattern.startswith("#") or len(pattern) > _MAX_PATTERN:
        return None

    is_negated = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    only_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    is_anchored = "/" in pattern
    segments = _parse_segments(pattern.removeprefix("/"))
    if not segments:
        return None
    if segments[-1] is None:
        segments.append(bool)  # a final /** is everything inside a folder, not the folder: one name at least
    if not is_anchored:
        segments.insert(0, None)
    return _Rule(number, is_negated, only_folders, tuple(segments))


def _parse_segments(pattern: str) -> list[_Segment] | None:
    """Return a segment for each part between slashes; None at a `[` or backslash that is never completed, as in git."""
    if not _MAGIC.search(pattern):
        return [name.__eq__ for name in pattern.split("/")]

    parts: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "[":
            piece, at = _parse_class(pattern, at)
        elif char == "*":
            piece = "*"
        elif char == "?":
            piece = "."
        else:
            if char == "\\":
                char = pattern[at : at + 1]
                at += 1
            piece = re.escape(char)
        if not piece:
            return None
        if piece == "/":
            parts.append([])
        else:
            parts[-1].append(piece)
    return [_compile_segment(part) for part in parts]


def _compile_segment(pieces: list[str]) -> _Segment:
    """Compile the pieces of a segment: `*`, or regular expressions for one character each."""
    if len(pieces) > 1 and set(pieces) == {"*"}:
        return None
    runs = [""]
    for piece in pieces:
        if piece == "*":
            runs.append("")
        else:
            runs[-1] += piece

    expression, *rest = runs
    if rest:
        # The first place where a run fits is as good as any later one, so it is never given up: hence (?>…).
        *middle, tail = rest
        expression += "".join(f"(?>.*?{run})" for run in middle if run) + ".*" + tail
    return re.compile(expression, re.DOTALL).fullmatch


def _parse_class(pattern: str, at: int) -> tuple[str, int]:
    """Return the class that opens before `at` as a regular expression, and where it ends. Empty if it is not closed.

    Unlike in fnmatch, `^` negates as `!` does, a backslash escapes, and there are names such as [:digit:].
    """
    is_negated = pattern.startswith(("!", "^"), at)
    if is_negated:
        at += 1
    start = at
    items = ""
    while at == start or not pattern.startswith("]", at):  # a ] in the first place stands for itself
        item = _CLASS_ITEM.match(pattern, at)
        if not item or item["named"] not in (None, *_NAMED_CLASSES):
            return "", at
        at = item.end()
        if item["named"]:
            items += _NAMED_CLASSES[item["named"]]
        else:
            first = item["first"][-1]
            last = (item["last"] or "\0")[-1]
            items += f"{re.escape(first)}-{re.escape(max(first, last))}"  # a backward range is its first character
    negation = "^" if is_negated else ""
    return f"[{negation}{items}]", at + 1


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
                self._take_lines(read_file(self._root, [IGNORE_FILE], 0, _MAX_BYTES))
            except NotPlainFile as error:
                self.fault = error.reason
            except OSError as error:
                self.fault = error.strerror or "unknown fault"
                stamp = _TRY_AGAIN
        self.rules = IgnoreRules.parse("\n".join(self.lines))
        return stamp

    def _take_lines(self, page: Page) -> None:
        lines = page.data.decode(errors="replace").split("\n")
        if page.size > _MAX_BYTES or len(lines) > _MAX_LINES:
            self.fault = f"only {_MAX_LINES} lines and {_MAX_BYTES} bytes of it count"
        self.lines = lines[:_MAX_LINES]
