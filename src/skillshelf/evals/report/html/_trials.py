"""The values of the list of cases, and of the block of data that the page's script searches and draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from skillshelf.agent.events import LoadRepeated, ReferenceLoaded, SkillInvoked, SkillLoaded, ToolCalled
from skillshelf.discovery import LOAD_TOOL
from skillshelf.evals._results import CaseInfo, Outcome
from skillshelf.evals.report._coverage import list_offered
from skillshelf.evals.report._format import (
    STOPPED,
    format_count,
    format_money,
    format_seconds,
)
from skillshelf.evals.report._links import link_trials
from skillshelf.evals.report._summary import ARMS, CaseSummary, Summary, find_error, find_stop
from skillshelf.evals.report._tables import format_case_rate
from skillshelf.evals.report.html._transcripts import TranscriptBook, shorten
from skillshelf.text import clean, clip, count_noun

MAX_TRIALS = 10_000
"""Rows on a page. `run.json` has the others."""
MAX_WHY = 160


class TrialRow(NamedTuple):
    """A trial in the list of its case."""

    number: int
    """Its place in the run, from 1."""
    arm: str
    repeat: int
    status: str
    way: str
    why: str
    spent: str


class Reason(NamedTuple):
    name: str
    times: int
    text: str
    link: str


class CaseView(NamedTuple):
    """A case as the page shows it."""

    number: int
    info: CaseInfo
    status: str
    share: str
    facts: Sequence[str]
    reasons: Sequence[Reason]
    trials: Sequence[TrialRow]


class TrialList(NamedTuple):
    """The cases of a page with their trials, and the data behind them."""

    cases: Sequence[CaseView]
    cases_left_out: int
    transcripts_left_out: int
    data: dict[str, Any]


def list_trials(summary: Summary) -> TrialList:
    """Return the cases with their trials: misses first, then flaky ones, errors, and the rest."""
    order = ("missed", "flaky", "error", "untried", "passed")
    ordered = sorted(summary.total.cases, key=lambda case: order.index(_status_of(case)))
    # Frozen outcomes hold dictionaries, so they are known by their identity.
    numbers = {id(outcome): number for number, outcome in enumerate(summary.run.outcomes, 1)}
    book = TranscriptBook()
    faults = {fault.message: number for number, fault in enumerate(summary.faults, 1)}
    compared = {versus.base: {pair.case for pair in versus.pairs} for versus in summary.total.versus}

    views: list[CaseView] = []
    plain_cases: list[dict[str, Any]] = []
    plain_trials: list[dict[str, Any]] = []
    room = MAX_TRIALS
    for case in ordered:
        outcomes = [outcome for arm in ARMS if arm in case.arms for outcome in case.arms[arm].outcomes]
        room -= len(outcomes)
        if room < 0:
            break
        rows = [_describe_trial(numbers[id(outcome)], outcome, case.info.skill) for outcome in outcomes]
        for row, outcome in zip(rows, outcomes, strict=True):
            plain_trials.append(
                {
                    "number": row.number,
                    "case": len(views),
                    "arm": row.arm,
                    "repeat": row.repeat,
                    "status": row.status,
                    "spent": row.spent,
                    "loaded": [clean(name) for name in sorted(outcome.loaded)],
                    "fault": faults.get(find_error(outcome), 0) if row.status == "error" else 0,
                    "stopped": clean(find_stop(outcome)),
                    **book.describe(outcome),
                }
            )
        plain_cases.append(_case_as_json(case, [base for base, cases in compared.items() if case.info.id in cases]))
        views.append(_describe_case(len(views) + 1, case, rows))

    data = {"texts": book.texts, "cases": plain_cases, "trials": plain_trials}
    return TrialList(views, len(ordered) - len(views), book.left_out, data)


def _case_as_json(case: CaseSummary, compared: Sequence[str]) -> dict[str, Any]:
    info = case.info
    trigger = None
    if info.should_trigger is not None:
        trigger = "yes" if info.should_trigger else "no"
    return {
        "id": clean(info.id),
        "label": clean(info.label),
        "skill": clean(info.skill),
        "prompt": shorten(info.prompt),
        "trigger": trigger,
        "live": "yes" if info.live else "no",
        "compared": list(compared),
        "flaky": [arm for arm, trials in case.arms.items() if trials.counts.passed and trials.counts.missed],
    }


def _describe_case(number: int, case: CaseSummary, rows: Sequence[TrialRow]) -> CaseView:
    counts = case.main.counts
    share = f"{counts.passed} of {counts.trials}"
    if counts.errors:
        share += f", {count_noun(counts.errors, 'error')}"
    facts = [case.info.location, format_case_rate(case), *_describe_usage(case)]
    case_id = case.info.id
    reasons = [
        Reason(
            STOPPED,
            stop.times,
            stop.reason,
            link_trials(case=case_id, arms=("with",), statuses=("missed",), stopped=stop.reason),
        )
        for stop in case.main.stops
    ]
    reasons += [
        Reason(
            failure.check,
            failure.times,
            failure.reason,
            link_trials(case=case_id, arms=("with",), failed=failure.check),
        )
        for failure in case.main.failures
    ]
    return CaseView(
        number=number,
        info=case.info,
        status=_status_of(case),
        share=share,
        facts=[fact for fact in facts if fact],
        reasons=reasons if case.main.failures else (),
        trials=rows,
    )


def _status_of(case: CaseSummary) -> str:
    counts = case.main.counts
    if counts.missed:
        return "flaky" if counts.passed else "missed"
    if counts.errors:
        return "error"
    return "passed" if counts.trials else "untried"


def _describe_usage(case: CaseSummary) -> list[str]:
    """Return the usage of a trial on each arm."""
    texts = []
    for arm in ARMS:
        spent = case.arms[arm].spent if arm in case.arms else None
        if spent and spent.trials:
            tokens = format_count(spent.tokens / spent.trials)
            texts.append(f"{arm}: {tokens} tokens, {format_seconds(spent.seconds / spent.trials)} a trial")
    return texts


def _describe_trial(number: int, outcome: Outcome, skill: str) -> TrialRow:
    usage = outcome.trace.usage
    spent = f"{format_count(usage.input + usage.output)} tokens, {format_seconds(outcome.trace.seconds)}"
    if outcome.judging:
        spent += f", judge {format_count(outcome.judging.input + outcome.judging.output)} tokens"
    if outcome.usage.cost is not None:
        spent += f", {format_money(outcome.usage.cost)}"
    return TrialRow(
        number=number,
        arm=outcome.arm,
        repeat=outcome.repeat,
        status=outcome.status,
        way="" if outcome.arm == "without" else " › ".join(trace_way(outcome, skill)),
        why=clip(" ".join(_explain_trial(outcome).split()), MAX_WHY),
        spent=spent,
    )


def _explain_trial(outcome: Outcome) -> str:
    """Return why a trial did not pass, or ended early: the error, or the checks that did not hold."""
    if outcome.status == "error":
        return find_error(outcome)
    reasons = [f"{result.name}: {result.verdict.reason}" for result in outcome.failed]
    reasons += [f"{result.name}: {result.verdict.error}" for result in outcome.checks if result.verdict.error]
    if find_stop(outcome):
        reasons.insert(0, f"{STOPPED}: {find_stop(outcome)}")
    return "; ".join(reasons)


def trace_way(outcome: Outcome, skill: str) -> list[str]:
    """Return how far the skill under test came in a trial: offered, selected, loaded, followed.

    If the case belongs to no skill, any skill counts. Instructions that the listing shows in full are loaded with it.
    """
    listed: dict[str, bool] = {}
    for system in outcome.trace.systems:
        listed |= list_offered(system)
    is_in_full = listed.get(skill, False) if skill else any(listed.values())

    is_selected = False
    is_loaded = is_in_full
    for event in outcome.trace.events:
        match event:
            case ToolCalled(name=name, arguments=arguments) if name == LOAD_TOOL:
                is_selected |= not skill or arguments.get("skill_name") == skill
            case SkillInvoked(skill=found):
                is_selected |= found == skill or not skill
            case SkillLoaded(skill=found) | ReferenceLoaded(skill=found) | LoadRepeated(skill=found):
                is_loaded |= found == skill or not skill

    reached = {
        "offered": skill in listed if skill else bool(listed),
        "selected": is_selected,
        "loaded in the listing" if is_in_full else "loaded": is_loaded,
        "followed": is_loaded and outcome.status == "passed",
    }
    return [lane for lane, is_reached in reached.items() if is_reached]
