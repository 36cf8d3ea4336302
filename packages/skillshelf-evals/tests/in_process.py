"""Runs in this process, from the cases to the outcomes."""

import asyncio
from pathlib import Path

from skillshelf_evals import Case, Outcome, make_plan
from skillshelf_evals.engine import Options, PackedPlan, begin_run, run_plan


def run(
    cases: list[Case], folder: Path, options: Options | None = None, repeats: int = 1, baseline: str = ""
) -> tuple[Outcome, ...]:
    """Run cases in a folder. An unfinished run there is resumed."""
    stage = folder / "stage"
    stage.mkdir(parents=True, exist_ok=True)
    work = PackedPlan(make_plan(cases, repeats, baseline, str(stage)), options or Options())
    return asyncio.run(run_plan(work, begin_run(str(folder), work.fingerprint, {})))
