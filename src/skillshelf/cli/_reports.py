"""Diagnostics in the forms that other programs read."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from skillshelf import __version__
from skillshelf.cli._output import relative
from skillshelf.descriptor import Diagnostic
from skillshelf.lint import CODES
from skillshelf.text import clean_line

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_SARIF_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_GITHUB_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
_IN_MESSAGE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTY = _IN_MESSAGE | str.maketrans({":": "%3A", ",": "%2C"})


def sarif(notes: Sequence[Diagnostic]) -> dict[str, Any]:
    """A SARIF 2.1.0 log."""
    rules = [{"id": code, "shortDescription": {"text": text}} for code, text in CODES.items()]
    driver = {"name": "skillshelf", "version": __version__, "rules": rules}
    order = {code: at for at, code in enumerate(CODES)}
    results = [_result(note, order[note.code]) for note in notes]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(note: Diagnostic, rule: int) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": note.code,
        "ruleIndex": rule,
        "level": _SARIF_LEVELS[note.severity],
        "message": {"text": _message(note)},
    }
    if note.path:
        place: dict[str, Any] = {"artifactLocation": {"uri": _uri(note.path)}}
        if note.line:
            place["region"] = {"startLine": note.line}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _uri(path: str) -> str:
    shown = relative(path)
    # A file name need not be UTF-8; the percent escapes hold whatever bytes it has.
    escaped = quote(shown.encode("utf-8", "surrogateescape"))
    return f"file://{escaped}" if shown.startswith("/") else escaped


def _message(note: Diagnostic) -> str:
    return f"{note.message}\nfix: {note.fix}" if note.fix else note.message


def github(note: Diagnostic) -> str:
    """A workflow command that GitHub shows beside the line."""
    properties = {"file": clean_line(relative(note.path)), "line": str(note.line or ""), "title": note.code}
    given = ",".join(f"{key}={value.translate(_IN_PROPERTY)}" for key, value in properties.items() if value)
    return f"::{_GITHUB_LEVELS[note.severity]} {given}::{_message(note).translate(_IN_MESSAGE)}"
