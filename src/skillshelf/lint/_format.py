"""The open Agent Skills format, strictly: every departure of a SKILL.md from it. Pure text."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

from skillshelf.descriptor import MAX_DESCRIPTION, Diagnostic, Severity
from skillshelf.lint._entries import find_entry_faults
from skillshelf.lint._names import check_name
from skillshelf.skillmd import FORMAT_KEYS, SkillText, Unreadable, read
from skillshelf.text import closest_names, find_hidden, show_controls
from skillshelf.tokens import estimate

MAX_COMPATIBILITY = 500
MAX_TOKENS = 5_000
MAX_LINES = 500
# What skillshelf reads beside the format's own fields.
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
# Valid YAML that says something else than its author sees: no departure from the format.
_NO_DEPARTURE = frozenset({"comment-cuts-value"})
# A fault that explains others: without frontmatter there is no name either, and a rule says more than "refused".
_FOLLOWS = {
    "frontmatter-missing": ("name-missing", "description-missing"),
    **dict.fromkeys(("name-too-long", "name-uppercase", "name-hyphens", "name-characters"), ("name-refused",)),
}
_SHOWN = 10
_SPLIT = "move parts into references/ and say in the instructions when to load them"


def check_text(text: str, folder: str, *, strict: bool = False) -> list[Diagnostic]:
    """Check the text of a SKILL.md in a folder of that name.

    If `strict`, every field that the format does not know is an error, as it is to the format's own validator.
    """
    try:
        return check_format(read(text, folder), folder, strict=strict)
    except Unreadable as fault:
        return [fault.diagnostic]


def check_format(text: SkillText, folder: str, *, strict: bool = False) -> list[Diagnostic]:
    """Check a SKILL.md that was read already."""
    found = [*map(_strict, text.diagnostics), *_check_name(text, folder)]
    codes = {note.code for note in found if note.severity == "error"}
    told = set().union(*(_FOLLOWS.get(code, ()) for code in codes))
    kept = [note for note in found if note.code not in told]
    return [*kept, *_check_fields(text, strict), *_check_entry(text), *_check_instructions(text)]


def _strict(note: Diagnostic) -> Diagnostic:
    """A note of the lenient reader, as the format sees it: what had to be repaired is an error."""
    departs = note.severity == "warning" and note.code not in _NO_DEPARTURE
    return replace(note, severity="error") if departs else note


def line_of(text: SkillText, key: str) -> int:
    """The line of a field in the file; the first line where it cannot be told."""
    match = re.search(rf"^[\"']?{re.escape(key)}[\"']?[ \t]*:", text.text[: text.body], re.M)
    return text.text.count("\n", 0, match.start()) + 1 if match else 1


def first_line(text: SkillText) -> int:
    """The line that the instructions begin on."""
    return text.text.count("\n", 0, text.body) + 1


def _check_name(text: SkillText, folder: str) -> Iterator[Diagnostic]:
    written = text.values.get("name")
    if not isinstance(written, str) or not written.strip():
        return  # the reader says so
    line = line_of(text, "name")
    yield from check_name(written, line)
    name, own = unicodedata.normalize("NFKC", written.strip()), unicodedata.normalize("NFKC", folder)
    if name != own:
        message = f"the folder's name {own[:100]!r} must match skill name {name[:100]!r}"
        yield Diagnostic("error", "name-mismatch", message, line=line, fix="rename the folder, or change `name:`")


def _check_fields(text: SkillText, strict: bool) -> Iterator[Diagnostic]:
    length = len(text.optional.compatibility.strip())
    if length > MAX_COMPATIBILITY:
        message = f"'compatibility' exceeds {MAX_COMPATIBILITY} characters ({length})"
        fix = "name only what the skill needs; explain it in the instructions"
        yield Diagnostic("error", "compatibility-too-long", message, line=line_of(text, "compatibility"), fix=fix)

    known = [key for key in text.optional.fields if key.lower() in KNOWN_FIELDS]
    unexpected = [key for key in text.optional.fields if key.lower() not in KNOWN_FIELDS]
    own = [key for key in EXTENSIONS if key in text.values]
    if unexpected:
        message = f"Unexpected fields in frontmatter: {_some(unexpected)}"
        line = line_of(text, unexpected[0])
        severity: Severity = "error" if strict else "warning"
        yield Diagnostic(severity, "unexpected-fields", message, line=line, fix=_fix_fields(unexpected))
    if known:
        message = f"other hosts or tools use these fields, but the format does not know them: {_some(known)}"
        fix = "move them under `metadata:` if no host you use reads them"
        yield _note_fields("field-known", message, line_of(text, known[0]), fix, strict)
    if own:
        message = f"skillshelf reads these fields, but the format does not know them: {_some(own)}"
        fix = "other readers may ignore or refuse them"
        if own == ["disclosure"]:
            fix = "write `disclosure` under `metadata:`"
        yield _note_fields("field-extension", message, line_of(text, own[0]), fix, strict)


def _note_fields(code: str, message: str, line: int, fix: str, strict: bool) -> Diagnostic:
    return Diagnostic("error" if strict else "info", code, message, line=line, fix=fix)


def _fix_fields(unexpected: Sequence[str]) -> str:
    """Suggest the field that was meant, if one is misspelt."""
    for key in unexpected[:_SHOWN]:
        meant = closest_names(key, FORMAT_KEYS)
        if meant:
            return f"did you mean `{meant[0]}`? Otherwise move them under `metadata:`"
    return "move them under `metadata:`"


def _check_entry(text: SkillText) -> Iterator[Diagnostic]:
    """Report why the skill is missing in strict MCP hosts. A name that they refuse has a code of its own."""
    judged = {"metadata", "compatibility", "__proto__"} & text.values.keys()
    if not judged and len(text.description) < MAX_DESCRIPTION:
        return  # typed values cost a millisecond
    frontmatter = dict(text.typed_values() or text.values)
    if not isinstance(frontmatter.get("description"), str):
        frontmatter["description"] = text.description
    for fault in find_entry_faults(frontmatter):
        if fault.field != "name":
            message = f"strict MCP hosts refuse the skill, and skills/list leaves it out: {fault.problem}"
            yield Diagnostic("warning", "mcp-withheld", message, line=line_of(text, fault.field), fix=fault.fix)


def _check_instructions(text: SkillText) -> Iterator[Diagnostic]:
    instructions, start = text.instructions, first_line(text)
    if not instructions.strip():
        message, fix = "there are no instructions below the frontmatter", "write the steps that the skill is to bring"
        yield Diagnostic("warning", "instructions-missing", message, line=start, fix=fix)
    tokens, lines = estimate(instructions), instructions.count("\n")
    if tokens > MAX_TOKENS or lines > MAX_LINES:
        message = (
            f"the instructions have {tokens:,} tokens and {lines:,} lines; {MAX_TOKENS:,} and {MAX_LINES} are plenty"
        )
        yield Diagnostic("warning", "instructions-too-long", message, line=start, fix=_SPLIT)
    yield from _check_hidden(instructions, start)


def _check_hidden(instructions: str, start: int) -> Iterator[Diagnostic]:
    fix = "remove them; a model is shown them written out, as <U+200B>"
    lines = 0
    for line, text in enumerate(instructions.split("\n"), start):
        found = dict.fromkeys(f"U+{ord(match[0]):04X}" for match in find_hidden(text))
        if not found:
            continue
        lines += 1
        if lines <= _SHOWN:
            message = f"the instructions have hidden characters on this line: {', '.join(list(found)[:_SHOWN])}"
            yield Diagnostic("warning", "hidden-in-instructions", message, line=line, fix=fix)
    if lines > _SHOWN:
        message = f"the instructions have hidden characters on {lines - _SHOWN} more lines"
        yield Diagnostic("warning", "hidden-in-instructions", message, line=start, fix=fix)


def _some(keys: list[str]) -> str:
    shown = ", ".join(repr(show_controls(key[:80])) for key in keys[:_SHOWN])
    return f"{shown} and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else shown
