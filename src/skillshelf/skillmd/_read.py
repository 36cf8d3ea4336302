"""Read a SKILL.md as frontmatter and instructions, repair what real files get wrong, and write one."""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any

from skillshelf.descriptor import Diagnostic, SkillDescriptor
from skillshelf.skillmd._fields import FORMAT_KEYS, LineOf, OptionalFields, describe_from, read_description, read_name
from skillshelf.skillmd._layout import find_block
from skillshelf.skillmd._repair import repair_fields
from skillshelf.skillmd._scanner import scan_lines, scan_scalar
from skillshelf.skillmd._values import Layout, Notes, Unreadable, YamlFault
from skillshelf.skillmd._yaml import Budget, parse_typed, parse_yaml

MAX_FILE = 1024 * 1024
_LINK_TEXT = re.compile(r"(?=[^./]*[./])[^\s:*?\"<>|]++\s*")
_IMPORT_LINE = re.compile(r"\s*@[^\s@]++\s*")
_LONG_REST = 4096
# In one match, because there are ten thousand. Of few lines: a megabyte of them would be gone through one by one.
_USUAL = re.compile(
    r"---\nname: ([a-z0-9][a-z0-9-]{0,63})\ndescription: ++([!-~][ -~]{0,1023})\n"
    r"((?:(?!---)[^\n]*+\n){0,99}+)---\n\n?"
).match
_CUT_BY_COMMENT = re.compile(r"^(name|description)[ \t]*+:[ \t]*+(?![\"'|>])([^\n]*?)(?<![^ \t])#[ \t]*([^\n]*)$", re.M)


class SkillText:
    """The fields and instructions of a SKILL.md."""

    __slots__ = ("_values", "body", "description", "diagnostics", "name", "optional", "text")

    def __init__(self, name: str, description: str, optional: OptionalFields, text: str, body: int) -> None:
        self.name = name
        self.description = description
        self.optional = optional
        self.text = text
        self.body = body
        """The index in `text` where the instructions begin."""
        self.diagnostics: list[Diagnostic] = []
        self._values: dict[str, Any] | None = None

    @property
    def instructions(self) -> str:
        return self.text[self.body :]

    def describe(self, *, references: tuple[str, ...], source: str, location: str) -> SkillDescriptor:
        """Return the descriptor of a skill with this text."""
        if self.text.isascii():
            size = len(self.text) - self.body
        else:
            size = len(self.instructions.encode())
        optional = self.optional
        return SkillDescriptor(
            name=self.name,
            description=self.description,
            references=references,
            source=source,
            location=location,
            size=size,
            license=optional.license,
            compatibility=optional.compatibility,
            allowed_tools=optional.allowed_tools,
            metadata=optional.metadata,
            disclosure=optional.disclosure,
            user_invocable=optional.user_invocable,
            arguments=optional.arguments,
            argument_hint=optional.argument_hint,
            fields=optional.fields,
        )

    @property
    def values(self) -> dict[str, Any]:
        """The frontmatter as written: texts, lists and mappings of texts."""
        if self._values is None:
            self._values = scan_lines(find_block(self.text, Notes()).block)
        return self._values or {}

    def typed_values(self) -> dict[str, Any] | None:
        """Return the frontmatter as JSON, with numbers, flags and nulls as in YAML 1.2.

        None if the block is not valid YAML, or not within the bounds, so that its fields had to be repaired.
        """
        try:
            return parse_typed(find_block(self.text, Notes()).block)
        except YamlFault:
            return None


def decode(data: bytes) -> str:
    """Return the text of a SKILL.md's bytes. Raises Unreadable if they are not UTF-8 text with ordinary lines."""
    if len(data) > MAX_FILE:
        raise Unreadable(
            "file-too-large",
            f"the file is larger than {MAX_FILE // 1024} KiB",
            "move long guidance into files under references/",
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = "UTF-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
        raise Unreadable("not-utf8", f"the file is {what} (byte {error.start})", "save it as UTF-8", line) from None
    if "\0" in text:
        raise Unreadable(
            "nul-byte",
            "the file has a NUL byte: it is not text",
            "save it as UTF-8 text",
            text.count("\n", 0, text.index("\0")) + 1,
        )
    if "\n" not in text and "\r" in text:
        raise Unreadable(
            "cr-only", "the lines end in CR alone, which nothing reads as lines", "save it with LF line endings"
        )
    return text


def read(text: str, folder: str = "") -> SkillText:
    """Read a SKILL.md as a skill, repaired if that is safe. Raises Unreadable if there is nothing to use.

    `folder` is the folder the file lies in. If the file gives no name, the folder's name is the skill's.
    """
    return _read_usual(text) or _read_unusual(text, folder)


def render(values: dict[str, Any], instructions: str) -> str:
    """Return a SKILL.md that `read` reads back to the same values and instructions."""
    block = _dump(values, allow_unicode=True)
    if "\x85" in block:  # which PyYAML writes as it is, and reads as a line break
        block = _dump(values, allow_unicode=False)
    return f"---\n{block}---\n\n{instructions}"


def _dump(values: dict[str, Any], allow_unicode: bool) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            """Write shared values out: not every reader of frontmatter knows anchors."""
            return True

    return yaml.dump(
        values, Dumper=Dumper, sort_keys=False, allow_unicode=allow_unicode, width=4096, default_flow_style=False
    )


def _prepare(text: str, notes: Notes) -> str:
    """Return the text without a byte order mark. Raises Unreadable for a file that holds no skill at all."""
    if text.startswith("\ufeff"):
        text = text[1:]
        notes.add("info", "bom", "the file begins with a byte order mark", fix="save it as UTF-8 without BOM")
    if not text or text.isspace():
        raise Unreadable("empty", "the file is empty", "write frontmatter (name, description) and instructions")
    if len(text) < 4096 and _IMPORT_LINE.fullmatch(text):
        raise Unreadable(
            "import-only",
            "the file holds only an import of another file (`@path`), and imports are not followed",
            "write the instructions here, or copy the file it names here",
        )
    if len(text) < 4096 and not text.startswith("---") and _LINK_TEXT.fullmatch(text):
        raise Unreadable(
            "symlink-text",
            "the file holds only a path: a symlink that was checked out as text",
            "check out with `git config core.symlinks true`, or copy the file it names here",
        )
    return text


def _read_usual(text: str) -> SkillText | None:
    """Read a file as most are: plain ASCII, a name and a description first. Return None for any other."""
    match = _USUAL(text)
    if not match:
        return None
    name, written, block = match.groups()
    # A long rest is not worth keeping below, and its limits are the business of the other way.
    if len(block) > _LONG_REST:
        return None
    description = scan_scalar(written.rstrip(" "))
    rest = _scan_rest(block)
    if not description or not rest:
        return None
    description = description.strip()
    body = match.end()
    if text[body : body + 1].isspace():
        body = _skip_blank_lines(text, body)
    return SkillText(name, description, rest, text, body) if description else None


@lru_cache(1024)
def _scan_rest(block: str) -> OptionalFields | None:
    """Read the lines after name and description, which are often the same in a whole collection."""
    values = scan_lines(block)
    if values is None or "name" in values or "description" in values:
        return None
    notes = Notes()
    optional = OptionalFields(values, notes, lambda key: 1)
    return None if notes.items else optional


def _read_unusual(text: str, folder: str) -> SkillText:
    notes = Notes()
    text = _prepare(text, notes)
    layout = find_block(text, notes)
    line = _line_finder(layout)
    values = scan_lines(layout.block)
    if values is None:
        values = _parse(layout.block, layout.line, notes)
        _restore_comments(layout.block, values, notes, line)
    _lower_keys(values, notes, line)
    # Two rules around prose are not frontmatter: what stands between them belongs to the instructions.
    start = layout.body if values or not layout.block.strip() else 0
    name = read_name(values.get("name", ""), folder.rpartition("/")[2], notes, line)
    description = read_description(values.get("description", ""), notes, line)
    body = text[layout.body : layout.end]
    skill = SkillText(
        name,
        description or describe_from(body, notes, line),
        OptionalFields(values, notes, line),
        text[: layout.end],
        _skip_blank_lines(text, start),
    )
    # YAML also ends a line where no editor does (U+2028, a lone CR): no note may point past the end of the file.
    last = text.count("\n") + 1
    skill.diagnostics = [note if note.line <= last else replace(note, line=last) for note in notes.items]
    skill._values = values
    return skill


def _parse(block: str, first_line: int, notes: Notes) -> dict[str, Any]:
    if "\r" in block:
        block = block.replace("\r\n", "\n")
        values = scan_lines(block)
        if values is not None:
            return values
    budget = Budget()
    try:
        return parse_yaml(block, notes, first_line, budget)
    except YamlFault as fault:
        line = first_line + fault.line - 1
        problem = fault.problem if "mapping" in fault.problem else f"Invalid YAML: {fault.problem}"
    before = len(notes.items)
    repaired = repair_fields(block.expandtabs(2), notes, first_line, budget)
    if len(notes.items) == before:  # nothing that was repaired says so itself
        notes.add("warning", "yaml-invalid", problem, line, "indent with spaces, one `key: value` a line")
    return repaired


def _line_finder(layout: Layout) -> LineOf:
    lines: dict[str, int] = {}

    def line_of(key: str) -> int:
        if not lines:  # all at once: a block may have thousands of faulty fields
            for number, line in enumerate(layout.block.split("\n"), layout.line):
                if line[:1].strip():
                    lines.setdefault(line.partition(":")[0].rstrip().strip("\"'"), number)
        return lines.get(key, max(1, layout.line - 1))

    return line_of


def _lower_keys(values: dict[str, Any], notes: Notes, line: LineOf) -> None:
    """Read `Description:` as `description:`."""
    for key in [key for key in values if key.lower() in FORMAT_KEYS and key.lower() not in values]:
        values[key.lower()] = values.pop(key)
        message = f"{key!r} is read as {key.lower()!r}: the fields are written in lower case"
        notes.add("warning", "field-invalid", message, line(key), f"write `{key.lower()}:`")


def _restore_comments(block: str, values: dict[str, Any], notes: Notes, line: LineOf) -> None:
    """Use or report text that YAML takes for a comment: `description: # text`, or ` #` in a plain value."""
    for match in _CUT_BY_COMMENT.finditer(block):
        key, kept, lost = match.groups()
        if values.get(key) == "" and lost and not kept.strip():
            values[key] = lost.strip()
            notes.add(
                "warning",
                "comment-as-value",
                f"{key!r} begins with #, which YAML reads as a comment; the text is used",
                line(key),
                "put the value in quotes",
            )
        elif lost and values.get(key) == kept.strip():
            notes.add(
                "warning",
                "comment-cuts-value",
                f"{key!r} ends before ` #`: YAML reads the rest as a comment",
                line(key),
                "put the value in quotes",
            )


def _skip_blank_lines(text: str, at: int) -> int:
    """Return the index after the blank lines at `at`, before the indentation of the next line."""
    end = len(text)
    while at < end:
        stop = text.find("\n", at) + 1 or end
        if not text[at:stop].isspace():
            return at
        at = stop
    return end
