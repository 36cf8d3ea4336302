"""`skillshelf list`: the skills on the shelf."""

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._problems import find_problems
from skillshelf.cli._workspace import all_candidates, open_shelf, read_instructions, skill_as_json
from skillshelf.shelf import Shelf
from skillshelf.skillmd import READING
from skillshelf.skills import Candidate, Diagnostic
from skillshelf.sources import PackageSource
from skillshelf.text import count_noun, list_names
from skillshelf.text.tables import Cell, Column

if TYPE_CHECKING:
    from skillshelf.sources.attachable import AttachableSkill, Obstacle

EXAMPLES = """
  skillshelf list                       this folder's skills, yours and the bundled ones
  skillshelf list -C ~/src/app          the skills of another workspace
  skillshelf list --json | jq '.skills[].name'
"""
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
    candidates = sorted([*all_candidates(shelf.catalog), *shelf.chosen.off], key=lambda candidate: candidate.found.name)
    skills = [_describe(shelf, candidate, repaired) for candidate in candidates]
    attachable = _find_attachable(candidates)
    if args.json:
        out.print_json(
            {
                "skills": skills,
                "attachable": [_attachable_as_json(*entry) for entry in attachable.items()],
                "diagnostics": [asdict(note) for note in shelf.catalog.diagnostics],
            }
        )
        return 0
    out.print_table(_COLUMNS, [_make_row(skill) for skill in skills])
    out.print()
    _print_counts(shelf, candidates, out)
    _print_attachable(attachable, out)
    _print_empty_packages(shelf, candidates, out)
    without_tools = [skill["name"] for skill in skills if _TOOLS_MISSING in skill["marks"]]
    if without_tools:
        names = list_names(without_tools, _MAX_LISTED_NAMES)
        out.print_styled(f"The model does not have all tools of {names}: `skillshelf why NAME` says why.", "yellow")
    problems = find_problems(shelf)
    if problems:
        out.print_styled(f"{problems.summary}: run `{problems.command}`", "yellow")
    return 0


def _find_repaired_files(notes: tuple[Diagnostic, ...]) -> set[str]:
    return {note.path for note in notes if note.code in READING and note.severity == "warning"}


def _describe(shelf: Shelf, candidate: Candidate, repaired: set[str]) -> dict[str, Any]:
    skill = candidate.descriptor
    instructions = read_instructions(shelf, candidate)
    choice = shelf.chosen.choice_for(skill)
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
    if is_in_use and len(shelf.permissions_of(skill.name)) < len(skill.tools):
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


def _print_counts(shelf: Shelf, candidates: list[Candidate], out: Output) -> None:
    if candidates:
        sources = Counter(candidate.descriptor.source for candidate in candidates)
        counts = ", ".join(f"{count:,} {source}" for source, count in sources.items())
        out.print_styled(f"{count_noun(len(candidates), 'skill')}: {counts}", "dim")
        if shelf.chosen.off:
            from skillshelf.explain import explain_off  # loads the approvals, which other lists need not

            names = [candidate.found.name for candidate in shelf.chosen.off]
            out.print_styled(str(explain_off(list_names(names, _MAX_LISTED_NAMES), "NAME")), "dim")
    else:
        out.print_styled("No skills.", "dim")


def _find_attachable(candidates: list[Candidate]) -> dict["AttachableSkill", "Obstacle | None"]:
    """Return the attachable skills that are not on this shelf, each with the reason why it is not available here."""
    from skillshelf.sources.attachable import list_attachable

    on_shelf = {candidate.descriptor.name for candidate in candidates}
    return {skill: skill.find_obstacle() for skill in list_attachable() if skill.name not in on_shelf}


def _attachable_as_json(skill: "AttachableSkill", obstacle: "Obstacle | None") -> dict[str, str]:
    described = {"name": skill.name, "usage": skill.usage}
    if obstacle:
        described |= {"unavailable": obstacle.reason, "install": obstacle.command}
    return described


def _print_attachable(attachable: Mapping["AttachableSkill", "Obstacle | None"], out: Output) -> None:
    available = [skill.usage for skill, obstacle in attachable.items() if not obstacle]
    if available:
        out.print_styled(f"bundled, attach with --with: {', '.join(available)}", "dim")
    missing = [f"{skill.name} ({obstacle.command})" for skill, obstacle in attachable.items() if obstacle]
    if missing:
        out.print_styled(f"bundled, not available here: {', '.join(missing)}", "dim")


def _print_empty_packages(shelf: Shelf, candidates: list[Candidate], out: Output) -> None:
    """Name the packages that the user asked for and that have no skills, not even faulty ones."""
    reported = {candidate.descriptor.source for candidate in candidates}
    for source in shelf.sources:
        if not isinstance(source, PackageSource) or source.name in reported:
            continue
        package = source.package.__name__
        prefix = package.replace(".", "/")
        if not any(f"{note.path}/".startswith(f"{prefix}/") for note in shelf.catalog.diagnostics):
            out.print_styled(
                f"The package {package} has no skills: run `skillshelf check --package {package}`", "yellow"
            )
