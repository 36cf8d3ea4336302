"""How commands speak of diagnostics."""

from collections.abc import Sequence
from typing import Any

from skillshelf.cli._output import Output, plural, shown_path
from skillshelf.descriptor import Diagnostic, Severity
from skillshelf.text import clean_line

_WORDS: tuple[tuple[Severity, str], ...] = (("error", "error"), ("warning", "warning"), ("info", "note"))
_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}


def counted(notes: Sequence[Diagnostic]) -> str:
    """`2 errors, 1 note`; empty where there are none."""
    counts = ((sum(note.severity == severity for note in notes), word) for severity, word in _WORDS)
    return ", ".join(plural(count, word) for count, word in counts if count)


def as_json(note: Diagnostic) -> dict[str, Any]:
    return {field: getattr(note, field) for field in Diagnostic.__dataclass_fields__}


def print_diagnostic(note: Diagnostic, out: Output) -> None:
    """`path:line: code (severity) message`, as linters write it and editors read it, and the fix below."""
    where = f"{shown_path(note.path)}:{note.line or 1}"
    message = clean_line(note.message)
    if out.terminal:
        from rich.text import Text

        kind = (f"{note.code} ({note.severity}) ", _STYLES[note.severity])
        out.show(Text.assemble((f"{where}: ", "bold"), kind, message))
    else:
        out.text(f"{where}: {note.code} ({note.severity}) {message}")
    if note.fix:
        out.styled(f"fix: {clean_line(note.fix)}", "dim", indent=4)
