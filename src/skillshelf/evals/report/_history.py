"""The runs in a folder, with what changed from one to the next: `skillshelf eval view`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from skillshelf.evals.report._format import (
    NO_VALUE,
    format_cost,
    format_gain,
    format_rate,
    skill_label,
)
from skillshelf.evals.report._tables import cut_rows
from skillshelf.evals.stats import Counts, Difference, Rate, Spending
from skillshelf.tables import Cell, Column, Table, draw_sparkline
from skillshelf.text import count_noun

CHANGE_NOTE = (
    "since the run before: against the last run of the same model, on the cases of both; the verdict is corrected for "
    "all of these comparisons (Holm)"
)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The numbers of one run, without its trials."""

    id: str
    started: str
    model: str
    baseline: str
    folder: str
    page: str
    """The path of its HTML report; empty if that is gone."""
    cases: int
    counts: Counts
    """The trials of live cases with the skill."""
    rate: Rate
    scripted: Counts
    gain: Difference | None
    """Against the baseline."""
    spent: Spending
    """On all arms, errors and judges included; scripts cost nothing."""
    skills: Mapping[str, Rate]
    change: Difference | None = None
    """Against the run before it with the same model, on the cases that both have."""
    before: str = ""
    """The id of that run."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A run file that cannot be read, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Trend:
    """The pass rates of a skill with one model, the oldest first."""

    skill: str
    model: str
    rates: tuple[Rate, ...]

    @property
    def values(self) -> list[float | None]:
        return [rate.value for rate in self.rates]


@dataclass(frozen=True, slots=True)
class History:
    """The runs in a folder, the newest first."""

    folder: str
    records: tuple[RunRecord, ...]
    unreadable: tuple[Unreadable, ...]
    trends: tuple[Trend, ...] = ()
    choices: tuple[str, ...] = ()
    """Folders of `eval choose`. Their runs try other descriptions of a skill, so they are no part of its history."""


def history_tables(history: History) -> tuple[Table, ...]:
    """Return the runs, the newest first, and the trends of skills, for a terminal."""
    tables = [cut_rows(make_runs_table(history)), cut_rows(_trends_table(history)), _unreadable_table(history)]
    return tuple(table for table in tables if table.rows)


def _format_start(started: str) -> str:
    """Return a time as readers need it: `2026-11-15 10:00`."""
    return started[:16].replace("T", " ")


def make_runs_table(history: History, links: Mapping[str, str] | None = None) -> Table:
    """Return a row for each run. `links` holds the address of its report, by the run's folder, for a page."""
    rows: list[Sequence[str | Cell]] = []
    for record in history.records:
        link = (links or {}).get(record.folder, "")
        rows.append((_format_start(record.started), Cell(record.id, link=link), *_describe_record(record)))

    titles = ["started", "run", "model", "cases", "rate [95%]", "scripted", "gain [95%]", "verdict"]
    titles += ["since the run before", "errors", "cost"]
    right = ("cases", "scripted", "errors", "cost")
    columns = [Column(title, right=title in right) for title in titles]
    notes = [CHANGE_NOTE] if any(record.change for record in history.records) else []
    if history.choices:
        names = ", ".join(os.path.basename(choice) for choice in history.choices)
        notes.append(f"without {count_noun(len(history.choices), 'choice')} between descriptions: {names}")
    return _without_empty_columns(Table("Runs, the newest first", columns, rows, notes))


def _describe_record(record: RunRecord) -> tuple[str, ...]:
    errors = record.counts.errors + record.scripted.errors
    return (
        record.model,
        str(record.cases),
        format_rate(record.rate) if record.counts.trials else NO_VALUE,
        f"{record.scripted.passed}/{record.scripted.trials}" if record.scripted.trials else "",
        format_gain(record.gain) if record.gain else "",
        record.gain.verdict if record.gain else "",
        _describe_change(record.change),
        str(errors or ""),
        format_cost(record.spent),
    )


def _describe_change(change: Difference | None) -> str:
    if change is None:
        return ""
    if not change.value:
        return "the same"
    return f"{format_gain(change)} {change.verdict}"


def _without_empty_columns(table: Table) -> Table:
    """Leave out the columns that say nothing about any run, such as the gain if no run has a baseline."""
    kept = [number for number in range(len(table.columns)) if any(row[number] for row in table.rows)]
    rows = [[row[number] for number in kept] for row in table.rows]
    return replace(table, columns=[table.columns[number] for number in kept], rows=rows)


def _trends_table(history: History) -> Table:
    rows = []
    for trend in history.trends:
        if len(trend.rates) > 1:
            line = draw_sparkline(trend.values)
            first = format_rate(trend.rates[0])
            last = format_rate(trend.rates[-1])
            rows.append((skill_label(trend.skill), trend.model, str(len(trend.rates)), first, last, line))
    titles = ("skill", "model", "runs", "first [95%]", "last [95%]", "pass rate, 0 to 100%")
    columns = [Column(title, right=title == "runs") for title in titles]
    return Table("Trends, the oldest run first", columns, rows)


def _unreadable_table(history: History) -> Table:
    rows = [(found.path, found.reason) for found in history.unreadable]
    title = f"{count_noun(len(rows), 'file')} that cannot be read"
    return Table(title, (Column("file"), Column("why")), rows)


def history_as_json(history: History) -> dict[str, Any]:
    """Return the runs for `--json`, the newest first."""
    return {
        "folder": history.folder,
        "runs": [_record_as_json(record) for record in history.records],
        "trends": [_trend_as_json(trend) for trend in history.trends],
        "choices": list(history.choices),
        "unreadable": [{"path": found.path, "reason": found.reason} for found in history.unreadable],
    }


def _trend_as_json(trend: Trend) -> dict[str, Any]:
    rates = [{**asdict(rate), "value": rate.value} for rate in trend.rates]
    return {"skill": trend.skill, "model": trend.model, "statistics": {"rates": rates}}


def _record_as_json(record: RunRecord) -> dict[str, Any]:
    return {
        "run": record.id,
        "started": record.started,
        "model": record.model,
        "baseline": record.baseline,
        "folder": record.folder,
        "before": record.before,
        "statistics": {
            "cases": record.cases,
            "counts": asdict(record.counts),
            "rate": {**asdict(record.rate), "value": record.rate.value},
            "scripted": asdict(record.scripted),
            "gain": _difference_as_json(record.gain),
            "change": _difference_as_json(record.change),
            "spent": asdict(record.spent),
        },
    }


def _difference_as_json(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    return {**asdict(difference), "verdict": difference.verdict}
