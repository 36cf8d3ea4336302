"""How many eval files of other tools load whole: `python -m benchmarks.eval_files FOLDER [--stand-in]`.

FOLDER is read as `skillshelf eval list` reads it, without running anything. With `--stand-in`, FOLDER is a collection
of single JSON files that were taken out of their skills: each is read in the `evals/` of a skill made for it, with an
empty file for each one that its cases name. A file loads whole if it has cases and no error.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillshelf.skills import Diagnostic
from skillshelf_evals import list_cases
from skillshelf_evals.formats import find_case_files

_SKILL_TEXT = "---\nname: {name}\ndescription: Stands in for the skill of an eval file.\n---\n\nDo it.\n"


@dataclass(frozen=True)
class LoadedFile:
    """An eval file, and what became of it."""

    path: str
    cases: int
    diagnostics: tuple[Diagnostic, ...]

    @property
    def errors(self) -> list[Diagnostic]:
        return [diagnostic for diagnostic in self.diagnostics if diagnostic.severity == "error"]

    @property
    def is_whole(self) -> bool:
        return self.cases > 0 and not self.errors


def load_files(folder: Path, *, stand_in: bool) -> Iterator[LoadedFile]:
    """Yield each JSON file that holds cases, or is named as if it did."""
    if stand_in:
        for path in sorted(folder.glob("*.json")):
            with tempfile.TemporaryDirectory() as stage:
                yield _load(str(path), _make_skill_for(path, Path(stage)))
        return

    for case_file in find_case_files([folder]):
        if case_file.endswith(".json"):
            yield _load(case_file, case_file)


def _load(shown_path: str, path: str) -> LoadedFile:
    cases, diagnostics = list_cases([path])
    return LoadedFile(shown_path, len(cases), diagnostics)


def _make_skill_for(path: Path, stage: Path) -> str:
    """Make a skill for an eval file, and return the path of the file in it."""
    data = path.read_bytes()
    document = json.loads(data)
    skill = stage / _find_skill_name(document)
    evals = skill / "evals"
    evals.mkdir(parents=True)
    (skill / "SKILL.md").write_text(_SKILL_TEXT.format(name=skill.name))
    for name in _find_named_files(document):
        target = Path(os.path.normpath(skill / name))
        if target.is_relative_to(skill) and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
    (evals / path.name).write_bytes(data)
    return str(evals / path.name)


def _find_skill_name(document: Any) -> str:
    name = document.get("skill_name") if isinstance(document, Mapping) else ""
    return name if isinstance(name, str) and name.isprintable() and name and "/" not in name else "stand-in"


def _find_named_files(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _find_named_files(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key == "files" and isinstance(item, list):
                yield from (path for path in item if isinstance(path, str))
            else:
                yield from _find_named_files(item)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stand-in", action="store_true", help="make a skill for each file")
    args = parser.parse_args()

    files = list(load_files(args.folder, stand_in=args.stand_in))
    whole = sum(file.is_whole for file in files)
    problems = Counter(error.message for file in files for error in file.errors)
    for file in files:
        if not file.is_whole:
            first = file.errors[0].message if file.errors else "no cases"
            print(f"{file.path}: {file.cases} cases, {len(file.errors)} errors; {first}")
    for message, count in problems.most_common(10):
        print(f"{count:6}  {message}")
    share = whole / len(files) if files else 0.0
    print(f"{whole} of {len(files)} files load whole ({share:.0%}), {sum(file.cases for file in files)} cases")


if __name__ == "__main__":
    main()
