"""Where cases are: in the skills' own `evals/` folders, in a suite's folder, or in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from skillshelf.descriptor import Diagnostic, Severity
from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Edit
from skillshelf.evals._folders import is_skill
from skillshelf.evals.formats import _legacy as legacy
from skillshelf.evals.formats import _python as python
from skillshelf.evals.formats import _yaml as yaml
from skillshelf.evals.formats._fields import Home, Listing, home_of
from skillshelf.sources import SKILL_FILES, SKIPPED_FOLDERS


class _Format(NamedTuple):
    read: Callable[[Home], tuple[list[Case], list[EvalError]]]
    holds_cases: Callable[..., bool]


_YAML = _Format(yaml.read_yaml, yaml.holds_cases)
# Python first: a check that a module registers is there for the files beside it.
_FORMATS = {
    ".py": _Format(python.read_python, python.holds_cases),
    ".yaml": _YAML,
    ".yml": _YAML,
    ".json": _Format(legacy.read_legacy, legacy.holds_cases),
}
_ORDER = list(_FORMATS)
_Place = Literal["named", "evals", "beside", "stray"]
"""Where a file was found: by its name, in the `evals/` of a skill or a suite, beside them, in one without a skill."""


def find_cases(paths: Iterable[str | os.PathLike[str]]) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """Return the cases of files and folders, and the faults in what was written as one.

    Of a folder: its own files of cases, and those in every `evals/` below it. Files of Python are run, and code skills
    imported: a program that passes a folder trusts it. Raises EvalError for a path that does not exist.
    """
    return _find(paths, None)


def list_cases(paths: Iterable[str | os.PathLike[str]]) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """Return the same cases without running or importing anything of theirs, to be shown and not to be run.

    In files of Python, a value that is computed reads "not evaluated". Raises EvalError for a path that does not exist.
    """
    return _find(paths, Listing())


def case_files(paths: Iterable[str | os.PathLike[str]]) -> Iterator[str]:
    """Yield the files that `find_cases` reads. Raises EvalError for a path that does not exist."""
    for path, place in _unique(paths):
        kind = _FORMATS.get(os.path.splitext(path)[1].lower())
        try:
            if kind and (place == "named" or _is_meant(path, place, kind)):
                yield path
        except EvalError:  # a file that cannot be parsed now may be mended before it is run
            yield path


def case_folder(path: str) -> str:
    """Return the real folder that the user approves before a file of cases is run.

    It is the skill whose `evals/` holds the file, or the suite's `evals/`, or else the folder that the file lies in:
    cases take fixtures from there, and Python imports helpers.
    """
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.basename(folder) != "evals":
        return folder
    owner = os.path.dirname(folder)
    return owner if is_skill(owner) else folder


def _find(
    paths: Iterable[str | os.PathLike[str]], listing: Listing | None
) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    cases: dict[str, Case] = {}
    faults: list[Diagnostic] = []
    for path, place in _unique(paths):
        read, found = _read(path, place, listing)
        faults += found
        for case in read:
            first = cases.setdefault(case.id, case)
            if first is not case:
                faults.append(_twice(case, first))
    return tuple(cases.values()), tuple(faults)


def _unique(paths: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[str, _Place]]:
    """The files, each once."""
    seen = set()
    for one in paths:
        given = os.fspath(one)
        if not os.path.exists(given):
            raise EvalError(f"there is no {given}", "Give a file of cases, a skill, or a folder of skills")
        for path, place in _files(given):
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                yield path, place


def _files(folder: str) -> Iterator[tuple[str, _Place]]:
    if not os.path.isdir(folder):
        yield folder, "named"
        return
    if os.path.basename(os.path.abspath(folder)) == "evals":
        yield from ((path, "evals") for path in _case_files(folder))
        return
    if not is_skill(folder):
        yield from ((path, "beside") for path in _case_files(folder))
    for path, below, _ in os.walk(folder):
        below[:] = sorted(name for name in below if name not in SKIPPED_FOLDERS)
        at_home = path == folder or is_skill(path)
        if "evals" in below:
            place: _Place = "evals" if at_home else "stray"
            yield from ((file, place) for file in _case_files(os.path.join(path, "evals")))
            below.remove("evals")  # what lies deeper are fixtures
        if is_skill(path):  # a skill inside another is none
            below.clear()


def _case_files(folder: str) -> list[str]:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    kinds = [(name, os.path.splitext(name)[1].lower()) for name in names if not name.startswith((".", "_"))]
    known = sorted((_ORDER.index(kind), name) for name, kind in kinds if kind in _FORMATS)
    return [path for _, name in known if os.path.isfile(path := os.path.join(folder, name))]


def _read(path: str, place: _Place, listing: Listing | None) -> tuple[list[Case], list[Diagnostic]]:
    kind = _FORMATS.get(os.path.splitext(path)[1].lower())
    try:
        if kind is None:
            raise EvalError("it is no file of cases", f"Their names end in {', '.join(_FORMATS)}", path)
        if place != "named" and not _is_meant(path, place, kind):
            # Results and graders lie there as a rule; a YAML file without `cases:` is more likely a slip.
            severity: Severity = "warning" if kind is _YAML else "info"
            return [], [_left_alone(severity, path)] if place == "evals" else []
        home = home_of(path, listing)
        cases, faults = kind.read(home)
        if not home.folder and _in_evals(path) and _are_astray(cases, place):
            return [], [_stray(path), *map(_diagnostic, faults)]
        return cases, [_diagnostic(fault) for fault in faults] or ([] if cases else [_left_alone("warning", path)])
    except EvalError as fault:
        return [], [_diagnostic(fault)]


def _is_meant(path: str, place: _Place, kind: _Format) -> bool:
    """Whether a file that was found is one of cases. Elsewhere than in `evals/`, any file may lie, broken ones too."""
    if place == "evals" and os.path.basename(path) == "evals.json":
        return True
    try:
        return kind.holds_cases(path, anywhere=place != "evals")
    except EvalError:
        if place == "evals":
            raise
        return False


def _in_evals(path: str) -> bool:
    return os.path.basename(os.path.dirname(os.path.abspath(path))) == "evals"


def _are_astray(cases: Sequence[Case], place: _Place) -> bool:
    """Cases that have no skill to be about. What none could be read of below a folder was meant for one, too."""
    return not all(map(_has_skill, cases)) or (place == "stray" and not cases)


def _has_skill(case: Case) -> bool:
    written = [*case.files, *(turn.path for turn in case.turns if isinstance(turn, Edit))]
    return bool(case.skills or case.code_skills) or any(path.endswith(SKILL_FILES) for path in written)


def _stray(path: str) -> Diagnostic:
    home = os.path.dirname(os.path.dirname(path)) or "this folder"
    message = f"these cases belong to no skill: there is no SKILL.md in {home}"
    fix = "Put it back, or name the skills with `skills:` or `code_skills:`"
    return Diagnostic("error", "case-invalid", message, path, 1, fix)


def _left_alone(severity: Severity, path: str) -> Diagnostic:
    return Diagnostic(severity, "no-cases", "the file has no cases; it is left alone", path)


def _diagnostic(fault: EvalError) -> Diagnostic:
    return Diagnostic("error", "case-invalid", fault.problem, fault.path, fault.line, fault.fix)


def _twice(case: Case, first: Case) -> Diagnostic:
    path, _, line = case.location.rpartition(":")
    message = f"there is a case {case.id!r} already, at {first.location}"
    return Diagnostic("error", "case-twice", message, path, int(line) if line.isdecimal() else 0, "Rename one of them")
