"""`skillshelf search`: which skill fits?"""

import argparse

from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import positive_number
from skillshelf.cli._workspace import as_json, open_shelf
from skillshelf.text import clean_line

EXAMPLES = """
  skillshelf search fill in a pdf form
  skillshelf search --limit 1 --json deploy
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="what the task is about, in a few words")
    parser.add_argument("--limit", metavar="N", type=positive_number, default=5, help="at most so many skills (5)")


def run(args: argparse.Namespace, out: Output) -> int:
    query = " ".join(args.query)
    matches = open_shelf(args).search(query, max(0, args.limit))
    if args.json:
        found = [{"score": match.score, "why": list(match.why), **as_json(match.descriptor)} for match in matches]
        out.print_json({"query": query, "matches": found})
    elif not matches:
        complain(f"No skill fits {query!r}. `skillshelf list` names them all.")
    for rank, match in enumerate(() if args.json else matches, 1):
        out.print_styled(f"{rank}. {clean_line(match.descriptor.name)}  ({match.descriptor.source})", "bold")
        out.print_styled(out.shorten(clean_line(match.descriptor.description), lines=2), indent=3)
        out.print_styled(f"{match.score:.1f}  {', '.join(match.why)}", "dim", indent=3)
    return 0 if matches else 1
