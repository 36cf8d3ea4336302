"""`skillshelf trust`: review the skills of a workspace and decide which of them the agent may use."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._trust_items import TrustedWorkspace, TrustItem
from skillshelf.cli._workspace import locate_workspace
from skillshelf.text import clean_line, count_noun
from skillshelf.text.tables import Column

if TYPE_CHECKING:
    from skillshelf.trust import Pending, ReviewQuestion

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

    workspace = TrustedWorkspace(locate_workspace(args), args.python)
    for problem in workspace.problems:
        complain(problem)
    if args.show:
        return _show_item(workspace, args.show, args.json, out)

    is_decision = args.mine or args.not_mine or args.yes or args.revoke is not None
    if is_decision:
        _record_decision(workspace, args, out)
    elif not args.list and not args.json:
        return _review_pending(workspace, out)

    if args.json:
        _print_json(workspace, out)
    elif args.list:
        _print_list(workspace, out)
    has_pending = bool(workspace.find_pending())
    return 1 if has_pending and (args.list or args.json) else 0


def _record_decision(workspace: TrustedWorkspace, args: argparse.Namespace, out: Output) -> None:
    """Record the decision that the options hold."""
    quiet = args.json
    if args.mine:
        _declare_mine(workspace, out, quiet=quiet)
    elif args.not_mine:
        _disown(workspace, out, quiet=quiet)
    elif args.yes:
        _approve(workspace, [workspace.find(name) for name in args.yes], out, quiet=quiet)
    elif args.all:
        _revoke(workspace.find_approved(), out, quiet=quiet)
    else:
        _revoke([workspace.find(name) for name in args.revoke], out, quiet=quiet)


def _show_item(workspace: TrustedWorkspace, name: str, as_json: bool, out: Output) -> int:
    from skillshelf.trust import review_lines, review_text

    item = workspace.find(name)
    content = item.pending or item.unapproved
    if as_json:
        facts = item.as_json()
        if content:
            facts["review"] = review_text(content)
        out.print_json(facts)
    elif content and out.is_terminal:
        from skillshelf.text.rendering import ReviewPage

        out.print_rich(ReviewPage(review_lines(content)))
    elif content:
        out.write(review_text(content))
    else:
        out.print(f"{item.name} is approved as it is: {item.tree}")
    return 0


def _approve(workspace: TrustedWorkspace, items: Sequence[TrustItem], out: Output, *, quiet: bool) -> None:
    for item in items:
        tree = item.tree
        content = item.pending or item.unapproved
        if content:
            workspace.trust.approve(content)
            tree = content.tree
        if not quiet:
            out.print(f"approved {item.name} {tree}")


def _revoke(items: Sequence[TrustItem], out: Output, *, quiet: bool) -> None:
    for item in items:
        trees = item.source.revoke(item.key)
        if quiet:
            continue
        versions = "it was not approved"
        if trees:
            versions = count_noun(len(trees), "version")
        out.print(f"revoked {item.name} ({versions})")


def _declare_mine(workspace: TrustedWorkspace, out: Output, *, quiet: bool) -> None:
    from skillshelf.trust import MINE_CONSEQUENCE

    workspace.trust.declare_own(workspace.root)
    workspace.find_all()  # which brings everything into use
    workspace.trust.take_own_changes(workspace.root)  # the user knows what is here now
    if not quiet:
        out.print(f"This repository is your own from now on. {MINE_CONSEQUENCE}")
        out.print("`skillshelf trust --not-mine` takes that back.")


def _disown(workspace: TrustedWorkspace, out: Output, *, quiet: bool) -> None:
    was_own = workspace.trust.disown(workspace.root)
    if quiet:
        return
    if was_own:
        out.print("This repository is reviewed like any other again.")
    else:
        out.print("This repository was not declared your own, so nothing changes.")


def _print_json(workspace: TrustedWorkspace, out: Output) -> None:
    out.print_json(
        {
            "own": workspace.own is not None,
            "skills": [item.as_json() for item in workspace.find_all()],
            "problems": workspace.problems,
        }
    )


def _print_list(workspace: TrustedWorkspace, out: Output) -> None:
    items = workspace.find_all()
    own = workspace.own
    if own:
        applies = "its skills, commands, AGENTS.md and CLAUDE.md apply as they change"
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


def _review_pending(workspace: TrustedWorkspace, out: Output) -> int:
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
        review.answer(ask(review.question))
    is_settled = face.is_mine or face.approved_count == len(all_pending)
    return 0 if is_settled else 1


class _TerminalReview:
    """Shows a review on the terminal, and records and counts the approvals."""

    def __init__(self, workspace: TrustedWorkspace, out: Output) -> None:
        self._workspace = workspace
        self._out = out
        self.approved_count = 0
        self.is_mine = False
        self.offers_mine = workspace.trust.can_declare_own(workspace.root)

    def show_page(self, skill: "Pending", *, whole: bool) -> None:
        show_review(skill, self._out, whole=whole)

    def approve(self, skill: "Pending") -> None:
        self._workspace.trust.approve(skill)
        self._out.print_styled(f"approved {skill.name} {skill.tree}", "green")
        self.approved_count += 1

    def declare_mine(self) -> None:
        _declare_mine(self._workspace, self._out, quiet=False)
        self.is_mine = True

    def warn(self, message: str) -> None:
        complain(message)


def show_review(skill: "Pending", out: Output, *, whole: bool) -> None:
    """Show the page about a skill on a terminal."""
    from skillshelf.text.rendering import ReviewPage
    from skillshelf.trust import review_lines, shorten_review

    lines = review_lines(skill, whole=whole)
    out.print()
    out.print_paged(ReviewPage(lines), ReviewPage(shorten_review(lines)))
    out.print()


def ask(question: "ReviewQuestion") -> str:
    """Return the user's answer, which may be a key or the whole word. Keys pressed before the question are ignored."""
    import termios

    sys.stdout.write(clean_line(question.text) + " (no): ")
    sys.stdout.flush()
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    line = sys.stdin.readline()
    if not line:  # the terminal was closed
        return "later"

    word = line.strip().lower()
    if word in question.answers.values():
        return word
    return question.answers.get(word, "no")
