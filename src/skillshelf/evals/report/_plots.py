"""The values of the plots: what the page draws, in per cent of a picture's width or height.

The template draws them as inline SVG, so lines and letters keep their size on a narrow screen. Rows of a plot are rows
of a table, so that readers who cannot see the marks have the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from skillshelf.evals._results import Arm
from skillshelf.evals._text import format_money
from skillshelf.evals.report._format import format_count, format_points, format_rate, skill_label
from skillshelf.evals.report._summary import Summary, Versus
from skillshelf.evals.report._tables import COUNTED, link_gain, link_rate, link_trials
from skillshelf.evals.stats import Confusion, Difference, Queries, Rate, is_right
from skillshelf.tables import Cell, Column, Table

MAX_PAIRS = 60
SHADES = 8
MIN_SKILLS_PLOTTED = 3
"""Of one or two skills, the tables say the same in fewer words."""
GAIN_TICKS = (-1, -0.5, 0, 0.5, 1)


class RateRow(NamedTuple):
    """The pass rate of a skill on one arm."""

    skill: str
    arm: Arm
    rate: Rate
    shown: str
    link: str


def rate_rows(summary: Summary) -> list[RateRow]:
    rows = []
    for group in summary.skills:
        for arm, numbers in group.arms.items():
            link = link_rate(group.name, arm) if numbers.counts.trials else ""
            rows.append(RateRow(skill_label(group.name), arm, numbers.rate, format_rate(numbers.rate), link))
    return rows


class Dumbbell(NamedTuple):
    """A case on two arms. A line to the right is a gain."""

    case: str
    base: float
    new: float
    link: str

    @property
    def direction(self) -> str:
        if self.new == self.base:
            return "even"
        return "gain" if self.new > self.base else "loss"


class PairPlot(NamedTuple):
    """The cases that differ between two arms, by the checks that the gain is over."""

    base: str
    compared: int
    dumbbells: Sequence[Dumbbell]
    caption: str


def plot_pairs(versus: Versus) -> PairPlot:
    all_pairs = [
        Dumbbell(
            case=pair.case,
            base=pair.base[0] / pair.base[1],
            new=pair.new[0] / pair.new[1],
            link=link_trials(case=pair.case, arms=("with", versus.base), statuses=COUNTED),
        )
        for pair in versus.pairs
    ]
    moved = [pair for pair in all_pairs if pair.new != pair.base]
    moved.sort(key=lambda pair: pair.new - pair.base)
    caption = f"Cases that differ, {versus.base} and with, losses first"
    caption += f"; {len(all_pairs) - len(moved)} are the same on both"
    if len(moved) > MAX_PAIRS:
        caption += f"; the first {MAX_PAIRS} of {len(moved)}"
    return PairPlot(versus.base, len(all_pairs), moved[:MAX_PAIRS], caption)


class CostPoint(NamedTuple):
    """A skill in the plot of cost against gain."""

    name: str
    x: float
    y: float
    low: float
    high: float


class Tick(NamedTuple):
    gain: float
    y: float


class CostPlot(NamedTuple):
    """The extra cost of a trial, across, against the gain, up. The points are numbered as in the table below."""

    points: Sequence[CostPoint]
    ticks: Sequence[Tick]
    left: float
    right: float
    zero: float
    axis_label: str
    table: Table


class _SkillCost(NamedTuple):
    """How much more a trial with the skill takes, in dollars or tokens, and what it gains."""

    skill: str
    base: str
    amount: float
    gain: Difference


class _Scale(NamedTuple):
    """Where amounts and gains are in the picture, in per cent."""

    least: float
    most: float

    def x(self, amount: float) -> float:
        span = self.most - self.least or 1.0
        return 4 + 84 * (amount - self.least) / span

    def y(self, gain: float) -> float:
        return 50 - 44 * max(-1.0, min(1.0, gain))


def plot_costs(summary: Summary) -> CostPlot | None:
    """Plot cost against gain: in money if every price is known, else in tokens."""
    is_priced = _is_priced(summary)
    costs = _measure_costs(summary, is_priced)
    if len(costs) < MIN_SKILLS_PLOTTED:
        return None

    amounts = [cost.amount for cost in costs]
    widest = max(1e-9, *map(abs, amounts))
    scale = _Scale(least=min(0.0, *amounts) * 1.15, most=widest * 1.15)
    points = []
    for cost in costs:
        interval = cost.gain.interval
        points.append(
            CostPoint(
                name=skill_label(cost.skill),
                x=scale.x(cost.amount),
                y=scale.y(cost.gain.value),
                low=scale.y(interval.low),
                high=scale.y(interval.high),
            )
        )
    return CostPlot(
        points=points,
        ticks=[Tick(gain, scale.y(gain)) for gain in GAIN_TICKS],
        left=scale.x(scale.least),
        right=scale.x(scale.most),
        zero=scale.x(0),
        axis_label=f"{format_money(scale.most)} more" if is_priced else f"{format_count(scale.most)} tokens more",
        table=_tabulate_costs(costs, is_priced),
    )


def _list_gains(summary: Summary) -> list[tuple[str, Versus]]:
    """Return the first comparison of each skill that has one."""
    gains = []
    for group in summary.skills:
        if group.versus and group.versus[0].difference:
            gains.append((group.name, group.versus[0]))
    return gains


def _is_priced(summary: Summary) -> bool:
    """Return True if every price is known. Equal prices, such as those of a scripted model, say nothing about cost."""
    costs = [versus.cost for _, versus in _list_gains(summary)]
    return None not in costs and any(cost and cost.value for cost in costs)


def _measure_costs(summary: Summary, is_priced: bool) -> list[_SkillCost]:
    costs = []
    for skill, versus in _list_gains(summary):
        amount = versus.cost if is_priced else versus.tokens
        if amount and versus.tokens and versus.difference:
            costs.append(_SkillCost(skill, versus.base, amount.value, versus.difference))
    return costs


def _tabulate_costs(costs: Sequence[_SkillCost], is_priced: bool) -> Table:
    unit = "$" if is_priced else "tokens"
    format_amount = format_money if is_priced else format_count
    rows = []
    for number, cost in enumerate(costs, 1):
        sign = "−" if cost.amount < 0 else "+"
        gain = Cell(f"{format_points(cost.gain.value)} pp", link=link_gain(cost.skill, cost.base))
        rows.append((f"{number}. {skill_label(cost.skill)}", f"{sign}{format_amount(abs(cost.amount))}", gain))
    columns = (Column("skill"), Column(f"{unit} per trial"), Column("gain"))
    return Table("Cost against gain", columns, rows)


class HeatCell(NamedTuple):
    number: int
    kind: str
    shade: int
    label: str
    link: str


class HeatRow(NamedTuple):
    name: str
    cells: Sequence[HeatCell]
    trials: int
    link: str


class Heat(NamedTuple):
    """Which skills were loaded for which queries: the darker, the larger the share of the row."""

    columns: Sequence[str]
    rows: Sequence[HeatRow]


def plot_confusion(confusion: Confusion) -> Heat:
    rows = []
    for row in confusion.rows:
        total = confusion.totals[row]
        cells = [
            _plot_cell(confusion.counts.get((row, column), 0), total, is_right(row, column), _link_queries(row, column))
            for column in confusion.columns
        ]
        rows.append(HeatRow(str(row), cells, total, _link_queries(row)))
    return Heat([column or "(none)" for column in confusion.columns], rows)


def _link_queries(row: Queries, loaded: str | None = None) -> str:
    return link_trials(skill=row.skill, trigger=row.should, loaded=loaded, live=True, arms=("with",), statuses=COUNTED)


def _plot_cell(number: int, total: int, right: bool | None, link: str) -> HeatCell:
    """Plot a cell of the matrix. A load that the case says nothing about has neither color, and is never dark."""
    shade = round(SHADES * number / total) if total else 0
    if right is None:
        return HeatCell(number, "open", 0, f"{number} of {total}", link)
    judgement = ", as it should be" if right else ", as it should not be"
    label = f"{number} of {total}{judgement if number else ''}"
    return HeatCell(number, "right" if right else "wrong", shade, label, link)
