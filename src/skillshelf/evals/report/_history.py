"""The runs in a folder, with what changed from one to the next: `skillshelf eval view`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from skillshelf.errors import EvalError
from skillshelf.evals._results import Outcome, Run
from skillshelf.evals._trace import Trace
from skillshelf.evals.artefacts import ARTEFACTS_FOLDER, NO_ARTEFACTS
from skillshelf.evals.report._comparison import compare
from skillshelf.evals.report._format import (
    NO_VALUE,
    format_cost,
    format_gain,
    format_rate,
)
from skillshelf.evals.report._run_files import RUN_FILE, RunUnreadableError, read_run
from skillshelf.evals.report._summary import summarize
from skillshelf.evals.report._tables import cut_rows
from skillshelf.evals.report._versus import Versus
from skillshelf.evals.stats import Counts, Difference, Rate, Spending, correct_together, exact_rate
from skillshelf.files import NotPlainFile, open_folder, system, walk
from skillshelf.tables import Column, Table
from skillshelf.text import count_noun

MAX_DEPTH = 4
_STATE = "state"
_NO_RATE = exact_rate(0, 0)
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
    cases: int
    counts: Counts
    """The trials of live cases with the skill."""
    rate: Rate
    scripted: Counts
    gain: Difference | None
    """Against the baseline."""
    spent: Spending
    """On all arms, errors and judges included; scripts cost nothing."""
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
class History:
    """The runs in a folder, the newest first."""

    folder: str
    records: tuple[RunRecord, ...]
    unreadable: tuple[Unreadable, ...]


def read_history(folder: str) -> History:
    """Read the runs in a folder and its subfolders. Raises EvalError if the folder cannot be read.

    A file that is not a run is reported and left out. Traces are dropped after each run, so that the memory does not
    grow with their length.
    """
    records: list[RunRecord] = []
    runs: list[Run] = []
    unreadable: list[Unreadable] = []
    for path in _find_runs(folder):
        try:
            run = read_run(path)
        except RunUnreadableError as error:
            unreadable.append(Unreadable(path, error.reason))
            continue
        records.append(_record_run(run, os.path.dirname(path)))
        runs.append(_without_traces(run))

    order = sorted(range(len(runs)), key=lambda number: (runs[number].started, runs[number].id))
    oldest_first = _add_changes([records[number] for number in order], [runs[number] for number in order])
    return History(folder, tuple(reversed(oldest_first)), tuple(unreadable))


def _find_runs(folder: str) -> list[str]:
    """Return the files with runs in a folder and its subfolders. Raises EvalError."""
    try:
        top = open_folder(folder)
    except (OSError, NotPlainFile) as error:
        reason = getattr(error, "strerror", None) or "it is not a folder"
        raise EvalError(f"{folder} cannot be read: {reason}", "Give a folder with runs") from error

    runs: list[str] = []
    try:
        skipped = (ARTEFACTS_FOLDER, _STATE)
        for entry in walk(top, lambda entry: entry.name not in skipped, max_depth=MAX_DEPTH):
            if entry.kind == "file" and entry.name == RUN_FILE:
                runs.append(os.path.join(folder, entry.path))
    finally:
        system.close(top)
    return runs


def _record_run(run: Run, folder: str) -> RunRecord:
    summary = summarize(run)
    total = summary.total
    arm = total.arms.get("with")
    return RunRecord(
        id=run.id,
        started=run.started,
        model=run.model,
        baseline=run.baseline,
        folder=folder,
        cases=len(run.cases),
        counts=arm.counts if arm else Counts(),
        rate=arm.rate if arm else _NO_RATE,
        scripted=total.scripted,
        gain=_find_gain(total.versus),
        spent=total.spent,
    )


def _find_gain(comparisons: Sequence[Versus]) -> Difference | None:
    return next((versus.difference for versus in comparisons if versus.difference), None)


def _without_traces(run: Run) -> Run:
    """Return a run with what a comparison needs: how each trial ended, and what it took."""

    def strip(outcome: Outcome) -> Outcome:
        trace = outcome.trace
        short = Trace(usage=trace.usage, seconds=trace.seconds, error=trace.error, unrecorded=trace.unrecorded)
        return replace(outcome, trace=short, artefacts=NO_ARTEFACTS)

    return replace(run, outcomes=tuple(strip(outcome) for outcome in run.outcomes if outcome.arm == "with"))


def _add_changes(records: Sequence[RunRecord], runs: Sequence[Run]) -> list[RunRecord]:
    """Compare each run with the one before it that has the same model and cases in common, oldest first.

    All comparisons are looked at together, so their p-values are corrected together.
    """
    changed = list(records)
    numbers: list[int] = []
    differences: list[Difference] = []
    for number, run in enumerate(runs):
        for earlier in range(number - 1, -1, -1):
            if runs[earlier].model != run.model:
                continue
            difference = compare(runs[earlier], run).versus.difference
            if difference:
                changed[number] = replace(changed[number], before=runs[earlier].id)
                numbers.append(number)
                differences.append(difference)
                break

    for number, difference in zip(numbers, correct_together(differences), strict=True):
        changed[number] = replace(changed[number], change=difference)
    return changed


def history_tables(history: History) -> tuple[Table, ...]:
    """Return the runs, the newest first, for a terminal."""
    tables = [cut_rows(_runs_table(history)), _unreadable_table(history)]
    return tuple(table for table in tables if table.rows)


def _format_start(started: str) -> str:
    """Return a time as readers need it: `2026-11-15 10:00`."""
    return started[:16].replace("T", " ")


def _runs_table(history: History) -> Table:
    rows = [(_format_start(record.started), record.id, *_describe_record(record)) for record in history.records]
    titles = ["started", "run", "model", "cases", "rate [95%]", "scripted", "gain [95%]", "verdict"]
    titles += ["since the run before", "errors", "cost"]
    right = ("cases", "scripted", "errors", "cost")
    columns = [Column(title, right=title in right) for title in titles]
    notes = [CHANGE_NOTE] if any(record.change for record in history.records) else []
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


def _unreadable_table(history: History) -> Table:
    rows = [(found.path, found.reason) for found in history.unreadable]
    title = f"{count_noun(len(rows), 'file')} that cannot be read"
    return Table(title, (Column("file"), Column("why")), rows)


def history_as_json(history: History) -> dict[str, Any]:
    """Return the runs for `--json`, the newest first."""
    return {
        "folder": history.folder,
        "runs": [_record_as_json(record) for record in history.records],
        "unreadable": [{"path": found.path, "reason": found.reason} for found in history.unreadable],
    }


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
