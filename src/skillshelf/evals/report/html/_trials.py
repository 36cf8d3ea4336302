"""The list of cases: the prompt, the checks that did not hold, and the timeline of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from skillshelf.agent.events import Event, ReferenceDenied, ReferenceLoaded, SkillInvoked, SkillLoaded, ToolCalled
from skillshelf.discovery import LOAD_TOOL
from skillshelf.evals._results import Outcome
from skillshelf.evals.report._format import (
    STOPPED,
    format_count,
    format_money,
    format_rate,
    format_seconds,
)
from skillshelf.evals.report._summary import ARMS, CaseSummary, find_error, find_stop, list_offered
from skillshelf.evals.report.html._charts import dot, line, svg
from skillshelf.evals.report.html._elements import Html, join, tag
from skillshelf.text import count_noun

# A page of a thousand trials must still open. `run.json` has the others.
MAX_TRIALS = 400
MAX_TEXT = 2_000
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


@dataclass(frozen=True, slots=True)
class Timeline:
    """The way of one trial: offered in the listing, selected by a call, loaded, followed as the checks say.

    Events have an order and no times, so each takes one position."""

    steps: tuple[Step, ...]
    length: int
    tools: tuple[tuple[int, str], ...]
    """The other tool calls, by position."""


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
            tools.append((position, event.name))

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


def render_cases(cases: Sequence[CaseSummary]) -> Html:
    """Return the cases: misses first, then errors, then the rest, as many as there is room for."""
    ordered = sorted(cases, key=lambda case: (not case.main.counts.missed, not case.main.counts.errors))
    parts = []
    room = MAX_TRIALS
    for case in ordered:
        room -= sum(len(arm.outcomes) for arm in case.arms.values())
        if room < 0:
            break
        parts.append(_render_case(case))

    left_out = len(ordered) - len(parts)
    if left_out:
        parts.append(tag("p", f"{left_out} more cases are in run.json."))
    return join(parts)


def _status_of(case: CaseSummary) -> str:
    counts = case.main.counts
    if counts.missed:
        return "missed"
    if counts.errors:
        return "error"
    if counts.trials:
        return "passed"
    return "untried"


def _render_case(case: CaseSummary) -> Html:
    counts = case.main.counts
    status = _status_of(case)
    share = f"{counts.passed} of {counts.trials}"
    if counts.errors:
        share += f", {count_noun(counts.errors, 'error')}"
    parts = [
        tag(
            "summary",
            tag("span", status, class_=f"badge {status}"),
            tag("span", case.info.label, class_="id"),
            tag("span", share, class_="quiet"),
        )
    ]
    if case.info.prompt:
        parts.append(tag("p", tag("q", _cut(case.info.prompt))))
    facts = [case.info.location, format_rate(case.main.rate), *_describe_usage(case)]
    parts.append(tag("p", " · ".join(fact for fact in facts if fact), class_="quiet"))
    if case.main.failures:
        parts.append(_render_failures(case))
    for arm in ARMS:
        if arm in case.arms:
            parts += [_render_trial(outcome, case.info.skill) for outcome in case.arms[arm].outcomes]
    return tag("details", *parts, class_=f"case {status}")


def _render_failures(case: CaseSummary) -> Html:
    reasons = [(STOPPED, stop.times, stop.reason) for stop in case.main.stops]
    reasons += [(failure.check, failure.times, failure.reason) for failure in case.main.failures]
    items = [tag("li", tag("b", name), f" {times}×: {_cut(reason)}") for name, times, reason in reasons]
    return tag("ul", *items, class_="failed")


def _describe_usage(case: CaseSummary) -> list[str]:
    """Return the usage of a trial on each arm."""
    texts = []
    for arm in ARMS:
        spent = case.arms[arm].spent if arm in case.arms else None
        if spent and spent.trials:
            tokens = format_count(spent.tokens / spent.trials)
            texts.append(f"{arm}: {tokens} tokens, {format_seconds(spent.seconds / spent.trials)} a trial")
    return texts


def _render_trial(outcome: Outcome, skill: str) -> Html:
    usage = outcome.trace.usage
    spent = f"{format_count(usage.input + usage.output)} tokens, {format_seconds(outcome.trace.seconds)}"
    if usage.cost is not None:
        spent += f", {format_money(usage.cost)}"
    parts = [
        tag(
            "p",
            tag("span", outcome.arm, class_=f"arm {outcome.arm}"),
            f" trial {outcome.repeat} ",
            tag("span", outcome.status, class_=f"badge {outcome.status}"),
            tag("span", f" {spent}", class_="quiet"),
        )
    ]
    problem = find_error(outcome)
    if not problem and find_stop(outcome):
        problem = f"{STOPPED}: {find_stop(outcome)}"
    if problem:
        parts.append(tag("p", _cut(problem), class_="fault"))
    timeline = make_timeline(outcome, skill)
    parts.append(_draw_timeline(timeline))
    parts.append(_describe_timeline(timeline))
    if outcome.trace.answer:
        answer = tag("pre", _cut(outcome.trace.answer))
        parts.append(tag("details", tag("summary", "answer"), answer, class_="inner"))
    return tag("section", *parts, class_="trial", aria_label=f"{outcome.arm}, trial {outcome.repeat}")


def _draw_timeline(timeline: Timeline) -> Html:
    """Draw the lanes from top to bottom, with the order of events across."""

    def x(position: int) -> float:
        return 4 + 92 * position / max(1, timeline.length - 1)

    def y(lane: Lane) -> float:
        return LANE_HEIGHT * LANES.index(lane) + LANE_HEIGHT / 2

    marks = [line(0, 100, y(lane), y(lane), "grid") for lane in LANES]
    for position, _ in timeline.tools:
        marks.append(line(x(position), x(position), y("selected") - 4, y("selected") + 4, "tick"))
    for start, end in pairwise(_find_path(timeline)):
        marks.append(line(x(start.position), x(end.position), y(start.lane), y(end.lane), "flow"))
    for step in timeline.steps:
        marks.append(dot(x(step.position), y(step.lane), "mark yes" if step.ok else "mark no", step.label[:200], 6))
    labels = tag("ol", *(tag("li", lane) for lane in LANES), class_="lanes", aria_hidden="true")
    return tag("div", labels, svg(*marks, height=LANE_HEIGHT * len(LANES)), class_="way")


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


def _describe_timeline(timeline: Timeline) -> Html:
    """Return the same in words."""
    items = []
    for step in timeline.steps:
        suffix: Html | str = "" if step.ok else tag("span", " – not so", class_="no-word")
        items.append(tag("li", tag("b", step.lane), f" {_cut(step.label)}", suffix))

    parts = [tag("summary", "steps"), tag("ol", *items)]
    tools = ", ".join(name for _, name in timeline.tools)
    if tools:
        parts.append(tag("p", f"other tools: {_cut(tools)}", class_="quiet"))
    return tag("details", *parts, class_="inner")


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT:,} more characters)"
