"""Where the frontmatter is. Real files put blank lines, a comment or a code fence before it, or forget a delimiter."""

import re

from skillshelf.skillmd._values import MAX_BLOCK, Layout, Notes, Unreadable

_DELIMITER = re.compile(r"^---([ \t]*)\r?$", re.M)
# Possessive (`*+`), here and elsewhere: a megabyte of spaces must not be tried in every division.
_BEFORE = re.compile(r"(?:[ \t]*+\r?\n|<!--[\s\S]*?-->[ \t]*+\r?\n)*+")
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*+\w*+[ \t]*+\r?\n(?=---[ \t]*\r?\n)")
_NEXT_FIELD = re.compile(r"[ \t\r\n]*\n(?=[A-Za-z_][\w-]*[ \t]*:[ \t\r\n])")
# A key is one word: `This is the body: …` is prose.
_YAML_LINE = re.compile(r"(?:[A-Za-z_][\w.-]*|\"[^\"\n]*\"|'[^'\n]*')[ \t]*:(?:[ \t\r]|$)|[ \t]+\S|- |#[^# ]|\r?$")
_OTHER_CLOSING = re.compile(r"(?:\.\.\.|-{4,})[ \t]*+\r?(?:\n|\Z)")
_START_FIX = "begin the file with a line `---`, then `name:` and `description:`, then `---`"


def find_block(text: str, notes: Notes) -> Layout:
    """The frontmatter block of `text`; an empty block when it has none."""
    if text.startswith("---\n"):
        end = text.find("\n---\n", 3)
        # Any other line of dashes inside is for the slow way to judge.
        if end > 0 and text.find("\n---", 3) == end:
            return _checked(Layout(text[4 : end + 1], 2, end + 5))
    return _checked(_find_odd_block(text, notes))


def _checked(layout: Layout) -> Layout:
    if len(layout.block) > MAX_BLOCK:
        raise Unreadable(
            "frontmatter-too-large",
            f"the frontmatter has {len(layout.block)} characters; at most {MAX_BLOCK} are read",
            "move the long text below the closing `---`",
        )
    return layout


def _find_odd_block(text: str, notes: Notes) -> Layout:
    end = len(text)
    start = _BEFORE.match(text).end()  # type: ignore[union-attr]  # it matches the empty string at least
    fence = _FENCE.match(text, start)
    if fence:
        start = fence.end()
        closing = text.rfind("\n" + fence[1], start)
        end = closing + 1 if closing > 0 and not text[closing + 1 :].strip("`~ \t\r\n") else end
    opening = _DELIMITER.match(text, start)
    if not opening:
        return _without_opening(text, start, notes)
    if start:
        what = "a code fence" if fence else "blank lines or a comment"
        notes.add(
            "warning", "frontmatter-not-first", f"the frontmatter comes after {what}", fix="make `---` the first line"
        )
    block_start = min(opening.end() + 1, end)
    closing_line = _DELIMITER.search(text, block_start, end)
    if not closing_line:
        return _unclosed(text, block_start, end, notes)
    if opening[1] or closing_line[1]:
        notes.add("info", "delimiter-spaces", "a `---` line has spaces after it", fix="remove them")
    block = text[block_start : closing_line.start()]
    body = min(closing_line.end() + 1, end)
    if fence and text.startswith(fence[1], body):  # the fence was around the frontmatter alone
        body = text.find("\n", body) + 1 or end
    return Layout(block, text.count("\n", 0, block_start) + 1, body, end)


def _without_opening(text: str, start: int, notes: Notes) -> Layout:
    if re.match(r"(?:name|description)[ \t]*:", text[start : start + 40]):
        closing = _DELIMITER.search(text, start)
        line = text.count("\n", 0, start) + 1
        if closing:
            notes.add(
                "warning", "frontmatter-unopened", "the line `---` before the frontmatter is missing", line, "add it"
            )
            return Layout(text[start : closing.start()], line, closing.end() + 1)
        notes.add(
            "warning",
            "frontmatter-undelimited",
            "SKILL.md must start with YAML frontmatter: the `---` lines are missing",
            line,
            "put `---` before and after the fields",
        )
        return _leading_yaml(text, start, len(text))
    return _missing(notes)


def _missing(notes: Notes) -> Layout:
    notes.add("warning", "frontmatter-missing", "SKILL.md must start with YAML frontmatter (---)", fix=_START_FIX)
    return Layout("", 1, 0)


def _unclosed(text: str, start: int, end: int, notes: Notes) -> Layout:
    line = text.count("\n", 0, start)
    notes.add(
        "warning",
        "frontmatter-unclosed",
        "the frontmatter is not properly closed with a line `---`",
        line,
        "add a line `---` after the last field",
    )
    return _leading_yaml(text, start, end)


def _leading_yaml(text: str, start: int, end: int) -> Layout:
    """The lines from `start` that can be YAML, up to a heading or to a blank line that no field follows."""
    at = start
    while at < end:
        stop = text.find("\n", at, end) + 1 or end
        line = text[at:stop].rstrip("\n")
        if not line.strip():
            field = _NEXT_FIELD.match(text, at, end)
            if not field:
                break
            stop = field.end()
        elif not _YAML_LINE.match(line):
            break
        at = stop
    closing = _OTHER_CLOSING.match(text, at, end)
    return Layout(text[start:at], text.count("\n", 0, start) + 1, closing.end() if closing else at)
