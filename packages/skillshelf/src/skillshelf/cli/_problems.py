"""The problems that a shelf reports about its skills, for commands that only mention them."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.shelf import Shelf
from skillshelf.skills import Diagnostic
from skillshelf.sources import DirectorySource, PackageSource
from skillshelf.sources.workspace import find_workspace, relative
from skillshelf.text import count_noun

_LEFT_OUT = ("name-twin", "shadowed", "tools-missing", "lock-mismatch", "lock-unusable")
"""What is between two sources, up to the caller or for `verify`, so that no check of a folder or package finds it."""


class Problems(NamedTuple):
    """The problems of a shelf, and the command that lists them, each with a fix."""

    files: int
    """The number of files and folders that have one."""
    has_errors: bool
    command: str

    @property
    def summary(self) -> str:
        verb = "has" if self.files == 1 else "have"
        return f"{count_noun(self.files, 'file')} {verb} problems"


def find_problems(shelf: Shelf) -> Problems | None:
    """Return the problems that came up while the shelf was read, or None if there are none.

    `skillshelf check` reads more, and may find more: it takes too long to be run in passing.
    """
    notes = [note for note in shelf.catalog.diagnostics if note.severity != "info" and note.code not in _LEFT_OUT]
    folders = _find_faulty_folders(shelf, notes)
    packages = _find_faulty_packages(shelf, notes)
    if not folders and not packages:
        return None

    files = {note.path for note in notes}
    has_errors = any(note.severity == "error" for note in notes)
    return Problems(len(files), has_errors, _make_command(folders, packages))


def _make_command(folders: Sequence[str], packages: Sequence[str]) -> str:
    words = [relative(folder) for folder in folders]
    if not packages and set(folders).issubset(find_workspace().folders):
        words = []  # a check without paths covers them
    words += [f"--package {package}" for package in packages]
    return " ".join(["skillshelf check", *words])


def _find_faulty_folders(shelf: Shelf, notes: Sequence[Diagnostic]) -> list[str]:
    roots = dict.fromkeys(source.root for source in shelf.sources if isinstance(source, DirectorySource))
    return [root for root in roots if _has_note_below(root, notes)]


def _find_faulty_packages(shelf: Shelf, notes: Sequence[Diagnostic]) -> list[str]:
    """Return the packages that the notes are about: those that were named, and those of entry points."""
    named = [source.package.__name__ for source in shelf.sources if isinstance(source, PackageSource)]
    faulty = [package for package in named if _has_note_below(package.replace(".", "/"), notes)]
    for note in notes:
        module, ending = os.path.splitext(note.path)
        if ending != ".py" or os.path.isabs(module):
            continue
        if not any(f"{module}/".startswith(f"{package.replace('.', '/')}/") for package in faulty):
            faulty.append(module.partition("/")[0])
    return faulty


def _has_note_below(folder: str, notes: Sequence[Diagnostic]) -> bool:
    return any(f"{note.path}/".startswith(f"{folder}/") for note in notes)
