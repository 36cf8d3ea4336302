"""`skillshelf trust`: review the skills of a workspace and decide which of them the agent may use."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import locate_workspace
from skillshelf.errors import SkillNotFoundError, TrustError
from skillshelf.files import is_at_or_inside
from skillshelf.tables import Column
from skillshelf.text import clean_line, count_noun
from skillshelf.workspace import Workspace

if TYPE_CHECKING:
    from skillshelf.trust import OwnRepository, Pending, ReviewQuestion, Trust, TrustedSource

EXAMPLES = """
  skillshelf trust                      review each new or changed skill and eval folder, and decide
  skillshelf trust --list               list approved and pending skills
  skillshelf trust --show pdf-forms     show everything in a pending skill
  skillshelf trust --yes pdf-forms      approve it exactly as it is now
  skillshelf trust --revoke pdf-forms   withdraw the approval of all its versions
  skillshelf trust --mine               declare this repository your own: its skills apply as they change
"""
_COLUMNS = (Column("name", style="bold"), Column("status", style="cyan"), Column("approved"), Column("where"))
_NOT_A_TERMINAL = (
    "This is not a terminal, so there is no one to ask. Look at them with `skillshelf trust --show NAME`, approve with "
    "`skillshelf trust --yes NAME`, or run `skillshelf trust` in a terminal."
)
_SHOWN_DIGITS = 16


def add_arguments(parser: Parser) -> None:
    task = parser.add_mutually_exclusive_group()
    arguments = [
        task.add_argument("--list", action="store_true", help="list approved and pending skills"),
        task.add_argument("--show", metavar="NAME", help="show everything in a pending skill, and what changed in it"),
        task.add_argument("--yes", metavar="NAME", nargs="+", help="approve these exactly as they are now"),
        task.add_argument("--revoke", metavar="NAME", nargs="*", help="withdraw the approval of all their versions"),
        task.add_argument("--mine", action="store_true", help="declare this repository your own: no more questions"),
        task.add_argument("--not-mine", action="store_true", help="review this repository like any other again"),
    ]
    for argument in arguments:
        parser.note_argument(argument)
    parser.add_argument("--all", action="store_true", help="with --revoke: everything that is approved here")


def run(args: argparse.Namespace, out: Output) -> int:
    revokes_all = args.revoke == []
    if revokes_all != args.all:
        raise CommandError("--revoke takes either names or --all, and --all works only with --revoke.")

    workspace = _TrustedWorkspace(locate_workspace(args))
    for problem in workspace.problems:
        complain(problem)
    if args.mine:
        _declare_mine(workspace, out, quiet=args.json)
    elif args.not_mine:
        _disown(workspace, out, quiet=args.json)
    if args.show:
        return _show_item(workspace, args.show, args.json, out)
    if args.yes:
        items = [workspace.find(name) for name in args.yes]
        _approve(workspace, items, out, quiet=args.json)
    elif args.all:
        _revoke(workspace.find_approved(), out, quiet=args.json)
    elif args.revoke is not None:
        items = [workspace.find(name) for name in args.revoke]
        _revoke(items, out, quiet=args.json)
    elif not (args.list or args.json or args.mine or args.not_mine):
        return _review_pending(workspace, out)

    if args.json:
        items = workspace.find_all()
        out.print_json(
            {
                "own": workspace.own is not None,
                "skills": [item.as_json() for item in items],
                "problems": workspace.problems,
            }
        )
    elif args.list:
        _print_list(workspace, out)
    has_pending = bool(workspace.find_pending())
    return 1 if has_pending and (args.list or args.json) else 0


class _Item(NamedTuple):
    """A skill, an instruction file or a folder of eval cases in the workspace, and the user's decision on it."""

    source: "TrustedSource"
    key: str
    name: str
    location: str
    tree: str
    """The hash of the version in use; empty if there is none."""
    pending: "Pending | None"
    unapproved: "Pending | None" = None
    """What is in use because the repository is the user's own, and was never approved."""

    @property
    def status(self) -> str:
        if self.pending:
            return self.pending.status
        return "own" if self.unapproved else "approved"

    @property
    def approved_tree(self) -> str:
        return "" if self.unapproved else self.tree

    def as_json(self) -> dict[str, Any]:
        tree = self.tree
        if self.pending:
            tree = self.pending.tree
        facts: dict[str, Any] = {
            "name": self.name,
            "status": self.status,
            "path": self.location,
            "tree": tree,
            "approved": self.approved_tree or None,
        }
        if self.pending and self.pending.blocked:
            facts["blocked"] = self.pending.blocked
        return facts


class _TrustedFolder:
    """One of the folders with the project's skills, as the agent would see it."""

    def __init__(self, folder: str, trust: "Trust", instruction_files: Sequence[str] = ()) -> None:
        from skillshelf.sources import DirectorySource
        from skillshelf.trust import TrustedSource

        self.trust = trust
        self.source = TrustedSource(DirectorySource(folder, "project"), trust)
        self.root = self.source.root
        self._instruction_files = instruction_files

    def find_all(self) -> list[_Item]:
        """Return everything here that needs approval, and everything that was approved here and is gone now."""
        self.source.refresh()
        items: dict[str, _Item] = {}
        unapproved = {content.key: content for content in self.source.unapproved}
        for key, skill in self.source.served.items():
            location = f"{self.root}/{key}"
            items[key] = _Item(self.source, key, skill.name, location, skill.tree, None, unapproved.get(key))
        for item in self._find_own_instruction_files():
            items[item.key] = item
        for pending in (*self.source.pending, *self._find_pending_instruction_files()):
            location = f"{self.root}/{pending.key}"
            items[pending.key] = _Item(
                self.source, pending.key, pending.name, location, _approved_tree(pending), pending
            )
        for item in self._find_eval_folders():
            items.setdefault(item.key, item)
        if not self.source.refusal:
            for item in self._find_approved_before():
                items.setdefault(item.key, item)
        return list(items.values())

    def _find_pending_instruction_files(self) -> "list[Pending]":
        from skillshelf.trust import trusted_text

        files = []
        for path in self._instruction_files:
            pending = trusted_text(path, self.trust, self.root).pending
            if pending:
                files.append(pending)
        return files

    def _find_own_instruction_files(self) -> list[_Item]:
        from skillshelf.trust import find_unapproved_file

        items = []
        for path in self._instruction_files:
            content = find_unapproved_file(path, self.trust, self.root)
            if content and self.source.own:
                items.append(
                    _Item(self.source, content.key, content.name, content.location, content.tree, None, content)
                )
        return items

    def _find_eval_folders(self) -> list[_Item]:
        """Return the folders of eval cases. Those inside skills are approved with their skill."""
        from skillshelf.evals.formats import find_case_files, find_folder_to_approve

        folders = dict.fromkeys(find_folder_to_approve(path) for path in find_case_files([self.root]))
        return [self.describe_folder(folder) for folder in folders if self.contains(folder)]

    def _find_approved_before(self) -> list[_Item]:
        approvals = self.trust.approvals
        items = []
        for key in approvals.places.get(self.root, {}):
            tree = approvals.last(self.root, key)
            if tree in approvals.trees:
                location = f"{self.root}/{key}"
                items.append(_Item(self.source, key, approvals.trees[tree].name, location, tree, None))
        return items

    def describe_folder(self, folder: str) -> _Item:
        """Return a folder that need not be a skill, such as one with eval cases, with the user's decision on it."""
        from skillshelf.trust import find_pending_folder, find_unapproved_folder

        key = ""
        if folder != self.root:
            key = os.path.relpath(folder, self.root)
        pending = find_pending_folder(folder, self.root, self.trust)
        if pending:
            return _Item(self.source, key, pending.name, pending.location, _approved_tree(pending), pending)
        name = key or os.path.basename(self.root)
        unapproved = find_unapproved_folder(folder, self.root, self.trust)
        tree = self.trust.approvals.last(self.root, key)
        return _Item(self.source, key, name, folder, tree, None, unapproved)

    def contains(self, folder: str) -> bool:
        return is_at_or_inside(folder, self.root)


class _TrustedWorkspace:
    """Everything in a workspace that the agent uses only with the user's approval."""

    def __init__(self, workspace: Workspace) -> None:
        from skillshelf.trust import Trust, find_instruction_files

        self.trust = Trust.open()
        files = [file for folder in workspace.levels() for file in find_instruction_files(folder)]
        outer = [_TrustedFolder(folder, self.trust) for folder in workspace.outer]
        self.root = workspace.root
        self._folders = [_TrustedFolder(workspace.root, self.trust, files), *outer]

    @property
    def own(self) -> "OwnRepository | None":
        """The record of the repository if the user declared it their own."""
        return self.trust.find_own(self.root)

    @property
    def problems(self) -> list[str]:
        """What the user should know about the record: it cannot be used, or the repository was replaced."""
        problems = [*self.trust.problems, self.trust.explain_lost_own(self.root)]
        return [problem for problem in problems if problem]

    def find_all(self) -> list[_Item]:
        """Return everything here that needs approval, and everything that was approved here and is gone now."""
        items = [item for folder in self._folders for item in folder.find_all()]
        return sorted(items, key=lambda item: (item.name, item.location))

    def find_pending(self) -> "list[Pending]":
        return [item.pending for item in self.find_all() if item.pending]

    def find_approved(self) -> list[_Item]:
        return [item for item in self.find_all() if item.tree]

    def find(self, name: str) -> _Item:
        """Return the item with this path or name. Raises TrustError if several have the name."""
        items = self.find_all()
        path = name.rstrip("/")
        matches = [item for item in items if path in (item.key, item.location, shown_path(item.location))]
        if not matches:
            matches = [item for item in items if item.name == name]
        if len(matches) > 1:
            places = ", ".join(shown_path(item.location) for item in matches)
            raise TrustError(f"Several skills are named {name!r}. Give the path of the one you mean: {places}.")
        if matches:
            return matches[0]

        path = os.path.realpath(name)
        for folder in self._folders:
            if os.path.isdir(path) and folder.contains(path):
                return folder.describe_folder(path)  # any other folder, such as recordings of evals
        raise SkillNotFoundError(name, [item.name for item in items if name in item.name][:3])


def _approved_tree(pending: "Pending") -> str:
    """Return the hash of the version that the user approved before, or an empty string."""
    if pending.copy is None:
        return ""
    return pending.copy.tree


def _show_item(workspace: _TrustedWorkspace, name: str, as_json: bool, out: Output) -> int:
    from skillshelf.trust import review_lines, review_text

    item = workspace.find(name)
    content = item.pending or item.unapproved
    if as_json:
        facts = item.as_json()
        if content:
            facts["review"] = review_text(content)
        out.print_json(facts)
    elif content and out.is_terminal:
        from skillshelf.rendering import ReviewPage

        out.print_rich(ReviewPage(review_lines(content)))
    elif content:
        out.write(review_text(content))
    else:
        out.print(f"{item.name} is approved as it is: {item.tree}")
    return 0


def _approve(workspace: _TrustedWorkspace, items: Sequence[_Item], out: Output, *, quiet: bool) -> None:
    for item in items:
        tree = item.tree
        content = item.pending or item.unapproved
        if content:
            workspace.trust.approve(content)
            tree = content.tree
        if not quiet:
            out.print(f"approved {item.name} {tree}")


def _revoke(items: Sequence[_Item], out: Output, *, quiet: bool) -> None:
    for item in items:
        trees = item.source.revoke(item.key)
        if quiet:
            continue
        versions = "it was not approved"
        if trees:
            versions = count_noun(len(trees), "version")
        out.print(f"revoked {item.name} ({versions})")


def _declare_mine(workspace: _TrustedWorkspace, out: Output, *, quiet: bool) -> None:
    from skillshelf.trust import MINE_CONSEQUENCE

    workspace.trust.declare_own(workspace.root)
    workspace.find_all()  # which brings everything into use
    workspace.trust.take_own_changes(workspace.root)  # the user knows what is here now
    if not quiet:
        out.print(f"This repository is your own from now on. {MINE_CONSEQUENCE}")
        out.print("`skillshelf trust --not-mine` takes that back.")


def _disown(workspace: _TrustedWorkspace, out: Output, *, quiet: bool) -> None:
    was_own = workspace.trust.disown(workspace.root)
    if quiet:
        return
    if was_own:
        out.print("This repository is reviewed like any other again.")
    else:
        out.print("This repository was not declared your own, so nothing changes.")


def _print_list(workspace: _TrustedWorkspace, out: Output) -> None:
    items = workspace.find_all()
    own = workspace.own
    if own:
        applies = "its skills, AGENTS.md and CLAUDE.md apply as they change"
        out.print(f"This repository has been your own since {own.since[:10]}: {applies}.")
        out.print()
    if items:
        rows = [
            [item.name, item.status, item.approved_tree[:_SHOWN_DIGITS], shown_path(item.location)] for item in items
        ]
        out.print_table(_COLUMNS, rows)
        out.print()
    pending = sum(item.pending is not None for item in items)
    in_use = sum(item.unapproved is not None and not item.pending for item in items)
    counts = [f"{len(items) - pending - in_use} approved", f"{pending} pending"]
    if in_use:
        counts.insert(1, f"{in_use} your own")
    out.print_styled(", ".join(counts), "dim")


def _review_pending(workspace: _TrustedWorkspace, out: Output) -> int:
    """List everything that is pending, then ask about each. Anything but a clear yes is a no.

    Return 0 if the user approved everything, and 1 otherwise.
    """
    from skillshelf.trust import Review, describe_kinds, summary

    all_pending = workspace.find_pending()
    if not all_pending and workspace.own:
        out.print("Nothing is pending: the repository is your own, so its skills apply as they are.")
        return 0
    if not all_pending:
        out.print("Nothing is pending: this workspace has no skill that you have not approved.")
        return 0
    places = ", ".join(dict.fromkeys(shown_path(pending.root) for pending in all_pending))
    out.print(f"{describe_kinds(all_pending, 'pending')} in {places}:")
    for pending in all_pending:
        out.print(f"  {summary(pending)}")
    if not (sys.stdin.isatty() and out.is_terminal):
        complain(_NOT_A_TERMINAL)
        return 1

    face = _TerminalReview(workspace, out)
    review = Review(all_pending, face)
    while review.question:
        review.answer(_ask(review.question))
    is_settled = face.is_mine or face.approved_count == len(all_pending)
    return 0 if is_settled else 1


class _TerminalReview:
    """Shows a review on the terminal, and records and counts the approvals."""

    def __init__(self, workspace: _TrustedWorkspace, out: Output) -> None:
        self._workspace = workspace
        self._out = out
        self.approved_count = 0
        self.is_mine = False
        self.offers_mine = workspace.trust.can_declare_own(workspace.root)

    def show_page(self, skill: "Pending", *, whole: bool) -> None:
        from skillshelf.rendering import ReviewPage
        from skillshelf.trust import review_lines, shorten_review

        lines = review_lines(skill, whole=whole)
        self._out.print()
        self._out.print_paged(ReviewPage(lines), ReviewPage(shorten_review(lines)), skill.name)
        self._out.print()

    def approve(self, skill: "Pending") -> None:
        self._workspace.trust.approve(skill)
        self._out.print_styled(f"approved {skill.name} {skill.tree}", "green")
        self.approved_count += 1

    def declare_mine(self) -> None:
        _declare_mine(self._workspace, self._out, quiet=False)
        self.is_mine = True

    def warn(self, message: str) -> None:
        complain(message)


def _ask(question: "ReviewQuestion") -> str:
    """Return the user's answer, which may be a key or the whole word. Keys pressed before the question are ignored."""
    import termios

    sys.stdout.write(clean_line(question.text) + " (no): ")
    sys.stdout.flush()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    line = sys.stdin.readline()
    if not line:  # the terminal was closed
        return "quit"

    word = line.strip().lower()
    if word in question.answers.values():
        return word
    return question.answers.get(word, "no")
