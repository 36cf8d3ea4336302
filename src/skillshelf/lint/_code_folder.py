"""Recognize a folder of code skills without importing them, and say how to check them."""

import os
import re
import shlex
from collections.abc import Collection, Iterator
from itertools import islice

from skillshelf.descriptor import Diagnostic
from skillshelf.files import NotPlainFile, TreeEntry, is_at_or_inside, open_below, read_file, walk
from skillshelf.sources import MAX_DEPTH, SKIPPED_FOLDERS

_MAX_SEARCHED_ENTRIES = 20_000
_SAMPLE_BYTES = 64 * 1024
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg")


def report_no_skill(folder: str, package_folders: Collection[str] = ()) -> Iterator[Diagnostic]:
    """Report a folder without a SKILL.md, and name code skills if it has some.

    Code skills in one of the `package_folders` are checked elsewhere: if there are no others, nothing is wrong.
    """
    real_folder = os.path.realpath(folder)
    if any(is_at_or_inside(real_folder, package) for package in package_folders):
        return
    checked = [
        os.path.relpath(package, real_folder) for package in package_folders if is_at_or_inside(package, real_folder)
    ]
    module = _find_code_skill(folder, checked)
    if module:
        yield _report_unchecked(folder, module)
    elif not checked:
        message = "there is no skill in this folder or below it"
        yield Diagnostic("error", "no-skill", message, folder, fix="`skillshelf new NAME` creates one")


def _find_code_skill(folder: str, left_out: Collection[str]) -> str:
    """Return the path of the first skill.py below the folder that seems to define a skill, or an empty string."""

    def enter(entry: TreeEntry) -> bool:
        return entry.name not in SKIPPED_FOLDERS and entry.path not in left_out

    try:
        with open_below(folder, ()) as top:
            entries = walk(top, enter, max_depth=MAX_DEPTH)
            for entry in islice(entries, _MAX_SEARCHED_ENTRIES):
                if entry.name == "skill.py" and entry.kind == "file" and _mentions_base_class(folder, entry.path):
                    return entry.path
    except (OSError, NotPlainFile):
        pass  # what cannot be read cannot be named either
    return ""


def _mentions_base_class(folder: str, path: str) -> bool:
    try:
        return b"BaseSkill" in read_file(folder, path.split("/"), 0, _SAMPLE_BYTES).data
    except (OSError, NotPlainFile):
        return False


def _report_unchecked(folder: str, module: str) -> Diagnostic:
    package = _find_package(os.path.dirname(os.path.join(folder, module)))
    name = os.path.basename(package)
    check = f"run `skillshelf check --package {name}`"
    project = _find_project(package)
    if not name.isidentifier():
        importable_name = re.sub(r"\W|^(?=\d)", "_", name)
        fix = f"rename the folder {name!r}, which Python cannot import, for example to {importable_name!r}"
    elif project:
        fix = f"install its project with `pip install -e {shlex.quote(project)}`, then {check}"
    else:
        fix = f"install it (it has no pyproject.toml yet; `skillshelf new --package` shows how one looks), then {check}"
    message = f"there is no SKILL.md in this folder or below it; {module} is a code skill, which is not imported here"
    return Diagnostic("error", "package-unchecked", message, folder, fix=fix)


def _find_package(folder: str) -> str:
    """Return the topmost package that a folder belongs to, as far as `__init__.py` files show it."""
    while os.path.lexists(os.path.join(os.path.dirname(folder), "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _find_project(package: str) -> str:
    """Return the nearest folder above a package that pip can install, or an empty string."""
    folder = os.path.dirname(package)
    while not any(os.path.isfile(os.path.join(folder, name)) for name in _PROJECT_FILES):
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
    return folder
