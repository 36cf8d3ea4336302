"""Checks of the files that a trial leaves in its workspace, and comparisons with files stored beside the case."""

import json
from fnmatch import fnmatchcase
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from skillshelf.errors import EvalError
from skillshelf.text import truncate
from skillshelf_evals._folders import read_start
from skillshelf_evals._limits import MAX_CASE_FILE
from skillshelf_evals._text import MAX_QUOTED, find_first_difference, list_items
from skillshelf_evals._trace import Trace
from skillshelf_evals.check._check import GivenPath, NonEmpty, StoredPath, Verdict, built_in
from skillshelf_evals.check._search import Regex, run_apart, search_text
from skillshelf_evals.check._tables import find_table_difference, parse_table
from skillshelf_evals.check._worker import find_fault

Tolerance = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    from jsonschema import SchemaError  # 60 ms that only cases with a schema pay

    try:
        _find_validator(schema).check_schema(schema)
    except SchemaError as error:
        raise EvalError(
            f"this is not a JSON schema: {truncate(error.message, MAX_QUOTED)}", "See json-schema.org"
        ) from None
    return schema


Schema = Annotated[dict[str, Any], Field(min_length=1), AfterValidator(_check_schema)]
"""A JSON schema. The empty one is refused: everything is valid under it."""


@built_in(describe=lambda path, text: f"{path} {truncate(text, 40)!r}")
def file_contains(trace: Trace, path: NonEmpty, text: NonEmpty) -> Verdict:
    """Check that a file of the workspace contains this text after the trial."""
    found = _find_text(trace, path)
    if isinstance(found, Verdict):
        return found
    return Verdict(text in found, f"{path} is: {truncate(found, MAX_QUOTED)!r}")


@built_in(describe=lambda path, regex: f"{path} {truncate(regex, 40)!r}")
async def file_matches(trace: Trace, path: NonEmpty, regex: Regex) -> Verdict:
    """Check that a pattern matches somewhere in a file of the workspace after the trial."""
    found = _find_text(trace, path)
    if isinstance(found, Verdict):
        return found
    return await search_text(regex, found, f"{path} is")


@built_in()
def file_exists(trace: Trace, path: NonEmpty) -> Verdict:
    """Check that the workspace has this file after the trial. `*` stands for any part of a name: `reports/*.json`."""
    held = any(_fits(name, path) for name in trace.files)
    return Verdict(held, f"created or changed: {list_items(list(trace.changed_files))}")


def _fits(path: str, pattern: str) -> bool:
    """True if each part of a path fits that of a pattern."""
    parts = path.split("/")
    wanted = pattern.removeprefix("./").split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


@built_in()
def file_unchanged(trace: Trace, path: NonEmpty) -> Verdict:
    """Check that a file of the case is as the case wrote it."""
    if path in trace.removed:
        return Verdict(False, f"{path} is gone")
    if path not in trace.files or trace.files[path].by_check:
        return Verdict(False, error=f"The case has no file {path} that could change.")
    if trace.files[path].changed:
        return Verdict(False, f"{path} changed, or is new")
    return Verdict(True, f"{path} is as it was")


@built_in(describe=lambda path, schema: path)
async def json_schema(trace: Trace, path: NonEmpty, schema: Schema) -> Verdict:
    """Check that a file of the workspace is JSON that is valid under a schema. References to other addresses fail."""
    found = _find_data(trace, path)
    if isinstance(found, Verdict):
        return found
    try:
        value = json.loads(found)
    except (ValueError, RecursionError) as error:
        return Verdict(False, f"{path} is not JSON: {truncate(str(error), MAX_QUOTED)}")

    # A match of a pattern cannot be stopped from outside its process.
    if "pattern" in json.dumps(schema):
        fault = await run_apart({"schema": schema, "value": value}, f"Validating {path}")
        if isinstance(fault, Verdict):
            return fault
    else:
        fault = find_fault(schema, value)

    if "unresolved" in fault:
        return Verdict(False, error=f"The schema refers to {fault['unresolved']!r}, which is not in it.")
    if not fault:
        return Verdict(True, f"{path} is valid")
    return Verdict(False, f"{path}, at {fault['at']}: {truncate(fault['message'], MAX_QUOTED)}")


def _find_validator(schema: dict[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for

    return validator_for(schema, default=Draft202012Validator)


@built_in(describe=lambda path, expected, tolerance, any_order: path)
def table_equals(
    trace: Trace, path: NonEmpty, expected: GivenPath, tolerance: Tolerance = 0.0, any_order: bool = False
) -> Verdict:
    """Check that a CSV or TSV file of the workspace has the rows of the one stored in `expected`.

    Columns are compared by their names, and numbers by their values: they may differ by `tolerance`.
    """
    try:
        wanted = parse_table(read_stored(expected), expected)
    except (OSError, ValueError) as error:
        return Verdict(False, error=f"{expected} cannot be read: {error}.")

    found = _find_data(trace, path)
    if isinstance(found, Verdict):
        return found
    try:
        table = parse_table(found.decode("utf-8-sig"), path)
    except ValueError as error:
        return Verdict(False, f"{path} is not a table: {error}")
    difference = find_table_difference(table, wanted, tolerance, any_order=any_order)
    return Verdict(not difference, f"{path}: {difference}" if difference else f"{path} has the rows of {expected}")


@built_in(describe=lambda path, file: f"{path} for {file}" if file else path)
def golden(trace: Trace, path: StoredPath, file: NonEmpty | None = None) -> Verdict:
    """Check that the last answer, or a file of the workspace, equals the text stored in `path`.

    Kinds of line endings and newlines at the end make no difference.
    """
    try:
        stored = read_stored(path)
    except (OSError, ValueError) as error:
        return Verdict(False, error=f"{path} cannot be read: {error}.")

    text: str | None = trace.answer
    if file is not None:
        text = trace.files[file].text if file in trace.files else None
    if text is None:
        return Verdict(False, f"there is no text file {file} to compare")
    difference = find_first_difference(_normalize(text), _normalize(stored))
    if difference is None:
        return Verdict(True, f"it equals {path}")
    ours = _show_line(difference.ours)
    theirs = _show_line(difference.theirs)
    return Verdict(False, f"line {difference.number} is {ours}; {path} has {theirs}")


def _normalize(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def _show_line(line: str | None) -> str:
    return "the end" if line is None else repr(truncate(line, MAX_QUOTED))


def read_stored(path: str) -> str:
    """Return the text of a file beside a case. Raises OSError, or ValueError if it is too large or not text."""
    data = read_start(path, MAX_CASE_FILE)
    if len(data) > MAX_CASE_FILE:
        raise ValueError(f"it is larger than {MAX_CASE_FILE // 1024} KiB")
    return data.decode("utf-8-sig")


def _find_text(trace: Trace, path: str) -> str | Verdict:
    """Return the text of a file, or the verdict that there is none."""
    state = trace.files.get(path)
    if state is None:
        return _miss(trace, path)
    if state.text is None:
        return Verdict(False, error=f"{path} is not text, or too long to search.")
    return state.text


def _find_data(trace: Trace, path: str) -> bytes | Verdict:
    """Return the content of a file, or the verdict that there is none."""
    state = trace.files.get(path)
    if state is None:
        return _miss(trace, path)
    if state.data is not None:
        return state.data
    if state.text is not None:
        return state.text.encode("utf-8", "surrogatepass")
    return Verdict(False, error=f"{path} is too large to be kept, or was not changed and is not text.")


def _miss(trace: Trace, path: str) -> Verdict:
    return Verdict(False, f"there is no file {path}; changed: {list_items(list(trace.changed_files))}")
