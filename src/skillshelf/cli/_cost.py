"""`skillshelf cost`: what each skill takes of a model's window, and when."""

import argparse
from dataclasses import asdict, dataclass

from skillshelf.cli._output import Output, plural
from skillshelf.cli._workspace import open_shelf
from skillshelf.descriptor import SkillDescriptor
from skillshelf.errors import SkillError
from skillshelf.lint import MAX_TOKENS
from skillshelf.listing import DEFAULT_BUDGET, Listing
from skillshelf.shelf import Shelf
from skillshelf.tables import Cell, Column
from skillshelf.tokens import count, estimate
from skillshelf.turn import Turn

EXAMPLES = """
  skillshelf cost                       an estimate
  skillshelf cost --exact               counted; needs pip install 'skillshelf[tokens]'
"""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens of one skill: in every call, when it is loaded, and if all its references are."""

    name: str
    every_call: int
    instructions: int
    references: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--exact", action="store_true", help="count with the o200k tokenizer instead of estimating")


def run(args: argparse.Namespace, out: Output) -> int:
    if args.exact:
        count("")  # says what to install before anything is read
    shelf = open_shelf(args, count if args.exact else estimate)
    listing = shelf.listing()
    costs = _costs(shelf, listing)
    warnings = _warnings(costs, listing, shelf.listing("catalog").tokens)
    if args.json:
        skills = [asdict(cost) for cost in costs]
        out.print_json({"skills": skills, "listing": listing.tokens, "exact": args.exact, "warnings": warnings})
        return 0
    _print(costs, listing, out)
    for warning in warnings:
        out.print_styled(f"warning: {warning}", "yellow")
    return 0


def _costs(shelf: Shelf, listing: Listing) -> list[Cost]:
    """The heaviest to load first."""
    entries = {entry.name: entry for entry in listing.entries}
    costs = []
    for name, skill in shelf.catalog.items():
        entry = entries.get(name)
        shown = 0 if entry is None else shelf.counter(entry.render() if entry.description else f" | {name}")
        costs.append(Cost(name, shown, _tokens(shelf, skill), _reference_tokens(shelf, skill)))
    return sorted(costs, key=lambda cost: (-cost.instructions, cost.name))


def _tokens(shelf: Shelf, skill: SkillDescriptor, reference: str = "") -> int:
    """Of the instructions or a reference; what cannot be read or is no text brings nothing into a window."""
    try:
        loaded = Turn(shelf).load(skill.name, reference)
    except SkillError:
        return 0
    tokens = shelf.counter(loaded.text)
    if loaded.next_offset:
        # Further pages are taken to be like the first: nobody waits for gigabytes to be counted.
        tokens = tokens * loaded.size // loaded.next_offset
    return tokens


def _reference_tokens(shelf: Shelf, skill: SkillDescriptor) -> int:
    return sum(_tokens(shelf, skill, path) for path in skill.references)


def _warnings(costs: list[Cost], listing: Listing, whole: int) -> list[str]:
    """`whole`: tokens of a listing that shortens nothing."""
    said = []
    if long := [cost.name for cost in costs if cost.instructions > MAX_TOKENS]:
        more = f" and {len(long) - _SHOWN:,} more" if len(long) > _SHOWN else ""
        said.append(
            f"{plural(len(long), 'skill')} with instructions over {MAX_TOKENS:,} tokens: "
            f"{', '.join(long[:_SHOWN])}{more}; move parts into references/"
        )
    if whole > DEFAULT_BUDGET:
        names = {one.name for one in listing.shortened}
        said.append(
            f"the descriptions take {whole:,} tokens and the listing has a budget of {DEFAULT_BUDGET:,}: "
            f"{len(names):,} of {plural(len(costs), 'skill')} are not shown whole"
        )
    return said


def _print(costs: list[Cost], listing: Listing, out: Output) -> None:
    columns = [
        Column("skill", style="bold"),
        *(Column(title, right=True) for title in ("every call", "loaded", "references")),
    ]
    rows: list[list[str | Cell]] = [
        [cost.name, _number(cost.every_call), _number(cost.instructions), _number(cost.references)] for cost in costs
    ]
    if out.is_terminal:
        width = out.console.width
        _add_bars(costs, columns, rows, max(4, min(24, width - width // 3 - 35)))
    totals = (sum(getattr(cost, field) for cost in costs) for field in ("instructions", "references"))
    rest = listing.tokens - sum(cost.every_call for cost in costs)
    blank = [""] * (len(columns) - 4)
    rows.append([Cell("heading and how to load", "dim"), _number(rest), "", "", *blank])
    rows.append([Cell("total", "bold"), *(Cell(f"{total:,}", "bold") for total in (listing.tokens, *totals)), *blank])
    out.print_table(columns, rows)
    out.print()


def _add_bars(costs: list[Cost], columns: list[Column], rows: list[list[str | Cell]], cells: int) -> None:
    columns.append(Column(""))
    most = max((cost.instructions for cost in costs), default=0)
    for cost, row in zip(costs, rows, strict=True):
        style = "yellow" if cost.instructions > MAX_TOKENS else "green"
        row.append(Cell(bar(cost.instructions / most, cells) if cost.instructions else "", style))


def bar(value: float, cells: int) -> str:
    """A bar of so many cells for 1.0, in eighths of a cell."""
    eighths = round(min(1.0, value) * cells * 8)
    rest = eighths % 8
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[rest] if rest else "" if eighths else "▏")


def _number(tokens: int) -> str:
    return f"{tokens:,}" if tokens else "·"
