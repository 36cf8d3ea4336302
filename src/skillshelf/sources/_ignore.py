"""An ignore file in the syntax of .gitignore, for folders walked from the top.

Such files come with the skills and are not to be trusted. A path is matched name by name, and a name by a regular
expression that never goes back over what a `*` took: no pattern costs more than its length times that of the path.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, Self

_Segment = Callable[[str], object] | None
"""Whether the pattern between two slashes fits a name; None is `**`, any number of folders."""

_LONGEST = 4096  # no path is longer, and a pattern that is takes long to compile
_NEVER = "".__eq__  # no name is empty
_MAGIC = re.compile(r"[*?\[\\]")
_CLASS_ITEM = re.compile(r"\[:(?P<named>[^]]*):]|(?P<first>\\.|[^\\])(-(?P<last>\\.|[^]\\]))?", re.DOTALL)
_NAMED = {
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
    negated: bool
    only_folders: bool
    segments: tuple[_Segment, ...]


class IgnoreRules:
    """The rules of one ignore file; false when it has none."""

    def __init__(self, rules: tuple[_Rule, ...] = ()) -> None:
        self.rules = rules

    @classmethod
    def parse(cls, text: str) -> Self:
        """Never fails: a pattern that git cannot make sense of is left out, as it would match nothing."""
        lines = text.removeprefix("\ufeff").split("\n")
        return cls(tuple(rule for number, line in enumerate(lines, 1) if (rule := _rule(number, line))))

    def __len__(self) -> int:
        return len(self.rules)

    def match(self, path: str, is_dir: bool) -> int | None:
        """The line that ignores this path, which is relative to the root and has `/` between names; or None.

        Looks at the path alone. Whoever walks must not enter an ignored folder: no `!` brings back what is inside.
        """
        rule = self._decisive(path, is_dir)
        return None if rule is None or rule.negated else rule.line

    def verdict(self, path: str, is_dir: bool) -> bool | None:
        """Return True if a rule ignores the path, False if one with `!` keeps it, None if no rule fits it."""
        rule = self._decisive(path, is_dir)
        return None if rule is None else not rule.negated

    def _decisive(self, path: str, is_dir: bool) -> _Rule | None:
        names = path.split("/")
        for rule in reversed(self.rules):  # the last one that fits decides
            if (is_dir or not rule.only_folders) and _fits(rule.segments, names):
                return rule
        return None


def _fits(segments: tuple[_Segment, ...], names: list[str]) -> bool:
    """Each `**` takes as few names as it can; where that fails, the last one takes one more, which is always enough."""
    segment = name = 0
    retry: tuple[int, int] | None = None
    while name < len(names):
        fits = segments[segment] if segment < len(segments) else _NEVER
        if fits is None:
            segment += 1
            retry = segment, name
        elif fits(names[name]):
            segment, name = segment + 1, name + 1
        elif retry:
            segment, name = retry = retry[0], retry[1] + 1
        else:
            return False
    return segment == len(segments)


def _rule(number: int, line: str) -> _Rule | None:
    line = line.removesuffix("\r")
    pattern = line.rstrip(" ")
    if pattern != line and (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        pattern += " "  # the first of the spaces was escaped
    if not pattern or pattern.startswith("#") or len(pattern) > _LONGEST:
        return None
    negated, pattern = pattern.startswith("!"), pattern.removeprefix("!")
    only_folders, pattern = pattern.endswith("/"), pattern.removesuffix("/")
    anchored, pattern = "/" in pattern, pattern.removeprefix("/")
    segments = _segments(pattern)
    if not segments:
        return None
    if segments[-1] is None:
        segments.append(bool)  # a final /** is all that is inside a folder, not the folder: one name at least
    return _Rule(number, negated, only_folders, tuple(segments if anchored else [None, *segments]))


def _segments(pattern: str) -> list[_Segment] | None:
    """One for each part between slashes; None where git gives up, at a `[` or a backslash that nothing completes."""
    if not _MAGIC.search(pattern):
        return [name.__eq__ for name in pattern.split("/")]
    parts: list[list[str]] = [[]]
    at = 0
    while at < len(pattern):
        char, at = pattern[at], at + 1
        if char == "[":
            piece, at = _char_class(pattern, at)
        elif char in "*?":
            piece = char.replace("?", ".")
        else:
            if char == "\\":
                char, at = pattern[at : at + 1], at + 1
            piece = re.escape(char)
        if not piece:
            return None
        if piece == "/":
            parts.append([])
        else:
            parts[-1].append(piece)
    return [_segment(part) for part in parts]


def _segment(pieces: list[str]) -> _Segment:
    """Pieces are regular expressions for one character each, but for the `*`."""
    if len(pieces) > 1 and set(pieces) == {"*"}:
        return None
    runs = [""]
    for piece in pieces:
        if piece == "*":
            runs.append("")
        else:
            runs[-1] += piece
    head, *rest = runs
    if rest:
        # The first place where a run fits is as good as any later one, so it is not given up: that is what (?>…) says.
        *middle, tail = rest
        head += "".join(f"(?>.*?{run})" for run in middle if run) + ".*" + tail
    return re.compile(head, re.DOTALL).fullmatch


def _char_class(pattern: str, at: int) -> tuple[str, int]:
    """The class that opens before `at` as a regular expression, empty when nothing closes it, and where it ends.

    Other than in fnmatch, `^` negates as `!` does, a backslash escapes, and there are names such as [:digit:].
    """
    negated = pattern.startswith(("!", "^"), at)
    at = start = at + negated
    items = ""
    while at == start or not pattern.startswith("]", at):  # a ] in the first place stands for itself
        found = _CLASS_ITEM.match(pattern, at)
        if not found or found["named"] not in (None, *_NAMED):
            return "", at
        at = found.end()
        if found["named"]:
            items += _NAMED[found["named"]]
        else:
            first, last = found["first"][-1], (found["last"] or "\0")[-1]
            items += f"{re.escape(first)}-{re.escape(max(first, last))}"  # a range that runs backwards is its first end
    return f"[{'^' * negated}{items}]", at + 1
