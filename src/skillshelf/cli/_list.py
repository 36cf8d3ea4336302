"""`skillshelf list`: the skills on the shelf."""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from skillshelf.catalog import Candidate
from skillshelf.cli._diagnostics import as_json, count_by_severity
from skillshelf.cli._output import Output, list_names, relative
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import all_candidates, locate_workspace, open_shelf, read_instructions, skill_as_json
from skillshelf.descriptor import Diagnostic
from skillshelf.errors import SourceError
from skillshelf.shelf import Shelf
from skillshelf.sources import DirectorySource, PackageSource
from skillshelf.tables import Cell, Column
from skillshelf.text import count_noun
from skillshelf.workspace import find_workspace

EXAMPLES = """
  skillshelf list                       this folder's skills, yours and the bundled ones
  skillshelf list -C ~/src/app          the skills of another workspace
  skillshelf list --json | jq '.skills[].name'
"""
# A check reads all references, which takes 13 ms for an average public skill: too long for a large shelf.
_MAX_CHECKED_SKILLS = 20
_TOOLS_MISSING = "tools missing"
_MAX_LISTED_NAMES = 5
_COLUMNS = (
    Column("name", style="bold"),
    Column("source", style="cyan"),
    Column("tokens", right=True),
    Column("refs", right=True),
    Column("description"),
)


def add_arguments(parser: Parser) -> None:
    """Add nothing: the shared options suffice."""


def run(args: argparse.Namespace, out: Output) -> int:
    shelf = open_shelf(args)
    repaired = _find_repaired_files(shelf.catalog.diagnostics)
    candidates = sorted([*all_candidates(shelf.catalog), *shelf.off], key=lambda candidate: candidate.found.name)
    skills = [_describe(shelf, candidate, repaired) for candidate in candidates]
    if args.json:
        out.print_json({"skills": skills, "diagnostics": [as_json(note) for note in shelf.catalog.diagnostics]})
        return 0
    out.print_table(_COLUMNS, [_make_row(skill) for skill in skills])
    out.print()
    _print_summary(shelf, candidates, locate_workspace(args).folder, out)
    without_tools = [skill["name"] for skill in skills if _TOOLS_MISSING in skill["marks"]]
    if without_tools:
        names = list_names(without_tools, _MAX_LISTED_NAMES)
        out.print_styled(f"The model does not have all tools of {names}: `skillshelf why NAME` says why.", "yellow")
    return 0


def _find_repaired_files(notes: tuple[Diagnostic, ...]) -> set[str]:
    if not notes:
        return set()
    from skillshelf.lint import READING  # takes 20 ms, which a faultless shelf need not pay

    return {note.path for note in notes if note.code in READING and note.severity == "warning"}


def _describe(shelf: Shelf, candidate: Candidate, repaired: set[str]) -> dict[str, Any]:
    skill = candidate.descriptor
    instructions = read_instructions(shelf, candidate)
    choice = shelf.choice_for(skill)
    marks = []
    reach = skill.qualified
    if choice == "off":
        marks.append("off")
    else:
        reach = shelf.catalog.reach(candidate)
        if shelf.catalog.find(skill.name) != candidate:
            marks.append("shadowed")
    if skill.location in repaired:
        marks.append("repaired")
    if choice == "full" or choice == "name":
        marks.append(f"set to {choice}")
    elif skill.disclosure == "manual" and choice != "off":
        marks.append("manual")
    if instructions is None:
        marks.append("unreadable")
    is_in_use = "off" not in marks and "shadowed" not in marks
    if is_in_use and len(shelf.tools_of(skill.name)) < len(skill.tools):
        marks.append(_TOOLS_MISSING)
    return {
        "reach": reach,
        **skill_as_json(skill),
        "tokens": shelf.counter(instructions or ""),
        "marks": marks,
    }


def _make_row(skill: dict[str, Any]) -> list[str | Cell]:
    marks = skill["marks"]
    return [
        Cell(skill["name"], "dim" if "shadowed" in marks or "off" in marks else ""),
        skill["source"],
        f"{skill['tokens']:,}",
        str(len(skill["references"]) or ""),
        Cell(skill["description"], mark=f"[{', '.join(marks)}]" if marks else ""),
    ]


def _print_summary(shelf: Shelf, candidates: list[Candidate], here: str, out: Output) -> None:
    if candidates:
        sources = Counter(candidate.descriptor.source for candidate in candidates)
        counts = ", ".join(f"{count:,} {source}" for source, count in sources.items())
        out.print_styled(f"{count_noun(len(candidates), 'skill')}: {counts}", "dim")
        if shelf.off:
            out.print_styled(f"{len(shelf.off):,} off: `skillshelf set NAME auto` switches one on", "dim")
    else:
        out.print_styled("No skills.", "dim")

    _print_problems(shelf, here, out)


def _print_problems(shelf: Shelf, here: str, out: Output) -> None:
    """Print how many problems `skillshelf check` finds, and the command that lists them.

    A shelf is lenient where a check is strict, so the diagnostics of the shelf itself would give other numbers.
    """
    folders = _find_faulty_folders(shelf)
    packages = _find_faulty_packages(shelf)
    if not folders and not packages:
        return

    problems = ""
    if len(shelf.catalog) <= _MAX_CHECKED_SKILLS:
        problems = _count_problems(shelf, folders, packages, here)
    elif any(note.severity != "info" for note in shelf.catalog.diagnostics):
        problems = "Some skills have problems"
    if not problems:
        return  # the fault is between two sources, such as a name that both have: the table shows it

    words = [relative(folder) for folder in folders]
    if not packages and set(folders).issubset(find_workspace().folders):
        words = []  # a check without paths covers them
    words += [f"--package {package}" for package in packages]
    out.print_styled(f"{problems}: run `{' '.join(['skillshelf check', *words])}`", "yellow")


def _count_problems(shelf: Shelf, folders: Sequence[str], packages: Sequence[str], here: str) -> str:
    """Return how many problems a check of these folders and packages finds, such as `1 error, 2 warnings`."""
    from skillshelf.cli._check import check_together  # takes 20 ms, which a faultless shelf need not pay

    notes = check_together(folders, (), here=here).diagnostics
    for package in packages:
        try:
            notes += check_together((), [package]).diagnostics
        except SourceError:  # it cannot be imported, as the shelf says
            notes += _notes_below(package.replace(".", "/"), shelf)
    return count_by_severity(notes)


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
