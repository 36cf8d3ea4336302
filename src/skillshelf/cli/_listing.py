"""`skillshelf listing`: exactly what a model sees of the shelf."""

import argparse
import sys

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser, positive_number
from skillshelf.cli._workspace import open_shelf
from skillshelf.listing import DEFAULT_BUDGET, Listing, to_xml
from skillshelf.settings import load_settings
from skillshelf.text import count_noun

EXAMPLES = """
  skillshelf listing                            the section that `Shelf.listing()` returns
  skillshelf listing --disclosure catalog       names, descriptions and references; no instructions
  skillshelf listing --budget 1000              what fits into 1,000 tokens
  skillshelf listing --for "fill in a form"     what a conversation that begins like this gets
  skillshelf listing --format xml               as the format's reference library writes it
"""
_SHORTENED = {
    "description": "with a shortened description",
    "references": "without all references",
    "instructions": "without the instructions that should be shown",
    "omitted": "left out",
}


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--disclosure", choices=("auto", "catalog", "full"), help="how much to show (your settings', or auto)"
    )
    parser.add_argument(
        "--budget",
        metavar="N",
        type=positive_number,
        help=f"the most tokens that `auto` may use (your settings', or {DEFAULT_BUDGET})",
    )
    parser.add_argument(
        "--for", dest="message", metavar="TEXT", help="describe first what fits this message, if not all skills fit"
    )
    parser.add_argument(
        "--format", choices=("text", "xml"), default="text", help="skillshelf's section (text), or the format's own"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    if args.json and args.format != "text":
        raise CommandError(f"--json and --format {args.format} cannot be used together.", "Give one of them.")
    if args.message is not None and args.format != "text":
        raise CommandError(f"--for and --format {args.format} cannot be used together.", "Give one of them.")
    shelf = open_shelf(args)
    if args.format == "xml":
        out.print(to_xml(skill for skill in shelf.catalog.values() if skill.disclosure != "manual"))
        return 0
    settings = load_settings({"disclosure": args.disclosure, "budget": args.budget})
    listing = shelf.listing(settings.disclosure, settings.budget)
    if args.message is not None:
        route = shelf.route(args.message, disclosure=settings.disclosure, budget=settings.budget)
        listing = route.listing
    if args.json:
        shortened = [{"name": entry.name, "what": entry.what} for entry in listing.shortened]
        facts = {"text": listing.text, "tokens": listing.tokens, "shortened": shortened, "full": list(listing.full)}
        out.print_json(facts)
        return 0
    out.write(listing.text)
    if sys.stderr.isatty():
        complain(_summarize(listing))
    return 0


def _summarize(listing: Listing) -> str:
    """Return the price of the listing, and what it leaves out."""
    names: dict[str, list[str]] = {}
    for entry in listing.shortened:
        names.setdefault(entry.what, []).append(entry.name)
    parts = [f"\n{listing.tokens:,} tokens in every call", f"{count_noun(len(listing.full), 'skill')} in full"]
    for what, skills in names.items():
        parts.append(f"{count_noun(len(skills), 'skill')} {_SHORTENED[what]}")
    return "; ".join(parts)
