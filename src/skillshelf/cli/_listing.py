"""`skillshelf listing`: exactly what a model would see of the shelf."""

import argparse
import sys

from skillshelf.cli._output import Output, complain, plural
from skillshelf.cli._parsers import positive_number
from skillshelf.cli._workspace import open_shelf
from skillshelf.listing import DEFAULT_BUDGET, Listing, to_xml

EXAMPLES = """
  skillshelf listing                            as `Shelf.listing()` makes it
  skillshelf listing --disclosure catalog       names, descriptions and references; no instructions
  skillshelf listing --budget 1000              what remains of it in 1,000 tokens
  skillshelf listing --format xml               as the format's reference library writes it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--disclosure", choices=("auto", "catalog", "full"), default="auto", help="how much is shown (auto)"
    )
    parser.add_argument(
        "--budget",
        metavar="N",
        type=positive_number,
        default=DEFAULT_BUDGET,
        help=f"tokens for `auto` ({DEFAULT_BUDGET})",
    )
    parser.add_argument(
        "--format", choices=("text", "xml"), default="text", help="skillshelf's section (text), or the format's own"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    if args.json and args.format != "text":
        complain(f"skillshelf listing: --json and --format {args.format} exclude each other; give one of them")
        return 2
    shelf = open_shelf(args)
    if args.format == "xml":
        out.print(to_xml(skill for skill in shelf.catalog.values() if skill.disclosure != "manual"))
        return 0
    listing = shelf.listing(args.disclosure, args.budget)
    if args.json:
        shortened = [{"name": one.name, "what": one.what} for one in listing.shortened]
        out.print_json(
            {"text": listing.text, "tokens": listing.tokens, "shortened": shortened, "full": list(listing.full)}
        )
        return 0
    out.write(listing.text)
    if sys.stderr.isatty():
        complain(_account(listing))
    return 0


def _account(listing: Listing) -> str:
    kinds: dict[str, list[str]] = {}
    for one in listing.shortened:
        kinds.setdefault(one.what, []).append(one.name)
    words = {
        "description": "with a shortened description",
        "references": "without all references",
        "instructions": "without the instructions it asks to show",
        "omitted": "left out",
    }
    said = [f"{plural(len(names), 'skill')} {words[what]}" for what, names in kinds.items()]
    return f"\n{listing.tokens:,} tokens in every call; {plural(len(listing.full), 'skill')} in full" + "".join(
        f"; {one}" for one in said
    )
