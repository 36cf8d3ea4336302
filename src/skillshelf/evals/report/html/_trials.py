"""The values of the list of cases: the prompt, the checks that did not hold, and the timeline of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from skillshelf.agent.events import Event, ReferenceDenied, ReferenceLoaded, SkillInvoked, SkillLoaded, ToolCalled
from skillshelf.discovery import LOAD_TOOL
from skillshelf.evals._results import CaseInfo, Outcome
from skillshelf.evals.report._format import (
    STOPPED,
    format_count,
    format_money,
    format_seconds,
)
from skillshelf.evals.report._summary import ARMS, CaseSummary, find_error, find_stop, list_offered
from skillshelf.evals.report._tables import format_case_rate
from skillshelf.text import count_noun

# A page of a thousand trials must still open. `run.json` has the others.
MAX_TRIALS = 400
LANE_HEIGHT = 24
_SEARCH_TOOL = "search_skills"

Lane = Literal["offered", "selected", "loaded", "followed"]
LANES: tuple[Lane, ...] = ("offered", "selected", "loaded", "followed")


@dataclass(frozen=True, slots=True)
class Step:
    """A mark on a lane. `ok` is False for a load that was refused, or a check that did not hold."""

    position: int
    lane: Lane
    label: str
    ok: bool = True


class ToolStep(NamedTuple):
    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Timeline:
    """The way of one trial: offered in the listing, selected by a call, loaded, followed as the checks say.

    Events have an order and no times, so each takes one position."""

    steps: tuple[Step, ...]
    length: int
    tools: tuple[ToolStep, ...]
    """The other tool calls."""


def make_timeline(outcome: Outcome, skill: str = "") -> Timeline:
    """Return the timeline of a trial. `skill` is the one under test."""
    steps = [_make_offer(outcome, skill)]
    tools = []
    position = 0
    for event in outcome.trace.events:
        mark = _mark_event(event)
        if mark:
            position += 1
            steps.append(Step(position, *mark))
        elif isinstance(event, ToolCalled):
            position += 1
            tools.append(ToolStep(position, event.name))

    for result in outcome.checks:
        position += 1
        reason = result.verdict.error or result.verdict.reason
        steps.append(Step(position, "followed", f"{result.name}: {reason}", result.verdict.passed))

    return Timeline(tuple(steps), position + 1, tuple(tools))


def _make_offer(outcome: Outcome, skill: str) -> Step:
    listed = dict(list_offered(outcome.trace.systems[0])) if outcome.trace.systems else {}
    if not skill:
        return Step(0, "offered", f"{len(listed)} skills listed", bool(listed))
    if skill not in listed:
        return Step(0, "offered", f"{skill} not listed", False)
    is_in_full = listed[skill]
    return Step(0, "offered", f"{skill} listed in full" if is_in_full else f"{skill} listed")


def _mark_event(event: Event) -> tuple[Lane, str, bool] | None:
    """Return the lane, label and success of an event about skills; None for any other."""
    match event:
        case ToolCalled(name=name, arguments=arguments) if name == LOAD_TOOL:
            targets = [str(arguments.get(key) or "") for key in ("skill_name", "reference")]
            return "selected", " / ".join(target for target in targets if target), True
        case ToolCalled(name=name, arguments=arguments) if name == _SEARCH_TOOL:
            return "selected", f"search: {arguments.get('query', '')}", True
        case SkillInvoked(skill=skill):
            return "selected", f"/skills:{skill}", True
        case SkillLoaded(skill=skill):
            return "loaded", skill, True
        case ReferenceLoaded(skill=skill, reference=reference):
            return "loaded", f"{skill} / {reference}", True
        case ReferenceDenied(skill=skill, reference=reference, reason=reason):
            return "loaded", f"{skill} / {reference}: {reason}", False
    return None


@dataclass(frozen=True, slots=True)
class Mark:
    """A point in the drawing of a timeline: per cent across, pixels down."""

    x: float
    y: float
    label: str = ""
    ok: bool = True


class LaneLine(NamedTuple):
    name: Lane
    y: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """A timeline with its lanes from top to bottom, and the order of events across."""

    lanes: Sequence[LaneLine]
    marks: Sequence[Mark]
    ticks: Sequence[Mark]
    """Calls of other tools."""
    flow: Sequence[tuple[Mark, Mark]]
    """The lines from lane to lane, up to the first lane without a success."""


def draw_timeline(timeline: Timeline) -> Drawing:
    heights = {lane: LANE_HEIGHT * number + LANE_HEIGHT / 2 for number, lane in enumerate(LANES)}

    def mark(position: int, lane: Lane, label: str = "", ok: bool = True) -> Mark:
        return Mark(4 + 92 * position / max(1, timeline.length - 1), heights[lane], label, ok)

    path = [mark(step.position, step.lane) for step in _find_path(timeline)]
    return Drawing(
        lanes=[LaneLine(lane, y) for lane, y in heights.items()],
        marks=[mark(step.position, step.lane, step.label, step.ok) for step in timeline.steps],
        ticks=[mark(tool.position, "selected") for tool in timeline.tools],
        flow=list(pairwise(path)),
    )


def _find_path(timeline: Timeline) -> list[Step]:
    """Return the first success on each lane, up to the first lane without one.

    A skill that was not loaded was not followed, whatever its checks say.
    """
    path = []
    for lane in LANES:
        step = next((step for step in timeline.steps if step.lane == lane and step.ok), None)
        if step is None:
            break
        path.append(step)
    return path


class TrialView(NamedTuple):
    """A trial as the page shows it."""

    arm: str
    repeat: int
    status: str
    spent: str
    problem: str
    timeline: Timeline
    drawing: Drawing
    answer: str


class Reason(NamedTuple):
    name: str
    times: int
    text: str


class CaseView(NamedTuple):
    """A case as the page shows it."""

    info: CaseInfo
    status: str
    share: str
    facts: Sequence[str]
    reasons: Sequence[Reason]
    trials: Sequence[TrialView]


def describe_cases(cases: Sequence[CaseSummary]) -> tuple[list[CaseView], int]:
    """Return the cases, misses first, then errors, then the rest, and how many of them there is no room for."""
    ordered = sorted(cases, key=lambda case: (not case.main.counts.missed, not case.main.counts.errors))
    views = []
    room = MAX_TRIALS
    for case in ordered:
        room -= sum(len(arm.outcomes) for arm in case.arms.values())
        if room < 0:
            break
        views.append(_describe_case(case))
    return views, len(ordered) - len(views)


def _describe_case(case: CaseSummary) -> CaseView:
    counts = case.main.counts
    share = f"{counts.passed} of {counts.trials}"
    if counts.errors:
        share += f", {count_noun(counts.errors, 'error')}"
    facts = [case.info.location, format_case_rate(case), *_describe_usage(case)]
    reasons = [Reason(STOPPED, stop.times, stop.reason) for stop in case.main.stops]
    reasons += [Reason(failure.check, failure.times, failure.reason) for failure in case.main.failures]
    outcomes = [outcome for arm in ARMS if arm in case.arms for outcome in case.arms[arm].outcomes]
    return CaseView(
        info=case.info,
        status=_status_of(case),
        share=share,
        facts=[fact for fact in facts if fact],
        reasons=reasons if case.main.failures else (),
        trials=[_describe_trial(outcome, case.info.skill) for outcome in outcomes],
    )


def _status_of(case: CaseSummary) -> str:
    counts = case.main.counts
    if counts.missed:
        return "missed"
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


def _describe_trial(outcome: Outcome, skill: str) -> TrialView:
    usage = outcome.trace.usage
    spent = f"{format_count(usage.input + usage.output)} tokens, {format_seconds(outcome.trace.seconds)}"
    if usage.cost is not None:
        spent += f", {format_money(usage.cost)}"
    problem = find_error(outcome)
    if not problem and find_stop(outcome):
        problem = f"{STOPPED}: {find_stop(outcome)}"
    timeline = make_timeline(outcome, skill)
    return TrialView(
        arm=outcome.arm,
        repeat=outcome.repeat,
        status=outcome.status,
        spent=spent,
        problem=problem,
        timeline=timeline,
        drawing=draw_timeline(timeline),
        answer=outcome.trace.answer,
    )
