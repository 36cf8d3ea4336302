"""The installed skills that a command works on: the workspace's, or with --user the user's own."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import locate_workspace
from skillshelf.registry import (
    Installation,
    SkillsLock,
    SkillStatus,
    project_installation,
    read_lock,
    show_origin,
    user_installation,
)
from skillshelf.text import clean_line

CHANGES = {"added": "new", "removed": "gone", "changed": "changed", "mode": "executable or not"}


def add_user_option(parser: Parser) -> None:
    parser.add_argument(
        "--user", action="store_true", help="your own skills in ~/.agents/skills, instead of the workspace's"
    )


def find_installation(args: argparse.Namespace) -> Installation:
    """Return the installed skills that the options mean. Raises RegistryError or SourceError."""
    if args.user:
        return user_installation()
    return project_installation(locate_workspace(args).root)


@contextmanager
def fetching(what: str) -> Iterator[None]:
    """Show on a terminal that something is being fetched, and for how long. Ask nothing in the block."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Fetching {task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(clean_line(what), total=None)
        yield


def read_pinned(installation: Installation) -> SkillsLock:
    """Return the lock. Raises CommandError if there is none: a check of nothing must not pass."""
    if not os.path.lexists(installation.lock_path):
        raise CommandError(
            f"There is no {shown_path(installation.lock_path)}.",
            "`skillshelf add SOURCE` installs a skill and writes it.",
            code="no-lock",
        )
    return read_lock(installation.lock_path)


def print_statuses(statuses: Iterable[SkillStatus], out: Output) -> None:
    """Print the skills that are not as pinned, with the files that differ."""
    for status in statuses:
        if status.state == "same":
            continue
        out.print_styled(f"{status.name}: {status.state}", "bold")
        if status.fault:
            out.print(f"  {status.fault}")
        for difference in status.differences:
            out.print(f"  {CHANGES[difference.change]}: {difference.path}")


def status_as_json(status: SkillStatus) -> dict[str, Any]:
    return {
        "name": status.name,
        "from": show_origin(status.skill.origin),
        "pinned": status.skill.pin.text,
        "locked": status.skill.tree,
        "tree": status.tree,
        "state": status.state,
        "edited": status.state == "edited" or bool(status.skill.upstream),
        "differences": [difference._asdict() for difference in status.differences],
        "problem": status.fault,
    }


def count_states(statuses: Sequence[SkillStatus]) -> str:
    """Return a line such as `2 skills as pinned, 1 edited`."""
    same = sum(status.state == "same" for status in statuses)
    counts = [f"{same} as pinned"]
    for state in ("edited", "missing"):
        count = sum(status.state == state for status in statuses)
        if count:
            counts.append(f"{count} {state}")
    return ", ".join(counts)
