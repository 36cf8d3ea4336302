"""The fields of the frontmatter apart from the name: which ones the format knows, and the values that it allows."""

import re
from collections.abc import Iterator, Sequence

from skillshelf.descriptor import Diagnostic, Severity
from skillshelf.lint._lines import find_field_line, find_nested_line
from skillshelf.lint._skill_name import MAX_QUOTED
from skillshelf.skillmd import FORMAT_KEYS, SkillText
from skillshelf.text import clip, closest_names, show_controls

MAX_COMPATIBILITY = 500

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

_MAX_LISTED_FIELDS = 10
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
        fix = _suggest_fields(unexpected)
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


def _suggest_fields(unexpected: Sequence[str]) -> str:
    """Return a fix that suggests a field of the format if one may be misspelled."""
    for field in unexpected[:_MAX_LISTED_FIELDS]:
        closest = closest_names(field, FORMAT_KEYS)
        if closest:
            return f"did you mean `{closest[0]}`? Otherwise move them under `metadata:`"
    return "move them under `metadata:`"


def _quote_fields(fields: Sequence[str]) -> str:
    quoted = [repr(show_controls(clip(field, MAX_QUOTED))) for field in fields[:_MAX_LISTED_FIELDS]]
    listed = ", ".join(quoted)
    if len(fields) > _MAX_LISTED_FIELDS:
        listed += f" and {len(fields) - _MAX_LISTED_FIELDS} more"
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
    if keys:
        message = f"these values of 'metadata' are not text: {_quote_fields(keys)}"
        line = find_nested_line(skill, "metadata", keys[0])
        key = show_controls(clip(keys[0], MAX_QUOTED))
        fix = f'put them in quotes, as in `{key}: "…"`; write lists and mappings as text'
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
        fix = f"write `allowed-tools: {clip(tools, MAX_QUOTED)}`"
        yield Diagnostic("error", "allowed-tools-form", message, line=line, fix=fix)
