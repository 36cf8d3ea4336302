"""One arm against another on the same cases: what was gained, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from skillshelf.evals._results import Outcome
from skillshelf.evals.report._about import is_settled_without
from skillshelf.evals.stats import Difference, Mean, NeededRuns, Pair, difference, mean, settle

Trials = Mapping[str, Sequence[Outcome]]
"""The trials of an arm by case."""


@dataclass(frozen=True, slots=True)
class Versus:
    """New less base, over the cases that were tried on both. Per trial, as means over cases."""

    base: str
    difference: Difference | None
    settle: NeededRuns | None
    tokens: Mean | None
    seconds: Mean | None
    cost: Mean | None
    """In US dollars; None where a price is not known."""
    pairs: tuple[Pair, ...]
    """The cases that the difference is over."""
    aside: int
    """Cases that check only whether the skill is offered or loaded, where the base is without it."""
    unpaired: int
    """Cases that errors, or the choice of cases, left on one side only."""

    @property
    def account(self) -> str:
        """How many cases there were, and what became of the others; empty where all of them were compared."""
        parts = [f"{len(self.pairs)} case{'s' if len(self.pairs) != 1 else ''} compared"]
        if self.aside:
            parts.append(f"{self.aside} left aside, with no check but of what is offered or loaded")
        if self.unpaired:
            parts.append(f"{self.unpaired} not tried on both sides")
        return "; ".join(parts) if len(parts) > 1 else ""


def versus(name: str, base: Trials, new: Trials, without: Mapping[str, str] | None = None) -> Versus:
    """The comparison with the arm or run of that name. `without`: the skill that is missing on the base, by case.

    A skill that is not there cannot be loaded. To count that as a gain would be to prove that it was left out, so what
    is compared then is everything else that the case checks.
    """
    old, now = (_tried(side if without is None else _trimmed(side, without)) for side in (base, new))
    both = [case for case in now if case in old]
    compared = [case for case in both if without is None or now[case][0].checks]
    pairs = tuple(Pair(case, _passes(old[case]), _passes(now[case])) for case in compared)
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
        pairs,
        len(both) - len(compared),
        len(set(base) | set(new)) - len(both),
    )


def tokens(outcome: Outcome) -> int:
    """What the agent took: a judge is no part of what a skill costs."""
    return outcome.trace.usage.input + outcome.trace.usage.output


def _cost(outcome: Outcome) -> float:
    return outcome.trace.usage.cost or 0.0


def _trimmed(trials: Trials, without: Mapping[str, str]) -> Trials:
    return {case: [_without_loads(one, without[case]) for one in outcomes] for case, outcomes in trials.items()}


def _without_loads(outcome: Outcome, skill: str) -> Outcome:
    return replace(outcome, checks=tuple(one for one in outcome.checks if not is_settled_without(one.name, skill)))


def _tried(trials: Trials) -> dict[str, list[Outcome]]:
    found = {case: [one for one in outcomes if one.status != "error"] for case, outcomes in trials.items()}
    return {case: outcomes for case, outcomes in found.items() if outcomes}


def _passes(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    return sum(one.status == "passed" for one in outcomes), len(outcomes)
