"""`skillshelf why NAME --for REQUEST`: why a skill comes up for a request, or does not."""

import argparse
from dataclasses import asdict
from typing import Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._matches import match_as_json, note_words_alone, print_score
from skillshelf.cli._output import Output
from skillshelf.cli._workspace import open_shelf, prepare_search
from skillshelf.listing import Level
from skillshelf.search import is_similarity_installed
from skillshelf.settings import load_settings
from skillshelf.standing import Standing, describe_level, explain_standing
from skillshelf.tables import Cell, Column
from skillshelf.text import clean_line

_LEVELS = {
    Level.NAME: "name",
    Level.SHORT: "shortened",
    Level.WHOLE: "description",
    Level.FULL: "instructions",
    None: "nothing",
}
"""What the listing shows of a skill, for another program."""


def explain(args: argparse.Namespace, out: Output) -> int:
    """Print how a skill stands with a request. Returns 0 if the model comes across it, otherwise 1."""
    request = args.request.strip()
    if not request:
        raise CommandError("The request is empty.", "Give the user's words: --for 'fill in this form'.")
    settings = load_settings({})
    shelf = open_shelf(args)
    prepare_search(shelf)
    standing = explain_standing(
        shelf,
        args.name,
        request,
        disclosure=settings.disclosure,
        budget=settings.budget,
        attachable=_list_attachable(),
    )
    if args.json:
        out.print_json(_standing_as_json(standing))
    else:
        _print_standing(standing, out)
    return 0 if standing.comes_up else 1


def _list_attachable() -> dict[str, str]:
    """Return how to attach each bundled skill, by name."""
    from skillshelf.bundled import ATTACHABLE

    ways = {}
    for skill in ATTACHABLE:
        way = f"attach it: --with {skill.usage}"
        obstacle = skill.find_obstacle()
        ways[skill.name] = f"{obstacle.command}, then {way}" if obstacle else way
    return ways


def _print_standing(standing: Standing, out: Output) -> None:
    out.print_styled(clean_line(standing.headline), "bold")
    for obstacle in standing.obstacles:
        out.print()
        out.print_styled(f"{obstacle.code}: {clean_line(obstacle.message)}", "yellow")
        if obstacle.fix:
            out.print_styled(f"fix: {clean_line(obstacle.fix)}", "cyan", indent=2)
    if standing.rivals:
        out.print()
        _print_rivals(standing, out)
    if standing.match is not None:
        out.print()
        out.print_styled(clean_line(standing.describe_rank()))
        print_score(standing.match, standing.request, out)
    if standing.level is not None:
        out.print()
        verb = "shows" if standing.is_usable else "would show"
        out.print_styled(f"In every call, the listing {verb} {describe_level(standing.level)} to the model.")
    if standing.comes_up and (standing.rank == 1 or standing.level is not None):
        out.print_styled(
            "Whether the model then loads it is up to the model: `skillshelf eval` measures how often it does.", "dim"
        )
    if standing.threshold:
        note_words_alone(out)


def _print_rivals(standing: Standing, out: Output) -> None:
    columns = [
        Column("better fit", style="bold"),
        Column("score", right=True),
        Column("ahead by"),
    ]
    rows: list[list[str | Cell]] = []
    for rival in standing.rivals:
        rows.append([rival.match.name, f"{rival.match.score:.2f}", rival.describe_leads()])
    out.print_table(columns, rows)


def _standing_as_json(standing: Standing) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "name": standing.name,
        "query": standing.request,
        "comes_up": standing.comes_up,
        "obstacles": [asdict(obstacle) for obstacle in standing.obstacles],
        "listed": _LEVELS[standing.level],
        "rank": standing.rank,
        "threshold": standing.threshold,
        "with_similarity": is_similarity_installed(),
        "rivals": [
            {
                "name": rival.match.name,
                "score": rival.match.score,
                "leads": [asdict(lead) for lead in rival.leads],
            }
            for rival in standing.rivals
        ],
    }
    if standing.match is not None:
        answer["match"] = match_as_json(standing.match, standing.request)
    return answer
