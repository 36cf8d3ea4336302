"""How many problems `skillshelf check` finds in the skills of a shelf, for commands that only mention them."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from skillshelf.cli._diagnostics import count_by_severity
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import SourceError
from skillshelf.shelf import Shelf
from skillshelf.sources import DirectorySource, PackageSource
from skillshelf.workspace import find_workspace, relative

# A check reads all references, which takes 13 ms for an average public skill: too long for a large shelf.
_MAX_CHECKED_SKILLS = 20


@dataclass(frozen=True, slots=True)
class Problems:
    """Problems of the skills on a shelf, and the command that lists them."""

    diagnostics: tuple[Diagnostic, ...]
    """Those of the check, or of the shelf if it is too large to be checked in passing."""
    is_checked: bool
    command: str

    @property
    def summary(self) -> str:
        """A count such as `1 error, 2 warnings`, or a sentence if the skills were not checked."""
        if self.is_checked:
            return count_by_severity(self.diagnostics)
        return "Some skills have problems"


def find_problems(shelf: Shelf, here: str) -> Problems | None:
    """Return the problems of the skills that the shelf reports something about, or None if there are none.

    A shelf is lenient where a check is strict, so the diagnostics of the shelf itself would give other numbers.
    """
    folders = _find_faulty_folders(shelf)
    packages = _find_faulty_packages(shelf)
    if not folders and not packages:
        return None

    is_checked = len(shelf.catalog) <= _MAX_CHECKED_SKILLS
    notes = shelf.catalog.diagnostics
    if is_checked:
        notes = _check(shelf, folders, packages, here)
        if not notes:
            return None  # the fault is between two sources, such as a name that both have
    elif all(note.severity == "info" for note in notes):
        return None
    return Problems(notes, is_checked, _check_command(folders, packages))


def _check_command(folders: Sequence[str], packages: Sequence[str]) -> str:
    words = [relative(folder) for folder in folders]
    if not packages and set(folders).issubset(find_workspace().folders):
        words = []  # a check without paths covers them
    words += [f"--package {package}" for package in packages]
    return " ".join(["skillshelf check", *words])


def _check(shelf: Shelf, folders: Sequence[str], packages: Sequence[str], here: str) -> tuple[Diagnostic, ...]:
    """Return what a check of these folders and packages finds."""
    from skillshelf.cli._check import check_together  # takes 20 ms, which a faultless shelf need not pay

    notes = list(check_together(folders, (), here=here).diagnostics)
    for package in packages:
        try:
            notes += check_together((), [package]).diagnostics
        except SourceError:  # it cannot be imported, as the shelf says
            notes += _notes_below(package.replace(".", "/"), shelf)
    return tuple(notes)


def _find_faulty_folders(shelf: Shelf) -> list[str]:
    """Return the folders of the sources that the diagnostics of the shelf are about."""
    roots = dict.fromkeys(source.root for source in shelf.sources if isinstance(source, DirectorySource))
    return [root for root in roots if _notes_below(root, shelf)]


def _find_faulty_packages(shelf: Shelf) -> list[str]:
    """Return the packages that the diagnostics of the shelf are about: those that were named, and of entry points."""
    named = [source.package.__name__ for source in shelf.sources if isinstance(source, PackageSource)]
    faulty = [package for package in named if _notes_below(package.replace(".", "/"), shelf)]
    for note in shelf.catalog.diagnostics:
        module, ending = os.path.splitext(note.path)
        if ending != ".py" or os.path.isabs(module):
            continue
        if not any(f"{module}/".startswith(f"{package.replace('.', '/')}/") for package in faulty):
            faulty.append(module.partition("/")[0])
    return faulty


def _notes_below(folder: str, shelf: Shelf) -> list[Diagnostic]:
    return [note for note in shelf.catalog.diagnostics if f"{note.path}/".startswith(f"{folder}/")]
