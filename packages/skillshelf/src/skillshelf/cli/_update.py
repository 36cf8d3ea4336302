"""`skillshelf update`: newer versions of installed skills, merged with the user's edits."""

import argparse
import sys
from collections.abc import Iterable

from skillshelf.cli._add import review_and_install
from skillshelf.cli._errors import CommandError
from skillshelf.cli._installed import add_user_option, fetching, find_installation, read_pinned
from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser
from skillshelf.registry import Newest, Update, find_newest, merge_newest, undo_update

EXAMPLES = """
  skillshelf update                     everything that is newer, after a review of the difference
  skillshelf update pdf-forms           one skill; without a newer version, this pins your edits
  skillshelf update --dry-run           only show the differences
  skillshelf update --undo              bring back what the last update replaced
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="an installed skill; all, without a name")
    parser.add_argument("--undo", action="store_true", help="bring back what the last update replaced")
    parser.add_argument("--yes", action="store_true", help="approve without a question; the review is printed")
    parser.add_argument("--dry-run", action="store_true", help="show everything and install nothing")
    add_user_option(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    installation = find_installation(args)
    if args.undo:
        names = undo_update(installation, args.names)
        lock = read_pinned(installation)
        if args.json:
            out.print_json({"undone": names})
        for name in [] if args.json else names:
            back = str(lock.skills[name].pin)
            out.print(f"{name}: the version before is back{f', {back}' if back else ''}")
        return 0
    if args.json and not (args.yes or args.dry_run):
        raise CommandError("--json asks no questions.", "Add --dry-run to look, or --yes to install.")

    lock = read_pinned(installation)
    unknown = [name for name in args.names if name not in lock.skills]
    if unknown:
        raise CommandError(f"{unknown[0]!r:.80} is not in {installation.lock_path}.", "`skillshelf tree` lists them.")
    with fetching("newer versions"):
        found = find_newest(installation, [lock.skills[name] for name in args.names or lock.skills])
    for newest in found:
        if newest.problem:
            complain(f"{newest.skill.name}: {newest.problem}")
    updates = [
        merge_newest(installation, newest)
        for newest in found
        if newest.content and (newest.is_newer or newest.skill.name in args.names)
    ]
    updates = [update for update in updates if _changes_something(update, found)]
    if not args.json:
        _print_conflicts(updates, out)
        if not updates:
            out.print("There is nothing newer.")
    installed = []
    if updates:
        is_asking = sys.stdin.isatty() and out.is_terminal and not args.yes
        installed = review_and_install(args, installation, updates, out, is_asking=is_asking)
    if args.json:
        conflicts = {update.name: update.conflicts for update in updates if update.conflicts}
        skills = [
            {
                "name": update.name,
                "pinned": lock.skills[update.name].pin.text,
                "newest": update.new.locked.pin.text,
                "edited": bool(update.new.locked.upstream),
            }
            for update in updates
        ]
        done = [update.name for update in installed]
        out.print_json({"skills": skills, "updated": done, "conflicts": conflicts})
    else:
        _report(installed, out)
    is_settled = len(installed) == len(updates) and not any(update.conflicts for update in installed)
    return 0 if (args.dry_run or is_settled) and not any(newest.problem for newest in found) else 1


def _changes_something(update: Update, found: Iterable[Newest]) -> bool:
    pinned = next(newest.skill for newest in found if newest.skill.name == update.name)
    return update.new.locked != pinned or update.before is None


def _print_conflicts(updates: Iterable[Update], out: Output) -> None:
    for update in updates:
        for conflict in update.conflicts:
            out.print_styled(f"{update.name}/{conflict}", "yellow")


def _report(installed: Iterable[Update], out: Output) -> None:
    for update in installed:
        locked = update.new.locked
        edits = " with your edits" if locked.upstream else ""
        out.print_styled(f"updated {update.name} to {str(locked.pin) or 'what is there now'}{edits}", "green")
        if update.conflicts:
            complain(
                f"{update.name} has conflicts. Settle them in its files, then `skillshelf update {update.name}` pins "
                f"the result."
            )
