"""Finding cases: in the skills' own `evals/` folders, in the folder of a suite, or in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from skillshelf.errors import EvalError
from skillshelf.skills import Diagnostic, Severity
from skillshelf.sources import SKILL_FILES
from skillshelf_evals._case import Case, Edit, Message
from skillshelf_evals._folders import EVALS_FOLDER, is_skill, skills_in, walk_folders
from skillshelf_evals.formats import _json, _python, _yaml
from skillshelf_evals.formats._home import CaseListing, FileContent, Home, find_home, note_fault

Paths = Iterable[str | os.PathLike[str]]


class _Format(NamedTuple):
    read: Callable[[Home], FileContent]
    holds_cases: Callable[..., bool]


_YAML = _Format(_yaml.read_yaml, _yaml.holds_cases)
# Python first: the files beside a module may use the checks that it registers.
_FORMATS = {
    ".py": _Format(_python.read_python, _python.holds_cases),
    ".yaml": _YAML,
    ".yml": _YAML,
    ".json": _Format(_json.read_json, _json.holds_cases),
}
_READING_ORDER = list(_FORMATS)
_EVALS_FILE = "evals.json"

_FoundIn = Literal["named", "evals", "beside", "stray"]
"""How a file was found: named by the user, in the `evals/` of a skill or suite, beside the skills of a suite, or in an
`evals/` without a skill."""


class _CaseFile(NamedTuple):
    path: str
    found_in: _FoundIn

    @property
    def format(self) -> _Format | None:
        return _FORMATS.get(_extension(self.path))


def find_cases(
    paths: Paths, *, skill_folder: str | os.PathLike[str] = ""
) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """Return the cases of files and folders, and the faults in the files.

    A folder has its own case files, those in every `evals/` below it, and the `evals.json` of each plugin below it, a
    folder with `skills/`. Files that are not in the `evals/` of a skill are about the skill in `skill_folder`, if it is
    given. Python files are run, and code skills are imported: a program that passes a folder trusts it. Raises
    EvalError for a path that does not exist.
    """
    return _find(paths, None, skill_folder)


def list_cases(
    paths: Paths, *, skill_folder: str | os.PathLike[str] = ""
) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """Return the same cases without running or importing anything of theirs, to be shown and not to be run.

    In Python files, a value that is computed reads "not evaluated". Raises EvalError for a path that does not exist.
    """
    return _find(paths, CaseListing(), skill_folder)


def find_case_files(paths: Paths) -> Iterator[str]:
    """Yield the files that `find_cases` reads. Raises EvalError for a path that does not exist."""
    for file in _find_files(paths):
        if file.format is None:
            continue
        try:
            if file.found_in == "named" or _is_meant(file, file.format):
                yield file.path
        except EvalError:  # a file that cannot be parsed now may be corrected before it is run
            yield file.path


def find_folder_to_approve(path: str) -> str:
    """Return the real folder that the user approves before a case file is run.

    It is the skill whose `evals/` holds the file, or the suite's `evals/`, or else the folder that the file is in:
    cases take fixtures from there, and Python imports helpers.
    """
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.basename(folder) != EVALS_FOLDER:
        return folder
    owner = os.path.dirname(folder)
    return owner if is_skill(owner) else folder


def find_folders(root: str) -> list[str]:
    """Return the folders below a root that the user approves before their cases run."""
    return list(dict.fromkeys(find_folder_to_approve(path) for path in find_case_files([root])))


def find_queries(folder: str) -> list[str]:
    """Return the first messages of the cases in a skill's folder for which the skill should trigger."""
    cases, _ = list_cases([folder])  # `skillshelf eval list` reports the faults
    first = [case.turns[0] for case in cases if case.should_trigger and case.turns]
    return [turn.text for turn in first if isinstance(turn, Message)]


def find_skill_folders(cases: Iterable[Case]) -> list[str]:
    """Return the real folders of the skills on the shelves of cases. Skills steer the agent, so users approve them."""
    shelves = dict.fromkeys(folder for case in cases for folder in case.skills)
    skills: dict[str, None] = {}
    for shelf in shelves:
        for folder in skills_in(shelf):
            if is_skill(folder):
                skills[os.path.realpath(folder)] = None
    return list(skills)


def _find(
    paths: Paths, listing: CaseListing | None, skill_folder: str | os.PathLike[str]
) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    cases: dict[str, Case] = {}
    notes: list[Diagnostic] = []
    for file in _find_files(paths):
        content = _read(file, listing, os.fspath(skill_folder))
        notes += content.notes
        for case in content.cases:
            first = cases.setdefault(case.id, case)
            if first is not case:
                notes.append(_note_duplicate(case, first))

    return tuple(cases.values()), tuple(notes)


def _find_files(paths: Paths) -> Iterator[_CaseFile]:
    """Yield the files that may hold cases, each once."""
    known = set()
    for given in paths:
        path = os.fspath(given)
        if not os.path.exists(path):
            raise EvalError(f"there is no {path}", "Give a case file, a skill, or a folder of skills")
        for file in _find_files_below(path):
            real_path = os.path.realpath(file.path)
            if real_path not in known:
                known.add(real_path)
                yield file


def _find_files_below(top: str) -> Iterator[_CaseFile]:
    if not os.path.isdir(top):
        yield _CaseFile(top, "named")
        return
    if os.path.basename(os.path.abspath(top)) == EVALS_FOLDER:
        yield from _list_files(top, "evals")
        return
    if not is_skill(top):
        yield from _list_files(top, "beside")

    for folder, below in walk_folders(top):
        is_plugin = "skills" in below and not is_skill(folder)
        if is_plugin and folder != top and os.path.isfile(os.path.join(folder, _EVALS_FILE)):
            yield _CaseFile(os.path.join(folder, _EVALS_FILE), "beside")
        if EVALS_FOLDER in below:
            has_owner = folder == top or is_skill(folder) or is_plugin
            yield from _list_files(os.path.join(folder, EVALS_FOLDER), "evals" if has_owner else "stray")
            below.remove(EVALS_FOLDER)  # anything deeper is a fixture


def _list_files(folder: str, found_in: _FoundIn) -> Iterator[_CaseFile]:
    if not os.path.isdir(folder):
        return
    names = [name for name in os.listdir(folder) if not name.startswith((".", "_")) and _extension(name) in _FORMATS]
    names.sort(key=lambda name: (_READING_ORDER.index(_extension(name)), name))
    for name in names:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            yield _CaseFile(path, found_in)


def _extension(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _read(file: _CaseFile, listing: CaseListing | None, skill_folder: str) -> FileContent:
    try:
        if file.format is None:
            raise EvalError("it is not a case file", f"Their names end in {', '.join(_FORMATS)}", file.path)
        if file.found_in != "named" and not _is_meant(file, file.format):
            # Results and graders are often there. A YAML file without `cases:` is more likely a slip.
            severity: Severity = "warning" if file.format is _YAML else "info"
            return FileContent(notes=[_note_no_cases(severity, file.path)] if file.found_in == "evals" else [])

        home = find_home(file.path, listing, skill_folder)
        content = file.format.read(home)
    except EvalError as fault:
        return FileContent(notes=[note_fault(fault)])

    in_evals = os.path.basename(home.base) == EVALS_FOLDER
    if in_evals and not home.folder and _lack_skill(content.cases, file.found_in):
        return FileContent(notes=[_note_stray(file.path), *content.notes])
    if not content.cases and not content.notes:
        content.notes.append(_note_no_cases("warning", file.path))
    return content


def _is_meant(file: _CaseFile, file_format: _Format) -> bool:
    """True if a file is meant to hold cases. Outside `evals/` a file may be anything, even broken."""
    in_evals = file.found_in == "evals"
    if in_evals and os.path.basename(file.path) == _EVALS_FILE:
        return True
    try:
        return file_format.holds_cases(file.path, anywhere=not in_evals)
    except EvalError:
        if in_evals:
            raise
        return False


def _lack_skill(cases: Sequence[Case], found_in: _FoundIn) -> bool:
    """True if cases have no skill to be about. A stray file whose cases are all faulty was meant for a skill too."""
    if not cases:
        return found_in == "stray"
    return not all(_has_skill(case) for case in cases)


def _has_skill(case: Case) -> bool:
    if case.skills or case.code_skills:
        return True
    edited = [turn.path for turn in case.turns if isinstance(turn, Edit)]
    return any(path.endswith(SKILL_FILES) for path in (*case.files, *edited))


def _note_stray(path: str) -> Diagnostic:
    owner = os.path.dirname(os.path.dirname(path)) or "this folder"
    message = f"these cases belong to no skill: there is no SKILL.md in {owner}"
    fix = "Put it back, or name the skills with `skills:` or `code_skills:`"
    return Diagnostic("error", "case-invalid", message, path, 1, fix)


def _note_no_cases(severity: Severity, path: str) -> Diagnostic:
    return Diagnostic(severity, "no-cases", "the file has no cases and is ignored", path)


def _note_duplicate(case: Case, first: Case) -> Diagnostic:
    path, _, line = case.location.rpartition(":")
    number = int(line) if line.isdecimal() else 0
    if _is_same(case, first):
        message = f"this case is also at {first.location}; it is run once"
        return Diagnostic("warning", "case-twice", message, path, number, "Remove one of them")
    message = f"there is a case {case.id!r} already, at {first.location}"
    return Diagnostic("error", "case-twice", message, path, number, "Rename one of them")


def _is_same(case: Case, other: Case) -> bool:
    """True if two cases ask and expect the same, so that leaving one out loses nothing."""
    if case.is_named or case.should_trigger != other.should_trigger:
        return False
    has_same_checks = [check.name for check in case.checks] == [check.name for check in other.checks]
    return has_same_checks and case.turns == other.turns and case.files == other.files
