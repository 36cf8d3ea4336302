"""Where cases are: in the skills' own `evals/` folders, in a suite's folder, or in a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from skillshelf.descriptor import Diagnostic, Severity
from skillshelf.errors import EvalError
from skillshelf.evals.case import Case
from skillshelf.evals.formats import legacy, python, yaml
from skillshelf.evals.formats.fields import Home, home_of, is_skill
from skillshelf.sources.names import SKIPPED_FOLDERS


class _Format(NamedTuple):
    read: Callable[[Home], tuple[list[Case], list[EvalError]]]
    holds_cases: Callable[[str], bool]


_YAML = _Format(yaml.read_yaml, yaml.holds_cases)
# Python first: a check that a module registers is there for the files beside it.
_FORMATS = {
    ".py": _Format(python.read_python, python.holds_cases),
    ".yaml": _YAML,
    ".yml": _YAML,
    ".json": _Format(legacy.read_legacy, legacy.holds_cases),
}
_ORDER = list(_FORMATS)


def find_cases(paths: Iterable[str | os.PathLike[str]]) -> tuple[tuple[Case, ...], tuple[Diagnostic, ...]]:
    """The cases of files and folders, and the faults in what was written as one.

    Of a folder: its `evals/` and those of the skills below it. Raises EvalError for a path that is none.
    """
    cases: dict[str, Case] = {}
    faults: list[Diagnostic] = []
    for path, named in _unique(paths):
        read, found = _read(path, named)
        faults += found
        for case in read:
            first = cases.setdefault(case.id, case)
            if first is not case:
                faults.append(_twice(case, first))
    return tuple(cases.values()), tuple(faults)


def _unique(paths: Iterable[str | os.PathLike[str]]) -> Iterator[tuple[str, bool]]:
    """The files, each once, and whether it was named itself."""
    seen = set()
    for one in paths:
        given = os.fspath(one)
        if not os.path.exists(given):
            raise EvalError(f"there is no {given}", "Give a file of cases, a skill, or a folder of skills")
        for path in _files(given) if os.path.isdir(given) else [given]:
            if (real := os.path.realpath(path)) not in seen:
                seen.add(real)
                yield path, path == given


def _files(folder: str) -> Iterator[str]:
    if os.path.basename(os.path.abspath(folder)) == "evals":
        yield from _case_files(folder)
        return
    found = False
    for one in [folder, *(skill for skill in _skills(folder) if skill != folder)]:
        for path in _case_files(os.path.join(one, "evals")):
            found = True
            yield path
    if not found and not is_skill(folder):
        yield from _case_files(folder)


def _skills(folder: str) -> Iterator[str]:
    """The folders of skills; a skill inside another is none."""
    for path, below, _ in os.walk(folder):
        below[:] = sorted(name for name in below if name not in SKIPPED_FOLDERS)
        if is_skill(path):
            below.clear()
            yield path


def _case_files(folder: str) -> list[str]:
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    kinds = [(name, os.path.splitext(name)[1].lower()) for name in names if not name.startswith((".", "_"))]
    known = sorted((_ORDER.index(kind), name) for name, kind in kinds if kind in _FORMATS)
    return [path for _, name in known if os.path.isfile(path := os.path.join(folder, name))]


def _read(path: str, named: bool) -> tuple[list[Case], list[Diagnostic]]:
    kind = _FORMATS.get(os.path.splitext(path)[1].lower())
    try:
        if kind is None:
            raise EvalError("it is no file of cases", f"Their names end in {', '.join(_FORMATS)}", path)
        if not named and os.path.basename(path) != "evals.json" and not kind.holds_cases(path):
            # Results and graders lie there as a rule; a YAML file without `cases:` is more likely a slip.
            severity: Severity = "warning" if kind is _YAML else "info"
            return [], [Diagnostic(severity, "no-cases", "the file has no cases; it is left alone", path)]
        cases, faults = kind.read(home_of(path))
        return cases, [_diagnostic(fault) for fault in faults]
    except EvalError as fault:
        return [], [_diagnostic(fault)]


def _diagnostic(fault: EvalError) -> Diagnostic:
    return Diagnostic("error", "case-invalid", fault.problem, fault.path, fault.line, fault.fix)


def _twice(case: Case, first: Case) -> Diagnostic:
    path, _, line = case.location.rpartition(":")
    message = f"there is a case {case.id!r} already, at {first.location}"
    return Diagnostic("error", "case-twice", message, path, int(line) if line.isdecimal() else 0, "Rename one of them")
