"""`skillshelf why`: why a skill is on the shelf, or is not, and why it comes up for a request, or does not."""

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skillshelf.catalog import Candidate, Catalog
from skillshelf.cli._occurrences import Occurrence, search_elsewhere
from skillshelf.cli._output import Output, relative, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import explain_review, locate_workspace, open_shelf
from skillshelf.descriptor import MAX_DESCRIPTION, Diagnostic, SkillDescriptor
from skillshelf.listing import Level
from skillshelf.settings import Settings, load_settings
from skillshelf.shelf import Shelf
from skillshelf.sources import BUNDLED, DirectorySource
from skillshelf.text import clean_line, closest_names
from skillshelf.workspace import SearchedFolder, Workspace

EXAMPLES = """
  skillshelf why pdf-forms              where it was found, what it shadows, what the model sees of it
  skillshelf why pdf-forms --for "sign a contract"      why it comes up for this request, or does not
"""
_STATUS_STYLES = {"taken": "green", "shadowed": "yellow"}


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="the skill's name, or name@source")
    parser.add_argument(
        "--for",
        dest="request",
        metavar="REQUEST",
        help="explain why the skill comes up for a request of the user, or does not; exits with 1 if it does not",
    )


def run(args: argparse.Namespace, out: Output) -> int:
    if args.request is not None:
        from skillshelf.cli._why_request import explain  # the search and the agent's approvals, if they are needed

        return explain(args, out)

    explanation = _explain(args)
    if args.json:
        out.print_json(explanation.as_json())
    else:
        _print_explanation(explanation, out)
    return 0 if explanation.is_on_shelf else 1


@dataclass(frozen=True, slots=True)
class _Explanation:
    """Every skill and folder with a name, and the places where they were searched for."""

    name: str
    is_on_shelf: bool
    is_off: bool
    """True if the user switched off a skill of the name."""
    occurrences: list[Occurrence]
    closest: list[str]
    searched: list[SearchedFolder]
    search_notes: list[str]
    workspace_notes: tuple[str, ...]
    """Where the search for a repository ended, and why."""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "on_shelf": self.is_on_shelf,
            "occurrences": [asdict(occurrence) for occurrence in self.occurrences],
            "closest": self.closest,
            "searched": [asdict(folder) for folder in self.searched],
            "notes": [*self.search_notes, *self.workspace_notes],
        }


def _explain(args: argparse.Namespace) -> _Explanation:
    workspace = locate_workspace(args)
    shelf = open_shelf(args)
    settings = load_settings({})
    name = args.name
    skill = shelf.catalog.get(name)
    if skill is not None:
        name = skill.name  # without the source of name@source

    occurrences = [_explain_candidate(shelf, candidate, settings) for candidate in shelf.catalog.candidates(name)]
    is_on_shelf = bool(occurrences)
    off = [candidate for candidate in shelf.off if name in (candidate.found.name, candidate.descriptor.qualified)]
    occurrences += [_explain_off(shelf, candidate) for candidate in off]
    if not is_on_shelf:
        occurrences += _explain_attachable(name)

    elsewhere, search_notes = search_elsewhere(shelf, name)
    closest: list[str] = []
    if is_on_shelf:
        # A folder that merely has the name matters only to a user who misses the skill.
        elsewhere = [occurrence for occurrence in elsewhere if occurrence.status != "no skill"]
    else:
        names = dict.fromkeys([*shelf.catalog, *_list_attachable_names()])
        if name not in names:
            closest = list(closest_names(name, names))
    return _Explanation(
        name=name,
        is_on_shelf=is_on_shelf,
        is_off=bool(off),
        occurrences=[*occurrences, *elsewhere],
        closest=closest,
        searched=_list_searched(shelf, workspace),
        search_notes=search_notes,
        workspace_notes=tuple(workspace.notes),
    )


def _print_explanation(explanation: _Explanation, out: Output) -> None:
    if explanation.is_on_shelf:
        status = "on the shelf"
    elif explanation.is_off:
        status = "off"
    else:
        status = "not on the shelf"
    out.print_styled(f"{explanation.name} is {status}.", "bold")

    _print_occurrences(explanation.occurrences, explanation.closest, out)
    notes = explanation.search_notes
    if not explanation.occurrences:
        notes = [*notes, *explanation.workspace_notes]  # where the search ended matters only if it found nothing
    _print_search(explanation.searched, notes, out)


def _print_occurrences(occurrences: list[Occurrence], closest: list[str], out: Output) -> None:
    for occurrence in occurrences:
        headline = f"{occurrence.status}: {shown_path(occurrence.path)}"
        if occurrence.source:
            headline += f" ({occurrence.source})"
        out.print()
        out.print_styled(headline, _STATUS_STYLES.get(occurrence.status, "cyan"))
        for reason in occurrence.reasons:
            out.print_styled(f"- {clean_line(reason)}", indent=2)
    if closest:
        out.print(f"Did you mean {', '.join(closest)}?")
    elif not occurrences:
        out.print("Nothing with that name was found. `skillshelf list` shows all skills.")


def _print_search(searched: list[SearchedFolder], notes: list[str], out: Output) -> None:
    out.print()
    for folder in searched:
        out.print_styled(f"searched: {shown_path(folder.path)} ({folder.reason})", "dim")
    for note in notes:
        out.print_styled(clean_line(f"Note: {note}"), "dim")


def _list_searched(shelf: Shelf, workspace: Workspace) -> list[SearchedFolder]:
    """Return the folders that the shelf's skills come from, in order of precedence."""
    searched = list(workspace.searched)
    for source in shelf.sources:
        if isinstance(source, DirectorySource) and source.root not in workspace.folders:
            searched.append(SearchedFolder(source.root, "your own skills, in every workspace"))
    return searched


def _explain_candidate(shelf: Shelf, candidate: Candidate, settings: Settings) -> Occurrence:
    """Explain a skill that the shelf found: the first with its name, or one that the first shadows."""
    skill = candidate.descriptor
    first = shelf.catalog.find(skill.name)
    if candidate == first:
        status = "taken"
        reasons = [*_explain_listing(shelf, skill, settings), *_explain_blocked(shelf, skill)]
    else:
        status = "shadowed"
        advantage = _explain_precedence(shelf.catalog, first, candidate)
        reasons = [
            f"{relative(first.descriptor.location)} comes first ({first.descriptor.source}: {advantage})",
            f"reach it as {shelf.catalog.reach(candidate)!r}",
        ]
    reasons += _list_faults(skill, shelf.catalog.diagnostics)
    review = explain_review(shelf, candidate)
    if review:
        reasons.append(review)
    return Occurrence(skill.location, status, tuple(reasons), skill.source)


def _explain_blocked(shelf: Shelf, skill: SkillDescriptor) -> Iterator[str]:
    """Yield which tools of a skill the model is not offered, because the skill's policy blocks them."""
    blocked = [name for name, permission in shelf.permissions_of(skill.name).items() if permission == "blocked"]
    if blocked:
        yield f"blocked by the skill's policy, so the model does not have them: {', '.join(blocked)}"


def _explain_off(shelf: Shelf, candidate: Candidate) -> Occurrence:
    """Explain a skill that the user switched off."""
    skill = candidate.descriptor
    key = shelf.choice_key(skill)
    return Occurrence(
        skill.location, "off", (f"you switched it off: `skillshelf set {key} auto` switches it on",), skill.source
    )


def _explain_attachable(name: str) -> Iterator[Occurrence]:
    """Explain a bundled skill that the user has not attached."""
    from skillshelf.bundled import find_attachable

    skill = find_attachable(name)
    if skill is None:
        return
    obstacle = skill.find_obstacle()
    path = f"skillshelf.bundled.{skill.target}"
    if obstacle:
        yield Occurrence(path, "not available here", (str(obstacle),), BUNDLED)
    else:
        reason = f"it comes with skillshelf, and you attach it: --with {skill.usage}"
        yield Occurrence(path, "not attached", (reason,), BUNDLED)


def _list_attachable_names() -> list[str]:
    from skillshelf.bundled import ATTACHABLE

    return [skill.name for skill in ATTACHABLE]


def _list_faults(skill: SkillDescriptor, notes: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield the diagnostics about a skill's SKILL.md and the other files of its folder."""
    folder = os.path.dirname(skill.location)
    for note in notes:
        if note.code == "shadowed":
            continue
        text = f"{note.code}: {note.message}"
        if note.line:
            text = f"line {note.line}, {text}"
        if note.fix and note.path == skill.location and not os.path.isabs(skill.location):
            text += f" ({note.fix})"  # `check` gives the fixes for files
        if note.path == skill.location:
            yield text
        elif folder and note.path.startswith(f"{folder}/"):
            yield f"{relative(note.path)}, {text}"


def _explain_precedence(catalog: Catalog, first: Candidate, other: Candidate) -> str:
    if other.place.source > first.place.source:
        return "an earlier source"
    if first.is_named_by_folder() and not other.is_named_by_folder():
        return "its folder has the skill's name"
    if catalog.nearness(first.place) > catalog.nearness(other.place):
        return "a place nearer to the folder you are in"
    return "a place less deep, or earlier by name"


def _explain_listing(shelf: Shelf, skill: SkillDescriptor, settings: Settings) -> Iterator[str]:
    """Yield how the listing shows a skill to the model, with the disclosure and the budget of the user's settings."""
    choice = shelf.choice_for(skill)
    if choice is not None:
        yield f"you set it to {choice}: `skillshelf set {shelf.choice_key(skill)} auto` undoes that"
    if skill.disclosure == "manual":
        yield "hidden from the model: its disclosure is manual; the user can invoke it"
        return
    listing = shelf.listing(settings.disclosure, settings.budget)
    shortened = {entry.what for entry in listing.shortened if entry.name == skill.name}
    level = listing.level_of(skill.name)
    budget = f"the budget of {settings.budget:,} tokens"
    if level is None:
        yield f"left out of the listing by {budget}; search_skills finds it"
        return
    if level == Level.NAME and choice == "name":
        yield "in the listing with its name only"
    elif level == Level.NAME:
        yield f"in the listing with its name only: {budget} has no room for its description"
    elif level == Level.FULL and settings.disclosure == "full":
        yield "in the listing in full, like all skills: your settings have `disclosure` full"
    elif level == Level.FULL:
        yield "in the listing in full"
    else:
        yield "in the listing with its description; the instructions are loaded on demand"
        if "description" in shortened:
            cause = f"by {budget}"
            if len(skill.description) > MAX_DESCRIPTION:
                cause = "because it is very long"
            yield f"its description is shortened there {cause}"
        if "references" in shortened:
            yield "its references are not all named there; loading the skill names them"
    if "instructions" in shortened:
        claim = "it should be shown in full" if skill.disclosure == "always" else "it is a code skill"
        yield f"{claim}, but its instructions do not fit into {budget}"
