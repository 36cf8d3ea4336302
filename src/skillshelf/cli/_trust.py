"""`skillshelf trust`: look at what a workspace brings, and say which of it the agent may use."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.cli._output import Output, complain, plural, shown_path
from skillshelf.errors import SkillNotFoundError, SourceError, TrustError
from skillshelf.tables import Column

if TYPE_CHECKING:
    from skillshelf.trust import Pending

EXAMPLES = """
  skillshelf trust                      look at each skill or eval folder that is new or changed, and decide
  skillshelf trust --list               what is approved here, and what is pending
  skillshelf trust --show pdf-forms     everything in a pending skill
  skillshelf trust --yes pdf-forms      approve it exactly as it is now
  skillshelf trust --revoke pdf-forms   take that back, for every version of it
"""
_COLUMNS = (Column("name", style="bold"), Column("status", style="cyan"), Column("approved"), Column("where"))
_QUESTION = "[y]es / [n]o / [a]ll that are left / [q]uit (no): "
_ALONE = (
    "Nobody is here to ask. Look at them with `skillshelf trust --show NAME`, approve with "
    "`skillshelf trust --yes NAME`, or run `skillshelf trust` in a terminal."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="what is approved here, and what is pending")
    what.add_argument("--show", metavar="NAME", help="everything in a pending skill, and what changed in it")
    what.add_argument("--yes", metavar="NAME", nargs="+", help="approve these exactly as they are now")
    what.add_argument("--revoke", metavar="NAME", nargs="*", help="approve these no longer, in any version")
    parser.add_argument("--all", action="store_true", help="with --revoke: all that is approved here")


def run(args: argparse.Namespace, out: Output) -> int:
    if (args.revoke == []) != args.all or (args.all and args.revoke is None):
        complain("skillshelf trust: --revoke takes names, or --all; --all goes with --revoke only")
        return 2
    here = _Here(args.workspace)
    for problem in here.trust.problems:
        complain(problem)
    if args.show:
        return _show(here, args.show, args.json, out)
    if args.yes:
        _approve(here, [one.pending or one for one in map(here.find, args.yes)], out, args.json)
    elif args.revoke is not None:
        _revoke(here, here.approved if args.all else [here.find(name) for name in args.revoke], out, args.json)
    elif not (args.list or args.json):
        return _ask(here, out)
    if args.json:
        out.print_json({"skills": [one.as_json() for one in here.rows()], "problems": list(here.trust.problems)})
    elif args.list:
        _list(here, out)
    return 1 if here.pending and (args.list or args.json) else 0


class _Row(NamedTuple):
    """A skill, a file of instructions or a folder of eval cases in the workspace, and what the user said of it."""

    key: str
    name: str
    location: str
    tree: str
    """That was agreed to; empty where none was."""
    pending: "Pending | None"

    @property
    def status(self) -> str:
        return self.pending.status if self.pending else "approved"

    def as_json(self) -> dict[str, Any]:
        tree = self.pending.tree if self.pending else self.tree
        blocked = {"blocked": self.pending.blocked} if self.pending and self.pending.blocked else {}
        facts = {"name": self.name, "status": self.status, "location": self.location, "tree": tree}
        return {**facts, "approved": self.tree or None, **blocked}


class _Here:
    """The workspace as the agent would see it."""

    def __init__(self, workspace: str) -> None:
        from skillshelf.sources import DirectorySource
        from skillshelf.trust import Trust, TrustedSource

        if not os.path.isdir(workspace):
            raise SourceError(f"There is no folder {workspace!r} to take as the workspace.")
        self.trust = Trust.open()
        self.source = TrustedSource(DirectorySource(workspace, "project"), self.trust)

    def rows(self) -> list[_Row]:
        """What is here, by place, and what was approved here and is not here now."""
        from skillshelf.trust import INSTRUCTION_FILES, trusted_text

        self.source.refresh()
        root, approvals = self.source.root, self.trust.approvals
        found = {key: _Row(key, name, f"{root}/{key}", tree, None) for key, (name, tree) in self.source.served.items()}
        files = [trusted_text(f"{root}/{name}", self.trust)[1] for name in INSTRUCTION_FILES]
        for one in (*self.source.pending, *filter(None, files)):
            tree = one.copy.tree if one.copy else ""
            found[one.key] = _Row(one.key, one.name, f"{root}/{one.key.lstrip('/')}", tree, one)
        for key, row in self._eval_rows().items():
            found.setdefault(key, row)
        for key in approvals.places.get(root, {}) if not self.source.refusal else ():
            tree = approvals.last(root, key)
            if tree and key not in found:
                found[key] = _Row(key, approvals.trees[tree].name, f"{root}/{key.lstrip('/')}", tree, None)
        return [found[key] for key in sorted(found, key=lambda key: (found[key].name, key))]

    def _eval_rows(self) -> dict[str, _Row]:
        """Return the folders of eval cases, by place; those of skills are part of the skills."""
        from skillshelf.evals.formats import find_case_files, find_folder_to_approve

        folders = dict.fromkeys(find_folder_to_approve(path) for path in find_case_files([self.source.root]))
        rows = [self._folder_row(folder) for folder in folders if self._is_below(folder)]
        return {row.key: row for row in rows}

    def _folder_row(self, folder: str) -> _Row:
        from skillshelf.trust import pending_folder

        root = self.source.root
        key = os.path.relpath(folder, root) if folder != root else ""
        pending = pending_folder(folder, root, self.trust)
        if pending:
            tree = pending.copy.tree if pending.copy else ""
            return _Row(key, pending.name, pending.location, tree, pending)
        return _Row(key, key or os.path.basename(root), folder, self.trust.approvals.last(root, key), None)

    def _is_below(self, folder: str) -> bool:
        return f"{folder}/".startswith(self.source.root.rstrip("/") + "/")

    @property
    def pending(self) -> "list[Pending]":
        return [one.pending for one in self.rows() if one.pending]

    @property
    def approved(self) -> list[_Row]:
        return [one for one in self.rows() if one.tree]

    def find(self, name: str) -> _Row:
        """By name, or by place where several have the name."""
        rows = self.rows()
        by_place = [one for one in rows if name.rstrip("/") in (one.key, one.location, shown_path(one.location))]
        found = by_place or [one for one in rows if one.name == name]
        folder = os.path.realpath(name)
        if not found and os.path.isdir(folder) and self._is_below(folder):
            return self._folder_row(folder)  # such as recordings of evals
        if not found:
            raise SkillNotFoundError(name, [one.name for one in rows if name in one.name][:3])
        if len(found) > 1:
            places = ", ".join(shown_path(one.location) for one in found)
            raise TrustError(f"Several skills are named {name!r}. Give the path of the one you mean: {places}.")
        return found[0]


def _show(here: _Here, name: str, json: bool, out: Output) -> int:
    from skillshelf.trust import review_text

    row = here.find(name)
    if json:
        out.print_json({**row.as_json(), **({"review": review_text(row.pending)} if row.pending else {})})
    elif row.pending:
        out.write(review_text(row.pending))
    else:
        out.print(f"{row.name} is approved as it is: {row.tree}")
    return 0


def _approve(here: _Here, chosen: "Sequence[Pending | _Row]", out: Output, quiet: bool = False) -> None:
    for one in chosen:
        if not isinstance(one, _Row):
            here.trust.approve(one)
        if not quiet:
            out.print(f"approved {one.name} {one.tree}")


def _revoke(here: _Here, rows: list[_Row], out: Output, quiet: bool) -> None:
    for row in rows:
        trees = here.source.revoke(row.key)
        if not quiet:
            versions = plural(len(trees), "version") if trees else "it was not approved"
            out.print(f"revoked {row.name} ({versions})")


def _list(here: _Here, out: Output) -> None:
    rows = here.rows()
    if rows:
        out.print_table(_COLUMNS, [[one.name, one.status, one.tree[:16], shown_path(one.location)] for one in rows])
        out.print()
    waiting = sum(one.pending is not None for one in rows)
    out.print_styled(f"{len(rows) - waiting} approved, {waiting} pending", "dim")


def _ask(here: _Here, out: Output) -> int:
    """One listing, then one question for each; whatever is not a clear yes is a no."""
    from skillshelf.trust import review_text, summary

    pending = here.pending
    if not pending:
        out.print("Nothing is pending: every skill of this workspace is as you agreed to it, or there is none.")
        return 0
    out.print(f"{_count(pending)} in {shown_path(here.source.root)}:")
    for one in pending:
        out.print(f"  {summary(one)}")
    if not (sys.stdin.isatty() and out.is_terminal):
        complain(_ALONE)
        return 1
    everything, said_yes = False, 0
    for at, one in enumerate(pending, 1):
        answer = "y" if everything else ""
        if not everything:
            out.write(f"\n{review_text(one)}\n")
            answer = (
                "n" if one.blocked else _answer(f"({at}/{len(pending)}) Approve {one.name} as it is now? {_QUESTION}")
            )
        if answer == "q":
            break
        everything = everything or answer == "a"
        if answer in ("y", "a") and not one.blocked:
            said_yes += _said_yes(here, one, out)
    return 0 if said_yes == len(pending) else 1


def _count(pending: "Sequence[Pending]") -> str:
    """Count what waits: skills and instructions, and folders of eval cases that are not skills."""
    suites = sum(os.path.isdir(one.location) for one in pending)
    skills = len(pending) - suites
    counts = [plural(skills, "pending skill")] if skills else []
    counts += [plural(suites, "pending eval folder")] if suites else []
    return " and ".join(counts)


def _said_yes(here: _Here, one: "Pending", out: Output) -> bool:
    try:
        _approve(here, [one], out)
    except TrustError as error:
        complain(str(error))
        return False
    return True


def _answer(question: str) -> str:
    """What the person types now: what was typed before the question is no answer to it."""
    import termios

    from skillshelf.text import clean_line

    sys.stdout.write(clean_line(question))
    sys.stdout.flush()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    line = sys.stdin.readline()
    if not line:  # the terminal was closed
        return "q"
    word = line.strip().lower()
    return {"yes": "y", "all": "a", "quit": "q"}.get(word, word)
