"""The layout of a SKILL.md: the text of the file, and the place of the frontmatter in it.

Real files put blank lines, a comment or a code fence before the frontmatter, or forget a delimiter. A file that cannot
be a skill at all, for example a binary one, is refused here.
"""

import re
from typing import NamedTuple

from skillshelf.skillmd._limits import MAX_FILE
from skillshelf.skills import Diagnostic, Severity
from skillshelf.text import truncate

_MAX_MESSAGE = 400

# A file that is nothing but a path or an import is short.
_MAX_PATH = 4096
_PATH_ONLY = re.compile(r"(?=[^./]*[./])[^\s:*?\"<>|]++\s*")
_IMPORT_ONLY = re.compile(r"\s*@[^\s@]++\s*")

_DELIMITER = re.compile(r"^---([ \t]*)\r?$", re.M)
# Possessive (`*+`), here and elsewhere: a megabyte of spaces must not be tried in every division.
_BLANKS_AND_COMMENTS = re.compile(r"(?:[ \t]*+\r?\n|<!--[\s\S]*?-->[ \t]*+\r?\n)*+")
_FENCE = re.compile(r"(`{3,}|~{3,})[ \t]*+\w*+[ \t]*+\r?\n(?=---[ \t]*\r?\n)")
_FIRST_FIELD = re.compile(r"(?:name|description)[ \t]*:")
_NEXT_FIELD = re.compile(r"[ \t\r\n]*\n(?=[A-Za-z_][\w-]*[ \t]*:[ \t\r\n])")
# A key is one word: `This is the body: …` is prose.
_YAML_LINE = re.compile(r"(?:[A-Za-z_][\w.-]*|\"[^\"\n]*\"|'[^'\n]*')[ \t]*:(?:[ \t\r]|$)|[ \t]+\S|- |#[^# ]|\r?$")
_OTHER_CLOSING = re.compile(r"(?:\.\.\.|-{4,})[ \t]*+\r?(?:\n|\Z)")


class Unreadable(Exception):
    """The text cannot become a skill. The diagnostic says what to change."""

    def __init__(self, code: str, message: str, fix: str, line: int = 1) -> None:
        self.diagnostic = Diagnostic("error", code, message, line=line, fix=fix)
        super().__init__(message)


class Layout(NamedTuple):
    """The places of the frontmatter and the instructions in a file."""

    block: str
    """The text between the delimiters; empty if the file has no frontmatter."""
    first_line: int
    """The number of the block's first line in the file."""
    body_start: int
    """Index of the first character of the instructions."""
    body_end: int | None = None
    """Index after their last character, if the end of a code fence follows."""
    diagnostics: tuple[Diagnostic, ...] = ()


class DiagnosticCollector:
    """Collects diagnostics about one SKILL.md while it is read."""

    def __init__(self, layout: Layout | None = None) -> None:
        """With a layout, the collector starts with its diagnostics and knows the lines of the fields."""
        self.layout = layout or Layout("", 1, 0)
        self.items: list[Diagnostic] = list(self.layout.diagnostics)
        self._lines: dict[str, int] | None = None

    def warn(self, code: str, message: str, line: int = 1, *, fix: str) -> None:
        self._add("warning", code, message, line, fix)

    def inform(self, code: str, message: str, line: int = 1, *, fix: str) -> None:
        self._add("info", code, message, line, fix)

    def warn_field(self, key: str, code: str, message: str, *, fix: str) -> None:
        """Warn about a field of the frontmatter, with its line."""
        self._add("warning", code, message, self.line_of(key), fix)

    def line_of(self, key: str) -> int:
        """Return the line of a field, or the line before the block if the field is missing."""
        if self._lines is None:  # all at once: a block may have thousands of faulty fields
            self._lines = {}
            for number, line in enumerate(self.layout.block.split("\n"), self.layout.first_line):
                is_indented = not line[:1].strip()
                if not is_indented:
                    name = line.partition(":")[0].rstrip().strip("\"'")
                    self._lines.setdefault(name, number)
        return self._lines.get(key, max(1, self.layout.first_line - 1))

    def _add(self, severity: Severity, code: str, message: str, line: int, fix: str) -> None:
        # A message may quote the author's text, which can be a quarter of a megabyte long.
        self.items.append(Diagnostic(severity, code, truncate(message, _MAX_MESSAGE), line=line, fix=fix))


def decode(data: bytes) -> str:
    """Return the text of a SKILL.md's bytes. Raises Unreadable if they are not UTF-8 text with ordinary lines."""
    if len(data) > MAX_FILE:
        message = f"the file is larger than {MAX_FILE // 1024} KiB"
        raise Unreadable("file-too-large", message, "move long guidance into files under references/")

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        encoding = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        message = f"the file is {encoding} (byte {error.start})"
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable("not-utf8", message, "save it as UTF-8", line) from None

    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise Unreadable("nul-byte", "the file has a NUL byte: it is not text", "save it as UTF-8 text", line)
    if "\n" not in text and "\r" in text:
        message = "the lines end in CR alone, which no reader takes for a line ending"
        raise Unreadable("cr-only", message, "save it with LF line endings")
    return text


def refuse_without_skill(text: str) -> None:
    """Raise Unreadable for a file that is empty, or that only points to another file."""
    if not text or text.isspace():
        raise Unreadable("empty", "the file is empty", "write frontmatter (name, description) and instructions")
    if len(text) >= _MAX_PATH:
        return

    if _IMPORT_ONLY.fullmatch(text):
        message = "the file holds only an import of another file (`@path`), and imports are not followed"
        raise Unreadable("import-only", message, "write the instructions here, or put a copy of that file here")
    if not text.startswith("---") and _PATH_ONLY.fullmatch(text):
        message = "the file holds only a path: a symlink that was checked out as text"
        fix = "check out with `git config core.symlinks true`, or put a copy of that file here"
        raise Unreadable("symlink-text", message, fix)


def refuse_long_frontmatter(layout: Layout) -> None:
    """Raise Unreadable if the frontmatter is longer than the YAML reader accepts."""
    from skillshelf.skillmd.bounded_yaml import MAX_BLOCK

    size = len(layout.block)
    if size > MAX_BLOCK:
        message = f"the frontmatter has {size} characters; at most {MAX_BLOCK} are read"
        raise Unreadable("frontmatter-too-large", message, "move the long text below the closing `---`")


def find_frontmatter(text: str) -> Layout:
    """Find the frontmatter of a text. The block is empty if there is none."""
    if text.startswith("---\n"):
        end = text.find("\n---\n", 3)
        # `_find_odd_frontmatter` judges any other line that begins with dashes.
        if end > 0 and text.find("\n---", 3) == end:
            return Layout(text[4 : end + 1], 2, end + 5)
    return _find_odd_frontmatter(text)


def _find_odd_frontmatter(text: str) -> Layout:
    diagnostics = DiagnosticCollector()
    end = len(text)
    before = _BLANKS_AND_COMMENTS.match(text)
    start = before.end() if before else 0

    fence = _FENCE.match(text, start)
    if fence:
        start = fence.end()
        closing_fence = text.rfind("\n" + fence[1], start)
        if closing_fence > 0 and not text[closing_fence + 1 :].strip("`~ \t\r\n"):
            end = closing_fence + 1

    opening = _DELIMITER.match(text, start)
    if not opening:
        return _find_without_opening(text, start)
    if start:
        obstacle = "a code fence" if fence else "blank lines or a comment"
        message = f"the frontmatter comes after {obstacle}"
        diagnostics.warn("frontmatter-not-first", message, fix="make `---` the first line")

    block_start = min(opening.end() + 1, end)
    closing = _DELIMITER.search(text, block_start, end)
    if not closing:
        line = text.count("\n", 0, block_start)
        message = "the frontmatter is not properly closed with a line `---`"
        diagnostics.warn("frontmatter-unclosed", message, line, fix="add a line `---` after the last field")
        return _take_leading_yaml(text, block_start, end, diagnostics)
    if opening[1] or closing[1]:
        diagnostics.inform("delimiter-spaces", "a `---` line has spaces after it", fix="remove them")

    body_start = min(closing.end() + 1, end)
    if fence and text.startswith(fence[1], body_start):  # the fence was around the frontmatter alone
        body_start = text.find("\n", body_start) + 1 or end
    block = text[block_start : closing.start()]
    first_line = text.count("\n", 0, block_start) + 1
    return Layout(block, first_line, body_start, end, tuple(diagnostics.items))


def _find_without_opening(text: str, start: int) -> Layout:
    diagnostics = DiagnosticCollector()
    if not _FIRST_FIELD.match(text, start):
        fix = "begin the file with a line `---`, then `name:` and `description:`, then `---`"
        diagnostics.warn("frontmatter-missing", "SKILL.md must start with YAML frontmatter (---)", fix=fix)
        return Layout("", 1, 0, diagnostics=tuple(diagnostics.items))

    first_line = text.count("\n", 0, start) + 1
    closing = _DELIMITER.search(text, start)
    if closing:
        message = "the line `---` before the frontmatter is missing"
        diagnostics.warn("frontmatter-unopened", message, first_line, fix="add it")
        block = text[start : closing.start()]
        return Layout(block, first_line, closing.end() + 1, diagnostics=tuple(diagnostics.items))

    message = "SKILL.md must start with YAML frontmatter: the `---` lines are missing"
    diagnostics.warn("frontmatter-undelimited", message, first_line, fix="put `---` before and after the fields")
    return _take_leading_yaml(text, start, len(text), diagnostics)


def _take_leading_yaml(text: str, start: int, end: int, diagnostics: DiagnosticCollector) -> Layout:
    """Take the lines from `start` that can be YAML, up to a heading or a blank line that no field follows."""
    block_end = start
    while block_end < end:
        line_end = text.find("\n", block_end, end) + 1 or end
        line = text[block_end:line_end].rstrip("\n")
        if not line.strip():
            next_field = _NEXT_FIELD.match(text, block_end, end)
            if not next_field:
                break
            line_end = next_field.end()
        elif not _YAML_LINE.match(line):
            break
        block_end = line_end

    closing = _OTHER_CLOSING.match(text, block_end, end)
    body_start = closing.end() if closing else block_end
    first_line = text.count("\n", 0, start) + 1
    return Layout(text[start:block_end], first_line, body_start, diagnostics=tuple(diagnostics.items))
