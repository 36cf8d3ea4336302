"""`skillshelf why`: why a skill is on the shelf, or is not."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict

from skillshelf.catalog import Candidate
from skillshelf.cli._elsewhere import Finding, Search
from skillshelf.cli._output import Output, relative, shown_path
from skillshelf.cli._workspace import all_candidates, open_shelf
from skillshelf.descriptor import MAX_DESCRIPTION, SkillDescriptor
from skillshelf.listing import DEFAULT_BUDGET
from skillshelf.shelf import Shelf
from skillshelf.sources import DirectorySource
from skillshelf.text import clean_line, closest_names, skeleton

EXAMPLES = """
  skillshelf why pdf-forms              where it was found, what it shadows, what the model sees of it
"""
_STYLES = {"taken": "green", "shadowed": "yellow"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the skill's name, or name@source")


def run(args: argparse.Namespace, out: Output) -> int:
    shelf = open_shelf(args)
    skill = shelf.catalog.get(args.name)
    name = skill.name if skill else args.name
    found = [_explain(shelf, candidate) for candidate in shelf.catalog.candidates(name)]
    others, notes = _elsewhere(shelf, name)
    if found:
        # A folder that merely bears the name is of interest only where the skill is missed.
        others = [finding for finding in others if finding.verdict != "no skill"]
    near = [] if found else list(closest_names(name, shelf.catalog))
    if args.json:
        findings = [asdict(finding) for finding in (*found, *others)]
        out.print_json({"name": name, "on_shelf": bool(found), "findings": findings, "closest": near, "notes": notes})
    else:
        _print(name, bool(found), [*found, *others], near, notes, out)
    return 0 if found else 1


def _explain(shelf: Shelf, candidate: Candidate) -> Finding:
    skill, first = candidate.descriptor, shelf.catalog.find(candidate.descriptor.name)
    reasons: list[str] = []
    if candidate == first:
        reasons += _in_listing(shelf, skill)
    else:
        if candidate.place.source > first.place.source:
            ahead = "an earlier source"
        elif first.is_named_by_folder() and not candidate.is_named_by_folder():
            ahead = "its folder carries the name"
        else:
            ahead = "a place less deep, or earlier by name"
        reasons.append(f"{relative(first.descriptor.location)} comes first ({first.descriptor.source}: {ahead})")
        reasons.append(f"reach it as {shelf.catalog.reach(candidate)!r}")
    folder = skill.location.rpartition("/")[0]
    for note in shelf.catalog.diagnostics:
        inside = folder and note.path.startswith(f"{folder}/")
        if note.code != "shadowed" and (note.path == skill.location or inside):
            line = f"line {note.line}, " if note.line else ""
            place = "" if note.path == skill.location else f"{relative(note.path)}, "
            reasons.append(f"{place}{line}{note.code}: {note.message}")
    return Finding(skill.location, "taken" if candidate == first else "shadowed", tuple(reasons), skill.source)


def _in_listing(shelf: Shelf, skill: SkillDescriptor) -> Iterator[str]:
    if skill.disclosure == "manual":
        yield "hidden from the model: its disclosure is manual; a person can invoke it"
        return
    listing = shelf.listing()
    what = {one.what for one in listing.shortened if one.name == skill.name}
    budget = f"the budget of {DEFAULT_BUDGET:,} tokens"
    if "omitted" in what:
        yield f"left out of the listing by {budget}; search_skills finds it"
    elif skill.name in listing.full:
        yield "in the listing in full"
    else:
        yield "in the listing by its description; the instructions are loaded on demand"
    if "description" in what:
        yield (
            f"its description is shortened there by {budget}"
            if len(skill.description) <= MAX_DESCRIPTION
            else ("its description is shortened there: it is very long")
        )
    if "references" in what:
        yield "its references are not all named there; loading the skill names them"
    if "instructions" in what:
        yield f"its disclosure is always, but its instructions do not fit into {budget}"


def _elsewhere(shelf: Shelf, name: str) -> tuple[list[Finding], list[str]]:
    catalog = shelf.catalog
    known = {one.descriptor.location: one.descriptor.name for one in all_candidates(catalog)}
    findings: list[Finding] = []
    notes: list[str] = []
    for root in dict.fromkeys(source.root for source in shelf.sources if isinstance(source, DirectorySource)):
        search = Search(root, name, known, catalog.diagnostics)
        findings += search.findings()
        if search.cut_short:
            notes.append(f"only the first {search.folders:,} folders of {relative(root)} were looked through")
    return findings + list(_broken_code(shelf, name)), notes


def _broken_code(shelf: Shelf, name: str) -> Iterator[Finding]:
    """Code skills of that name that could not be imported or made; their diagnostics hold paths from the package on."""
    for note in shelf.catalog.diagnostics:
        parts = note.path.removesuffix(".py").split("/")
        if not note.path.startswith("/") and skeleton(name) in map(skeleton, parts):
            yield Finding(note.path, "refused", (f"{note.code}: {note.message}",))


def _print(name: str, found: bool, findings: list[Finding], near: list[str], notes: list[str], out: Output) -> None:
    out.print_styled(f"{name} is {'on the shelf' if found else 'not on the shelf'}.", "bold")
    for finding in findings:
        out.print()
        source = f" ({finding.source})" if finding.source else ""
        out.print_styled(f"{finding.verdict}: {shown_path(finding.path)}{source}", _STYLES.get(finding.verdict, "cyan"))
        for reason in finding.reasons:
            out.print_styled(f"- {clean_line(reason)}", indent=2)
    if near:
        out.print(f"Did you mean {', '.join(near)}?")
    elif not findings:
        out.print("Nothing of that name was found. `skillshelf list` names what there is.")
    for note in notes:
        out.print_styled(f"Note: {note}", "dim")
