"""Cases in the JSON of other tools: `evals.json`, and trigger sets.

`{"skill_name": …, "evals": [{"prompt", "expected_output", "files", "assertions" | "expectations"}]}`: each sentence
becomes a `judge` check; without any, `expected_output` does. `[{"query", "should_trigger"}]`: whether the skill is
loaded. Unknown keys are ignored: they belong to those tools.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Message, digest_text
from skillshelf.evals._folders import check_workspace_path, is_skill, resolve_inside, skill_name
from skillshelf.evals.check import Check, judge, trigger
from skillshelf.evals.formats._document import read_bytes, read_text
from skillshelf.evals.formats._home import MAX_WORKSPACE, Home, check_size

_LIST_KEYS = ("evals", "cases", "queries")
_PROMPT_KEYS = ("prompt", "query", "input")
_SENTENCES_KEYS = ("assertions", "expectations", "expected_behavior")
_CHECK_KEYS = {"should_trigger", "expected_output", *_SENTENCES_KEYS}
_SENTENCE_KEYS = ("text", "assertion", "expectation", "description", "criterion", "name")
MAX_FOLDERS_ABOVE = 4
"""How many folders above a file its skill is searched for."""


def read_json(home: Home) -> tuple[list[Case], list[EvalError]]:
    """Return the cases of a file, and the faults in those that cannot be used.

    Raises EvalError if nothing of the file can be read.
    """
    text = read_text(home.path)
    value = _parse(text, home.path)
    entries = _find_entries(value)
    if entries is None:
        raise EvalError("it has no cases", 'Write {"evals": [{"prompt": …, "expectations": […]}]}', home.path, 1)

    file_skill = str(value.get("skill_name") or "") if isinstance(value, dict) else ""
    cases = []
    faults = []
    for number, (entry, line) in enumerate(_with_lines(entries, text), 1):
        try:
            entry_home = _find_skill_home(home, _skill_of(entry) or file_skill)
            cases.append(_read_case(entry, number, line, entry_home))
        except EvalError as fault:
            faults.append(EvalError(fault.problem, fault.fix, home.path, line))

    return cases, faults


def holds_cases(path: str, *, anywhere: bool) -> bool:
    """True if a JSON file holds cases: results and schemas may lie beside it; `anywhere`, files of all kinds."""
    entries = _find_entries(_parse(read_text(path), path)) or []
    for entry in entries:
        if not isinstance(entry, dict):
            continue
        prompt = _prompt_of(entry)
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
    except (RecursionError, ValueError) as error:
        raise EvalError(f"it is not JSON: {type(error).__name__}", path=path, line=1) from None


def _find_entries(value: Any) -> list[Any] | None:
    """Return the list of cases; None if the value is not a file of cases."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    for key in _LIST_KEYS:
        entries = value.get(key)
        if isinstance(entries, list):
            return entries

    return [value] if _prompt_of(value) else None


def _with_lines(entries: list[Any], text: str) -> Iterator[tuple[Any, int]]:
    """Yield each entry with the line of its prompt, or of any other text in it: `json` does not keep lines."""
    position = 0
    for entry in entries:
        if isinstance(entry, dict):
            texts = [_prompt_of(entry), *(value for value in entry.values() if isinstance(value, str))]
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


def _prompt_of(entry: Mapping[str, Any]) -> str:
    for key in _PROMPT_KEYS:
        prompt = entry.get(key)
        if isinstance(prompt, str) and prompt.strip():
            return prompt
    return ""


def _skill_of(entry: Any) -> str:
    """Return the skill that an entry names itself."""
    if not isinstance(entry, dict):
        return ""
    skill = entry.get("skill") or entry.get("skill_name") or entry.get("skills")
    if isinstance(skill, list) and skill:
        skill = skill[0]
    return skill if isinstance(skill, str) else ""


def _find_skill_home(home: Home, name: str) -> Home:
    """Return the home of cases for a skill: the one they lie in, or the nearest one of this name. Raises EvalError."""
    if home.skill or not name:
        return home
    above = home.base
    for _ in range(MAX_FOLDERS_ABOVE):
        for folder in (above, os.path.join(above, name), os.path.join(above, "skills", name)):
            if is_skill(folder) and name in (skill_name(folder), os.path.basename(folder)):
                return Home(home.path, skill_name(folder), folder)
        above = os.path.dirname(above)

    raise EvalError(f"the skill {name!r:.60} is not found near the file", "Put the file in the skill's folder evals/")


def _read_case(entry: Any, number: int, line: int, home: Home) -> Case:
    prompt = _prompt_of(entry) if isinstance(entry, dict) else ""
    if not prompt:
        raise EvalError(f"case {number} has no prompt", 'Write "prompt" or "query" with what the user says')
    should_trigger = entry.get("should_trigger")
    if should_trigger is not None and not isinstance(should_trigger, bool):
        raise EvalError(f"should_trigger is {should_trigger!r:.60}", "It must be true or false")
    if should_trigger is not None and not home.skill:
        raise EvalError("it is not known which skill should trigger", "Put the file in the skill's folder evals/")
    return Case(
        name=_name_of(entry, prompt, home),
        is_named=bool(_given_name(entry)),
        turns=(Message(prompt),),
        checks=tuple(_read_checks(entry, should_trigger, home.skill)),
        skill=home.skill,
        should_trigger=should_trigger,
        files=_read_files(entry, home),
        skills=(home.folder,) if home.folder else (),
        location=f"{home.path}:{line}",
    )


def _name_of(entry: Mapping[str, Any], prompt: str, home: Home) -> str:
    """Return the entry's name; else its number, or a digest of the prompt, which other entries cannot change."""
    name = _given_name(entry)
    if name:
        return name
    stem = os.path.splitext(os.path.basename(home.path))[0]
    number = entry.get("id")
    if type(number) is int:
        return f"{stem} {number}"
    if not entry.get("files"):
        return f"{stem} {digest_text(prompt)}"
    return f"{stem} {digest_text(json.dumps([prompt, entry['files']]))}"


def _given_name(entry: Mapping[str, Any]) -> str:
    for key in ("name", "id"):
        given = entry.get(key)
        if isinstance(given, str) and given.strip():
            return given
    return ""


def _read_checks(entry: Mapping[str, Any], should_trigger: bool | None, skill: str) -> Iterator[Check]:
    yield from trigger(skill, should_trigger)
    sentences = [sentence for key in _SENTENCES_KEYS for sentence in _read_sentences(entry.get(key), key)]
    for sentence in sentences:
        yield judge(sentence)
    if not sentences and should_trigger is None:
        expected = entry.get("expected_output")
        if not isinstance(expected, str) or not expected.strip():
            fix = 'Write "expectations": sentences that can be answered with yes or no'
            raise EvalError("the case checks nothing", fix)
        yield judge(f"The outcome is as described here: {expected}")


def _read_sentences(value: Any, key: str) -> Iterator[str]:
    if value is None:
        return
    for item in value if isinstance(value, list) else [value]:
        sentence = item
        if isinstance(item, dict):
            texts = [item[name] for name in _SENTENCE_KEYS if isinstance(item.get(name), str)]
            sentence = texts[0] if texts else ""
        if not isinstance(sentence, str) or not sentence.strip():
            raise EvalError(f"{key} has {item!r:.60}", "Each item must be a sentence")
        yield sentence


def _read_files(entry: Mapping[str, Any], home: Home) -> Mapping[str, bytes]:
    """Read files by paths from the skill's folder, as the format says, or from the file's own, as some write them."""
    paths = entry.get("files") or []
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise EvalError(f"files is {paths!r:.60}", "It must be a list of paths from the skill's folder")
    files = {}
    for path in paths:
        check_workspace_path(path)
        bases = [base for base in (home.root, home.base) if os.path.isfile(os.path.join(base, path))]
        if not bases:
            raise EvalError(f"there is no file {path!r:.60}", f"Paths are relative to {home.root}")
        files[path] = read_bytes(resolve_inside(home.root, bases[0], path), MAX_WORKSPACE)

    return check_size(files)
