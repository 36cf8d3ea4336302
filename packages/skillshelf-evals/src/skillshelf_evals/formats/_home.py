"""Where a case file is: the skill it belongs to, and the skills and files that its cases may use."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.files import open_below, walk
from skillshelf.shelf import Shelf
from skillshelf.skills import Diagnostic
from skillshelf.sources import DirectorySource, Source
from skillshelf.text import closest_names
from skillshelf_evals._case import Case, CodeSkill, Edit, code_skill_name, make_code_source
from skillshelf_evals._folders import (
    EVALS_FOLDER,
    check_workspace_path,
    is_named,
    is_skill,
    resolve_inside,
    skill_name,
    skills_in,
    walk_folders,
    written_skill_name,
)
from skillshelf_evals._limits import MAX_WORKSPACE
from skillshelf_evals._text import list_items
from skillshelf_evals.check import Check
from skillshelf_evals.formats._document import read_bytes


@dataclass(frozen=True, slots=True)
class CaseShelf:
    """The skills of a case. It may mention others, which come to be during a trial."""

    references: SkillReferences
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
        if not any(map(about.means_reference, known)):
            problem = f"{about.skill} has no reference {about.reference!r:.80}"
            raise EvalError(problem, _suggest(about.reference, known, "It has"))

    def _is_mentioned(self, name: str) -> bool:
        return any(name in text for text in _texts_of(self.case))


SkillReferences = Mapping[str, tuple[str, ...] | None]


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

    names = [written_skill_name(path, data) for path, data in files.items()]
    return dict.fromkeys(name for name in names if name)


def _suggest(name: str, known: Mapping[str, Any] | tuple[str, ...], subject: str) -> str:
    suggestions = closest_names(name, known, limit=1)
    if suggestions:
        return f"Did you mean {suggestions[0]!r}?"
    return f"{subject} {list_items(list(known))}"


@dataclass(slots=True)
class CaseListing:
    """Set while cases are listed, when nothing of theirs may be imported or run."""

    checks: set[str] = field(default_factory=set)
    """The names of the checks that Python files register, as far as their source shows."""


@dataclass(slots=True)
class FileContent:
    """The cases of a file, and what is to be said about the rest of it."""

    cases: list[Case] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    """Why other cases cannot be used, and how these were understood if their author may have meant more."""

    def add_fault(self, fault: EvalError, path: str, line: int) -> None:
        """Note why a case cannot be used, at this place unless the fault knows its line."""
        self.notes.append(note_fault(fault if fault.line else EvalError(fault.problem, fault.fix, path, line)))


def note_fault(fault: EvalError) -> Diagnostic:
    return Diagnostic("error", "case-invalid", fault.problem, fault.path, fault.line, fault.fix)


@dataclass(frozen=True, slots=True)
class Home:
    """A case file, and the skill it belongs to, if any."""

    path: str
    """The case file."""
    skill: str = ""
    folder: str = ""
    """The folder of the skill."""
    listing: CaseListing | None = None
    folders: dict[str, SkillReferences] = field(default_factory=dict)
    """The skills in each folder that a case names. It is read once, however many cases use it."""
    is_apart: bool = False
    """True if the file is not in the folder of the skill."""

    def check_subjects(self, case: Case) -> None:
        """Raise EvalError if the case or one of its checks is about a skill or reference that it does not have."""
        shelf = self.read_shelf(case)
        if shelf is None:
            return
        if case.skill:
            shelf.check_skill(case.skill)
        for check in case.checks:
            shelf.check_subject(check)

    def read_shelf(self, case: Case) -> CaseShelf | None:
        """Return the shelf of a case; None if it cannot be known without running something."""
        if (self.listing and case.code_skills) or any(callable(step) for step in case.script or ()):
            return None
        references: dict[str, tuple[str, ...] | None] = {}
        for folder in case.skills:
            if folder not in self.folders:
                self.folders[folder] = _read_folder(folder)
            references |= self.folders[folder]
        if case.code_skills:
            references |= _read_source(make_code_source(case.code_skills))
        references |= _find_written_skills(case)
        return CaseShelf(references, case)

    @property
    def base(self) -> str:
        """The folder that paths in the file are relative to."""
        return os.path.dirname(os.path.abspath(self.path))

    @property
    def root(self) -> str:
        """The folder that the cases may read files from: the skill, or the folder of the suite."""
        return self.base if self.is_apart or not self.folder else self.folder

    def with_skill(self, folder: str) -> Home:
        """Return the home of cases for a skill that is elsewhere."""
        return replace(self, skill=skill_name(folder), folder=folder, is_apart=True)


def find_home(path: str, listing: CaseListing | None = None, skill_folder: str = "") -> Home:
    """Return the home of a file: a file in `<skill>/evals/` belongs to that skill, any other is a suite.

    A suite is about the skill in `skill_folder`, if there is one.
    """
    parent = os.path.dirname(os.path.abspath(path))
    owner = os.path.dirname(parent)
    if os.path.basename(parent) == EVALS_FOLDER and is_skill(owner):
        return Home(path, skill_name(owner), owner, listing)
    home = Home(path, listing=listing)
    return home.with_skill(os.path.abspath(skill_folder)) if skill_folder else home


def find_skills_below(top: str) -> list[str]:
    """Return the folders of all skills in a folder or below it."""
    return [folder for folder, _ in walk_folders(top) if is_skill(folder)]


def find_skill_folder(name_or_path: str, places: Iterable[str]) -> str:
    """Return the folder of a skill that is given by its path, or by its name if it is below one of these places.

    Raises EvalError if there is none, or several.
    """
    if is_skill(name_or_path):
        return name_or_path
    folders = dict.fromkeys(
        os.path.realpath(folder)
        for place in places
        for folder in find_skills_below(place if os.path.isdir(place) else os.path.dirname(os.path.abspath(place)))
    )
    named = [folder for folder in folders if is_named(folder, name_or_path)]
    if len(named) == 1:
        return named[0]
    if named:
        raise EvalError(f"there are several skills {name_or_path!r:.80}: {list_items(named)}", "Give the path of one")
    suggestions = closest_names(name_or_path, [skill_name(folder) for folder in folders], limit=1)
    fix = f"Did you mean {suggestions[0]!r}?" if suggestions else "Give the path of its folder"
    raise EvalError(f"there is no skill {name_or_path!r:.80}", fix)


def resolve_skill_folders(paths: Sequence[str], home: Home) -> tuple[str, ...]:
    """Return the folders of skills that cases name, relative to their file. Raises EvalError."""
    folders = tuple(os.path.normpath(os.path.join(home.base, path)) for path in paths)
    skills_by_name: dict[str, str] = {}
    for folder in folders:
        if not os.path.isdir(folder):
            raise EvalError(f"there is no folder {folder}", "Paths are relative to this file")
        for skill in skills_in(folder):
            first = skills_by_name.setdefault(os.path.basename(os.path.abspath(skill)), skill)
            if first != skill:
                raise EvalError(
                    f"{skill} and {first} would be the same folder of the workspace", "Leave one of them out"
                )

    return folders


def find_only_skill(skills: Sequence[str], code_skills: Sequence[CodeSkill]) -> str:
    """Return the name of the skill under test if the shelf has no other, else an empty text."""
    folders = [skill for folder in skills for skill in skills_in(folder) if is_skill(skill)]
    if len(folders) == 1 and not code_skills:
        return skill_name(folders[0])
    if len(code_skills) == 1 and not skills:
        return code_skill_name(code_skills[0])
    return ""


def copy_from(root: str, base: str, source: str, target: str) -> dict[str, bytes]:
    """Read `source`, a file or folder below `root`, and return its files by their paths in the workspace.

    Its path is relative to `base`. Links in a folder are left out. Raises EvalError.
    """
    path = resolve_inside(root, base, source)
    if not os.path.exists(path):
        raise EvalError(f"there is no file {source!r:.80}", f"Paths in `from:` are relative to {base}")
    if not os.path.isdir(path):
        return {check_workspace_path(target): read_bytes(path, MAX_WORKSPACE)}

    prefix = "" if target == "." else f"{check_workspace_path(target)}/"
    files = {}
    with open_below(path, ()) as top:
        for entry in walk(top):
            if entry.kind in ("file", "other"):
                files[prefix + entry.path] = read_bytes(os.path.join(path, entry.path), MAX_WORKSPACE)

    return files


def check_size(files: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files of a workspace. Raises EvalError if they are too large."""
    size = sum(len(data) for data in files.values())
    if size > MAX_WORKSPACE:
        raise EvalError(f"the files have {size // 1024} KiB", f"Keep them below {MAX_WORKSPACE // 1024} KiB")
    return files
