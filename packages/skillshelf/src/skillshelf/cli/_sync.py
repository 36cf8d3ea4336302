"""`skillshelf sync`: install what skills.lock pins and is missing or outdated, and remove what it no longer pins.

What pyproject.toml lists and the lock does not pin is installed too.
"""

import argparse
from collections.abc import Sequence

from skillshelf.cli._errors import CommandError
from skillshelf.cli._installed import (
    add_user_option,
    count_states,
    fetching,
    find_installation,
    print_statuses,
    read_pinned,
    status_as_json,
)
from skillshelf.cli._output import Output, complain
from skillshelf.cli._parsers import Parser
from skillshelf.errors import RegistryError
from skillshelf.registry import (
    Installation,
    LockedSkill,
    WantedSkills,
    compare,
    find_wanted,
    install_wanted,
    is_in_sync,
    is_interrupted,
    read_lock,
    read_lock_bytes,
    show_origin,
    sync,
)
from skillshelf.text import count_noun
from skillshelf.trust import Trust

EXAMPLES = """
  skillshelf sync                       make the folders match the lock; edited skills stay as they are
  skillshelf sync --yes                 give up edits
  skillshelf sync --frozen              change nothing, and fail if anything differs: for CI
"""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--frozen", action="store_true", help="change nothing; exit code 1 if a skill differs")
    parser.add_argument("--yes", action="store_true", help="give up edits")
    add_user_option(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    if args.frozen and args.yes:
        raise CommandError("--frozen changes nothing, so it has nothing to do with --yes.")
    installation = find_installation(args)
    wanted = find_wanted(installation)
    if not wanted and is_in_sync(installation, read_lock_bytes(installation.lock_path)):
        return _report(args, out)
    if args.frozen:
        return _check_frozen(installation, wanted, args, out)

    if not wanted:
        read_pinned(installation)
    with fetching("what skills.lock pins"):
        report = sync(installation, discard_edits=args.yes)
        if wanted:
            new = install_wanted(installation, wanted)
            report = report._replace(installed=(*report.installed, *(skill.name for skill in new)))
    lock = read_lock(installation.lock_path)
    if args.json:
        skills = [status_as_json(status) for status in report.edited]
        out.print_json({"installed": report.installed, "removed": report.removed, "skills": skills})
        return 1 if report.edited else 0
    for name in report.installed:
        out.print(f"installed {name} {lock.skills[name].pin}".rstrip())
    for name in report.removed:
        out.print(f"removed {name}")
    if report.edited:
        print_statuses(report.edited, out)
        complain("Edited skills stay as they are. `skillshelf sync --yes` gives the edits up.")
        return 1
    if not args.user:
        _mention_review([lock.skills[name] for name in report.installed])
    return 0 if report.installed or report.removed else _report(args, out)


def _mention_review(installed: Sequence[LockedSkill]) -> None:
    approvals = Trust.open().approvals
    waiting = sum(skill.tree not in approvals.trees for skill in installed)
    if waiting:
        complain(f"{count_noun(waiting, 'skill')} to review: run `skillshelf trust`.")


def _report(args: argparse.Namespace, out: Output) -> int:
    if args.json:
        out.print_json({"installed": [], "removed": [], "skills": []})
    else:
        out.print("Everything is as skills.lock pins it.")
    return 0


def _check_frozen(
    installation: Installation, wanted: Sequence[WantedSkills], args: argparse.Namespace, out: Output
) -> int:
    if wanted:
        origin, names = wanted[0]
        raise RegistryError(
            f"pyproject.toml lists {', '.join(names)} of {show_origin(origin)}, which skills.lock does not pin. "
            f"`skillshelf sync` without --frozen installs it."
        )
    statuses = compare(installation, read_pinned(installation))
    is_same = all(status.state == "same" for status in statuses)
    is_cut_short = is_interrupted(installation)
    if args.json:
        out.print_json({"skills": [status_as_json(status) for status in statuses], "interrupted": is_cut_short})
    elif is_same and not is_cut_short:
        return _report(args, out)
    else:
        print_statuses(statuses, out)
        out.print_styled(count_states(statuses), "dim")
        if is_cut_short:
            complain("A change was cut short, or is under way. `skillshelf sync` completes it.")
    return 0 if is_same and not is_cut_short else 1
