"""`skillshelf list`: what is on the shelf."""

import argparse
from collections import Counter
from typing import Any

from skillshelf.catalog import Candidate
from skillshelf.cli._diagnostics import as_json as note_as_json
from skillshelf.cli._diagnostics import count_by_severity
from skillshelf.cli._output import Output, plural, relative
from skillshelf.cli._workspace import all_candidates, as_json, instructions_of, open_shelf
from skillshelf.descriptor import Diagnostic
from skillshelf.shelf import Shelf
from skillshelf.sources import DirectorySource
from skillshelf.tables import Cell, Column

EXAMPLES = """
  skillshelf list                       the skills of this folder, the user's and the bundled ones
  skillshelf list -C ~/src/app          those of another workspace
  skillshelf list --json | jq '.skills[].name'
"""
_COLUMNS = (
    Column("name", style="bold"),
    Column("source", style="cyan"),
    Column("tokens", right=True),
    Column("refs", right=True),
    Column("description"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None of its own."""


def run(args: argparse.Namespace, out: Output) -> int:
    shelf = open_shelf(args)
    repaired = _repaired(shelf.catalog.diagnostics)
    candidates = list(all_candidates(shelf.catalog))
    facts = [_facts(shelf, candidate, repaired) for candidate in candidates]
    if args.json:
        notes = [note_as_json(note) for note in shelf.catalog.diagnostics]
        out.print_json({"skills": facts, "diagnostics": notes})
        return 0
    out.print_table(_COLUMNS, [_row(one) for one in facts])
    out.print()
    _summarize(shelf, candidates, out)
    return 0


def _repaired(notes: tuple[Diagnostic, ...]) -> set[str]:
    """The files that were read with repairs."""
    if not notes:
        return set()
    from skillshelf.lint import READING  # 20 ms that a shelf in order never pays

    return {note.path for note in notes if note.code in READING and note.severity == "warning"}


def _facts(shelf: Shelf, candidate: Candidate, repaired: set[str]) -> dict[str, Any]:
    skill = candidate.descriptor
    instructions = instructions_of(shelf, candidate)
    marks = {
        "shadowed": shelf.catalog.find(skill.name) != candidate,
        "repaired": skill.location in repaired,
        "manual": skill.disclosure == "manual",
        "unreadable": instructions is None,
    }
    return {
        "reach": shelf.catalog.reach(candidate),
        **as_json(skill),
        "tokens": shelf.counter(instructions or ""),
        "marks": [mark for mark, holds in marks.items() if holds],
    }


def _row(facts: dict[str, Any]) -> list[str | Cell]:
    marks = facts["marks"]
    return [
        Cell(facts["name"], "dim") if "shadowed" in marks else facts["name"],
        facts["source"],
        f"{facts['tokens']:,}",
        str(len(facts["references"]) or ""),
        Cell(facts["description"], mark=f"[{', '.join(marks)}]" if marks else ""),
    ]


def _summarize(shelf: Shelf, candidates: list[Candidate], out: Output) -> None:
    sources = Counter(candidate.descriptor.source for candidate in candidates)
    counts = ", ".join(f"{count:,} {source}" for source, count in sources.items())
    out.print_styled(f"{plural(len(candidates), 'skill')}: {counts}" if candidates else "No skills.", "dim")
    notes = shelf.catalog.diagnostics
    if notes:
        folders = _roots(shelf, notes)
        command = " ".join(["skillshelf check", *(() if folders == ["."] else folders)])
        out.print_styled(f"{count_by_severity(notes)}: run `{command}`", "yellow")


def _roots(shelf: Shelf, notes: tuple[Diagnostic, ...]) -> list[str]:
    """The folders to check: those of the sources that the diagnostics are about."""
    roots = dict.fromkeys(source.root for source in shelf.sources if isinstance(source, DirectorySource))
    return [relative(root) for root in roots if any(f"{note.path}/".startswith(f"{root}/") for note in notes)]
