"""Check a SKILL.md against the open Agent Skills format.

Reading a SKILL.md is lenient; a check is strict. Everything here works on text in memory.
"""

from collections.abc import Iterator
from dataclasses import replace

from skillshelf.lint._fields import (
    check_compatibility_length,
    check_entry,
    check_field_names,
    check_upload,
    check_values,
    check_written_name,
    find_instructions_line,
)
from skillshelf.lint._limits import MAX_HIDDEN_LINES, MAX_LINES, MAX_LISTED_CHARACTERS, MAX_TOKENS
from skillshelf.skillmd import SkillText, Unreadable, read
from skillshelf.skillmd.templates import find_template_sentences
from skillshelf.skills import Diagnostic
from skillshelf.text import find_hidden
from skillshelf.text.tokens import estimate

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
    diagnostics = [apply_format(note) for note in skill.diagnostics]
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
    diagnostics += check_upload(skill)
    diagnostics += check_instructions(skill)
    diagnostics += check_template_text(skill.text.encode("utf-8", "surrogatepass"))
    return diagnostics


def apply_format(note: Diagnostic) -> Diagnostic:
    """Turn a warning of the lenient reader into an error, unless the format allows the text as it is."""
    if note.severity == "warning" and note.code not in _ALLOWED_BY_FORMAT:
        return replace(note, severity="error")
    return note


def check_instructions(skill: SkillText) -> Iterator[Diagnostic]:
    """Report instructions that are missing or too long, and characters in them that hide."""
    instructions = skill.instructions
    first_line = find_instructions_line(skill)
    if not instructions.strip():
        message = "there are no instructions below the frontmatter"
        fix = "write the steps that the model should follow"
        yield Diagnostic("warning", "instructions-missing", message, line=first_line, fix=fix)

    yield from check_instructions_size(instructions, first_line)
    yield from _check_hidden_characters(instructions, first_line)


def check_instructions_size(instructions: str, line: int) -> Iterator[Diagnostic]:
    """Report instructions that are too long to be loaded as a whole. `line` is the line that they begin on."""
    tokens = estimate(instructions)
    lines = len(instructions.splitlines())
    if tokens > MAX_TOKENS or lines > MAX_LINES:
        message = (
            f"the instructions have {tokens:,} tokens and {lines:,} lines; "
            f"keep them below {MAX_TOKENS:,} tokens and {MAX_LINES} lines"
        )
        fix = "move parts into references/ and say in the instructions when to load them"
        yield Diagnostic("warning", "instructions-too-long", message, line=line, fix=fix)


def _check_hidden_characters(instructions: str, first_line: int) -> Iterator[Diagnostic]:
    fix = "remove them; a model sees them written out, as <U+200B>"
    affected_lines = 0
    for number, line in enumerate(instructions.split("\n"), first_line):
        characters = dict.fromkeys(f"U+{ord(match[0]):04X}" for match in find_hidden(line))
        if not characters:
            continue
        affected_lines += 1
        if affected_lines <= MAX_HIDDEN_LINES:
            listed = ", ".join(list(characters)[:MAX_LISTED_CHARACTERS])
            message = f"the instructions have hidden characters on this line: {listed}"
            yield Diagnostic("warning", "hidden-in-instructions", message, line=number, fix=fix)

    unlisted = affected_lines - MAX_HIDDEN_LINES
    if unlisted > 0:
        message = f"the instructions have hidden characters on {unlisted} more lines"
        yield Diagnostic("warning", "hidden-in-instructions", message, line=first_line, fix=fix)


def check_template_text(data: bytes, path: str = "") -> Iterator[Diagnostic]:
    """Report each sentence of a template of `skillshelf new` that a file still has. A model would act on it."""
    for sentence in find_template_sentences(data):
        message = f"this sentence of the template is still there: {sentence.text!r}"
        fix = "write your own text in its place, or remove it"
        yield Diagnostic("error", "template-text", message, path, sentence.line, fix)
