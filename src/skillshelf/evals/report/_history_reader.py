"""Reading the runs in a folder, and comparing each with the one before it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from skillshelf.errors import EvalError
from skillshelf.evals._results import Outcome, Run
from skillshelf.evals._trace import Trace
from skillshelf.evals.artefacts import ARTEFACTS_FOLDER, NO_ARTEFACTS
from skillshelf.evals.report._choice import CHOICE_FILE
from skillshelf.evals.report._comparison import compare
from skillshelf.evals.report._history import History, RunRecord, Trend, Unreadable
from skillshelf.evals.report._run_files import HTML_FILE, RUN_FILE, RunUnreadableError, read_run
from skillshelf.evals.report._summary import summarize
from skillshelf.evals.report._versus import Versus
from skillshelf.evals.stats import Counts, Difference, Rate, correct_together, exact_rate
from skillshelf.files import NotPlainFile, open_folder, system, walk

MAX_DEPTH = 4
MAX_RUNS = 1_000
_STATE = "state"
_NO_RATE = exact_rate(0, 0)


def read_history(folder: str, max_runs: int = MAX_RUNS) -> History:
    """Read the runs in a folder and its subfolders. Raises EvalError if the folder cannot be read.

    A file that is not a run is reported and left out. Traces are dropped after each run, so that the memory does not
    grow with their length.
    """
    records: list[RunRecord] = []
    runs: list[Run] = []
    unreadable: list[Unreadable] = []
    files = _find_files(folder, max_runs)
    for path in files.runs:
        try:
            run = read_run(path)
        except RunUnreadableError as error:
            unreadable.append(Unreadable(path, error.reason))
            continue
        records.append(_record_run(run, os.path.dirname(path)))
        runs.append(_without_traces(run))

    order = sorted(range(len(runs)), key=lambda number: (runs[number].started, runs[number].id))
    oldest_first = _add_changes([records[number] for number in order], [runs[number] for number in order])
    return History(
        folder,
        tuple(reversed(oldest_first)),
        tuple(unreadable),
        tuple(_find_trends(oldest_first)),
        tuple(files.choices),
    )


class _Files(NamedTuple):
    """The files of interest in a folder."""

    runs: list[str]
    """Without those of a choice."""
    choices: list[str]
    """The folders of choices between descriptions."""


def _find_files(folder: str, max_runs: int) -> _Files:
    try:
        top = open_folder(folder)
    except (OSError, NotPlainFile) as error:
        reason = getattr(error, "strerror", None) or "it is not a folder"
        raise EvalError(f"{folder} cannot be read: {reason}", "Give a folder with runs") from error

    runs: list[str] = []
    choices: list[str] = []
    try:
        skipped = (ARTEFACTS_FOLDER, _STATE)
        for entry in walk(top, lambda entry: entry.name not in skipped, max_depth=MAX_DEPTH):
            path = os.path.join(folder, entry.path)
            if entry.kind == "file" and entry.name == CHOICE_FILE:
                choices.append(os.path.dirname(path))
            if entry.kind == "file" and entry.name == RUN_FILE:
                runs.append(path)
                if len(runs) > max_runs:
                    raise EvalError(f"{folder} has more than {max_runs:,} runs", "Give a folder with fewer")
    finally:
        system.close(top)
    own_runs = [path for path in runs if os.path.dirname(os.path.dirname(path)) not in choices]
    return _Files(own_runs, sorted(choices))


def _record_run(run: Run, folder: str) -> RunRecord:
    summary = summarize(run)
    total = summary.total
    arm = total.arms.get("with")
    page = os.path.join(folder, HTML_FILE)
    return RunRecord(
        id=run.id,
        started=run.started,
        model=run.model,
        baseline=run.baseline,
        folder=folder,
        page=page if os.path.isfile(page) else "",
        cases=len(run.cases),
        counts=arm.counts if arm else Counts(),
        rate=arm.rate if arm else _NO_RATE,
        scripted=total.scripted,
        gain=_find_gain(total.versus),
        spent=total.spent,
        skills={group.name: group.arms["with"].rate for group in summary.skills if "with" in group.arms},
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


def _find_trends(records: Sequence[RunRecord]) -> Iterator[Trend]:
    """Yield the trend of each skill with each model."""
    by_skill: dict[tuple[str, str], list[Rate]] = {}
    for record in records:
        for skill, rate in record.skills.items():
            by_skill.setdefault((skill, record.model), []).append(rate)
    for (skill, model), rates in sorted(by_skill.items()):
        yield Trend(skill, model, tuple(rates))
