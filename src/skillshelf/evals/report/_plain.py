"""A run as plain values, for `--json`: every number of the report, and of each trial what its checks said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import Any

from skillshelf.evals._results import Outcome
from skillshelf.evals.report._summary import error_of
from skillshelf.evals.report._tree import Summary
from skillshelf.evals.stats import Confusion, Difference, Rate

# What happened in the trials is in `run.json`.
_LEFT_OUT = frozenset({"run", "outcomes"})


def as_json(summary: Summary) -> dict[str, Any]:
    """What was measured, with how the run was made."""
    run = summary.run
    return {
        "run": run.id,
        "started": run.started,
        "model": run.model,
        "repeats": run.repeats,
        "baseline": run.baseline,
        **_plain(summary),
        "trials": [_trial(one) for one in run.outcomes],
    }


def _trial(outcome: Outcome) -> dict[str, Any]:
    return {
        "case": outcome.case,
        "arm": outcome.arm,
        "repeat": outcome.repeat,
        "status": outcome.status,
        "error": error_of(outcome),
        "checks": [{"name": one.name, **asdict(one.verdict)} for one in outcome.checks],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Confusion):
        return _matrix(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _fields(value: Any) -> dict[str, Any]:
    found = {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.name not in _LEFT_OUT}
    if isinstance(value, Rate):
        found["value"] = value.value
    if isinstance(value, Difference):
        found["verdict"] = value.verdict
    if isinstance(value, Summary):  # each case is there once, with its skill
        del found["total"]["cases"]
    return found


def _matrix(value: Confusion) -> list[dict[str, Any]]:
    return [
        {
            "skill": row.skill,
            "should_trigger": row.should,
            "trials": value.totals[row],
            "loaded": [
                {"skill": column or None, "trials": value.counts[row, column]}
                for column in value.columns
                if (row, column) in value.counts
            ],
        }
        for row in value.rows
    ]
