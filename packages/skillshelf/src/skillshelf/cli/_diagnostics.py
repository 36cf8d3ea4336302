"""Diagnostics as text for people, as JSON, as SARIF and as annotations of a GitHub workflow."""

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from skillshelf._version import __version__
from skillshelf.cli._output import Output, path_in_repository, shown_path
from skillshelf.skills import Diagnostic, Severity
from skillshelf.text import clean_line, count_noun

_NOUNS: dict[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
_STYLES = {"error": "red", "warning": "yellow", "info": "cyan"}
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SARIF_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
_GITHUB_MESSAGE_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_GITHUB_PROPERTY_ESCAPES = _GITHUB_MESSAGE_ESCAPES | str.maketrans({":": "%3A", ",": "%2C"})


def print_diagnostic(note: Diagnostic, out: Output) -> None:
    """Print `path:line: code (severity) message`, which editors understand, and the fix below."""
    place = f"{shown_path(note.path)}:{note.line or 1}: "
    if not note.line and os.path.isdir(note.path):  # a folder has no lines
        place = f"{shown_path(note.path)}: "
    kind = f"{note.code} ({note.severity}) "
    message = clean_line(note.message)
    if out.is_terminal:
        from rich.text import Text

        out.print_rich(Text.assemble((place, "bold"), (kind, _STYLES[note.severity]), message))
    else:
        out.print(f"{place}{kind}{message}")
    if note.fix:
        out.print_styled(f"fix: {clean_line(note.fix)}", "dim", indent=4)


def count_by_severity(notes: Sequence[Diagnostic]) -> str:
    """Return a count such as `2 errors, 1 note`, or an empty string if there are no diagnostics."""
    counts = []
    for severity, noun in _NOUNS.items():
        count = sum(note.severity == severity for note in notes)
        if count:
            counts.append(count_noun(count, noun))
    return ", ".join(counts)


def as_json(note: Diagnostic) -> dict[str, Any]:
    return {field: getattr(note, field) for field in Diagnostic.__dataclass_fields__}


def as_sarif(notes: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log for code scanning."""
    from skillshelf.lint import CODES

    rules = [{"id": code, "shortDescription": {"text": meaning}} for code, meaning in CODES.items()]
    rule_indexes = {code: index for index, code in enumerate(CODES)}
    driver = {"name": "skillshelf", "version": __version__, "rules": rules}
    results = [_sarif_result(note, rule_indexes[note.code]) for note in notes]
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _sarif_result(note: Diagnostic, rule_index: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": note.code,
        "ruleIndex": rule_index,
        "level": _SARIF_LEVELS[note.severity],
        "message": {"text": _message_with_fix(note)},
    }
    if note.path:
        location: dict[str, Any] = {"artifactLocation": {"uri": _to_uri(note.path)}}
        if note.line:
            location["region"] = {"startLine": note.line}
        result["locations"] = [{"physicalLocation": location}]
    return result


def _to_uri(path: str) -> str:
    shortened = path_in_repository(path)
    # A file name need not be UTF-8; percent escapes can hold any bytes.
    escaped = quote(shortened.encode("utf-8", "surrogateescape"))
    return f"file://{escaped}" if shortened.startswith("/") else escaped


def github_annotation(note: Diagnostic) -> str:
    """Return a workflow command that makes GitHub show the diagnostic beside its line."""
    properties = {"file": clean_line(path_in_repository(note.path)), "line": str(note.line or ""), "title": note.code}
    assignments = []
    for key, value in properties.items():
        if value:
            assignments.append(f"{key}={value.translate(_GITHUB_PROPERTY_ESCAPES)}")
    message = _message_with_fix(note).translate(_GITHUB_MESSAGE_ESCAPES)
    return f"::{_GITHUB_LEVELS[note.severity]} {','.join(assignments)}::{message}"


def _message_with_fix(note: Diagnostic) -> str:
    return f"{note.message}\nfix: {note.fix}" if note.fix else note.message
