"""The page about many runs: a plot over time, the trend of each skill, and a link to each report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from skillshelf.evals.report._format import format_rate, skill_label
from skillshelf.evals.report._history import History, RunRecord, Trend, make_runs_table
from skillshelf.evals.report.html._environment import find_style, hash_source, make_environment
from skillshelf.evals.stats import Rate

MAX_POINTS = 60
"""Runs in a plot: more would be closer together than their marks are wide."""


class Point(NamedTuple):
    """A run in a plot, in per cent from the left and the top."""

    x: float
    y: float
    low: float
    high: float
    title: str


class TrendPlot(NamedTuple):
    skill: str
    model: str
    runs: int
    last: str
    points: Sequence[Point]


def render_history_page(history: History, folder: str) -> str:
    """Return the page about the runs. `folder` is where it will be, for its links to their reports."""
    style = find_style()
    policy = f"default-src 'none'; style-src '{hash_source(style)}'; base-uri 'none'; form-action 'none'"
    page: str = (
        make_environment()
        .get_template("history.html.jinja")
        .render(
            policy=policy,
            style=style,
            folder=history.folder,
            models=_plot_models(history.records),
            trends=[_plot_trend(trend) for trend in history.trends],
            runs=make_runs_table(history, {record.folder: _link_report(record, folder) for record in history.records}),
            unreadable=history.unreadable,
        )
    )
    return page


def _plot_models(records: Sequence[RunRecord]) -> list[TrendPlot]:
    """Plot all live cases of each model over time."""
    by_model: dict[str, list[RunRecord]] = {}
    for record in reversed(records):
        if record.counts.trials:
            by_model.setdefault(record.model, []).append(record)
    plots = []
    for model, of_model in by_model.items():
        rates = [record.rate for record in of_model]
        plots.append(TrendPlot("all", model, len(rates), format_rate(rates[-1]), _plot_rates(rates)))
    return plots


def _plot_trend(trend: Trend) -> TrendPlot:
    last = format_rate(trend.rates[-1])
    return TrendPlot(skill_label(trend.skill), trend.model, len(trend.rates), last, _plot_rates(trend.rates))


def _plot_rates(rates: Sequence[Rate]) -> list[Point]:
    """Place rates from left to right in their order. Runs without a trial leave a gap."""
    shown = rates[-MAX_POINTS:]
    points = []
    for number, rate in enumerate(shown):
        if rate.value is None or rate.interval is None:
            continue
        points.append(
            Point(
                x=3 + 94 * (number + 0.5) / len(shown),
                y=_height(rate.value),
                low=_height(rate.interval.low),
                high=_height(rate.interval.high),
                title=format_rate(rate),
            )
        )
    return points


def _height(share: float) -> float:
    return 92 - 84 * share


def _link_report(record: RunRecord, folder: str) -> str:
    """Return the address of a run's report, seen from a folder; empty if the report is gone."""
    if not record.page:
        return ""
    # As bytes, because a name may hold anything; a colon would make a part of it a scheme.
    return quote(os.fsencode(os.path.relpath(record.page, folder)))
