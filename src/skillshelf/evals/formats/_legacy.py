"""The JSON that other tools write, as it is found: `evals.json`, and trigger sets.

`{"skill_name": …, "evals": [{"prompt", "expected_output", "files", "assertions" | "expectations"}]}`: each sentence
becomes a `judge` check; without any, `expected_output` does. `[{"query", "should_trigger"}]`: whether the skill is
loaded. Keys that are not known are left alone: they belong to those tools.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Message
from skillshelf.evals._folders import is_skill, skill_name
from skillshelf.evals._paths import inside, workspace_path
from skillshelf.evals.check import Check, judge, trigger
from skillshelf.evals.formats._document import read_bytes, read_text
from skillshelf.evals.formats._fields import MAX_WORKSPACE, Home, bounded

_LISTS = ("evals", "cases", "queries")
_SAID = ("prompt", "query", "input")
_SENTENCES = ("assertions", "expectations", "expected_behavior")
_CHECKED = {"should_trigger", "expected_output", *_SENTENCES}
_WORDS = ("text", "assertion", "expectation", "description", "criterion", "name")
_LEVELS = 4


def read_legacy(home: Home) -> tuple[list[Case], list[EvalError]]:
    """The cases of a file, and the faults in those that are none. Raises EvalError where nothing of it can be read."""
    text = read_text(home.path)
    value = _parse(text, home.path)
    entries = _entries(value)
    if entries is None:
        raise EvalError("it has no cases", 'Write {"evals": [{"prompt": …, "expectations": […]}]}', home.path, 1)
    named = str(value.get("skill_name") or "") if isinstance(value, dict) else ""
    cases, faults = [], []
    for number, (entry, line) in enumerate(_with_lines(entries, text), 1):
        try:
            cases.append(_case(entry, number, line, _at_home(home, _own(entry) or named)))
        except EvalError as fault:
            faults.append(EvalError(fault.problem, fault.fix, home.path, line))
    return cases, faults


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """Whether a JSON file is one of cases: results and schemas lie beside them; `anywhere`, files of all kinds."""
    entries = [one for one in _entries(_parse(read_text(path), path)) or () if isinstance(one, dict)]
    if anywhere:
        return any(_said(one) and _CHECKED & one.keys() for one in entries)
    return any(_said(one) or "should_trigger" in one for one in entries)


def _parse(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise EvalError(f"it is not JSON: {error.msg}", path=path, line=error.lineno) from None
    except (RecursionError, ValueError) as error:
        raise EvalError(f"it is not JSON: {type(error).__name__}", path=path, line=1) from None


def _entries(value: Any) -> list[Any] | None:
    found = value if isinstance(value, list) else None
    if isinstance(value, dict):
        found = next((value[key] for key in _LISTS if isinstance(value.get(key), list)), None)
        found = [value] if found is None and _said(value) else found
    return found


def _with_lines(entries: list[Any], text: str) -> Iterator[tuple[Any, int]]:
    """Each entry with the line of what is said in it; a reader of JSON does not tell."""
    at = 0
    for entry in entries:
        # The first text in it that is found: the one that is said, or any where that is what is missing.
        texts = [value for value in entry.values() if isinstance(value, str)] if isinstance(entry, dict) else []
        said = [_said(entry), *texts] if isinstance(entry, dict) else []
        written = [json.dumps(one, ensure_ascii=ascii) for one in said if one for ascii in (False, True)]
        places = [place for one in written if (place := text.find(one, at)) >= 0]
        at = places[0] if places else at
        yield entry, text.count("\n", 0, at) + 1


def _said(entry: Mapping[str, Any]) -> str:
    return next((entry[key] for key in _SAID if isinstance(entry.get(key), str) and entry[key].strip()), "")


def _own(entry: Any) -> str:
    """The skill that an entry names itself."""
    own = (entry.get("skill") or entry.get("skill_name") or entry.get("skills")) if isinstance(entry, dict) else None
    own = own[0] if isinstance(own, list) and own else own
    return own if isinstance(own, str) else ""


def _at_home(home: Home, named: str) -> Home:
    """The skill that the cases are for: the one whose folder they lie in, or the one of this name nearby."""
    if home.skill or not named:
        return home
    above = home.base
    for _ in range(_LEVELS):
        for folder in (above, os.path.join(above, named), os.path.join(above, "skills", named)):
            if is_skill(folder) and named in (skill_name(folder), os.path.basename(folder)):
                return Home(home.path, skill_name(folder), folder)
        above = os.path.dirname(above)
    raise EvalError(f"the skill {named!r:.60} is not found near the file", "Put the file in the skill's folder evals/")


def _case(entry: Any, number: int, line: int, home: Home) -> Case:
    said = _said(entry) if isinstance(entry, dict) else ""
    if not said:
        raise EvalError(f"case {number} has no prompt", 'Write "prompt" or "query" with what the person says')
    should = entry.get("should_trigger")
    if should is not None and not isinstance(should, bool):
        raise EvalError(f"should_trigger is {should!r:.60}", "It must be true or false")
    if should is not None and not home.skill:
        raise EvalError("it is not known which skill should trigger", "Put the file in the skill's folder evals/")
    return Case(
        _name(entry, number, said, home),
        (Message(said),),
        tuple(_checks(entry, should, home.skill)),
        home.skill,
        should,
        _files(entry, home),
        (home.folder,) if home.folder else (),
        location=f"{home.path}:{line}",
    )


def _name(entry: Mapping[str, Any], number: int, said: str, home: Home) -> str:
    """The name or id it has; else the file's and its number, which are the same in every run."""
    given = entry.get("name") or entry.get("id", "")
    stem = os.path.splitext(os.path.basename(home.path))[0]
    return given if isinstance(given, str) and given.strip() else f"{stem} {given if given != '' else number}"


def _checks(entry: Mapping[str, Any], should: bool | None, skill: str) -> Iterator[Check]:
    yield from trigger(skill, should)
    sentences = [sentence for key in _SENTENCES for sentence in _sentences(entry.get(key), key)]
    yield from (judge(sentence) for sentence in sentences)
    expected = entry.get("expected_output")
    if not sentences and should is None:
        if not isinstance(expected, str) or not expected.strip():
            raise EvalError("the case checks nothing", 'Write "expectations": sentences that can be said yes or no to')
        yield judge(f"The outcome is as described here: {expected}")


def _sentences(value: Any, key: str) -> Iterator[str]:
    if value is None:
        return
    for one in value if isinstance(value, list) else [value]:
        words = (
            next((one[key] for key in _WORDS if isinstance(one.get(key), str)), "") if isinstance(one, dict) else one
        )
        if not isinstance(words, str) or not words.strip():
            raise EvalError(f"{key} has {one!r:.60}", "Each is a sentence")
        yield words


def _files(entry: Mapping[str, Any], home: Home) -> Mapping[str, bytes]:
    """Paths from the skill's folder, as the format has it, or from the file's own, as some write them."""
    found = {}
    listed = entry.get("files") or []
    if not isinstance(listed, list) or not all(isinstance(path, str) for path in listed):
        raise EvalError(f"files is {listed!r:.60}", "It is a list of paths from the skill's folder")
    for path in map(workspace_path, listed):
        bases = [base for base in (home.root, home.base) if os.path.isfile(os.path.join(base, path))]
        if not bases:
            raise EvalError(f"there is no file {path!r:.60}", f"Paths are relative to {home.root}")
        found[path] = read_bytes(inside(home.root, bases[0], path), MAX_WORKSPACE)
    return bounded(found)
