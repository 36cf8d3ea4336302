"""The plots, as inline SVG in per cent of its width: lines and letters keep their size on a narrow screen.

Rows of a plot are rows of a table, so that the numbers are there for whoever cannot see the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skillshelf.evals._results import Arm
from skillshelf.evals.report._words import amount, ends, money, percent, points
from skillshelf.evals.report.html._elements import Html, table, tag
from skillshelf.evals.stats import Confusion, Interval, Rate, is_right

_HEIGHT = 26
_SHADES = 8


def svg(*marks: Html, height: int = _HEIGHT, label: str = "", class_: str = "") -> Html:
    """A picture that says in words what it shows, or is hidden from readers where a cell beside it does."""
    role = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return tag("svg", *marks, width="100%", height=height, class_=class_ or None, focusable="false", **role)


def line(x1: float, x2: float, y1: float, y2: float, class_: str, in_percent: bool = False) -> Html:
    """From 0 to 100 across; down in pixels, or in per cent too."""
    unit = "%" if in_percent else ""
    return tag("line", x1=f"{x1:.2f}%", x2=f"{x2:.2f}%", y1=f"{y1:.2f}{unit}", y2=f"{y2:.2f}{unit}", class_=class_)


def dot(x: float, y: float, class_: str, title: str = "", radius: float = 5, in_percent: bool = False) -> Html:
    unit = "%" if in_percent else ""
    inner = [tag("title", title)] if title else []
    return tag("circle", *inner, cx=f"{x:.2f}%", cy=f"{y:.2f}{unit}", r=radius, class_=class_)


def _across(share: float) -> float:
    """Room at both ends, so that a mark at 0 or 1 is whole."""
    return 3 + 94 * max(0.0, min(1.0, share))


def _grid() -> list[Html]:
    return [line(_across(at), _across(at), 0, _HEIGHT, "grid") for at in (0, 0.25, 0.5, 0.75, 1)]


def _axis() -> Html:
    marks = [
        tag("text", percent(at), x=f"{_across(at):.2f}%", y=16, text_anchor=anchor)
        for at, anchor in ((0, "start"), (0.5, "middle"), (1, "end"))
    ]
    return svg(*marks, height=22, class_="axis")


def rates(rows: Iterable[tuple[str, Arm, Rate]]) -> Html:
    """Pass rate with its interval, for each skill and arm."""
    lines = [
        (name, tag("span", arm, class_=f"arm {arm}"), _rate(rate, arm), f"{percent(rate.value)} {ends(rate.interval)}")
        for name, arm, rate in rows
    ]
    return table(("skill", "arm", _axis(), "rate [95%]"), lines, "Pass rate with 95% interval", "plot rates")


def _rate(rate: Rate, arm: Arm) -> Html:
    marks = _grid()
    if rate.interval and rate.value is not None:
        marks.append(line(_across(rate.interval.low), _across(rate.interval.high), 13, 13, f"whisker {arm}"))
        marks.append(dot(_across(rate.value), 13, f"mark {arm}"))
    return svg(*marks)


@dataclass(frozen=True, slots=True)
class Dumbbell:
    """One row of the paired plot."""

    name: str
    base: float
    new: float
    arm: str
    """What the base is."""


def dumbbells(rows: Sequence[Dumbbell], caption: str) -> Html:
    """From the base to the new rate of each case: a line to the right is a gain."""
    lines = [
        (one.name, _dumbbell(one), percent(one.base), percent(one.new), points(one.new - one.base)) for one in rows
    ]
    base = rows[0].arm if rows else "without"
    return table(("case", _axis(), base, "with", "pp"), lines, caption, "plot paired")


def _dumbbell(one: Dumbbell) -> Html:
    way = "gain" if one.new > one.base else "loss" if one.new < one.base else "even"
    return svg(
        *_grid(),
        line(_across(one.base), _across(one.new), 13, 13, f"bar {way}"),
        dot(_across(one.base), 13, f"mark {one.arm}", radius=6),
        dot(_across(one.new), 13, "mark with", radius=4),
    )


@dataclass(frozen=True, slots=True)
class Point:
    """One skill in the plot of cost against gain."""

    name: str
    cost: float
    gain: float
    interval: Interval


def scatter(given: Sequence[Point], unit: str) -> Html:
    """What a trial costs more, across, against what is gained, up; numbered as in the table below."""
    most = max([abs(one.cost) for one in given] + [1e-9]) * 1.15
    low = min(0.0, *(one.cost for one in given)) * 1.15
    span = most - low or 1.0

    def x(value: float) -> float:
        return 4 + 84 * (value - low) / span

    def y(value: float) -> float:
        return 50 - 44 * max(-1.0, min(1.0, value))

    show = money if unit == "$" else amount
    marks = [line(x(low), x(most), y(at), y(at), "zero" if at == 0 else "grid", True) for at in (-1, -0.5, 0, 0.5, 1)]
    marks.append(line(x(0), x(0), y(-1), y(1), "zero", True))
    marks += [tag("text", points(at), x="89%", y=f"{y(at):.2f}%", dy=4, class_="small") for at in (-1, -0.5, 0, 0.5, 1)]
    marks.append(tag("text", f"{show(most)} {'' if unit == '$' else unit} more", x="88%", y="98.5%", text_anchor="end"))
    for number, one in enumerate(given, 1):
        marks.append(line(x(one.cost), x(one.cost), y(one.interval.low), y(one.interval.high), "whisker with", True))
        marks.append(dot(x(one.cost), y(one.gain), "mark with", one.name, 10, True))
        marks.append(tag("text", str(number), x=f"{x(one.cost):.2f}%", y=f"{y(one.gain):.2f}%", class_="number", dy=4))
    rows = [
        (f"{number}. {one.name}", f"{'−' if one.cost < 0 else '+'}{show(abs(one.cost))}", f"{points(one.gain)} pp")
        for number, one in enumerate(given, 1)
    ]
    picture = svg(*marks, height=320, label="Cost against gain; the table below has the numbers", class_="scatter")
    return Html(picture + table(("skill", f"{unit} per trial", "gain"), rows, "Cost against gain"))


def heat(given: Confusion) -> Html:
    """Who was loaded for whose queries: the darker, the larger the share of the row."""
    headings = ["should be loaded", *(column or "(none)" for column in given.columns), "trials"]
    rows = []
    for row in given.rows:
        cells = [
            _heat(given.counts.get((row, column), 0), given.totals[row], is_right(row, column))
            for column in given.columns
        ]
        rows.append([str(row), *cells, str(given.totals[row])])
    return table(headings, rows, "What was loaded (columns) for what should have been (rows)", "heat")


def _heat(number: int, total: int, right: bool | None) -> Html:
    """A load that the case says nothing about is in neither colour, and never dark."""
    shade = round(_SHADES * number / total) if total and right is not None else 0
    kind = {True: "right", False: "wrong", None: "open"}[right]
    words = {"right": ", as it should be", "wrong": ", as it should not be"}.get(kind, "") if number else ""
    back = tag("rect", width="100%", height="100%", class_=f"{kind} shade-{shade}")
    count = tag("text", str(number), x="50%", y="50%", dy=5, class_="count dark" if shade > _SHADES / 2 else "count")
    return svg(back, count, height=34, label=f"{number} of {total}{words}")
