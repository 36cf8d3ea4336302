"""From what happened in a trial to what its checks say of it."""

from __future__ import annotations

import operator
from functools import partial, reduce

from skillshelf.agent.events import Usage
from skillshelf.evals._plan import Trial
from skillshelf.evals._results import CheckResult, Outcome
from skillshelf.evals._tape import Tape
from skillshelf.evals._trace import Trace
from skillshelf.evals.check import judged_by, look
from skillshelf.evals.engine._models import Models


async def outcome_of(trial: Trial, trace: Trace, models: Models, tape: Tape | None = None) -> Outcome:
    """The checks of a trial that was none are not made: they would say nothing, and a judge costs money."""
    results: list[CheckResult] = []
    taken: list[Usage] = []
    for number, check in enumerate(() if trace.error else trial.case.checks, 1):
        with judged_by(partial(models.judging, name=f"{trial.id}/check-{number}", tape=tape)) as usages:
            results.append(CheckResult(check.name, await look(check, trace)))
        taken += usages
    judging = reduce(operator.add, taken) if taken else None
    return Outcome(trial.case.id, trial.arm, trial.repeat, tuple(results), trace, judging)
