"""The plots, as inline SVG in per cent of its width: lines and letters keep their size on a narrow screen.

Rows of a plot are rows of a table, so that readers who cannot see the marks have the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillshelf.evals._results import Arm
from skillshelf.evals.report._format import format_count, format_money, format_percent, format_points, format_rate
from skillshelf.evals.report.html._elements import Html, join, table, tag
from skillshelf.evals.stats import Confusion, Interval, Rate, is_right

ROW_HEIGHT = 26
MIDDLE = ROW_HEIGHT / 2
SHADES = 8
_GAIN_TICKS = (-1, -0.5, 0, 0.5, 1)


def svg(*marks: Html, height: int = ROW_HEIGHT, label: str = "", class_: str = "") -> Html:
    """Return a picture with a label in words. Without a label, a cell beside it says the same, and it is hidden."""
    role = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return tag("svg", *marks, width="100%", height=height, class_=class_ or None, focusable="false", **role)


def line(x1: float, x2: float, y1: float, y2: float, class_: str, in_percent: bool = False) -> Html:
    """Return a line. It runs from 0 to 100 across; down in pixels, or in per cent too."""
    unit = "%" if in_percent else ""
    return tag("line", x1=f"{x1:.2f}%", x2=f"{x2:.2f}%", y1=f"{y1:.2f}{unit}", y2=f"{y2:.2f}{unit}", class_=class_)


def dot(x: float, y: float, class_: str, title: str = "", radius: float = 5, in_percent: bool = False) -> Html:
    unit = "%" if in_percent else ""
    children = [tag("title", title)] if title else []
    return tag("circle", *children, cx=f"{x:.2f}%", cy=f"{y:.2f}{unit}", r=radius, class_=class_)


def _across(share: float) -> float:
    """Return the position of a share, with room at both ends, so that marks at 0 and 1 are whole."""
    return 3 + 94 * max(0.0, min(1.0, share))


def _grid() -> list[Html]:
    return [line(_across(share), _across(share), 0, ROW_HEIGHT, "grid") for share in (0, 0.25, 0.5, 0.75, 1)]


def _axis() -> Html:
    marks = [
        tag("text", format_percent(share), x=f"{_across(share):.2f}%", y=16, text_anchor=anchor)
        for share, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    ]
    return svg(*marks, height=22, class_="axis")


def plot_rates(rates: Iterable[tuple[str, Arm, Rate]]) -> Html:
    """Plot the pass rate of each skill and arm, with its interval."""
    rows = [
        (name, tag("span", arm, class_=f"arm {arm}"), _plot_rate(rate, arm), format_rate(rate))
        for name, arm, rate in rates
    ]
    return table(("skill", "arm", _axis(), "rate [95%]"), rows, "Pass rate with 95% interval", "plot rates")


def _plot_rate(rate: Rate, arm: Arm) -> Html:
    marks = _grid()
    if rate.interval and rate.value is not None:
        whisker = (_across(rate.interval.low), _across(rate.interval.high))
        marks.append(line(*whisker, MIDDLE, MIDDLE, f"whisker {arm}"))
        marks.append(dot(_across(rate.value), MIDDLE, f"mark {arm}"))
    return svg(*marks)


@dataclass(frozen=True, slots=True)
class Dumbbell:
    """A row of the paired plot: one case on two arms."""

    name: str
    base: float
    new: float
    base_arm: str


def plot_dumbbells(dumbbells: Sequence[Dumbbell], caption: str) -> Html:
    """Plot each case from its base rate to its new one: a line to the right is a gain."""
    rows = [
        (
            dumbbell.name,
            _plot_dumbbell(dumbbell),
            format_percent(dumbbell.base),
            format_percent(dumbbell.new),
            format_points(dumbbell.new - dumbbell.base),
        )
        for dumbbell in dumbbells
    ]
    base_arm = dumbbells[0].base_arm if dumbbells else "without"
    return table(("case", _axis(), base_arm, "with", "pp"), rows, caption, "plot paired")


def _plot_dumbbell(dumbbell: Dumbbell) -> Html:
    direction = "even"
    if dumbbell.new > dumbbell.base:
        direction = "gain"
    elif dumbbell.new < dumbbell.base:
        direction = "loss"

    base = _across(dumbbell.base)
    new = _across(dumbbell.new)
    return svg(
        *_grid(),
        line(base, new, MIDDLE, MIDDLE, f"bar {direction}"),
        dot(base, MIDDLE, f"mark {dumbbell.base_arm}", radius=6),
        dot(new, MIDDLE, "mark with", radius=4),
    )


@dataclass(frozen=True, slots=True)
class CostPoint:
    """A skill in the plot of cost against gain."""

    name: str
    cost: float
    gain: float
    interval: Interval


def plot_costs(points: Sequence[CostPoint], unit: str) -> Html:
    """Plot the extra cost of a trial, across, against the gain, up. The points are numbered as in the table below."""
    most = max([abs(point.cost) for point in points] + [1e-9]) * 1.15
    least = min(0.0, *(point.cost for point in points)) * 1.15
    span = most - least or 1.0

    def x(cost: float) -> float:
        return 4 + 84 * (cost - least) / span

    def y(gain: float) -> float:
        return 50 - 44 * max(-1.0, min(1.0, gain))

    format_amount = format_money if unit == "$" else format_count
    marks = []
    for gain in _GAIN_TICKS:
        marks.append(line(x(least), x(most), y(gain), y(gain), "zero" if gain == 0 else "grid", True))
        marks.append(tag("text", format_points(gain), x="89%", y=f"{y(gain):.2f}%", dy=4, class_="small"))

    marks.append(line(x(0), x(0), y(-1), y(1), "zero", True))
    axis_label = f"{format_amount(most)} more" if unit == "$" else f"{format_amount(most)} {unit} more"
    marks.append(tag("text", axis_label, x="88%", y="98.5%", text_anchor="end"))

    rows = []
    for number, point in enumerate(points, 1):
        left = x(point.cost)
        top = y(point.gain)
        marks.append(line(left, left, y(point.interval.low), y(point.interval.high), "whisker with", True))
        marks.append(dot(left, top, "mark with", point.name, 10, True))
        marks.append(tag("text", str(number), x=f"{left:.2f}%", y=f"{top:.2f}%", class_="number", dy=4))
        sign = "−" if point.cost < 0 else "+"
        cost = f"{sign}{format_amount(abs(point.cost))}"
        rows.append((f"{number}. {point.name}", cost, f"{format_points(point.gain)} pp"))

    picture = svg(*marks, height=320, label="Cost against gain; the table below has the numbers", class_="scatter")
    return join([picture, table(("skill", f"{unit} per trial", "gain"), rows, "Cost against gain")])


def plot_confusion(confusion: Confusion) -> Html:
    """Plot which skills were loaded for which queries: the darker, the larger the share of the row."""
    headings = ["should be loaded", *(column or "(none)" for column in confusion.columns), "trials"]
    rows = []
    for row in confusion.rows:
        total = confusion.totals[row]
        cells = [
            _plot_cell(confusion.counts.get((row, column), 0), total, is_right(row, column))
            for column in confusion.columns
        ]
        rows.append([str(row), *cells, str(total)])

    return table(headings, rows, "What was loaded (columns) for what should have been (rows)", "heat")


def _plot_cell(number: int, total: int, right: bool | None) -> Html:
    """Plot a cell of the matrix. A load that the case says nothing about has neither color, and is never dark."""
    if right is None:
        kind = "open"
        judgement = ""
    elif right:
        kind = "right"
        judgement = ", as it should be"
    else:
        kind = "wrong"
        judgement = ", as it should not be"

    shade = round(SHADES * number / total) if total and right is not None else 0
    background = tag("rect", width="100%", height="100%", class_=f"{kind} shade-{shade}")
    count_class = "count dark" if shade > SHADES / 2 else "count"
    count = tag("text", str(number), x="50%", y="50%", dy=5, class_=count_class)
    label = f"{number} of {total}{judgement if number else ''}"
    return svg(background, count, height=34, label=label)
