"""From a run to the numbers that a report shows, and to the exit code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from skillshelf.agent.events import Failed
from skillshelf.evals._results import Arm, CaseInfo, Outcome, Run
from skillshelf.evals.report._seen import coverage_of
from skillshelf.evals.report._tree import ARMS, ArmSummary, CaseArm, CaseSummary, Failure, Fault, Group, Stop, Summary
from skillshelf.evals.report._versus import versus
from skillshelf.evals.report._words import fault
from skillshelf.evals.stats import (
    Counts,
    SkillContent,
    TriggerScore,
    TriggerTrial,
    clustered_rate,
    count_confusion,
    pass_k,
    score_triggers,
    sum_spending,
    wilson,
)

_TRIES = (2, 3, 5, 10)


def summarize(run: Run, texts: Mapping[str, SkillContent] | None = None) -> Summary:
    """`texts`: the skills under test, for the coverage; see `stats.skill_texts`."""
    by_case: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run.outcomes:
        by_case[outcome.case].append(outcome)
    cases = [_case(info, by_case[info.id]) for info in run.cases]
    triggers = [trigger for case in cases for trigger in _triggers(case)]
    names = sorted({case.info.skill for case in cases} | set(run.skills), key=lambda name: (not name, name))
    groups = []
    for name in names:
        own = [case for case in cases if case.info.skill == name]
        judged = score_triggers(name, triggers) if any(one.skill == name for one in triggers) else None
        groups.append(_group(name, own, run.repeats, judged))
    covered = tuple(coverage_of(name, text, run.outcomes) for name, text in (texts or {}).items())
    return Summary(
        run,
        _group("", cases, run.repeats),
        tuple(groups),
        count_confusion(triggers) if triggers else None,
        covered,
        _faults(run.outcomes),
    )


def exit_code(run: Run) -> int:
    """For CI: 0 all trials with the skill passed, 1 some missed, 3 none missed but some could not be made.

    Baseline arms gate nothing: a case that misses without the skill is what the skill is for. An error on one keeps
    the comparison from being whole, so it counts. A run in which nothing was tried is wrong use: 2.
    """
    if not run.outcomes:
        return 2
    if any(one.arm == "with" and one.status == "missed" for one in run.outcomes):
        return 1
    return 3 if any(one.status == "error" for one in run.outcomes) else 0


def case_arm(outcomes: Iterable[Outcome]) -> CaseArm:
    """The trials of one case on one arm, counted."""
    given = tuple(sorted(outcomes, key=lambda one: one.repeat))
    status = Counter(one.status for one in given)
    counts = Counts(status["passed"], status["missed"], status["error"])
    tried = [one for one in given if one.status != "error"]
    failed: dict[str, list[str]] = defaultdict(list)
    for check in (check for one in tried for check in one.failed):
        failed[check.name].append(check.verdict.reason)
    return CaseArm(
        given,
        counts,
        wilson(counts.passed, counts.trials),
        sum_spending((one.trace.usage, one.trace.seconds) for one in tried),
        tuple(Failure(name, reasons[0], len(reasons)) for name, reasons in failed.items()),
        tuple(error_of(one) for one in given if one.status == "error"),
        tuple(Stop(*one) for one in Counter(stop_of(one) for one in tried if one.failed).items() if one[0]),
    )


def error_of(outcome: Outcome) -> str:
    """What kept a trial from being one; empty where nothing did."""
    return fault(outcome.trace.error or next((one.verdict.error for one in outcome.checks if one.verdict.error), ""))


def stop_of(outcome: Outcome) -> str:
    """What ended a trial that counts before its time; empty where nothing did."""
    return next((event.message for event in outcome.trace.events if isinstance(event, Failed)), "")


def _case(info: CaseInfo, outcomes: Sequence[Outcome]) -> CaseSummary:
    found = {arm: [one for one in outcomes if one.arm == arm] for arm in ARMS}
    return CaseSummary(info, {arm: case_arm(given) for arm, given in found.items() if given})


def _group(name: str, cases: Sequence[CaseSummary], repeats: int, trigger: TriggerScore | None = None) -> Group:
    arms: dict[Arm, ArmSummary] = {}
    for arm in ARMS:
        given = [case.arms[arm] for case in cases if arm in case.arms]
        if given:
            arms[arm] = _arm(given, repeats)
    new = {case.info.id: case.main.outcomes for case in cases}
    skills = {case.info.id: case.info.skill for case in cases}
    compared = [
        versus(
            arm,
            {case.info.id: case.arms[arm].outcomes for case in cases if arm in case.arms},
            new,
            skills if arm == "without" else None,
        )
        for arm in arms
        if arm != "with"
    ]
    return Group(name, tuple(cases), arms, tuple(compared), trigger)


def _arm(cases: Sequence[CaseArm], repeats: int) -> ArmSummary:
    pairs = [(case.counts.passed, case.counts.trials) for case in cases]
    # The same cases for every k, where there are any without errors: else pass@3 could come out below pass@2.
    whole = [pair for pair in pairs if pair[1] >= repeats] or pairs
    several = [pass_k(k, whole) for k in sorted({*_TRIES, repeats}) if 1 < k <= repeats]
    return ArmSummary(
        sum((case.counts for case in cases), Counts()),
        clustered_rate(pairs),
        tuple(one for one in several if one),
        sum_spending((one.usage, one.trace.seconds) for case in cases for one in case.outcomes),
    )


def _triggers(case: CaseSummary) -> list[TriggerTrial]:
    info = case.info
    if info.should_trigger is None:
        return []
    tried = [one for one in case.main.outcomes if one.status != "error"]
    return [TriggerTrial(info.id, info.skill, info.should_trigger, one.loaded) for one in tried]


def _faults(outcomes: Sequence[Outcome]) -> tuple[Fault, ...]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in outcomes:
        if one.status == "error":
            # A recording that is not there is named by its trial, which stands beside: the cause is one for all.
            found[error_of(one).replace(f" in {one.case}#{one.arm}", "")].append(one.case)
    ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(Fault(message, len(cases), tuple(dict.fromkeys(cases))) for message, cases in ordered)
