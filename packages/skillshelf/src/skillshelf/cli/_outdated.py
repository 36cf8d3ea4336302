"""`skillshelf outdated`: which installed skills have a newer version. Changes nothing."""

import argparse
from typing import Any

from skillshelf.cli._installed import add_user_option, fetching, find_installation, read_pinned
from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser
from skillshelf.registry import Newest, find_newest, show_origin
from skillshelf.text import count_noun
from skillshelf.text.tables import Column

EXAMPLES = """
  skillshelf outdated                   look at the sources; `update` installs what is newer
  skillshelf outdated --json            for scripts
"""
_COLUMNS = (
    Column("name", style="bold"),
    Column("pinned"),
    Column("newest"),
    Column("note", style="cyan"),
    Column("from"),
)


def add_arguments(parser: Parser) -> None:
    add_user_option(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    installation = find_installation(args)
    skills = read_pinned(installation).skills.values()
    with fetching("newer versions"):
        found = find_newest(installation, skills)
    failed = any(newest.problem for newest in found)
    if args.json:
        out.print_json({"skills": [_as_json(newest) for newest in found]})
        return 1 if failed else 0
    for newest in found:
        if newest.problem:
            complain(f"{newest.skill.name}: {newest.problem}")
    rows = [_describe(newest) for newest in found if newest.is_newer]
    if rows:
        out.print_table(_COLUMNS, rows)
    count = sum(newest.is_newer for newest in found)
    out.print_styled(f"{count} of {count_noun(len(found), 'skill')} can be updated", "dim")
    return 1 if failed else 0


def _describe(newest: Newest) -> list[str]:
    skill = newest.skill
    note = "pinned with your edits" if skill.upstream else ""
    return [skill.name, str(skill.pin), str(newest.pin) or "changed", note, show_origin(skill.origin)]


def _as_json(newest: Newest) -> dict[str, Any]:
    return {
        "name": newest.skill.name,
        "from": show_origin(newest.skill.origin),
        "pinned": newest.skill.pin.text,
        "newest": newest.pin.text,
        "newer": newest.is_newer,
        "problem": newest.problem,
    }
