"""`skillshelf add`: look at the skills of a source, review them, install them, and pin them in skills.lock."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from skillshelf.cli._errors import CommandError
from skillshelf.cli._installed import add_user_option, fetching, find_installation
from skillshelf.cli._output import Output, complain, shown_path
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import locate_workspace
from skillshelf.errors import TrustError
from skillshelf.registry import (
    Installation,
    NewSkill,
    OfferedSkill,
    Origin,
    Package,
    Pin,
    Update,
    choose_offered,
    choose_plugin,
    describe_new,
    describe_review,
    find_offered,
    find_offered_plugins,
    install,
    install_updates,
    open_source,
    parse_source,
    read_content,
    read_lock,
    refuse_taken,
    show_origin,
)
from skillshelf.skills import Diagnostic
from skillshelf.text import clean_line, count_noun, list_names
from skillshelf.text.tables import Column
from skillshelf.text.tokens import estimate

if TYPE_CHECKING:
    from skillshelf.trust import Pending, Trust

EXAMPLES = """
  skillshelf add acme/skills                      show the skills of a GitHub repository, and ask
  skillshelf add acme/skills@v2 --skill pdf-forms      one of them, as it is in a branch or tag
  skillshelf add acme/market --plugin office      the skills of one plugin of a marketplace
  skillshelf add https://host/acme/skills.git     any Git repository; private ones with a credential helper
  skillshelf add https://docs.acme.com            a site with /.well-known/agent-skills/index.json
  skillshelf add pypi:fastapi                     a Python package with skills in it
  skillshelf add ./skills.zip --dry-run           only show what is in an archive or folder
  skillshelf add acme/skills --skill pdf-forms --yes   for scripts: print the review and approve it
"""
ALL = "*"
_MAX_NAMED = 10
_COLUMNS = (
    Column("skill", style="bold"),
    Column("plugin", style="cyan"),
    Column("tokens", right=True),
    Column("check", style="cyan"),
    Column("folder"),
)
_NOT_ASKED = "This is not a terminal, so there is no one to ask, and nothing was installed."


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="owner/repo[/path][@ref] on GitHub, the URL of a Git repository, https://host, pypi:package, a folder "
        "(./…), or an archive",
    )
    parser.add_argument(
        "--skill",
        metavar="NAME",
        dest="names",
        nargs="+",
        action="extend",
        default=[],
        help=f"install these, by name or folder; '{ALL}' for all",
    )
    parser.add_argument("--plugin", metavar="NAME", default="", help="install the skills of this plugin")
    parser.add_argument("--ref", metavar="REF", default="", help="a branch, tag or commit")
    parser.add_argument("--yes", action="store_true", help="approve without a question; the review is printed")
    parser.add_argument("--dry-run", action="store_true", help="show everything and install nothing")
    add_user_option(parser)


class _Offer(NamedTuple):
    """A skill of the source with its price and what a check says of it."""

    skill: OfferedSkill
    tokens: int
    diagnostics: Sequence[Diagnostic]
    plugin: str = ""
    """The plugin that it belongs to, if any."""

    @property
    def row(self) -> list[str]:
        from skillshelf.cli._diagnostics import count_by_severity

        verdict = self.skill.problem or count_by_severity(self.diagnostics) or "nothing to report"
        return [self.skill.name, self.plugin, f"{self.tokens:,}", verdict, self.skill.path or "."]

    def as_json(self) -> dict[str, Any]:
        from skillshelf.cli._diagnostics import as_json

        return {
            "name": self.skill.name,
            "path": self.skill.path,
            "plugin": self.plugin,
            "description": self.skill.description,
            "tokens": self.tokens,
            "problem": self.skill.problem,
            "diagnostics": [as_json(note) for note in self.diagnostics],
        }


def run(args: argparse.Namespace, out: Output) -> int:
    if args.json and not (args.yes or args.dry_run):
        raise CommandError("--json asks no questions.", "Add --dry-run to look, or --yes to install.")
    is_asking = sys.stdin.isatty() and out.is_terminal and not args.yes
    installation = find_installation(args)
    lock = read_lock(installation.lock_path)
    origin = parse_source(args.source, args.ref, installation.place, anywhere=args.user)
    pin = Pin()
    with ExitStack() as stack:
        with nullcontext() if origin.is_local else fetching(show_origin(origin)):
            if args.plugin:
                origin, pin = _locate_plugin(args, origin, installation.place)
            package = stack.enter_context(open_source(origin, pin, installation.place, anywhere=args.user))
            offers = _find_offers(package, origin, args.plugin)
        names = _find_names(args.names or ([ALL] if args.plugin else []), offers)
        if not names and is_asking and not args.dry_run:
            _print_offers(offers, origin, package.pin, out)
            names = _ask_for_names(offers)
        chosen = choose_offered([offer.skill for offer in offers], names)
        new = [
            describe_new(origin, skill.path, package.pin, read_content(package, skill.name, skill.path))
            for skill in chosen
        ]
        pin = package.pin
    paths = {skill.path for skill in chosen}
    shown = [offer for offer in offers if offer.skill.path in paths] if names else offers
    for skill in new:
        refuse_taken(installation, lock, skill)

    if not args.json and (args.names or not is_asking or args.dry_run or len(offers) == 1):
        _print_offers(shown, origin, pin, out)
    installed = _review_and_install(args, installation, new, out, is_asking=is_asking)
    if args.json:
        out.print_json(
            {
                "from": show_origin(origin),
                "pinned": pin.text,
                "skills": [offer.as_json() for offer in shown],
                "installed": [skill.name for skill in installed],
            }
        )
    return 0 if args.dry_run or len(installed) == len(new) else 1


def _locate_plugin(args: argparse.Namespace, origin: Origin, place: str) -> tuple[Origin, Pin]:
    """Return where a plugin of a marketplace is: there, or in another repository that the marketplace names."""
    with open_source(origin, Pin(), place, anywhere=args.user) as package:
        plugin = choose_plugin(find_offered_plugins(package, origin), args.plugin)
        if plugin.origin is None:
            return origin, package.pin
    elsewhere = plugin.origin
    if elsewhere.kind != "git":
        raise CommandError(
            f"The plugin {plugin.name} comes by {clean_line(elsewhere.kind) or 'unknown means'}.",
            "Only plugins from Git repositories can be installed.",
        )
    address = f"git+{elsewhere.address}" if "://" in elsewhere.address else elsewhere.address
    found = parse_source(address, elsewhere.sha or elsewhere.ref, place, anywhere=False)
    return found._replace(path=elsewhere.path), Pin()


def _find_offers(package: Package, origin: Origin, plugin: str) -> list[_Offer]:
    """Return the skills of a source, or those of one plugin in it."""
    plugins = find_offered_plugins(package, origin, plugin)
    if plugin and len(plugins) > 1:
        plugins = [choose_plugin(plugins, plugin)]
    for each in plugins:
        if each.not_run and plugin:
            complain(f"Not used of the plugin {each.name}: its {', '.join(each.not_run)}.")
    elsewhere = [each.name for each in plugins if each.origin]
    if elsewhere and not plugin:
        complain(f"Plugins from other repositories, for --plugin: {list_names(elsewhere, _MAX_NAMED)}.")
    by_folder = {folder: each.name for each in reversed(plugins) for folder in each.skills}
    skills = find_offered(package, origin)
    if plugin and plugins:
        skills = [skill for skill in skills if skill.path in by_folder]
    if not skills:
        raise CommandError(f"The plugin {plugin} has no skills.")
    return [_describe(skill)._replace(plugin=by_folder.get(skill.path, "")) for skill in skills]


def _describe(skill: OfferedSkill) -> _Offer:
    if skill.text is None:
        return _Offer(skill, 0, ())
    from skillshelf.lint import check_text

    notes = check_text(skill.text.text, os.path.basename(skill.path) or skill.name)
    notes = [replace(note, path=os.path.join(skill.path, "SKILL.md")) for note in notes]
    return _Offer(skill, estimate(skill.text.instructions), notes)


def _find_names(asked: Sequence[str], offers: Sequence[_Offer]) -> list[str]:
    """Return the folders of the skills that the options mean. Without a name, one skill alone is meant."""
    if asked and ALL not in asked:
        return list(asked)
    if asked or len(offers) == 1:
        # Copies for several agents are one skill.
        by_name = {offer.skill.name: offer.skill.path for offer in reversed(offers) if not offer.skill.problem}
        return [path or name for name, path in reversed(by_name.items())] or [offers[0].skill.name]
    return []


def _print_offers(offers: Sequence[_Offer], origin: Origin, pin: Pin, out: Output) -> None:
    from skillshelf.cli._diagnostics import print_diagnostic

    pinned = f" at {pin}" if str(pin) else ""
    out.print_styled(f"{count_noun(len(offers), 'skill')} in {show_origin(origin)}{pinned}", "dim")
    columns = list(_COLUMNS)
    rows = [offer.row for offer in offers]
    if not any(offer.plugin for offer in offers):
        del columns[1]
        rows = [[name, *others] for name, _, *others in rows]
    out.print_table(columns, rows, indent=2)
    if len(offers) > 1:
        return
    for offer in offers:
        out.print_styled(offer.skill.description, indent=2)
        for note in offer.diagnostics:
            print_diagnostic(note, out)


def _ask_for_names(offers: Sequence[_Offer]) -> list[str]:
    sys.stdout.write(f"Which ones? Names, {ALL} for all, Enter for none: ")
    sys.stdout.flush()
    words = sys.stdin.readline().replace(",", " ").split()
    return _find_names(words, offers) if words else []


def _review_and_install(
    args: argparse.Namespace, installation: Installation, new: Sequence[NewSkill], out: Output, *, is_asking: bool
) -> list[NewSkill]:
    """Show what is in the skills and install those that the user approves. Return them."""
    if args.dry_run and not args.names:
        return []
    if not new:
        if is_asking:
            return []
        raise CommandError(f"Several skills are there, and nothing was installed. Name some with --skill, or '{ALL}'.")
    installed = review_and_install(args, installation, [Update(skill) for skill in new], out, is_asking=is_asking)
    if not args.json:
        for update in installed:
            where = shown_path(f"{installation.folder}/{update.name}")
            out.print_styled(f"installed {update.name} in {where}", "green")
    return [update.new for update in installed]


def review_and_install(
    args: argparse.Namespace, installation: Installation, updates: Sequence[Update], out: Output, *, is_asking: bool
) -> list[Update]:
    """Show the review of each skill, and install those that the user approves. Return them."""
    from skillshelf.trust import Trust

    trust = None if args.user else Trust.open()
    root = installation.folder if args.user else locate_workspace(args).root
    pages = [describe_review(installation, root, update.new, trust, update.before) for update in updates]
    if args.dry_run:
        _print_reviews(pages, out, quiet=args.json)
        return []
    if is_asking:
        same = [page for page in pages if page.approved == page.snapshot and trust and trust.is_approved(page.tree)]
        names = {page.name for page in same}  # installed and approved before: at most the pin changes
        names |= _ask([page for page in pages if page not in same], out)
    elif args.yes:
        names = {page.name for page in pages}
        _print_reviews(pages, out, quiet=args.json)
    else:
        raise CommandError(
            _NOT_ASKED,
            "--dry-run shows what is there; --yes prints the review, approves it and installs.",
            code="not-asked",
        )
    approved = [update for update in updates if update.name in names]
    if not approved:
        out.print("Nothing was installed.")
        return []
    if any(update.before for update in approved):
        install_updates(installation, approved)
    else:
        install(installation, [update.new for update in approved])
    # With conflicts in it, a skill is not ready for a model: the version before stays in use.
    settled = {update.name for update in approved if not update.conflicts}
    _approve([page for page in pages if page.name in settled], trust)
    return approved


def _print_reviews(pages: "Sequence[Pending]", out: Output, *, quiet: bool) -> None:
    from skillshelf.trust import review_text

    if quiet:
        return
    for page in pages:
        out.print()
        out.write(review_text(page))
    out.print()


def _ask(pages: "Sequence[Pending]", out: Output) -> set[str]:
    """Review the skills one by one, and return the names of those that the user wants."""
    from skillshelf.cli._trust import ask
    from skillshelf.trust import Review

    face = _InstallReview(out)
    review = Review(pages, face)
    while review.question:
        review.answer(ask(review.question))
    return face.names


class _InstallReview:
    """Shows a review on the terminal, and collects what the user approves: nothing is installed yet."""

    offers_mine = False

    def __init__(self, out: Output) -> None:
        self._out = out
        self.names: set[str] = set()

    def show_page(self, skill: "Pending", *, whole: bool) -> None:
        from skillshelf.cli._trust import show_review

        show_review(skill, self._out, whole=whole)

    def approve(self, skill: "Pending") -> None:
        self.names.add(skill.name)

    def declare_mine(self) -> None:
        raise AssertionError("not offered")

    def warn(self, message: str) -> None:
        complain(message)


def _approve(pages: "Sequence[Pending]", trust: "Trust | None") -> None:
    """Approve installed skills exactly as they were shown. The user's own skills need no approval."""
    if trust is None:
        return
    try:
        trust.approve(*pages)
    except TrustError as error:
        complain(f"{clean_line(str(error))} So they wait for your review: `skillshelf trust`.")
