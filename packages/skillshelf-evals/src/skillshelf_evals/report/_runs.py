"""The runs in a folder: their files, read and written, and what changed from one run to the next.

`run.json` is for programs, `report.html` for readers, and `junit.xml` for CI.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from skillshelf.errors import EvalError
from skillshelf.files import NotPlainFile, open_folder, replace_file, system, walk
from skillshelf.text import count_noun, to_json
from skillshelf.text.tables import Column, Table
from skillshelf_evals._artefacts import ARTEFACTS_FOLDER, NO_ARTEFACTS
from skillshelf_evals._limits import MAX_AMOUNT, MAX_RUN_DEPTH
from skillshelf_evals._results import CheckResult, Outcome, Run, run_from_json
from skillshelf_evals._trace import Trace
from skillshelf_evals.report._comparison import compare
from skillshelf_evals.report._format import (
    NO_VALUE,
    format_cost,
    format_gain,
    format_rate,
    to_plain,
)
from skillshelf_evals.report._gates import Judgement, judge_run
from skillshelf_evals.report._junit import render_junit
from skillshelf_evals.report._page import render_page
from skillshelf_evals.report._summary import Summary, find_error, summarize
from skillshelf_evals.report._tables import cut_rows
from skillshelf_evals.stats import Difference, correct_together

RUN_FILE = "run.json"
HTML_FILE = "report.html"
JUNIT_FILE = "junit.xml"
FORMAT_VERSION = 1
_STATE = "state"
CHANGE_NOTE = (
    "since the run before: against the last run of the same model, on the cases of both; the verdict is corrected for "
    "all of these comparisons (Holm)"
)


class RunUnreadableError(EvalError):
    """A file of results that is missing, broken, or from a newer skillshelf."""

    def __init__(self, path: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"it cannot be read as a run of evals: {reason}", path=path)


def write_run(summary: Summary, folder: str | os.PathLike[str], judgement: Judgement | None = None) -> str:
    """Write the three files of a run, each in one step, and return the path of the page. Raises OSError.

    `junit.xml` says how the run was judged, by default without a gate.
    """
    os.makedirs(folder, exist_ok=True)
    texts = {
        RUN_FILE: to_json(summary.run.as_json(), indent=1) + "\n",
        HTML_FILE: render_page(summary),
        JUNIT_FILE: render_junit(summary, judgement or judge_run(summary)),
    }
    for name, text in texts.items():
        replace_file(os.path.join(folder, name), text.encode(), 0o666)
    return os.path.join(folder, HTML_FILE)


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read a run from a `run.json`, or from the folder that holds one. Raises RunUnreadableError."""
    file = os.fspath(path)
    if os.path.isdir(file):
        file = os.path.join(file, RUN_FILE)
    try:
        run = run_from_json(_read_json(file))
    except ValidationError as fault:
        raise RunUnreadableError(file, _describe_fault(fault)) from fault
    problem = _find_inconsistency(run)
    if problem:
        raise RunUnreadableError(file, problem)
    return run


def _read_json(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            plain = json.load(file, parse_constant=_refuse_constant)
    except OSError as fault:
        raise RunUnreadableError(path, fault.strerror or "it cannot be opened") from fault
    except (ValueError, RecursionError) as fault:
        raise RunUnreadableError(path, "it is not JSON, or was cut off") from fault

    version = plain.get("skillshelf_evals") if isinstance(plain, dict) else None
    if type(version) is not int:
        raise RunUnreadableError(path, "it is JSON of another kind, without `skillshelf_evals`")
    if version > FORMAT_VERSION:
        reason = f"it has version {version} and this skillshelf reads {FORMAT_VERSION}; update it"
        raise RunUnreadableError(path, reason)
    return dict(plain)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _describe_fault(fault: ValidationError) -> str:
    """Return the first fault with its place, such as `run.outcomes[0].arm is 'other'`."""
    [first, *_] = fault.errors()
    place = "run"
    for part in first["loc"]:
        place += f"[{part}]" if isinstance(part, int) else f".{part}"
    if first["type"] == "missing":
        return f"{place} is missing"
    return f"{place} is {first['input']!r:.60}"


def _find_inconsistency(run: Run) -> str:
    """Return what would be counted wrongly: a trial without a case, a case or trial that is there twice, or amounts."""
    ids = {case.id for case in run.cases}
    for outcome in run.outcomes:
        if outcome.case not in ids:
            return f"it holds a trial of {outcome.case!r:.60}, which is not one of its cases"
        if not all(0 <= amount <= MAX_AMOUNT for amount in _list_amounts(outcome)):
            return f"trial {outcome.repeat} of {outcome.case!r:.60} has impossible tokens, seconds or costs"

    if len(ids) < len(run.cases):
        return "it holds a case twice"
    trials = Counter((outcome.case, str(outcome.arm), outcome.repeat) for outcome in run.outcomes)
    for (case, arm, repeat), number in trials.items():
        if number > 1:
            return f"it holds trial {repeat} of {case!r:.60}, {arm}, twice"
    return ""


def _list_amounts(outcome: Outcome) -> list[float]:
    amounts: list[float] = [outcome.trace.seconds]
    for usage in (outcome.trace.usage, outcome.judging):
        if usage:
            amounts += [usage.input, usage.output, usage.cached, usage.cost or 0.0]
    return amounts


def summary_as_json(summary: Summary) -> dict[str, Any]:
    """Return a summary for `--json`: every number of the report, and the checks of each trial."""
    run = summary.run
    statistics = to_plain(summary)
    del statistics["total"]["cases"]  # each case is there once, with its skill
    return {
        "run": run.id,
        "started": run.started,
        "model": run.model,
        "judge": run.judge,
        "repeats": run.repeats,
        "baseline": run.baseline,
        "statistics": statistics,
        "trials": [_trial_as_json(outcome) for outcome in run.outcomes],
    }


def _trial_as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "case": outcome.case,
        "arm": outcome.arm,
        "repeat": outcome.repeat,
        "status": outcome.status,
        "problem": find_error(outcome),
        "checks": [_check_as_json(result) for result in outcome.checks],
    }


def _check_as_json(result: CheckResult) -> dict[str, Any]:
    verdict = result.verdict
    return {
        "name": result.name,
        "passed": verdict.passed,
        "reason": verdict.reason,
        "problem": verdict.error,
        "unrecorded": verdict.unrecorded,
    }


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run in a folder, and how it differs from the one before."""

    summary: Summary
    """Its trials have no traces, so that the memory does not grow with their length."""
    folder: str
    change: Difference | None = None
    """Against the run before it with the same model, on the cases that both have."""
    before: str = ""
    """The id of that run."""

    @property
    def run(self) -> Run:
        return self.summary.run

    @property
    def gain(self) -> Difference | None:
        """Against the baseline."""
        return next((versus.difference for versus in self.summary.total.versus if versus.difference), None)


@dataclass(frozen=True, slots=True)
class History:
    """The runs in a folder, the newest first."""

    folder: str
    records: tuple[RunRecord, ...]
    unreadable: tuple[RunUnreadableError, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        """The runs, the newest first, and the files that are none, for a terminal."""
        tables = (cut_rows(_runs_table(self)), _unreadable_table(self))
        return tuple(table for table in tables if table.rows)

    def as_json(self) -> dict[str, Any]:
        """Return the runs for `--json`, the newest first."""
        return {
            "folder": self.folder,
            "runs": [_record_as_json(record) for record in self.records],
            "unreadable": [{"path": error.path, "reason": error.reason} for error in self.unreadable],
        }


def read_history(folder: str) -> History:
    """Read the runs in a folder and its subfolders. Raises EvalError if the folder cannot be read.

    A file that is not a run is reported and left out.
    """
    records: list[RunRecord] = []
    unreadable: list[RunUnreadableError] = []
    for path in _find_runs(folder):
        try:
            run = read_run(path)
        except RunUnreadableError as error:
            unreadable.append(error)
        else:
            records.append(RunRecord(summarize(_without_traces(run)), os.path.dirname(path)))

    records.sort(key=lambda record: (record.run.started, record.run.id))
    return History(folder, tuple(reversed(_add_changes(records))), tuple(unreadable))


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
        for entry in walk(top, lambda entry: entry.name not in skipped, max_depth=MAX_RUN_DEPTH):
            if entry.kind == "file" and entry.name == RUN_FILE:
                runs.append(os.path.join(folder, entry.path))
    finally:
        system.close(top)
    return runs


def _without_traces(run: Run) -> Run:
    """Return a run with how each trial ended, and what it took."""

    def strip(outcome: Outcome) -> Outcome:
        trace = outcome.trace
        short = Trace(usage=trace.usage, seconds=trace.seconds, error=trace.error, unrecorded=trace.unrecorded)
        return replace(outcome, trace=short, artefacts=NO_ARTEFACTS)

    return replace(run, outcomes=tuple(map(strip, run.outcomes)))


def _add_changes(records: Sequence[RunRecord]) -> list[RunRecord]:
    """Compare each run with the one before it that has the same model and cases in common, oldest first.

    All comparisons are looked at together, so their p-values are corrected together.
    """
    changes: dict[int, tuple[str, Difference]] = {}
    for number, record in enumerate(records):
        for earlier in reversed(records[:number]):
            if earlier.run.model != record.run.model:
                continue
            difference = compare(earlier.run, record.run).versus.difference
            if difference:
                changes[number] = (earlier.run.id, difference)
                break

    changed = list(records)
    corrected = correct_together([difference for _, difference in changes.values()])
    for (number, (before, _)), difference in zip(changes.items(), corrected, strict=True):
        changed[number] = replace(records[number], before=before, change=difference)
    return changed


def _runs_table(history: History) -> Table:
    rows = [_describe_record(record) for record in history.records]
    titles = ["started", "run", "model", "cases", "rate [95%]", "scripted", "gain [95%]", "verdict"]
    titles += ["since the run before", "errors", "cost"]
    right = ("cases", "scripted", "errors", "cost")
    columns = [Column(title, right=title in right) for title in titles]
    notes = [CHANGE_NOTE] if any(record.change for record in history.records) else []
    return _without_empty_columns(Table("Runs, the newest first", columns, rows, notes))


def _describe_record(record: RunRecord) -> tuple[str, ...]:
    run = record.run
    scripted = record.summary.total.scripted
    live = record.summary.total.main.counts
    return (
        run.started[:16].replace("T", " "),  # `2026-11-15 10:00`
        run.id,
        run.model,
        str(len(run.cases)),
        format_rate(record.summary.total.main.rate) if live.trials else NO_VALUE,
        f"{scripted.passed}/{scripted.trials}" if scripted.trials else "",
        format_gain(record.gain) if record.gain else "",
        record.gain.verdict if record.gain else "",
        _describe_change(record.change),
        str(live.errors + scripted.errors or ""),
        format_cost(record.summary.total.spent),
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
    return table._replace(columns=[table.columns[number] for number in kept], rows=rows)


def _unreadable_table(history: History) -> Table:
    rows = [(error.path, error.reason) for error in history.unreadable]
    title = f"{count_noun(len(rows), 'file')} that cannot be read"
    return Table(title, (Column("file"), Column("why")), rows)


def _record_as_json(record: RunRecord) -> dict[str, Any]:
    run = record.run
    total = record.summary.total
    statistics = {
        "cases": len(run.cases),
        "counts": total.main.counts,
        "rate": total.main.rate,
        "scripted": total.scripted,
        "gain": record.gain,
        "change": record.change,
        "spent": total.spent,
    }
    return {
        "run": run.id,
        "started": run.started,
        "model": run.model,
        "baseline": run.baseline,
        "folder": record.folder,
        "before": record.before,
        "statistics": to_plain(statistics),
    }
