"""The cases one by one: what was asked, what did not hold, and the way of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, takewhile

from skillshelf.evals._results import Outcome
from skillshelf.evals.report._seen import LANES, Step, Timeline, timeline
from skillshelf.evals.report._summary import error_of, stop_of
from skillshelf.evals.report._tree import ARMS, CaseSummary
from skillshelf.evals.report._words import STOPPED, amount, money, rate, seconds
from skillshelf.evals.report.html._charts import dot, line, svg
from skillshelf.evals.report.html._elements import Html, join, tag

# A page of a thousand trials must still open: beyond, `run.json` has them.
SHOWN = 400
_CUT = 2_000
_LANE = 24


def trials(cases: Sequence[CaseSummary]) -> Html:
    """Those that missed first, then errors, then the rest, as far as there is room."""
    ordered = sorted(cases, key=lambda case: (not case.main.counts.missed, not case.main.counts.errors))
    parts, left = [], SHOWN
    for case in ordered:
        number = sum(len(arm.outcomes) for arm in case.arms.values())
        if number > left:
            break
        left -= number
        parts.append(_case(case))
    if len(parts) < len(ordered):
        parts.append(tag("p", f"{len(ordered) - len(parts)} more cases are in run.json."))
    return join(parts)


def _status(case: CaseSummary) -> str:
    counts = case.main.counts
    return "missed" if counts.missed else "error" if counts.errors else "passed" if counts.trials else "untried"


def _case(case: CaseSummary) -> Html:
    counts, status = case.main.counts, _status(case)
    errors = f", {counts.errors} error{'s' if counts.errors > 1 else ''}" if counts.errors else ""
    head = tag(
        "summary",
        tag("span", status, class_=f"badge {status}"),
        tag("span", case.info.id, class_="id"),
        tag("span", f"{counts.passed} of {counts.trials}{errors}", class_="quiet"),
    )
    body = [tag("p", tag("q", _cut(case.info.prompt)))] if case.info.prompt else []
    facts = [case.info.location, rate(case.main.rate), *_spent(case)]
    body.append(tag("p", " · ".join(filter(None, facts)), class_="quiet"))
    if case.main.failures:
        told = [(STOPPED, one.times, one.reason) for one in case.main.stops]
        told += [(one.check, one.times, one.reason) for one in case.main.failures]
        failed = [tag("li", tag("b", what), f" {times}×: {_cut(reason)}") for what, times, reason in told]
        body.append(tag("ul", *failed, class_="failed"))
    for arm in ARMS:
        body += [_trial(one, case.info.skill) for one in (case.arms[arm].outcomes if arm in case.arms else ())]
    return tag("details", head, *body, class_=f"case {status}")


def _spent(case: CaseSummary) -> list[str]:
    """What a trial took on each arm."""
    arms = [(arm, case.arms[arm].spent) for arm in ARMS if arm in case.arms]
    return [
        f"{arm}: {amount(one.tokens / one.trials)} tokens, {seconds(one.seconds / one.trials)} a trial"
        for arm, one in arms
        if one.trials
    ]


def _trial(outcome: Outcome, skill: str) -> Html:
    usage, way = outcome.trace.usage, timeline(outcome, skill)
    spent = f"{amount(usage.input + usage.output)} tokens, {seconds(outcome.trace.seconds)}"
    if usage.cost is not None:
        spent += f", {money(usage.cost)}"
    head = tag(
        "p",
        tag("span", outcome.arm, class_=f"arm {outcome.arm}"),
        f" trial {outcome.repeat} ",
        tag("span", outcome.status, class_=f"badge {outcome.status}"),
        tag("span", f" {spent}", class_="quiet"),
    )
    stop = stop_of(outcome)
    error = error_of(outcome) or (f"{STOPPED}: {stop}" if stop else "")
    parts = [head, *([tag("p", _cut(error), class_="fault")] if error else []), _way(way), _steps(way)]
    if outcome.trace.answer:
        answer = tag("pre", _cut(outcome.trace.answer))
        parts.append(tag("details", tag("summary", "answer"), answer, class_="inner"))
    return tag("section", *parts, class_="trial", aria_label=f"{outcome.arm}, trial {outcome.repeat}")


def _way(way: Timeline) -> Html:
    """The lanes, top down; across is the order of events."""
    marks = [line(0, 100, _mid(at), _mid(at), "grid") for at in range(len(LANES))]
    marks += [line(_x(at, way), _x(at, way), _mid(1) - 4, _mid(1) + 4, "tick") for at, _ in way.tools]
    # The way is drawn as far as it goes: what was followed without having been loaded was not followed.
    firsts = [next((one for one in way.steps if one.lane == lane and one.ok), None) for lane in LANES]
    marks += [
        line(_x(a.at, way), _x(b.at, way), _lane(a), _lane(b), "flow")
        for a, b in pairwise(takewhile(lambda one: one is not None, firsts))
        if a and b
    ]
    marks += [
        dot(_x(one.at, way), _lane(one), "mark yes" if one.ok else "mark no", one.label[:200], 6) for one in way.steps
    ]
    labels = tag("ol", *(tag("li", lane) for lane in LANES), class_="lanes", aria_hidden="true")
    return tag("div", labels, svg(*marks, height=_LANE * len(LANES)), class_="way")


def _x(at: int, way: Timeline) -> float:
    return 4 + 92 * at / max(1, way.length - 1)


def _lane(step: Step) -> float:
    return _mid(LANES.index(step.lane))


def _mid(lane: int) -> float:
    return _LANE * lane + _LANE / 2


def _steps(way: Timeline) -> Html:
    """The same in words."""
    items = [
        tag(
            "li",
            tag("b", one.lane),
            f" {_cut(one.label)}",
            "" if one.ok else tag("span", " – not so", class_="no-word"),
        )
        for one in way.steps
    ]
    others = ", ".join(name for _, name in way.tools)
    note = [tag("p", f"other tools: {_cut(others)}", class_="quiet")] if others else []
    return tag("details", tag("summary", "steps"), tag("ol", *items), *note, class_="inner")


def _cut(text: str) -> str:
    return text if len(text) <= _CUT else f"{text[:_CUT]}… ({len(text) - _CUT:,} more characters)"
