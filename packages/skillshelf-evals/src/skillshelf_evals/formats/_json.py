"""Cases in the JSON of other tools: `evals.json`, and trigger sets.

    {"skill_name": "pdf", "evals": [{"prompt": "…", "files": ["evals/files/form.pdf"], "expectations": ["…"]}]}
    [{"question": "…", "ground_truth": "…", "expected_skill": "pdf", "expected_script": "scripts/fill.py"}]
    [{"query": "…", "should_trigger": true}]
    {"should_trigger": ["…"], "should_not_trigger": ["…"]}

Each field becomes a check, or a note that it is not checked.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from skillshelf.errors import EvalError
from skillshelf.skills import Diagnostic
from skillshelf.text import closest_names, count_noun, truncate
from skillshelf_evals._case import Case, Message, digest_text
from skillshelf_evals._folders import EVALS_FOLDER, check_workspace_path, is_named, is_skill, skill_name
from skillshelf_evals._text import explain_expected, list_items, show_value
from skillshelf_evals.check import Check, command_run, file_exists, judge, reference_loaded, skill_loaded, trigger
from skillshelf_evals.formats._document import read_text
from skillshelf_evals.formats._home import FileContent, Home, check_size, copy_from, find_skills_below
from skillshelf_evals.formats._json_values import (
    SENTENCE_LISTS,
    EntryValues,
    FileValues,
    ForeignModel,
    find_prompt,
    list_entries,
    list_parts,
)

_HOW_TO_NAME_THE_SKILL = "Put the file in the skill's folder evals/, or name the skill with --skill"
_MIN_TYPO_SIMILARITY = 0.85
MAX_FIELDS_LISTED = 40
_MAX_FOLDERS_ABOVE = 4
"""How many folders above a file its skill is searched for."""
# Not `ground_truth`: data sets of questions and answers, which are not cases, have it as well.
_CHECK_KEYS = {"should_trigger", "expected_output", "expected_skill", *SENTENCE_LISTS}
Values = TypeVar("Values", bound=ForeignModel)


class NearbySkills:
    """The skills around a case file, searched for once for all of its cases."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._folders: dict[str, str] = {}

    def find(self, name: str) -> str:
        """Return the folder of the nearest skill of this name; empty if there is none."""
        if name not in self._folders:
            self._folders[name] = self._search(name)
        return self._folders[name]

    def _search(self, name: str) -> str:
        if os.path.basename(name) != name:  # a path could lead anywhere
            return ""
        above = self._home.folder or self._home.base
        for _ in range(_MAX_FOLDERS_ABOVE):
            for folder in (above, os.path.join(above, name), os.path.join(above, "skills", name)):
                if is_skill(folder) and is_named(folder, name):
                    return folder
            above = os.path.dirname(above)

        return next((folder for folder in self.of_repository if is_named(folder, name)), "")

    @cached_property
    def of_repository(self) -> list[str]:
        """The skills below the folder whose `evals/` holds the file, or in the `skills/` of a plugin beside the file.

        There are none if the file belongs to a skill.
        """
        if self._home.folder:
            return []
        base = self._home.base
        if os.path.basename(base) == EVALS_FOLDER:
            return find_skills_below(os.path.dirname(base))
        return find_skills_below(os.path.join(base, "skills"))


class JsonFile:
    """What the cases of a file have in common, and what is to be said about them."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.nearby = NearbySkills(home)
        self.shared = FileValues()
        self.unchecked: Counter[str] = Counter()
        """The fields that no check uses, each with the number of cases that have it."""
        self._remarks: dict[str, int] = {}
        """Sentences about the cases, each with the line of the first case it is about."""

    def add_remark(self, text: str, line: int) -> None:
        self._remarks.setdefault(text, line)

    def make_notes(self) -> list[Diagnostic]:
        path = self.home.path
        notes = [Diagnostic("info", "case-note", text, path, line) for text, line in self._remarks.items()]
        if self.unchecked:
            listed = [f"{key} ({count_noun(count, 'case')})" for key, count in self.unchecked.items()]
            message = f"no check uses these fields: {list_items(listed, MAX_FIELDS_LISTED)}"
            notes.append(Diagnostic("info", "case-note", message, path, 1, self._suggest()))
        return notes

    def _suggest(self) -> str:
        known = list(EntryValues.model_fields)
        for key in sorted(self.unchecked.keys() - set(known)):
            suggestions = closest_names(key, known, limit=1, min_similarity=_MIN_TYPO_SIMILARITY)
            if suggestions:
                return f"If {key!r} is a typo, write {suggestions[0]!r}"
        return ""


class EntryReader:
    """Turns one entry of a file into a case."""

    def __init__(self, values: EntryValues, line: int, file: JsonFile) -> None:
        self._values = values
        self._line = line
        self._file = file
        self._nearby = file.nearby
        named = values.skills or file.shared.skills
        self._named_skill = values.skill or file.shared.skill or (named[0] if named else "")
        self._home = self._find_home(file.home)
        self._folders = [self._home.folder] if self._home.folder else []
        self._add_companions(named)

    def read_case(self) -> Case:
        """Return the case. Raises EvalError if it cannot be used."""
        values = self._values
        home = self._home
        should_trigger = self._find_should_trigger()
        case = Case(
            name=self._make_name(),
            is_named=bool(self._given_name),
            turns=(Message(values.prompt),),
            checks=tuple(self._read_checks(should_trigger)),
            skill=home.skill,
            should_trigger=should_trigger,
            files=self._read_files(),
            skills=tuple(dict.fromkeys(self._folders)),
            tags=(*values.tags, *values.category),
            location=f"{home.path}:{self._line}",
        )
        if values.expected_references:
            home.check_subjects(case)
        self._note_unknown()
        return case

    # -- the skill ----------------------------------------------------------------------------------------------------

    def _find_home(self, home: Home) -> Home:
        """Return the home of the case: the skill it is in, or the nearest one that it names. Raises EvalError."""
        named = self._named_skill
        if home.skill:
            if named and named not in self._values.skills and not is_named(home.folder, named):
                self._remark(f"the case names the skill {named!r:.80}, but is about {home.skill!r}")
            return home

        for name in [named] if named else self._values.expected_skill:
            folder = self._nearby.find(name)
            if folder:
                return home.with_skill(folder)
        if named:
            raise EvalError(f"the skill {named!r:.60} is not found near the file", _HOW_TO_NAME_THE_SKILL)
        if len(self._nearby.of_repository) == 1:
            return home.with_skill(self._nearby.of_repository[0])
        return home

    def _add_companions(self, names: Sequence[str]) -> None:
        """Put the other skills that the case names on its shelf."""
        for name in names:
            if self._is_under_test(name):
                continue
            folder = self._nearby.find(name)
            if folder:
                self._folders.append(folder)
            else:
                self._remark(f"the skill {name!r:.80} is not found near the file, so it is not on the shelf")

    def _find_should_trigger(self) -> bool | None:
        """Return whether the skill under test should be loaded. Raises EvalError if that skill is not known."""
        values = self._values
        should_trigger = values.should_trigger
        if should_trigger is None and values.names_expected_skill:
            should_trigger = self._is_skill_expected()
        if should_trigger is not None and not self._home.skill:
            raise EvalError("it is not known which skill should trigger", _HOW_TO_NAME_THE_SKILL)
        return should_trigger

    def _is_skill_expected(self) -> bool | None:
        """True if the skill under test is expected, False if none or others are, None if the names tell nothing."""
        names = self._values.expected_skill
        if any(self._is_under_test(name) for name in names):
            return True
        if all(self._nearby.find(name) for name in names):
            return False
        return None  # a skill that is not there may be this one under an earlier name

    def _is_under_test(self, name: str) -> bool:
        return bool(self._home.folder) and is_named(self._home.folder, name)

    # -- checks -------------------------------------------------------------------------------------------------------

    def _read_checks(self, should_trigger: bool | None) -> list[Check]:
        values = self._values
        checks = [*trigger(self._home.skill, should_trigger), *self._check_expected_skills(should_trigger)]
        checks += [command_run(posixpath.basename(path.rstrip("/")) or path) for path in values.expected_script]
        checks += [self._check_reference(reference) for reference in values.expected_references]
        checks += [file_exists(path) for path in values.required_artifacts]
        checks += [judge(sentence.text) for sentence in values.sentences]
        checks += [~judge(f"The assistant did this: {sentence.text}") for sentence in values.must_not]
        if values.ground_truth.strip():
            checks.append(judge(f"The answer agrees with this reference answer: {values.ground_truth}"))
        if values.expected_output.strip():
            # Sentences say the same in a form that can be judged.
            if values.sentences or values.ground_truth.strip():
                self._file.unchecked["expected_output"] += 1
            else:
                checks.append(judge(f"The outcome is as described here: {values.expected_output}"))

        if not checks:
            fix = 'Write "expectations": sentences that can be answered with yes or no'
            raise EvalError("the case checks nothing", fix)
        return checks

    def _check_expected_skills(self, should_trigger: bool | None) -> Iterator[Check]:
        """Yield the checks of other skills than the one under test, which join it on the shelf."""
        for name in self._values.expected_skill:
            if self._is_under_test(name):
                if should_trigger is False:
                    self._remark(f"expected_skill is {name!r:.60}, but should_trigger is false, and counts")
                continue
            folder = self._nearby.find(name)
            if folder:
                self._folders.append(folder)
                yield skill_loaded(skill_name(folder))
            else:
                self._remark(
                    f"the skill {name!r:.80} is not found near the file, so whether it is loaded is not checked"
                )

    def _check_reference(self, reference: str) -> Check:
        if not self._home.skill:
            raise EvalError("it is not known which skill has the expected references", _HOW_TO_NAME_THE_SKILL)
        return reference_loaded(self._home.skill, reference)

    # -- the rest -----------------------------------------------------------------------------------------------------

    @property
    def _given_name(self) -> str:
        for given in (self._values.name, self._values.id):
            if isinstance(given, str) and given.strip():
                return given
        return ""

    def _make_name(self) -> str:
        """Return the entry's name; else its number, or a digest of the prompt, which other entries cannot change."""
        if self._given_name:
            return self._given_name
        values = self._values
        stem = os.path.splitext(os.path.basename(self._home.path))[0]
        if type(values.id) is int:
            return f"{stem} {values.id}"
        if not values.files:
            return f"{stem} {digest_text(values.prompt)}"
        return f"{stem} {digest_text(json.dumps([values.prompt, values.files]))}"

    def _read_files(self) -> Mapping[str, bytes]:
        files: dict[str, bytes] = {}
        for path in self._values.files:
            files |= _copy_file(self._home, path.removesuffix("/"))
        return check_size(files)

    def _note_unknown(self) -> None:
        values = self._values
        self._file.unchecked.update(values.unknown)
        for key in (*SENTENCE_LISTS, "must_not"):
            unknown = {name for sentence in getattr(values, key) for name in sentence.unknown}
            self._file.unchecked.update(f"{key}[].{name}" for name in sorted(unknown))

    def _remark(self, text: str) -> None:
        self._file.add_remark(text, self._line)


def _copy_file(home: Home, path: str) -> Mapping[str, bytes]:
    """Read a file or folder by its path from the skill's folder, as the format says, or from the file's own."""
    check_workspace_path(path)
    for place in _list_places(home):
        if os.path.exists(os.path.join(place.base, path)):
            return copy_from(place.root, place.base, path, path)
    raise EvalError(f"there is no file {path!r:.60}", f"Paths are relative to {home.folder or home.base}")


class _JsonPlace(NamedTuple):
    """A folder that paths may be relative to, and the folder that they may not leave."""

    base: str
    root: str


def _list_places(home: Home) -> Iterator[_JsonPlace]:
    if home.folder:
        yield _JsonPlace(home.folder, home.folder)
    yield _JsonPlace(home.base, home.root)
    if home.is_apart and os.path.basename(home.base) == EVALS_FOLDER:
        yield _JsonPlace(os.path.dirname(home.base), home.base)  # `evals/files/form.pdf`, as in a skill


def read_json(home: Home) -> FileContent:
    """Return the cases of a file, the faults in those that cannot be used, and notes on unused fields.

    Raises EvalError if nothing of the file can be read.
    """
    text = read_text(home.path)
    document = _parse(text, home.path)
    entries = list_entries(document)
    if entries is None:
        raise EvalError("it has no cases", 'Write {"evals": [{"prompt": …, "expectations": […]}]}', home.path, 1)

    file = JsonFile(home)
    file.shared = _read_shared(document, file)
    content = FileContent()
    for number, (entry, line) in enumerate(_with_lines(entries, text), 1):
        try:
            reader = EntryReader(_read_entry(entry, number), line, file)
            content.cases.append(reader.read_case())
        except EvalError as fault:
            content.add_fault(fault, home.path, line)

    content.notes += file.make_notes()
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
        raise EvalError(f"it cannot be read as JSON: {truncate(str(error), 80)}", path=path, line=1) from None


def _read_shared(document: Any, file: JsonFile) -> FileValues:
    """Return what the file says about all of its cases. A document that is itself a case says nothing else."""
    parts = list_parts(document) if isinstance(document, Mapping) else {}
    if not parts or not isinstance(document, Mapping):
        return FileValues()
    try:
        values = _validate(FileValues, {key: value for key, value in document.items() if key not in parts})
    except EvalError as fault:
        raise EvalError(fault.problem, fault.fix, file.home.path, 1) from None
    if values.unknown:
        unused = list_items(values.unknown, MAX_FIELDS_LISTED)
        file.add_remark(f"these fields of the file are not used: {unused}", 1)
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
