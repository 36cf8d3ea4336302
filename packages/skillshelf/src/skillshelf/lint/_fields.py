"""The rules for the fields of a frontmatter: the name, its other values, and what strict MCP hosts refuse."""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillshelf.lint._limits import MAX_COMPATIBILITY, MAX_LISTED_FIELDS, MAX_NAME, MAX_QUOTED
from skillshelf.skillmd import FORMAT_KEYS, SkillText
from skillshelf.skills import MAX_DESCRIPTION, Diagnostic, Severity
from skillshelf.text import show_controls, skeleton, truncate


def find_field_line(skill: SkillText, field: str) -> int:
    """Return the line of a field in the file, or 1 if the field is not found."""
    frontmatter = skill.text[: skill.body_start]
    match = re.search(rf"^[\"']?{re.escape(field)}[\"']?[ \t]*:", frontmatter, re.M)
    if match is None:
        return 1
    return frontmatter.count("\n", 0, match.start()) + 1


def find_nested_line(skill: SkillText, field: str, key: str) -> int:
    """Return the line of a key below a field, or the line of the field if the key is not found there."""
    line = find_field_line(skill, field)
    lines = skill.text[: skill.body_start].split("\n")
    is_key = re.compile(rf"[ \t]+[\"']?{re.escape(key)}[\"']?[ \t]*:").match
    for number, text in enumerate(lines[line:], line + 1):
        if is_key(text):
            return number
    return line


def find_instructions_line(skill: SkillText) -> int:
    """Return the line of the file that the instructions begin on."""
    return skill.text.count("\n", 0, skill.body_start) + 1


# skillshelf's own commands, and the device names of Windows, which no file or folder can have there.
RESERVED_NAMES = frozenset(
    ["reload", "list", "help", "show", "new", "con", "prn", "aux", "nul"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in range(10)]
)


def check_name(written: str, line: int = 0) -> list[Diagnostic]:
    """Return an error for each rule that a name breaks, and a warning for each trouble that it may cause."""
    name = unicodedata.normalize("NFKC", written.strip())
    if not name:
        return [Diagnostic("error", "name-missing", "the name is blank", line=line, fix="write `name: my-skill`")]
    fix = f"write `name: {suggest_name(name)}`"
    return [*_find_broken_name_rules(name, line, fix), *_find_troublesome_names(name, line, fix)]


def suggest_name(name: str) -> str:
    """Return the closest name that every reader of the format accepts."""
    hyphenated = re.sub("[^a-z0-9]+", "-", skeleton(name))
    suggestion = hyphenated[:MAX_NAME].strip("-")
    if not suggestion:
        return "my-skill"
    if suggestion in RESERVED_NAMES:
        return f"{suggestion}-skill"
    return suggestion


def _find_broken_name_rules(name: str, line: int, fix: str) -> Iterator[Diagnostic]:
    quoted = repr(truncate(name, MAX_QUOTED))
    if len(name) > MAX_NAME:
        message = f"the name exceeds the {MAX_NAME} character limit ({len(name)} characters)"
        yield Diagnostic("error", "name-too-long", message, line=line, fix=fix)
    if name != name.lower():
        yield Diagnostic("error", "name-uppercase", f"the name {quoted} must be lowercase", line=line, fix=fix)
    if name.startswith("-") or name.endswith("-"):
        message = f"the name {quoted} cannot start or end with a hyphen"
        yield Diagnostic("error", "name-hyphens", message, line=line, fix=fix)
    if "--" in name:
        message = f"the name {quoted} cannot have consecutive hyphens"
        yield Diagnostic("error", "name-hyphens", message, line=line, fix=fix)
    if not all(char.isalnum() or char == "-" for char in name):
        message = f"the name {quoted} has invalid characters: letters, digits and hyphens are allowed"
        yield Diagnostic("error", "name-characters", message, line=line, fix=fix)


def _find_troublesome_names(name: str, line: int, fix: str) -> Iterator[Diagnostic]:
    if name.casefold() in RESERVED_NAMES:
        message = f"{name!r} is a command of skillshelf or a device name of Windows"
        yield Diagnostic("warning", "name-reserved", message, line=line, fix="choose another name")
    if name.isascii():
        return
    lookalike = skeleton(name)
    if lookalike.isascii():
        message = f"the name {name!r} looks like {lookalike!r} but is spelled with other letters"
        yield Diagnostic("warning", "name-lookalike", message, line=line, fix=fix)
    else:
        message = f"the name {name!r} has letters outside a-z: some tools refuse it, and many users cannot type it"
        fix = "use a-z, 0-9 and hyphens if others should be able to use the skill"
        yield Diagnostic("warning", "name-not-ascii", message, line=line, fix=fix)


def check_written_name(skill: SkillText, folder: str) -> Iterator[Diagnostic]:
    """Check the name that a SKILL.md has, by itself and against the name of its folder."""
    written = skill.values.get("name")
    if not isinstance(written, str) or not written.strip():
        return  # the reader reports it
    line = find_field_line(skill, "name")
    faults = check_name(written, line)
    yield from faults

    name = unicodedata.normalize("NFKC", written.strip())
    folder_name = unicodedata.normalize("NFKC", folder)
    if name != folder_name:
        message = (
            f"the folder's name {truncate(folder_name, MAX_QUOTED)!r} must match "
            f"skill name {truncate(name, MAX_QUOTED)!r}"
        )
        fix = "rename the folder, or change `name:`"
        if any(fault.severity == "error" for fault in faults):
            fix = f"give both a valid name, such as {suggest_name(name)!r}"
        yield Diagnostic("error", "name-mismatch", message, line=line, fix=fix)


# Fields that skillshelf reads in addition to those of the format.
EXTENSIONS = (
    "references",
    "disclosure",
    "disable-model-invocation",
    "user-invocable",
    "arguments",
    "argument-hint",
)
# Fields outside the format that a host acts on, or that skills of at least 2 of 85 public repositories have. Of seven
# hosts that were measured, five load such a skill; inspect-ai and the format's own validator refuse it.
KNOWN_FIELDS = frozenset(
    "agent author category context dependencies disallowed-tools effort examples homepage hooks inputs keywords "
    "language model paths shell source status tags tools triggers type version when_to_use".split()
)

# Keys of `metadata` below which a host reads a mapping. The format has text only, but text would break that host.
_READ_BY_HOSTS = {"openclaw": "OpenClaw", "clawdbot": "OpenClaw", "clawdis": "OpenClaw", "hermes": "Hermes"}
_SPELLING = 0.85
"""How similar a field must be to be taken for a misspelled one: `licence` is 0.86, `capabilities` 0.72."""

# Commas inside parentheses belong to a tool: `Bash(sed -n 1,5p:*)`.
_PARENTHESES = re.compile(r"\([^)]*\)?")


def check_compatibility_length(skill: SkillText) -> Iterator[Diagnostic]:
    """Report a text of `compatibility` that is longer than the format allows."""
    length = len(skill.optional.compatibility.strip())
    if length > MAX_COMPATIBILITY:
        message = f"'compatibility' exceeds {MAX_COMPATIBILITY} characters ({length})"
        line = find_field_line(skill, "compatibility")
        fix = "name only what the skill needs; explain it in the instructions"
        yield Diagnostic("error", "compatibility-too-long", message, line=line, fix=fix)


def check_field_names(skill: SkillText, strict: bool) -> Iterator[Diagnostic]:
    """Report fields that the format does not know."""
    extensions = [field for field in EXTENSIONS if field in skill.values]
    known = [field for field in skill.optional.fields if field.lower() in KNOWN_FIELDS]
    unexpected = [field for field in skill.optional.fields if field.lower() not in KNOWN_FIELDS]
    unexpected_severity: Severity = "warning"
    known_severity: Severity = "info"
    if strict:
        unexpected_severity = "error"
        known_severity = "error"

    if unexpected:
        message = f"Unexpected fields in frontmatter: {_quote_fields(unexpected)}"
        line = find_field_line(skill, unexpected[0])
        fix = _suggest_fields(unexpected, [key for key in (*FORMAT_KEYS, *EXTENSIONS) if key not in skill.values])
        yield Diagnostic(unexpected_severity, "unexpected-fields", message, line=line, fix=fix)
    if known:
        message = f"other hosts or tools use these fields, but the format does not know them: {_quote_fields(known)}"
        line = find_field_line(skill, known[0])
        fix = "move them under `metadata:` if no host you use reads them"
        yield Diagnostic(known_severity, "field-known", message, line=line, fix=fix)
    if extensions:
        message = f"skillshelf reads these fields, but the format does not know them: {_quote_fields(extensions)}"
        line = find_field_line(skill, extensions[0])
        fix = "other readers may ignore or refuse them"
        if extensions == ["disclosure"]:
            fix = "write `disclosure` under `metadata:`"
        yield Diagnostic(known_severity, "field-extension", message, line=line, fix=fix)


def _suggest_fields(unexpected: Sequence[str], missing: Sequence[str]) -> str:
    """Return a fix that suggests a field that is read and missing, if one may be misspelled."""
    from difflib import get_close_matches  # takes 5 ms, which only a mistake pays

    for field in unexpected[:MAX_LISTED_FIELDS]:
        closest = get_close_matches(skeleton(field[:MAX_QUOTED]), missing, 1, _SPELLING)
        if closest:
            return f"did you mean `{closest[0]}`? Otherwise move them under `metadata:`"
    return "move them under `metadata:`"


def _quote_fields(fields: Sequence[str]) -> str:
    quoted = [repr(show_controls(truncate(field, MAX_QUOTED))) for field in fields[:MAX_LISTED_FIELDS]]
    listed = ", ".join(quoted)
    if len(fields) > MAX_LISTED_FIELDS:
        listed += f" and {len(fields) - MAX_LISTED_FIELDS} more"
    return listed


def check_values(skill: SkillText) -> Iterator[Diagnostic]:
    """Report values that readers accept in more forms than the format has."""
    compatibility = skill.values.get("compatibility")
    if isinstance(compatibility, str) and not compatibility.strip():
        line = find_field_line(skill, "compatibility")
        message = f"'compatibility' is empty; the format asks for 1 to {MAX_COMPATIBILITY} characters"
        fix = "say what the skill needs, or remove the field"
        yield Diagnostic("error", "compatibility-empty", message, line=line, fix=fix)

    yield from _check_metadata_values(skill)
    yield from _check_allowed_tools(skill)


def _check_metadata_values(skill: SkillText) -> Iterator[Diagnostic]:
    if not isinstance(skill.values.get("metadata"), dict):
        return  # it is missing, or the reader reports it
    metadata = (skill.typed_values() or skill.values).get("metadata")
    if not isinstance(metadata, dict):
        return
    keys = [str(key) for key, value in metadata.items() if not isinstance(value, str)]
    keys.sort(key=lambda key: key in _READ_BY_HOSTS)
    if keys:
        message = f"these values of 'metadata' are not text: {_quote_fields(keys)}"
        line = find_nested_line(skill, "metadata", keys[0])
        key = show_controls(truncate(keys[0], MAX_QUOTED))
        fix = f'put them in quotes, as in `{key}: "…"`; write lists and mappings as text'
        if keys[0] in _READ_BY_HOSTS:
            fix = f"leave it if {_READ_BY_HOSTS[keys[0]]} is to read it; the format has text only"
        yield Diagnostic("error", "metadata-not-text", message, line=line, fix=fix)


def _check_allowed_tools(skill: SkillText) -> Iterator[Diagnostic]:
    value = skill.values.get("allowed-tools", "")
    problem = ""
    if isinstance(value, list):
        problem = "is a list"
    elif isinstance(value, str) and "," in _PARENTHESES.sub("", value):
        problem = "has commas"
    if problem:
        message = f"'allowed-tools' {problem}; the format asks for one text with spaces between the tools"
        line = find_field_line(skill, "allowed-tools")
        tools = show_controls(" ".join(skill.optional.allowed_tools))
        fix = f"write `allowed-tools: {truncate(tools, MAX_QUOTED)}`"
        yield Diagnostic("error", "allowed-tools-form", message, line=line, fix=fix)


_STRICT_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class EntryFault:
    """A reason why strict MCP hosts refuse a skill's entry in `skills/list`."""

    field: str
    """The field of the frontmatter that is at fault."""
    problem: str
    fix: str
    severity: Severity = "warning"


def find_entry_faults(frontmatter: Mapping[str, Any]) -> list[EntryFault]:
    """Return every reason why strict hosts refuse an entry with this frontmatter, which is JSON.

    Such a host refuses the whole list because of one entry. Its rules are those of the open format, as the official
    TypeScript client (`@modelcontextprotocol/client` 2.4.0) has them.
    """
    faults = [
        _find_name_fault(frontmatter),
        _find_description_fault(frontmatter),
        _find_compatibility_fault(frontmatter),
        _find_metadata_fault(frontmatter),
    ]
    if "__proto__" in frontmatter:  # in JavaScript, this key sets the prototype of an object
        faults.append(EntryFault("__proto__", "there is a field named '__proto__'", "give the field another name"))
    return [fault for fault in faults if fault is not None]


def _find_name_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    name = frontmatter.get("name")
    if isinstance(name, str) and len(name) <= MAX_NAME and _STRICT_NAME.fullmatch(name):
        return None
    problem = f"the name is not {MAX_NAME} or fewer of a-z, 0-9 and single hyphens"
    return EntryFault("name", problem, "use a-z, 0-9 and single hyphens")


def _find_description_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    description = frontmatter.get("description")
    if not isinstance(description, str) or not description:
        return EntryFault("description", "there is no description", "say in a sentence when to use the skill")
    if len(description) > MAX_DESCRIPTION:
        problem = f"the description has {_count_characters(description)}, and {MAX_DESCRIPTION:,} are allowed"
        return EntryFault("description", problem, "shorten it; the instructions have room for the rest")
    return None


def _find_compatibility_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    if "compatibility" not in frontmatter:
        return None
    compatibility = frontmatter["compatibility"]
    if compatibility in ("", None):
        return EntryFault("compatibility", "`compatibility` is empty", "say what the skill needs, or remove the field")
    if not isinstance(compatibility, str):
        return EntryFault("compatibility", "`compatibility` is not text", "write it as text, or leave it out")
    if len(compatibility) > MAX_COMPATIBILITY:
        problem = f"`compatibility` has {_count_characters(compatibility)}, and {MAX_COMPATIBILITY} are allowed"
        return EntryFault("compatibility", problem, "name only what the skill needs")
    return None


def _count_characters(text: str) -> str:
    """Count as every other code does, without the line break that ends a block scalar, which strict hosts count."""
    stripped = len(text.strip())
    count = f"{stripped:,} characters"
    if stripped < len(text):
        count += f" plus {len(text) - stripped} of white space"
    return count


def _find_metadata_fault(frontmatter: Mapping[str, Any]) -> EntryFault | None:
    if "metadata" not in frontmatter:
        return None
    metadata = frontmatter["metadata"]
    if not isinstance(metadata, dict):
        return EntryFault(
            "metadata", "`metadata` is not a mapping", "write `key: value` lines below it, or leave it out"
        )
    for key, value in sorted(metadata.items(), key=lambda item: item[0] in _READ_BY_HOSTS):
        if isinstance(value, str):
            continue
        shown_key = truncate(str(key), MAX_QUOTED)
        problem = f"`metadata` has a value that is not text, {shown_key!r}"
        if key in _READ_BY_HOSTS:
            return EntryFault("metadata", problem, f"leave it if {_READ_BY_HOSTS[key]} is to read it", "info")
        fix = f'put it in quotes: `{shown_key}: "…"`'
        if isinstance(value, dict | list):
            fix = "write it as one text"
        return EntryFault("metadata", problem, fix)
    return None


def check_entry(skill: SkillText, reported_fields: Collection[str]) -> Iterator[Diagnostic]:
    """Report why strict MCP hosts refuse the skill, except for fields that are reported already.

    `check_name` covers names that they refuse.
    """
    has_strict_fields = not skill.values.keys().isdisjoint({"metadata", "compatibility", "__proto__"})
    if not has_strict_fields and len(skill.description) < MAX_DESCRIPTION:
        return  # most skills; typed values cost a millisecond

    frontmatter = dict(skill.typed_values() or skill.values)
    if not isinstance(frontmatter.get("description"), str):
        frontmatter["description"] = skill.description
    for fault in find_entry_faults(frontmatter):
        if fault.field == "name" or fault.field in reported_fields:
            continue
        message = f"strict MCP hosts refuse the skill, and skills/list leaves it out: {fault.problem}"
        line = find_field_line(skill, fault.field)
        yield Diagnostic(fault.severity, "mcp-withheld", message, line=line, fix=fault.fix)


_RESERVED_WORDS = ("anthropic", "claude")
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def check_upload(skill: SkillText) -> Iterator[Diagnostic]:
    """Report what the Skills API of Claude refuses in an upload, and the format allows."""
    words = [word for word in _RESERVED_WORDS if word in skill.name.lower()]
    if words:
        message = f"the Skills API of Claude refuses the skill: its name has the reserved word {words[0]!r}"
        line = find_field_line(skill, "name")
        fix = "choose another name if you upload the skill there"
        yield Diagnostic("info", "skills-api-refused", message, line=line, fix=fix)
    tag = _TAG.search(skill.description)
    if tag:
        quoted = repr(truncate(tag[0], MAX_QUOTED))
        message = f"the Skills API of Claude refuses the skill: its description has the tag {quoted}"
        line = find_field_line(skill, "description")
        fix = "write it without angle brackets if you upload the skill there"
        yield Diagnostic("info", "skills-api-refused", message, line=line, fix=fix)
