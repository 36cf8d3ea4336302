"""The files of a run, and the JSON of its summary.

`run.json` is for programs, `report.html` for readers, and `junit.xml` for CI.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic import ValidationError

from skillshelf.errors import EvalError
from skillshelf.evals._results import CheckResult, Outcome, Run, run_from_json
from skillshelf.evals.report._gates import Gates, judge_run
from skillshelf.evals.report._junit import render_junit
from skillshelf.evals.report._summary import Summary, find_error, summarize
from skillshelf.evals.report.html import render_page
from skillshelf.evals.stats import Confusion, Difference, Rate, SkillContent
from skillshelf.files import replace_file
from skillshelf.text import to_json

RUN_FILE = "run.json"
HTML_FILE = "report.html"
JUNIT_FILE = "junit.xml"
FORMAT_VERSION = 1
MAX_AMOUNT = 1e15
"""The most tokens, seconds or dollars of a trial that is believed. Sums of more than this many would overflow."""
# `run.json` has the trials in full, and what a check is about is for annotations alone.
_FIELDS_LEFT_OUT = frozenset({"run", "outcomes", "about"})


class RunUnreadableError(EvalError):
    """A file of results that is missing, broken, or from a newer skillshelf."""

    def __init__(self, path: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"it cannot be read as a run of evals: {reason}", path=path)


def write_run(
    run: Run,
    folder: str | os.PathLike[str],
    contents: Mapping[str, SkillContent] | None = None,
    gates: Gates | None = None,
) -> None:
    """Write the three files of a run, each in one step. Raises OSError.

    `gates` are those that the run was judged by, for `junit.xml`.
    """
    os.makedirs(folder, exist_ok=True)
    summary = summarize(run, contents)
    texts = {
        RUN_FILE: to_json(run.as_json(), indent=1) + "\n",
        HTML_FILE: render_page(summary),
        JUNIT_FILE: render_junit(summary, judge_run(summary, gates)),
    }
    for name, text in texts.items():
        replace_file(os.path.join(folder, name), text.encode(), 0o666)


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
    return {
        "run": run.id,
        "started": run.started,
        "model": run.model,
        "judge": run.judge,
        "repeats": run.repeats,
        "baseline": run.baseline,
        "statistics": _to_plain(summary),
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


def _to_plain(value: Any) -> Any:
    if isinstance(value, Confusion):
        return _confusion_as_json(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields_as_json(value)
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_to_plain(item) for item in value]
    return value


def _fields_as_json(value: Any) -> dict[str, Any]:
    plain = {}
    for field in fields(value):
        if field.name not in _FIELDS_LEFT_OUT:
            plain[field.name] = _to_plain(getattr(value, field.name))

    if isinstance(value, Rate):
        plain["value"] = value.value
    if isinstance(value, Difference):
        plain["verdict"] = value.verdict
    if isinstance(value, Summary):  # each case is there once, with its skill
        del plain["total"]["cases"]
    return plain


def _confusion_as_json(confusion: Confusion) -> list[dict[str, Any]]:
    rows = []
    for row in confusion.rows:
        loaded = [
            {"skill": column or None, "trials": confusion.counts[row, column]}
            for column in confusion.columns
            if (row, column) in confusion.counts
        ]
        rows.append(
            {
                "skill": row.skill,
                "should_trigger": row.should,
                "trials": confusion.totals[row],
                "loaded": loaded,
            }
        )
    return rows
