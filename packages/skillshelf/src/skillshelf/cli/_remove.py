"""`skillshelf remove`: remove installed skills, from the disk and from skills.lock."""

import argparse

from skillshelf.cli._installed import add_user_option, find_installation
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.registry import remove

EXAMPLES = """
  skillshelf remove pdf-forms           remove a skill that was installed with `add`
  skillshelf remove --yes pdf-forms     even if it was edited
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+", help="an installed skill")
    parser.add_argument("--yes", action="store_true", help="give up edits")
    add_user_option(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    names = list(dict.fromkeys(args.names))
    remove(find_installation(args), names, discard_edits=args.yes)
    if args.json:
        out.print_json({"removed": names})
        return 0
    for name in names:
        out.print(f"removed {name}")
    return 0
