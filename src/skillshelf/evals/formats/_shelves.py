"""The skills that a case can load, so that a check about any other is reported before anything is paid for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._case import Case, Edit, make_code_source
from skillshelf.evals._folders import is_skill, skill_name, skills_in
from skillshelf.evals.check import Check, is_reference_named
from skillshelf.shelf import Shelf
from skillshelf.skillmd import Unreadable, decode, read
from skillshelf.sources import SKILL_FILES, DirectorySource, Source
from skillshelf.text import closest_names

MAX_NAMES_LISTED = 8


@dataclass(frozen=True, slots=True)
class CaseShelf:
    """The skills of a case. It may mention others, which come to be during a trial."""

    references: Mapping[str, tuple[str, ...] | None]
    """The references of each skill; None for a skill that the case writes itself."""
    case: Case

    def check_skill(self, name: str) -> None:
        """Raise EvalError if the case has no such skill."""
        if name in self.references or self._is_mentioned(name):
            return
        problem = f"there is no skill {name!r:.80} on the shelf of this case"
        raise EvalError(problem, _suggest(name, self.references, "It has"))

    def check_subject(self, check: Check) -> None:
        """Raise EvalError if a check is about a skill or reference that the case does not have."""
        about = check.about
        if about.skill:
            self.check_skill(about.skill)
        known = self.references.get(about.skill)
        if not about.reference or known is None or self._is_mentioned(about.reference):
            return
        if not any(is_reference_named(path, about.reference) for path in known):
            problem = f"{about.skill} has no reference {about.reference!r:.80}"
            raise EvalError(problem, _suggest(about.reference, known, "It has"))

    def _is_mentioned(self, name: str) -> bool:
        return any(name in text for text in _texts_of(self.case))


SkillReferences = Mapping[str, tuple[str, ...] | None]


@dataclass(slots=True)
class ShelfReader:
    """Reads the shelves of cases. A folder of skills is read once, however many cases use it."""

    _folders: dict[str, SkillReferences] = field(default_factory=dict)

    def read_shelf(self, case: Case) -> CaseShelf | None:
        """Return the shelf of a case; None if a function in its script decides what comes to be on it."""
        if any(callable(step) for step in case.script or ()):
            return None
        references: dict[str, tuple[str, ...] | None] = {}
        for folder in case.skills:
            if folder not in self._folders:
                self._folders[folder] = _read_folder(folder)
            references |= self._folders[folder]
        if case.code_skills:
            references |= _read_source(make_code_source(case.code_skills))
        references |= _find_written_skills(case)
        return CaseShelf(references, case)


def _texts_of(case: Case) -> Iterator[str]:
    """Yield the texts of a case in which it can mention a name."""
    yield from map(str, case.script or ())
    for turn in case.turns:
        yield f"{turn.path}\n{turn.text}" if isinstance(turn, Edit) else turn.text
    for path, data in case.files.items():
        yield f"{path}\n{data.decode('utf-8', 'replace')}"


def _read_folder(folder: str) -> SkillReferences:
    references: dict[str, tuple[str, ...] | None] = {}
    for skill in skills_in(folder):
        found = _read_source(DirectorySource(skill, cache=False))
        if not found and is_skill(skill):  # a link to a file elsewhere, say, or one that cannot be read
            found = {skill_name(skill): None}
        references |= found
    return references


def _read_source(source: Source) -> SkillReferences:
    return {name: descriptor.references for name, descriptor in Shelf([source]).catalog.items()}


def _find_written_skills(case: Case) -> SkillReferences:
    """Return the skills that the case's own files and edits contain."""
    files = dict(case.files)
    for turn in case.turns:
        if isinstance(turn, Edit) and turn.text is not None:
            files[turn.path] = turn.text.encode("utf-8", "surrogatepass")

    names = []
    for path, data in files.items():
        if os.path.basename(path) in SKILL_FILES:
            folder = os.path.basename(os.path.dirname(path))
            try:
                names.append(read(decode(data), folder).name)
            except Unreadable:
                names.append(folder)
    return dict.fromkeys(names)


def _suggest(name: str, known: Mapping[str, Any] | tuple[str, ...], subject: str) -> str:
    suggestions = closest_names(name, known, limit=1)
    if suggestions:
        return f"Did you mean {suggestions[0]!r}?"
    if not known:
        return f"{subject} none"
    listed = ", ".join(list(known)[:MAX_NAMES_LISTED])
    return f"{subject} {listed}" + (" …" if len(known) > MAX_NAMES_LISTED else "")
