"""`skillshelf search`: the skills that fit a task."""

import argparse
from dataclasses import asdict
from typing import Any

from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser, positive_number
from skillshelf.cli._workspace import open_shelf, skill_as_json
from skillshelf.search import Match
from skillshelf.text import clean_line

EXAMPLES = """
  skillshelf search fill in a pdf form
  skillshelf search --limit 1 --json deploy
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="the task in a few words")
    parser.add_argument(
        "--limit", metavar="N", type=positive_number, default=5, help="show at most N skills (default: 5)"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    query = " ".join(args.query)
    matches = open_shelf(args).search(query, args.limit)
    if args.json:
        out.print_json({"query": query, "matches": [_match_as_json(match) for match in matches]})
        return 0 if matches else 1
    if not matches:
        complain(f"No skill fits {query!r}. `skillshelf list` shows all skills.")
        return 1

    for rank, match in enumerate(matches, 1):
        skill = match.descriptor
        out.print_styled(f"{rank}. {clean_line(match.name)}  ({skill.source})", "bold")
        out.print_styled(out.shorten(clean_line(skill.description), lines=2), indent=3)
        out.print_styled(f"{match.score:.2f}  {clean_line(', '.join(match.why))}", "dim", indent=3)
        if match.copies:
            out.print_styled(f"copies: {clean_line(', '.join(match.copies))}", "dim", indent=3)
    return 0


def _match_as_json(match: Match) -> dict[str, Any]:
    return {
        "score": match.score,
        "next_score": match.next_score,
        "reasons": list(match.why),
        "words": [asdict(word) for word in match.words],
        "similarity_share": match.similarity_share,
        "copies": list(match.copies),
        **skill_as_json(match.descriptor),
        "name": match.name,
    }
