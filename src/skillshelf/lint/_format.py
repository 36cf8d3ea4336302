"""Check a SKILL.md against the open Agent Skills format.

Reading a SKILL.md is lenient; a check is strict. Everything here works on text in memory.
"""

from dataclasses import replace

from skillshelf.descriptor import Diagnostic
from skillshelf.lint._fields import check_compatibility_length, check_field_names, check_values
from skillshelf.lint._instructions import check_instructions
from skillshelf.lint._mcp_entry import check_entry
from skillshelf.lint._skill_name import check_written_name
from skillshelf.lint._template import check_template_text
from skillshelf.skillmd import SkillText, Unreadable, read

# Warnings of the reader about valid YAML. The format allows them, but their author sees another text than YAML does.
_ALLOWED_BY_FORMAT = frozenset({"comment-cuts-value"})
# Errors that explain others. A file without frontmatter has no name either, and a broken rule says more about a name
# than "refused".
_EXPLAINED_BY = {
    "frontmatter-missing": ("name-missing", "description-missing"),
    "name-too-long": ("name-refused",),
    "name-uppercase": ("name-refused",),
    "name-hyphens": ("name-refused",),
    "name-characters": ("name-refused",),
}
# The codes of strict mode about the value of a field.
_FIELD_OF = {
    "allowed-tools-form": "allowed-tools",
    "compatibility-empty": "compatibility",
    "metadata-not-text": "metadata",
}


def check_text(text: str, folder: str, *, strict: bool = False) -> list[Diagnostic]:
    """Check the text of a SKILL.md in a folder of that name.

    If `strict`, every departure from the format is an error: fields that it does not know, and values in other forms.
    """
    try:
        skill = read(text, folder)
    except Unreadable as error:
        return [error.diagnostic]
    return check_format(skill, folder, strict=strict)


def check_format(skill: SkillText, folder: str, *, strict: bool = False) -> list[Diagnostic]:
    """Check a SKILL.md that has been read."""
    diagnostics = [_apply_format(note) for note in skill.diagnostics]
    diagnostics += check_written_name(skill, folder)

    explained: set[str] = set()
    for note in diagnostics:
        if note.severity == "error":
            explained.update(_EXPLAINED_BY.get(note.code, ()))
    diagnostics = [note for note in diagnostics if note.code not in explained]

    diagnostics += check_compatibility_length(skill)
    diagnostics += check_field_names(skill, strict)
    reported_fields: list[str] = []
    if strict:
        value_faults = list(check_values(skill))
        reported_fields = [_FIELD_OF[note.code] for note in value_faults]
        diagnostics += value_faults
    diagnostics += check_entry(skill, reported_fields)
    diagnostics += check_instructions(skill)
    diagnostics += check_template_text(skill.text.encode("utf-8", "surrogatepass"))
    return diagnostics


def _apply_format(note: Diagnostic) -> Diagnostic:
    """Turn a warning of the lenient reader into an error, unless the format allows the text as it is."""
    if note.severity == "warning" and note.code not in _ALLOWED_BY_FORMAT:
        return replace(note, severity="error")
    return note
