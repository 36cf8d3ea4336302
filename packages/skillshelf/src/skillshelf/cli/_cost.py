"""`skillshelf cost`: how many tokens each skill takes from a model's context window, and when."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

from skillshelf.cli._output import Output
from skillshelf.cli._parsers import Parser
from skillshelf.cli._workspace import open_shelf
from skillshelf.errors import SkillError
from skillshelf.lint import MAX_TOKENS
from skillshelf.listing import Listing
from skillshelf.settings import load_settings
from skillshelf.shelf import Shelf, Turn, all_tools
from skillshelf.skills import SkillDescriptor, Tool
from skillshelf.text import count_noun, list_names
from skillshelf.text.tables import Cell, Column, draw_bar
from skillshelf.text.tokens import Counter, count, count_tool, estimate

EXAMPLES = """
  skillshelf cost                       estimate the tokens
  skillshelf cost --exact               count them; needs pip install 'skillshelf[tokens]'
"""
_MAX_LISTED_NAMES = 5


@dataclass(frozen=True, slots=True)
class SkillCost:
    """The number of tokens that each part of a skill takes."""

    name: str
    listing: int
    """The tokens of its entry in the listing."""
    tools: int
    """The tokens of its tools' definitions, which are in every call, too."""
    instructions: int
    references: int
    """The tokens of all its references together."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--exact", action="store_true", help="count with the o200k tokenizer instead of estimating")


def run(args: argparse.Namespace, out: Output) -> int:
    counter = estimate
    if args.exact:
        counter = count
        count("")  # raises at once if the tokenizer is not installed
    shelf = open_shelf(args, counter)
    settings = load_settings({})
    listing = shelf.listing(settings.disclosure, settings.budget)
    costs = _measure_skills(shelf, listing)
    warnings = _find_long_skills(costs)
    if settings.disclosure == "auto":  # the other forms have no budget
        warnings += _find_shortened(listing, shelf, settings.budget)
    if args.json:
        out.print_json(
            {
                "skills": [_cost_as_json(cost) for cost in costs],
                "listing_tokens": listing.tokens,
                "tool_tokens": _count_tools(all_tools(shelf), counter),
                "exact": args.exact,
                "warnings": warnings,
            }
        )
        return 0
    _print_costs(costs, listing, shelf, out)
    for warning in warnings:
        out.print_styled(f"warning: {warning}", "yellow")
    return 0


def _cost_as_json(cost: SkillCost) -> dict[str, object]:
    return {
        "name": cost.name,
        "listing_tokens": cost.listing,
        "tool_tokens": cost.tools,
        "instruction_tokens": cost.instructions,
        "reference_tokens": cost.references,
    }


def _measure_skills(shelf: Shelf, listing: Listing) -> list[SkillCost]:
    """Return the cost of each skill, the most expensive instructions first."""
    entries = {entry.name: entry for entry in listing.entries}
    offered = {tool.name: tool for tool in shelf.tools()}
    costs = []
    for name, skill in shelf.catalog.items():
        entry = entries.get(name)
        in_listing = 0
        if entry is not None:
            in_listing = shelf.counter(entry.render())
        tools = [offered[tool] for tool in shelf.permissions_of(name) if tool in offered]
        instructions = _count_tokens(shelf, skill)
        references = sum(_count_tokens(shelf, skill, path) for path in skill.references)
        costs.append(SkillCost(name, in_listing, _count_tools(tools, shelf.counter), instructions, references))
    return sorted(costs, key=lambda cost: (-cost.instructions, cost.name))


def _count_tools(tools: Iterable[Tool], counter: Counter) -> int:
    return sum(count_tool(tool.name, tool.description, tool.parameters, counter) for tool in tools)


def _count_tokens(shelf: Shelf, skill: SkillDescriptor, reference: str = "") -> int:
    """Return the tokens of the instructions or a reference, or 0 if it cannot be loaded as text."""
    try:
        loaded = Turn(shelf).load(skill.name, reference)
    except SkillError:
        return 0
    tokens = shelf.counter(loaded.text)
    if loaded.next_offset:
        # Assume that further pages are like the first: counting gigabytes would take minutes.
        tokens = tokens * loaded.size // loaded.next_offset
    return tokens


def _find_long_skills(costs: list[SkillCost]) -> list[str]:
    """Return a warning if there are skills with long instructions."""
    names = [cost.name for cost in costs if cost.instructions > MAX_TOKENS]
    if not names:
        return []
    return [
        f"{count_noun(len(names), 'skill')} with instructions over {MAX_TOKENS:,} tokens: "
        f"{list_names(names, _MAX_LISTED_NAMES)}; move parts into references/"
    ]


def _find_shortened(listing: Listing, shelf: Shelf, budget: int) -> list[str]:
    """Return a warning if the budget has no room for all descriptions."""
    uncut_tokens = shelf.listing("catalog").tokens
    if uncut_tokens <= budget:
        return []
    shortened = {entry.name for entry in listing.shortened}
    return [
        f"the descriptions take {uncut_tokens:,} tokens and the listing has a budget of {budget:,}: "
        f"{len(shortened):,} of {count_noun(len(shelf.catalog), 'skill')} are not shown in full"
    ]


def _print_costs(costs: list[SkillCost], listing: Listing, shelf: Shelf, out: Output) -> None:
    columns = [
        Column("skill", style="bold"),
        Column("listing", right=True),
        Column("tools", right=True),
        Column("loaded", right=True),
        Column("references", right=True),
    ]
    rows: list[list[str | Cell]] = []
    for cost in costs:
        rows.append(
            [
                cost.name,
                _format_number(cost.listing),
                _format_number(cost.tools),
                _format_number(cost.instructions),
                _format_number(cost.references),
            ]
        )

    framing = listing.tokens - sum(cost.listing for cost in costs)
    tools = _count_tools(all_tools(shelf), shelf.counter)
    finding = tools - sum(cost.tools for cost in costs)
    rows.append([Cell("find and load skills", "dim"), _format_number(framing), _format_number(finding), "", ""])
    instructions = sum(cost.instructions for cost in costs)
    references = sum(cost.references for cost in costs)
    rows.append(
        [
            Cell("total", "bold"),
            Cell(f"{listing.tokens:,}", "bold"),
            Cell(f"{tools:,}", "bold"),
            Cell(f"{instructions:,}", "bold"),
            Cell(f"{references:,}", "bold"),
        ]
    )

    if out.is_terminal:
        _add_bars(costs, columns, rows, out.console.width)
    out.print_table(columns, rows)
    out.print()
    out.print_styled(f"Every call: {listing.tokens + tools:,} tokens for the listing and the tools.")


def _format_number(tokens: int) -> str:
    return f"{tokens:,}" if tokens else "·"


def _add_bars(costs: list[SkillCost], columns: list[Column], rows: list[list[str | Cell]], screen: int) -> None:
    """Add a column with a bar for the instructions of each skill. The last two rows are not skills."""
    length = max(4, min(24, screen - screen // 3 - 43))
    most = max((cost.instructions for cost in costs), default=0)
    columns.append(Column(""))
    for cost, row in zip(costs, rows, strict=False):
        bar = ""
        if cost.instructions:
            bar = draw_bar(cost.instructions / most, length)
        style = "green"
        if cost.instructions > MAX_TOKENS:
            style = "yellow"
        row.append(Cell(bar, style))
    for row in rows[len(costs) :]:
        row.append("")
