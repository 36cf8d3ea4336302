"""A summary as plain values, for `--json`: every number of the report, and none of the traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from skillshelf.evals.report.tree import Summary
from skillshelf.evals.stats import Confusion, Difference, Rate

# The trials themselves are in `run.json`.
_LEFT_OUT = frozenset({"run", "outcomes"})


def as_json(summary: Summary) -> dict[str, Any]:
    """What was measured, with how the run was made."""
    run = summary.run
    made = {"id": run.id, "started": run.started, "model": run.model, "repeats": run.repeats, "baseline": run.baseline}
    return {**made, **_plain(summary)}


def _plain(value: Any) -> Any:
    if isinstance(value, Confusion):
        cells = [{"expected": row, "loaded": column, "trials": n} for (row, column), n in sorted(value.counts.items())]
        return {"totals": dict(value.totals), "cells": cells}
    if is_dataclass(value) and not isinstance(value, type):
        found = {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.name not in _LEFT_OUT}
        if isinstance(value, Rate):
            found["value"] = value.value
        if isinstance(value, Difference):
            found["verdict"] = value.verdict
        return found
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value
