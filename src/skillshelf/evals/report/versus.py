"""One arm against another on the same cases: what was gained, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from skillshelf.evals.results import Outcome
from skillshelf.evals.stats import Difference, Mean, Pair, Settle, difference, mean, settle

Trials = Mapping[str, Sequence[Outcome]]
"""The trials of an arm by case."""


@dataclass(frozen=True, slots=True)
class Versus:
    """New less base, over the cases that were tried on both. Per trial, as means over cases."""

    base: str
    difference: Difference | None
    settle: Settle | None
    tokens: Mean | None
    seconds: Mean | None
    cost: Mean | None
    """In US dollars; None where a price is not known."""
    unpaired: int
    """Cases that errors, or the choice of cases, left on one side only."""


def versus(name: str, base: Trials, new: Trials) -> Versus:
    """The comparison with the arm or run of that name."""
    old, now = _tried(base), _tried(new)
    both = [case for case in now if case in old]
    pairs = [Pair(case, _passes(old[case]), _passes(now[case])) for case in both]
    priced = [case for case in both if all(one.trace.usage.cost is not None for one in (*old[case], *now[case]))]

    def less(amount: Callable[[Outcome], float], cases: Sequence[str]) -> Mean | None:
        return mean([fmean(map(amount, now[case])) - fmean(map(amount, old[case])) for case in cases])

    return Versus(
        name,
        difference(pairs),
        settle(pairs),
        less(tokens, both),
        less(lambda one: one.trace.seconds, both),
        less(_cost, priced) if len(priced) == len(both) else None,
        len(set(base) | set(new)) - len(both),
    )


def tokens(outcome: Outcome) -> int:
    return outcome.trace.usage.input + outcome.trace.usage.output


def _cost(outcome: Outcome) -> float:
    return outcome.trace.usage.cost or 0.0


def _tried(trials: Trials) -> dict[str, list[Outcome]]:
    found = {case: [one for one in outcomes if one.status != "error"] for case, outcomes in trials.items()}
    return {case: outcomes for case, outcomes in found.items() if outcomes}


def _passes(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    return sum(one.status == "passed" for one in outcomes), len(outcomes)
