"""One arm or run against another, on the cases that both have tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from skillshelf.evals._results import Outcome
from skillshelf.evals.stats import Difference, Mean, NeededRuns, Pair, difference, mean, settle
from skillshelf.text import count_noun

Trials = Mapping[str, Sequence[Outcome]]
"""The trials of an arm by case."""


@dataclass(frozen=True, slots=True)
class Versus:
    """One arm against another on the same cases: new minus base, per trial, as means over cases."""

    base: str
    difference: Difference | None
    settle: NeededRuns | None
    tokens: Mean | None
    seconds: Mean | None
    cost: Mean | None
    """In US dollars; None if a price is not known."""
    pairs: tuple[Pair, ...]
    """The cases that the difference is over."""
    aside: int
    """Cases that check only whether the skill is offered or loaded, if the base is without it."""
    unpaired: int
    """Cases that were tried on one side only."""

    @property
    def account(self) -> str:
        """How many cases were compared and why the others were not; empty if all were."""
        if not self.aside and not self.unpaired:
            return ""
        parts = [f"{count_noun(len(self.pairs), 'case')} compared"]
        if self.aside:
            parts.append(f"{self.aside} left aside, because they check only what is offered or loaded")
        if self.unpaired:
            parts.append(f"{self.unpaired} not tried on both sides")
        return "; ".join(parts)


def compare_arms(base_name: str, base: Trials, new: Trials, without: Mapping[str, str] | None = None) -> Versus:
    """Compare an arm or run with another. `without` names the skill that the base lacks, by case.

    A skill that is not there cannot be loaded. Counting that as a gain would only prove that it was left out, so in
    that case everything else that the cases check is compared.
    """
    if without is not None:
        base = _remove_checks_of_loading(base, without)
        new = _remove_checks_of_loading(new, without)

    old_trials = _without_errors(base)
    new_trials = _without_errors(new)
    both = [case for case in new_trials if case in old_trials]
    compared = [case for case in both if without is None or new_trials[case][0].checks]
    pairs = tuple(Pair(case, _count_passes(old_trials[case]), _count_passes(new_trials[case])) for case in compared)

    def mean_change(measure: Callable[[Outcome], float]) -> Mean | None:
        changes = []
        for case in both:
            old_mean = fmean(measure(outcome) for outcome in old_trials[case])
            new_mean = fmean(measure(outcome) for outcome in new_trials[case])
            changes.append(new_mean - old_mean)
        return mean(changes)

    trials = [outcome for case in both for outcome in (*old_trials[case], *new_trials[case])]
    is_priced = all(outcome.trace.usage.cost is not None for outcome in trials)
    return Versus(
        base=base_name,
        difference=difference(pairs),
        settle=settle(pairs),
        # The agent's usage alone: a judge is not part of what a skill costs.
        tokens=mean_change(lambda outcome: outcome.trace.usage.input + outcome.trace.usage.output),
        seconds=mean_change(lambda outcome: outcome.trace.seconds),
        cost=mean_change(lambda outcome: outcome.trace.usage.cost or 0.0) if is_priced else None,
        pairs=pairs,
        aside=len(both) - len(compared),
        unpaired=len(set(base) | set(new)) - len(both),
    )


def _remove_checks_of_loading(trials: Trials, without: Mapping[str, str]) -> Trials:
    """Remove the checks whose results are known beforehand if the skill is not on the shelf."""
    remaining: dict[str, list[Outcome]] = {}
    for case, outcomes in trials.items():
        remaining[case] = []
        for outcome in outcomes:
            checks = tuple(result for result in outcome.checks if not result.about.is_known_without(without[case]))
            remaining[case].append(replace(outcome, checks=checks))
    return remaining


def _without_errors(trials: Trials) -> dict[str, list[Outcome]]:
    tried = {}
    for case, outcomes in trials.items():
        good = [outcome for outcome in outcomes if outcome.status != "error"]
        if good:
            tried[case] = good
    return tried


def _count_passes(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    return sum(outcome.status == "passed" for outcome in outcomes), len(outcomes)
