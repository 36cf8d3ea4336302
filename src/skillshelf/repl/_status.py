"""The line below the prompt."""

from rich.cells import cell_len

from skillshelf.agent import AgentCore
from skillshelf.rendering import cut
from skillshelf.text import clean_line


def status_line(core: AgentCore, waiting: int, columns: int) -> str:
    """What a person wants to have in sight, as much of it as fits; `waiting`: skills to be reviewed."""
    # With its rank: what matters least goes first where there is no room.
    parts = [
        (0, f"{waiting:,} to review: /skills trust" if waiting else ""),
        (2, cut(clean_line(core.model.name), 40)),
        (3, f"context {_filled(core)}"),
        (4, _spent(core)),
        (1, core.policy.mode),
        (5, count_skills(core)),
    ]
    parts = [part for part in parts if part[1]]
    while len(parts) > 1 and cell_len(_joined(parts)) > columns:
        parts.remove(max(parts))
    return cut(_joined(parts), columns)


def count_skills(core: AgentCore) -> str:
    count = len(core.shelf.catalog)
    return f"{count:,} skill{'s' * (count != 1)}"


def _joined(parts: list[tuple[int, str]]) -> str:
    return " " + " · ".join(text for _, text in parts)


def _filled(core: AgentCore) -> str:
    filled = core.used / max(1, core.model.window)
    return "<1%" if 0 < filled < 0.01 else f"{filled:.0%}"


def _spent(core: AgentCore) -> str:
    spent = core.spent
    # Without a price: none is known for all of the calls, or nothing was spent yet.
    return f"${spent.cost:.4f}" if spent.cost else f"{spent.input + spent.output:,} tokens"
