"""`skillshelf list`: the skills on the shelf."""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._problems import find_problems
from skillshelf.cli._workspace import all_candidates, locate_workspace, open_shelf, read_instructions, skill_as_json
from skillshelf.errors import SkillError
from skillshelf.files import split_below
from skillshelf.shelf import Shelf
from skillshelf.skillmd import READING
from skillshelf.skills import Candidate, Diagnostic
from skillshelf.sources import ENVIRONMENT, DirectorySource, PackageSource
from skillshelf.text import count_noun
from skillshelf.text.tables import Cell, Column

if TYPE_CHECKING:
    from skillshelf.sources import EnvironmentSource
    from skillshelf.sources.attachable import AttachableSkill, Obstacle

EXAMPLES = """
  skillshelf list                       this folder's skills, yours and the bundled ones
  skillshelf list -C ~/src/app          the skills of another workspace
  skillshelf list --json | jq '.skills[].name'
"""
_TOOLS_MISSING = "tools missing"
_MARKS = Column("marks", style="yellow")
_PLUGIN = Column("plugin", style="cyan")
_COLUMNS = (
    Column("name", style="bold"),
    _MARKS,
    Column("source", style="cyan"),
    _PLUGIN,
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
    plugins = _add_plugins(shelf, skills)
    if args.json:
        out.print_json(
            {
                "skills": skills,
                "attachable": [_attachable_as_json(*entry) for entry in _find_attachable(candidates).items()],
                "diagnostics": [_diagnostic_as_json(note) for note in shelf.catalog.diagnostics],
            }
        )
        return 0

    columns, rows = _make_table(skills)
    counts = _write_counts(shelf, candidates, args)
    out.print_paged_table(columns, rows, counts)
    installed = _find_environment(shelf)
    for sentence in [*plugins, *(installed.describe() if installed else ())]:
        out.print_styled(sentence, "dim")
    _print_empty_packages(shelf, candidates, out)
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


def _add_plugins(shelf: Shelf, skills: Sequence[dict[str, Any]]) -> list[str]:
    """Add the plugin that each skill belongs to. Return sentences about what else the plugins have."""
    from skillshelf.sources import find_plugins

    sentences = []
    for source in shelf.sources:
        if not isinstance(source, DirectorySource):
            continue
        by_folder = {}
        for skill in skills:
            parts = split_below(source.root, os.path.dirname(skill["location"]))
            if parts is not None:
                by_folder["/".join(parts)] = skill
        for plugin in find_plugins(source.root, by_folder):
            if plugin.problem:
                sentences.append(f"Not a plugin: {plugin.name or 'a plugin without a name'}, because {plugin.problem}.")
            elif plugin.not_run:
                sentences.append(f"Not used of the plugin {plugin.name}: its {', '.join(plugin.not_run)}.")
            for folder in plugin.skills:
                if folder in by_folder:
                    by_folder[folder].setdefault("plugin", plugin.name)
    return sentences


def _make_table(skills: Sequence[dict[str, Any]]) -> tuple[list[Column], list[list[str | Cell]]]:
    """Return the columns and rows of the list. Marks and plugins have a column if a skill has one."""
    columns = [*_COLUMNS]
    rows: list[list[str | Cell]] = []
    for skill in skills:
        marks = skill["marks"]
        rows.append(
            [
                Cell(skill["name"], "dim" if "shadowed" in marks or "off" in marks else ""),
                ", ".join(marks),
                skill["source"],
                skill.get("plugin", ""),
                f"{skill['tokens']:,}",
                str(len(skill["references"]) or ""),
                skill["description"],
            ]
        )
    for column in (_PLUGIN, _MARKS):
        index = columns.index(column)
        if not any(row[index] for row in rows):
            del columns[index]
            rows = [row[:index] + row[index + 1 :] for row in rows]
    return columns, rows


def _write_counts(shelf: Shelf, candidates: Sequence[Candidate], args: argparse.Namespace) -> str:
    """Return how many skills there are by source, how many files have problems, and what waits for a review."""
    if not candidates:
        counts = "No skills."
    else:
        sources = Counter(candidate.descriptor.source for candidate in candidates)
        by_source = ", ".join(f"{count:,} {source}" for source, count in sources.items())
        counts = f"{count_noun(len(candidates), 'skill')}: {by_source}."
    installed = _find_environment(shelf)
    problems = find_problems(shelf)
    if problems:
        counts += f" {problems.summary}: run `{problems.command}`."
    codes = Counter(note.code for note in shelf.catalog.diagnostics)
    if codes["lock-mismatch"]:
        counts += f" {codes['lock-mismatch']:,} not as skills.lock pins: run `skillshelf verify`."
    if codes["lock-unusable"]:
        counts += " skills.lock can't be used: run `skillshelf verify`."
    pending = _count_pending(args, has_installed=installed is not None and bool(installed.installed))
    if pending:
        counts += f" {pending:,} to review: run `skillshelf trust`."
    return counts


def _find_environment(shelf: Shelf) -> "EnvironmentSource | None":
    """Return the shelf's source of installed packages, if there is one."""
    for source in shelf.sources:
        if source.name == ENVIRONMENT:
            return cast("EnvironmentSource", source)
    return None


def _count_pending(args: argparse.Namespace, *, has_installed: bool) -> int:
    """Return how many skills of the project and of installed packages wait for the user's review."""
    from skillshelf.shelf import environment_source, project_sources
    from skillshelf.trust import Trust, TrustedSource  # `list --json` needs neither

    try:
        trust = Trust.open()
        workspace = locate_workspace(args)
        installed = environment_source(workspace, args.python) if has_installed else None
        trusted = [TrustedSource(source, trust) for source in project_sources(workspace)]
        if installed:
            trusted.append(TrustedSource(installed, trust))
        return sum(source.count_pending() for source in trusted)
    except SkillError:  # `skillshelf doctor` says what is wrong with the record of approvals
        return 0


def _find_attachable(candidates: Sequence[Candidate]) -> dict["AttachableSkill", "Obstacle | None"]:
    """Return the attachable skills that are not on this shelf, each with the reason why it is not available here."""
    from skillshelf.sources.attachable import list_attachable

    on_shelf = {candidate.descriptor.name for candidate in candidates}
    return {skill: skill.find_obstacle() for skill in list_attachable() if skill.name not in on_shelf}


def _attachable_as_json(skill: "AttachableSkill", obstacle: "Obstacle | None") -> dict[str, str]:
    described = {"name": skill.name, "usage": skill.usage}
    if obstacle:
        described |= {"unavailable": obstacle.reason, "install": obstacle.command}
    return described


def _diagnostic_as_json(note: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as `skillshelf check` reports it: what the format forbids is an error there."""
    from skillshelf.lint import apply_format

    return asdict(apply_format(note) if note.code in READING else note)


def _print_empty_packages(shelf: Shelf, candidates: Sequence[Candidate], out: Output) -> None:
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
