"""Read a SKILL.md as a skill, and write one."""

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from skillshelf.skillmd._fields import (
    OptionalFields,
    read_description,
    read_name,
    read_optional_fields,
)
from skillshelf.skillmd._layout import (
    DiagnosticCollector,
    Unreadable,
    find_frontmatter,
    refuse_long_frontmatter,
    refuse_without_skill,
)
from skillshelf.skills import MAX_DESCRIPTION, Diagnostic, ReadOnlyDict, SkillDescriptor

# A plain file in one match, with the name and the description first. It takes 1.4 µs and the general way 21, and a scan
# reads ten thousand. At most 99 more lines: a megabyte of them would be matched one by one.
_PLAIN_FILE = re.compile(
    r"---\n"
    r"name: ([a-z0-9][a-z0-9-]{0,63})\n"
    rf"description: ++([^\x00-\x20\x7f][^\x00-\x1f\x7f]{{0,{MAX_DESCRIPTION - 1}}})\n"
    r"((?:(?!---)[^\n]*+\n){0,99}+)"
    r"---\n\n?"
).match
_PLAIN_FIELD = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9_-]{0,99}):(?: (?P<value>.*))?").fullmatch
# Characters that a plain value cannot begin with.
_INDICATORS = frozenset("-?:,[]{}#&*!|>'\"%@` ")
# A longer rest is not worth caching, and only the general way holds it to the limits.
_MAX_CACHED_FIELDS = 4096
# Faults of a frontmatter because of which a description may be lost.
_CAUSES_OF_MISSING_TEXT = frozenset(
    {
        "frontmatter-cut",
        "frontmatter-missing",
        "frontmatter-unclosed",
        "frontmatter-undelimited",
        "frontmatter-unopened",
        "yaml-invalid",
        "yaml-repaired",
        "yaml-second-document",
    }
)


@dataclass(slots=True, eq=False)
class SkillText:
    """The fields and instructions of a SKILL.md."""

    name: str
    description: str
    optional: OptionalFields
    text: str
    """The whole file."""
    body_start: int
    """The index in `text` where the instructions begin."""
    diagnostics: tuple[Diagnostic, ...] = ()
    _values: dict[str, Any] | None = field(default=None, repr=False)

    @property
    def instructions(self) -> str:
        return self.text[self.body_start :]

    @property
    def values(self) -> dict[str, Any]:
        """The frontmatter as written: texts, lists and mappings of texts."""
        if self._values is None:
            from skillshelf.skillmd._frontmatter import parse_block

            self._values = parse_block(find_frontmatter(self.text).block, DiagnosticCollector(), 1)
        return self._values

    def typed_values(self) -> dict[str, Any] | None:
        """Return the frontmatter as JSON, with numbers, flags and nulls as in YAML 1.2.

        Return None if the block is not valid YAML, or not within the bounds, so that its fields had to be repaired.
        """
        from skillshelf.skillmd._frontmatter import parse_typed_block
        from skillshelf.skillmd.bounded_yaml import YamlFault

        try:
            return parse_typed_block(find_frontmatter(self.text).block)
        except YamlFault:
            return None

    def describe(
        self, *, references: tuple[str, ...], source: str, location: str, more_references: int = 0
    ) -> SkillDescriptor:
        """Return the descriptor of a skill with this text."""
        if self.text.isascii():
            size = len(self.text) - self.body_start
        else:
            size = len(self.instructions.encode())
        optional = self.optional
        # In the order of the fields: by keyword it takes 4 µs instead of 2, ten thousand times in a scan.
        return SkillDescriptor(
            self.name,
            self.description,
            "standard",
            (),
            references,
            source,
            location,
            size,
            optional.license,
            optional.compatibility,
            optional.allowed_tools,
            optional.metadata,
            optional.disclosure,
            optional.user_invocable,
            optional.arguments,
            optional.argument_hint,
            optional.fields,
            more_references,
        )


def read(text: str, folder: str = "") -> SkillText:
    """Read a SKILL.md as a skill, repaired if that is safe. Raises Unreadable if there is nothing to use.

    `folder` is the folder of the file. If the file gives no name, the folder's name is the skill's.
    """
    return _read_plain(text) or _read_any(text, folder)


# -- plain files, without a YAML parser -------------------------------------------------------------------------------


def _read_plain(text: str) -> SkillText | None:
    """Read a plain file. Return None for any other, and for one with a fault."""
    match = _PLAIN_FILE(text)
    if not match:
        return None
    name, written_description, other_lines = match.groups()
    if len(other_lines) > _MAX_CACHED_FIELDS:
        return None

    # Every fifth description isn't ASCII, mostly because of a dash.
    if not written_description.isascii() and _has_odd_character(written_description):
        return None

    description = _scan_value(written_description.rstrip(" "))
    optional = _read_plain_fields(other_lines)
    if not description or not optional:
        return None
    description = description.strip()
    if not description:
        return None
    body_start = match.end()
    if text[body_start : body_start + 1].isspace():
        body_start = _skip_blank_lines(text, body_start)
    return SkillText(name, description, optional, text, body_start)


def _has_odd_character(description: str) -> bool:
    """Return True for characters that YAML refuses or takes for a line break, or that are reported."""
    if not description.isprintable():
        return True
    diagnostics = DiagnosticCollector()
    try:
        read_description(description, diagnostics)
    except Unreadable:
        return True
    return bool(diagnostics.items)


@lru_cache(1024)
def _read_plain_fields(lines: str) -> OptionalFields | None:
    """Read the lines after name and description, which are often the same in a whole collection."""
    values = scan_fields(lines)
    if values is None or "name" in values or "description" in values:
        return None
    diagnostics = DiagnosticCollector()
    optional = read_optional_fields(values, diagnostics)
    if diagnostics.items:
        return None
    metadata = ReadOnlyDict.make(optional.metadata)
    return optional._replace(metadata=metadata, fields=ReadOnlyDict.make(optional.fields))


def scan_fields(lines: str) -> dict[str, Any] | None:
    """Read `key: value` lines and one level of mappings; return None if the lines need a YAML parser.

    It answers exactly as PyYAML does, or not at all: a differential test holds it to that. Importing PyYAML takes 10
    ms, which a shelf of plain files never pays.
    """
    # The parser takes tabs, line breaks that only YAML knows, and characters that YAML refuses.
    if not lines.replace("\n", "").isprintable():
        return None

    values: dict[str, Any] = {}
    mapping = values
    indent = ""
    parent = ""
    """The key before, if it has no value: a mapping may be below it."""
    for line in lines.splitlines():
        match = _PLAIN_FIELD(line)
        if not match:
            return None

        if not match["indent"]:
            mapping = values
        elif parent:
            mapping = values[parent] = {}
        elif match["indent"] != indent:
            return None
        indent = match["indent"]

        written = (match["value"] or "").strip(" ")
        value = _scan_value(written)
        # An empty value in a mapping may have another one below it.
        if value is None or match["key"] in mapping or (indent and not value):
            return None
        mapping[match["key"]] = value
        parent = "" if written else match["key"]
    return values


def _scan_value(text: str) -> str | None:
    """Return a plain or simply quoted value; None if only a YAML parser can read it."""
    if not text:
        return ""
    first = text[0]
    if first not in _INDICATORS:
        # A search for one character is ten times as fast as for two, and most values have neither.
        if ":" in text and (": " in text or text[-1] == ":"):
            return None
        if "#" in text and " #" in text:
            return None
        return text

    is_quoted = first in "\"'" and len(text) > 1 and text[-1] == first
    inner = text[1:-1]
    if is_quoted and first not in inner and "\\" not in inner:
        return inner
    return None


# -- any file ---------------------------------------------------------------------------------------------------------


def _read_any(text: str, folder: str) -> SkillText:
    from skillshelf.skillmd._frontmatter import read_values  # 3 ms, which a shelf of plain files never pays

    has_bom = text.startswith("\ufeff")
    text = text.removeprefix("\ufeff")
    refuse_without_skill(text)
    layout = find_frontmatter(text)
    refuse_long_frontmatter(layout)

    diagnostics = DiagnosticCollector(layout)
    if has_bom:
        message = "the file begins with a byte order mark"
        diagnostics.inform("bom", message, fix="save it as UTF-8 without BOM")
    values = read_values(diagnostics)
    name = read_name(values.get("name", ""), folder.rpartition("/")[2], diagnostics)
    description = read_description(values.get("description", ""), diagnostics)
    if not description:
        body = text[layout.body_start : layout.body_end]
        from skillshelf.skillmd._description_from_body import describe_from_body

        description = describe_from_body(body, diagnostics)
    if not description:
        raise _explain_missing_text(diagnostics, text)
    optional = read_optional_fields(values, diagnostics)

    body_start = layout.body_start
    if layout.block.strip() and not values:
        body_start = 0  # two rules around prose are not frontmatter: the prose belongs to the instructions
    return SkillText(
        name,
        description,
        optional,
        text[: layout.body_end],
        _skip_blank_lines(text, body_start),
        diagnostics=_limit_lines(diagnostics.items, text),
        _values=values,
    )


def _explain_missing_text(diagnostics: DiagnosticCollector, text: str) -> Unreadable:
    """Return the error for a file without a description and without text to take one from.

    If the frontmatter itself is faulty, that is the cause, and the error names it.
    """
    problem = "there is no description and no text to take one from"
    fix = "write `description:` and instructions"
    for note in _limit_lines(diagnostics.items, text):
        if note.code in _CAUSES_OF_MISSING_TEXT:
            return Unreadable(note.code, f"{note.message}; {problem}", f"{note.fix}; {fix}", note.line)
    return Unreadable("no-text", problem, fix, diagnostics.line_of("description"))


def _limit_lines(diagnostics: list[Diagnostic], text: str) -> tuple[Diagnostic, ...]:
    """Let no diagnostic point past the end of the file: YAML ends a line where no editor does (U+2028, a lone CR)."""
    last = text.count("\n") + 1
    return tuple(replace(note, line=min(note.line, last)) for note in diagnostics)


def _skip_blank_lines(text: str, start: int) -> int:
    """Return the index after the blank lines at `start`, before the indentation of the next line."""
    while start < len(text):
        line_end = text.find("\n", start) + 1 or len(text)
        if not text[start:line_end].isspace():
            return start
        start = line_end
    return len(text)


def render_skill(values: dict[str, Any], instructions: str) -> str:
    """Return a SKILL.md that `read` reads back to the same values and instructions."""
    block = _dump(values, allow_unicode=True)
    if "\x85" in block:  # which PyYAML writes as it is, and reads as a line break
        block = _dump(values, allow_unicode=False)
    return f"---\n{block}---\n\n{instructions}"


def _dump(values: dict[str, Any], *, allow_unicode: bool) -> str:
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            """Write shared values out: not every reader of frontmatter knows anchors."""
            return True

    return yaml.dump(
        values, Dumper=Dumper, sort_keys=False, allow_unicode=allow_unicode, width=4096, default_flow_style=False
    )
