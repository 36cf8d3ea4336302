"""`skillshelf verify`: hash every file of the installed skills, and name those that differ from skills.lock."""

import argparse

from skillshelf.cli._installed import (
    add_user_option,
    count_states,
    find_installation,
    print_statuses,
    read_pinned,
    status_as_json,
)
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.registry import compare, count_same

EXAMPLES = """
  skillshelf verify                     the skills of the workspace; exit code 1 if one differs
  skillshelf verify --user              your own in ~/.agents/skills
"""


def add_arguments(parser: Parser) -> None:
    add_user_option(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    installation = find_installation(args)
    same = None if args.json else count_same(installation)
    if same is not None:
        out.print_styled(f"{same} as pinned", "dim")
        return 0
    statuses = compare(installation, read_pinned(installation))
    if args.json:
        out.print_json({"skills": [status_as_json(status) for status in statuses]})
    else:
        print_statuses(statuses, out)
        out.print_styled(count_states(statuses), "dim")
    return 0 if all(status.state == "same" for status in statuses) else 1
