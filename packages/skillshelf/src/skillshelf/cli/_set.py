"""`skillshelf set`: your own choice for one skill, on every shelf that you open."""

import argparse

from skillshelf.cli._errors import CommandError
from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import open_shelf
from skillshelf.errors import SkillNotFoundError
from skillshelf.settings import CHOICES, describe_choice, save_choice
from skillshelf.shelf import Shelf
from skillshelf.text.tables import Cell, Column

EXAMPLES = """
  skillshelf set                        show your choices
  skillshelf set pdf-forms full         its instructions are in the listing, before those of other skills
  skillshelf set pdf-forms name         the listing shows its name only
  skillshelf set pdf-forms manual       the model does not see it; you can invoke it
  skillshelf set pdf-forms@user off     not on the shelf: this one, not others of the name
  skillshelf set pdf-forms auto         remove your choice
"""
_COLUMNS = (Column("skill", style="bold"), Column("choice"), Column("effect"))


def add_arguments(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="the skill's name, or name@source")
    parser.add_argument("choice", nargs="?", choices=(*CHOICES, "auto"), help="`auto` removes your choice")


def run(args: argparse.Namespace, out: Output) -> int:
    if args.name is not None and args.choice is None:
        raise CommandError(f"what should {args.name!r} be?", f"Give {', '.join(CHOICES)} or auto.")

    shelf = open_shelf(args)
    if args.name is not None:
        choice = None if args.choice == "auto" else args.choice
        try:
            shelf.chosen.check(args.name, choice, shelf.catalog)
        except SkillNotFoundError:
            from skillshelf.explain import explain_unavailable  # loads the approvals, which only a mistake pays

            raise explain_unavailable(shelf, args.name) from None
        shelf.choose(save_choice(args.name, choice))
    if args.json:
        out.print_json({"choices": dict(shelf.chosen.choices)})
    elif args.name is None:
        _print_choices(shelf, out)
    else:
        _print_effect(shelf, args.name, out)
    return 0


def _print_choices(shelf: Shelf, out: Output) -> None:
    if not shelf.chosen.choices:
        out.print("You have made no choices. `skillshelf set NAME full` makes one.")
        return
    names = shelf.chosen.list_names(shelf.catalog)
    rows: list[list[str | Cell]] = []
    for name, choice in sorted(shelf.chosen.choices.items()):
        effect = describe_choice(choice)
        if name not in names:
            effect = "no such skill here now; your choice is kept"
        rows.append([name, choice, effect])
    out.print_table(_COLUMNS, rows)


def _print_effect(shelf: Shelf, name: str, out: Output) -> None:
    choice = shelf.chosen.choices.get(name)
    if choice is not None:
        out.print(f"{name} is set to {choice}: {describe_choice(choice)}.")
    else:
        out.print(f"Your choice for {name} is removed: its author decides again how it is shown.")
    for other, other_choice in sorted(shelf.chosen.choices.items()):
        if other.startswith(f"{name}@"):
            out.print(f"{other} stays set to {other_choice}.")
