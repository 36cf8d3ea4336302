"""Cases in the JSON of other tools: `evals.json`, and trigger sets.

    {"skill_name": "pdf", "evals": [{"prompt": "…", "files": ["evals/files/form.pdf"], "expectations": ["…"]}]}
    [{"question": "…", "ground_truth": "…", "expected_skill": "pdf", "expected_script": "scripts/fill.py"}]
    [{"query": "…", "should_trigger": true}]
    {"should_trigger": ["…"], "should_not_trigger": ["…"]}

Each field becomes a check, or a note that it is not checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from skillshelf.errors import EvalError
from skillshelf.evals._text import list_items
from skillshelf.evals._validation import explain_expected, show_value
from skillshelf.evals.formats._document import read_text
from skillshelf.evals.formats._home import FileContent, Home
from skillshelf.evals.formats._json_entry import MAX_FIELDS_LISTED, EntryReader, JsonFile, NearbySkills, UncheckedFields
from skillshelf.evals.formats._json_values import (
    SENTENCE_LISTS,
    EntryValues,
    FileValues,
    ForeignModel,
    find_prompt,
    list_entries,
    list_parts,
)
from skillshelf.text import clip

# Not `ground_truth`: data sets of questions and answers, which are not cases, have it as well.
_CHECK_KEYS = {"should_trigger", "expected_output", "expected_skill", *SENTENCE_LISTS}
Values = TypeVar("Values", bound=ForeignModel)


def read_json(home: Home) -> FileContent:
    """Return the cases of a file, the faults in those that cannot be used, and notes on unused fields.

    Raises EvalError if nothing of the file can be read.
    """
    text = read_text(home.path)
    document = _parse(text, home.path)
    entries = list_entries(document)
    if entries is None:
        raise EvalError("it has no cases", 'Write {"evals": [{"prompt": …, "expectations": […]}]}', home.path, 1)

    unchecked = UncheckedFields()
    file = JsonFile(home, _read_shared(document, home, unchecked), NearbySkills(home), unchecked)
    content = FileContent()
    for number, (entry, line) in enumerate(_with_lines(entries, text), 1):
        try:
            reader = EntryReader(_read_entry(entry, number), line, file)
            content.cases.append(reader.read_case())
        except EvalError as fault:
            content.faults.append(EvalError(fault.problem, fault.fix, home.path, line))

    content.notes = unchecked.make_notes(home.path)
    return content


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """True if a JSON file holds cases: results and schemas may be beside it; `anywhere`, files of all kinds."""
    entries = list_entries(_parse(read_text(path), path)) or []
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        prompt = find_prompt(entry)
        if anywhere and prompt and _CHECK_KEYS & entry.keys():
            return True
        if not anywhere and (prompt or "should_trigger" in entry):
            return True
    return False


def _parse(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise EvalError(f"it is not JSON: {error.msg}", path=path, line=error.lineno) from None
    except RecursionError:
        raise EvalError("it cannot be read as JSON: it is nested too deeply", path=path, line=1) from None
    except ValueError as error:
        raise EvalError(f"it cannot be read as JSON: {clip(str(error), 80)}", path=path, line=1) from None


def _read_shared(document: Any, home: Home, unchecked: UncheckedFields) -> FileValues:
    """Return what the file says about all of its cases. A document that is itself a case says nothing else."""
    parts = list_parts(document) if isinstance(document, Mapping) else {}
    if not parts or not isinstance(document, Mapping):
        return FileValues()
    try:
        values = _validate(FileValues, {key: value for key, value in document.items() if key not in parts})
    except EvalError as fault:
        raise EvalError(fault.problem, fault.fix, home.path, 1) from None
    if values.unknown:
        unused = list_items(values.unknown, MAX_FIELDS_LISTED)
        unchecked.add_remark(f"these fields of the file are not used: {unused}", 1)
    return values


def _read_entry(entry: Any, number: int) -> EntryValues:
    if not find_prompt(entry):
        raise EvalError(f"case {number} has no prompt", 'Write "prompt" or "query" with what the user says')
    return _validate(EntryValues, entry)


def _validate(model: type[Values], value: Mapping[str, Any]) -> Values:
    try:
        return model.model_validate(value)
    except ValidationError as fault:
        [error, *_] = fault.errors()
        key = str(error["loc"][0])
        verb = "has" if len(error["loc"]) > 1 else "is"
        raise EvalError(f"{key} {verb} {show_value(error['input'])}", explain_expected(error)) from None


def _with_lines(entries: list[Any], text: str) -> Iterator[tuple[Any, int]]:
    """Yield each entry with the line of its prompt, or of any other text in it: `json` does not keep lines."""
    position = 0
    for entry in entries:
        if isinstance(entry, dict):
            texts = [find_prompt(entry), *(value for value in entry.values() if isinstance(value, str))]
            position = _find_text(text, texts, position)
        yield entry, text.count("\n", 0, position) + 1


def _find_text(text: str, wanted: list[str], start: int) -> int:
    """Return where the first of these strings stands in a JSON text; `start` if none does."""
    for string in wanted:
        if not string:
            continue
        for ensure_ascii in (False, True):
            position = text.find(json.dumps(string, ensure_ascii=ensure_ascii), start)
            if position >= 0:
                return position
    return start
