"""The summary of a run: the tree of numbers that every report shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from skillshelf.text import count_noun
from skillshelf_agent.events import Failed
from skillshelf_evals._coverage import Coverage, SkillContent, cover_skill
from skillshelf_evals._results import Arm, CaseInfo, CheckResult, Outcome, Run
from skillshelf_evals.check import About
from skillshelf_evals.stats import (
    Confusion,
    Counts,
    Difference,
    Mean,
    NeededRuns,
    Pair,
    Rate,
    Spending,
    TriggerScore,
    TriggerTrial,
    clustered_rate,
    correct_together,
    count_confusion,
    difference,
    exact_rate,
    flaky_share,
    mean,
    score_triggers,
    settle,
    sum_spending,
)

Trials = Mapping[str, Sequence[Outcome]]
"""The trials of an arm by case."""
ARMS: tuple[Arm, ...] = ("with", "without", "old")
STOPPED = "stopped"
"""Stands before the reason why a trial that counts ended early."""
CaseStatus = Literal["missed", "flaky", "error", "untried", "passed"]
_NO_SUBJECT = About("")


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


@dataclass(frozen=True, slots=True)
class Miss:
    """A check that did not hold, with one of its reasons, or what ended trials early, such as a limit."""

    check: str
    """The name of the check, or STOPPED."""
    reason: str
    times: int
    about: About = _NO_SUBJECT


@dataclass(frozen=True, slots=True)
class CaseArm:
    """A case on one arm."""

    outcomes: tuple[Outcome, ...]
    counts: Counts
    rate: Rate
    spent: Spending
    """The agent's usage in the trials that count. Errors and judges are in the sum of the arm."""
    failures: tuple[Miss, ...]
    errors: tuple[str, ...]
    stops: tuple[Miss, ...] = ()
    """Why trials that missed ended early."""

    @property
    def misses(self) -> tuple[Miss, ...]:
        """Why trials missed: what stopped them comes before the checks, which can only say that there was no answer."""
        return (*self.stops, *self.failures)


_NO_TRIALS = CaseArm((), Counts(), exact_rate(0, 0), Spending(), (), ())


@dataclass(frozen=True, slots=True)
class CaseSummary:
    info: CaseInfo
    arms: Mapping[Arm, CaseArm]

    @property
    def main(self) -> CaseArm:
        """The case with the skill as it is; without trials if it was never run so."""
        return self.arms.get("with") or _NO_TRIALS

    @property
    def status(self) -> CaseStatus:
        """`flaky` if the case passed sometimes and missed sometimes, `untried` if it was never run with the skill."""
        counts = self.main.counts
        if counts.missed:
            return "flaky" if counts.passed else "missed"
        if counts.errors:
            return "error"
        return "passed" if counts.trials else "untried"


@dataclass(frozen=True, slots=True)
class ArmSummary:
    """All cases of a group on one arm."""

    counts: Counts
    rate: Rate
    flaky: Rate | None
    """The share of repeated cases that passed sometimes and missed sometimes; None if no case was repeated."""
    spent: Spending
    """Everything that was paid for, errors and judges included."""


_NO_LIVE_CASES = ArmSummary(Counts(), exact_rate(0, 0), None, Spending())


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that are counted together: those of a skill, or all."""

    name: str
    """Empty for cases that belong to no skill."""
    cases: tuple[CaseSummary, ...]
    arms: Mapping[Arm, ArmSummary]
    """The live cases. A scripted case is not a sample of what a model does, so it is not in any rate."""
    versus: tuple[Versus, ...]
    scripted: Counts
    """The scripted cases, each counted once."""
    trigger: TriggerScore | None = None

    @property
    def main(self) -> ArmSummary:
        """The live cases with the skill as it is; without trials if there is none."""
        return self.arms.get("with") or _NO_LIVE_CASES

    @property
    def spent(self) -> Spending:
        """Everything that was paid for on all arms. Scripts cost nothing."""
        return sum((arm.spent for arm in self.arms.values()), Spending())


@dataclass(frozen=True, slots=True)
class Fault:
    """An infrastructure error, and the trials that could not be completed because of it."""

    message: str
    times: int
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """All numbers of a run."""

    run: Run
    total: Group
    skills: tuple[Group, ...]
    confusion: Confusion | None
    """None for a run without trigger sets."""
    coverage: tuple[Coverage, ...]
    faults: tuple[Fault, ...]


def summarize(run: Run, contents: Mapping[str, SkillContent] | None = None) -> Summary:
    """Return the summary of a run. `contents` holds the skills under test, for the coverage."""
    outcomes_by_case: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run.outcomes:
        outcomes_by_case[outcome.case].append(outcome)
    cases = [_summarize_case(info, outcomes_by_case[info.id]) for info in run.cases]
    triggers = [trial for case in cases for trial in _trigger_trials(case)]

    groups = []
    names = {case.info.skill for case in cases} | set(run.skills)
    for name in sorted(names, key=lambda name: (not name, name)):
        own_cases = [case for case in cases if case.info.skill == name]
        has_triggers = any(trial.skill == name for trial in triggers)
        score = score_triggers(name, triggers) if has_triggers else None
        groups.append(_summarize_group(name, own_cases, score))

    *skills, total = _correct_gains([*groups, _summarize_group("", cases)])
    return Summary(
        run=run,
        total=total,
        skills=tuple(skills),
        confusion=count_confusion(triggers) if triggers else None,
        coverage=tuple(cover_skill(name, content, run.outcomes) for name, content in (contents or {}).items()),
        faults=_collect_faults(run.outcomes),
    )


def find_error(outcome: Outcome) -> str:
    """Return why a trial could not be completed; empty if it could."""
    if outcome.trace.error:
        return outcome.trace.error
    for result in outcome.checks:
        if result.verdict.error:
            return result.verdict.error
    return ""


def find_stop(outcome: Outcome) -> str:
    """Return why a trial that counts ended early; empty if it did not."""
    for event in outcome.trace.events:
        if isinstance(event, Failed):
            return event.message
    return ""


def summarize_trials(outcomes: Iterable[Outcome]) -> CaseArm:
    """Count the trials of one case on one arm."""
    ordered = tuple(sorted(outcomes, key=lambda outcome: outcome.repeat))
    by_status = Counter(outcome.status for outcome in ordered)
    counts = Counts(by_status["passed"], by_status["missed"], by_status["error"])
    tried = [outcome for outcome in ordered if outcome.status != "error"]
    stops = Counter(find_stop(outcome) for outcome in tried if outcome.failed)
    return CaseArm(
        outcomes=ordered,
        counts=counts,
        rate=exact_rate(counts.passed, counts.trials),
        spent=sum_spending((outcome.trace.usage, outcome.trace.seconds) for outcome in tried),
        failures=_collect_failures(tried),
        errors=tuple(find_error(outcome) for outcome in ordered if outcome.status == "error"),
        stops=tuple(Miss(STOPPED, reason, times) for reason, times in stops.items() if reason),
    )


def _collect_failures(outcomes: Sequence[Outcome]) -> tuple[Miss, ...]:
    failed: dict[str, list[CheckResult]] = defaultdict(list)
    for outcome in outcomes:
        for result in outcome.failed:
            failed[result.name].append(result)
    return tuple(
        Miss(name, results[0].verdict.reason, len(results), results[0].about) for name, results in failed.items()
    )


def _collect_faults(outcomes: Sequence[Outcome]) -> tuple[Fault, ...]:
    by_message: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.status == "error":
            by_message[find_error(outcome)].append(outcome)

    faults = []
    for message, trials in by_message.items():
        cases = dict.fromkeys(outcome.case for outcome in trials)
        faults.append(Fault(message, len(trials), tuple(cases)))
    return tuple(sorted(faults, key=lambda fault: (-fault.times, fault.message)))


def _summarize_case(info: CaseInfo, outcomes: Sequence[Outcome]) -> CaseSummary:
    arms: dict[Arm, CaseArm] = {}
    for arm in ARMS:
        trials = [outcome for outcome in outcomes if outcome.arm == arm]
        if trials:
            arms[arm] = summarize_trials(trials)
    return CaseSummary(info, arms)


def _summarize_group(name: str, cases: Sequence[CaseSummary], trigger: TriggerScore | None = None) -> Group:
    live = [case for case in cases if case.info.live]
    arms: dict[Arm, ArmSummary] = {}
    for arm in ARMS:
        case_arms = [case.arms[arm] for case in live if arm in case.arms]
        if case_arms:
            arms[arm] = _summarize_arm(case_arms)

    main = {case.info.id: case.main.outcomes for case in live}
    skills = {case.info.id: case.info.skill for case in live}
    comparisons = []
    for arm in arms:
        if arm != "with":
            base = {case.info.id: case.arms[arm].outcomes for case in live if arm in case.arms}
            comparisons.append(compare_arms(arm, base, main, skills if arm == "without" else None))

    scripted = count_cases(case.main for case in cases if not case.info.live)
    return Group(name, tuple(cases), arms, tuple(comparisons), scripted, trigger)


def count_cases(cases: Iterable[CaseArm]) -> Counts:
    """Count cases instead of trials: one that missed once has missed, and an error leaves a case open."""
    total = Counts()
    for case in cases:
        if case.counts.missed:
            total += Counts(missed=1)
        elif case.counts.errors:
            total += Counts(errors=1)
        elif case.counts.passed:
            total += Counts(passed=1)
    return total


def _summarize_arm(cases: Sequence[CaseArm]) -> ArmSummary:
    pairs = [(case.counts.passed, case.counts.trials) for case in cases]
    outcomes = [outcome for case in cases for outcome in case.outcomes]
    return ArmSummary(
        counts=sum((case.counts for case in cases), Counts()),
        rate=clustered_rate(pairs),
        flaky=flaky_share(pairs),
        spent=sum_spending((outcome.usage, outcome.trace.seconds) for outcome in outcomes),
    )


def _trigger_trials(case: CaseSummary) -> list[TriggerTrial]:
    info = case.info
    if info.should_trigger is None or not info.live:
        return []
    return [
        TriggerTrial(info.id, info.skill, info.should_trigger, outcome.loaded)
        for outcome in case.main.outcomes
        if outcome.status != "error"
    ]


def _correct_gains(groups: Sequence[Group]) -> list[Group]:
    """Correct the verdicts for being looked at together: the gain of each skill and, if there are several, of all.

    The last group is that of all cases. For a single skill it is the same group once more, so it does not count.
    """
    *skills, _ = groups
    counted = skills if len(skills) == 1 else groups
    differences = [versus.difference for group in counted for versus in group.versus if versus.difference]
    tests = len(differences)
    corrected = dict(zip(differences, correct_together(differences), strict=True))

    def correct(versus: Versus) -> Versus:
        if versus.difference is None:
            return versus
        return replace(versus, difference=corrected[versus.difference], settle=settle(versus.pairs, tests))

    return [replace(group, versus=tuple(correct(versus) for versus in group.versus)) for group in groups]
