"""`skillshelf why`: why a skill is on the shelf, or is not, and why it comes up for a request, or does not."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import locate_workspace, open_shelf, prepare_search
from skillshelf.explain import (
    Occurrence,
    Reason,
    RequestExplanation,
    describe_level,
    explain_absence,
    explain_candidate,
    explain_request,
    search_elsewhere,
)
from skillshelf.listing import Level
from skillshelf.settings import load_settings
from skillshelf.shelf import Shelf
from skillshelf.sources import DirectorySource
from skillshelf.sources.workspace import SearchedFolder, Workspace
from skillshelf.text import clean_line
from skillshelf.text.tables import Cell, Column

EXAMPLES = """
  skillshelf why pdf-forms              where it was found, what it shadows, what the model sees of it
  skillshelf why pdf-forms --for "sign a contract"      why it comes up for this request, or does not
"""
_STATUS_STYLES = {"taken": "green", "shadowed": "yellow"}
_LEVELS = {
    Level.NAME: "name",
    Level.SHORT: "shortened",
    Level.WHOLE: "description",
    Level.FULL: "instructions",
    None: "nothing",
}
"""What the listing shows of a skill, for another program."""


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
        return _explain_request(args, out)
    return _explain_places(args, out)


def _print_reasons(reasons: Sequence[Reason], out: Output) -> None:
    for reason in reasons:
        out.print()
        out.print_styled(f"{reason.code}: {clean_line(reason.message)}", "yellow")
        if reason.fix:
            out.print_styled(f"fix: {clean_line(reason.fix)}", "cyan", indent=2)


# --- a name: every place that has it ---


def _explain_places(args: argparse.Namespace, out: Output) -> int:
    workspace = locate_workspace(args)
    shelf = open_shelf(args)
    settings = load_settings({})
    skill = shelf.catalog.get(args.name)
    name = skill.name if skill is not None else args.name  # without the source of name@source

    listing = shelf.listing(settings.disclosure, settings.budget)
    found = shelf.catalog.candidates(name)
    off = [
        candidate for candidate in shelf.chosen.off if name in (candidate.found.name, candidate.descriptor.qualified)
    ]
    occurrences = [explain_candidate(shelf, candidate, listing, settings.budget) for candidate in (*found, *off)]

    elsewhere, notes = search_elsewhere(shelf, name)
    if found:
        # A folder that merely has the name matters only to a user who misses the skill.
        elsewhere = [occurrence for occurrence in elsewhere if occurrence.status not in ("no skill", "code skill")]
    occurrences += elsewhere

    reasons: list[Reason] = []
    if all(occurrence.status == "no skill" for occurrence in occurrences):
        reasons.append(explain_absence(shelf, name))
    searched = _list_searched(shelf, workspace)

    if args.json:
        out.print_json(
            {
                "name": name,
                "on_shelf": bool(found),
                "occurrences": [asdict(occurrence) for occurrence in occurrences],
                "reasons": [str(reason) for reason in reasons],
                "searched": [folder._asdict() for folder in searched],
                "notes": [*notes, *workspace.notes],
            }
        )
        return 0 if found else 1

    status = "on the shelf"
    if not found:
        status = "off" if off else "not on the shelf"
    out.print_styled(f"{name} is {status}.", "bold")
    _print_reasons(reasons, out)
    if any(reason.code == "missing" for reason in reasons):
        notes = [*notes, *workspace.notes]  # where the search ended matters only if it found nothing
    _print_occurrences(occurrences, out)
    out.print()
    for folder in searched:
        out.print_styled(f"searched: {shown_path(folder.path)} ({folder.reason})", "dim")
    for note in notes:
        out.print_styled(clean_line(f"Note: {note}"), "dim")
    return 0 if found else 1


def _print_occurrences(occurrences: list[Occurrence], out: Output) -> None:
    for occurrence in occurrences:
        headline = f"{occurrence.status}: {shown_path(occurrence.path)}"
        if occurrence.source:
            headline += f" ({occurrence.source})"
        out.print()
        out.print_styled(headline, _STATUS_STYLES.get(occurrence.status, "cyan"))
        for reason in occurrence.reasons:
            out.print_styled(f"- {clean_line(reason)}", indent=2)


def _list_searched(shelf: Shelf, workspace: Workspace) -> list[SearchedFolder]:
    """Return the folders that the shelf's skills come from, in order of precedence."""
    searched = list(workspace.searched)
    for source in shelf.sources:
        if isinstance(source, DirectorySource) and source.root not in workspace.folders:
            searched.append(SearchedFolder(source.root, "your own skills, in every workspace"))
    return searched


# --- a name and a request ---


def _explain_request(args: argparse.Namespace, out: Output) -> int:
    """Print whether a skill comes up for a request. Returns 0 if the model comes across it, otherwise 1."""
    request = args.request.strip()
    if not request:
        raise CommandError("The request is empty.", "Give the user's words: --for 'fill in this form'.")
    settings = load_settings({})
    shelf = open_shelf(args)
    prepare_search(shelf)
    explanation = explain_request(
        shelf,
        args.name,
        request,
        disclosure=settings.disclosure,
        budget=settings.budget,
    )
    if args.json:
        out.print_json(_as_json(explanation))
    else:
        _print_explanation(explanation, out)
    return 0 if explanation.comes_up else 1


def _print_explanation(explanation: RequestExplanation, out: Output) -> None:
    from skillshelf.cli._matches import note_words_alone, print_score

    out.print_styled(clean_line(explanation.headline), "bold")
    _print_reasons(explanation.reasons, out)
    if explanation.better:
        out.print()
        columns = [Column("better fit", style="bold"), Column("score", right=True), Column("ahead by")]
        rows: list[list[str | Cell]] = []
        for other in explanation.better:
            rows.append([other.match.name, f"{other.match.score:.2f}", other.describe_advantages()])
        out.print_table(columns, rows)
    if explanation.match is not None:
        out.print()
        out.print_styled(clean_line(explanation.describe_rank()))
        print_score(explanation.match, explanation.request, out)
    if explanation.level is not None:
        out.print()
        verb = "shows" if explanation.is_usable else "would show"
        out.print_styled(f"In every call, the listing {verb} {describe_level(explanation.level)} to the model.")
    if explanation.comes_up and (explanation.rank == 1 or explanation.level is not None):
        out.print_styled(
            "Whether the model then loads it is up to the model: `skillshelf eval` measures how often it does.", "dim"
        )
    if explanation.threshold:
        note_words_alone(out)


def _as_json(explanation: RequestExplanation) -> dict[str, Any]:
    from skillshelf.cli._matches import match_as_json
    from skillshelf.search import is_similarity_installed

    answer: dict[str, Any] = {
        "name": explanation.name,
        "query": explanation.request,
        "comes_up": explanation.comes_up,
        "obstacles": [asdict(reason) for reason in explanation.reasons],
        "listed": _LEVELS[explanation.level],
        "rank": explanation.rank,
        "threshold": explanation.threshold,
        "with_similarity": is_similarity_installed(),
        "rivals": [
            {
                "name": other.match.name,
                "score": other.match.score,
                "leads": [asdict(advantage) for advantage in other.advantages],
            }
            for other in explanation.better
        ],
    }
    if explanation.match is not None:
        answer["match"] = match_as_json(explanation.match, explanation.request)
    return answer
