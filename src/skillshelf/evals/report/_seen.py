"""What of the skills a trial's model got to see, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from skillshelf.agent.events import Event, ReferenceDenied, ReferenceLoaded, SkillInvoked, SkillLoaded, ToolCalled
from skillshelf.evals._results import Outcome
from skillshelf.evals.report._words import fault
from skillshelf.evals.stats import Coverage, SkillContent, measure_coverage
from skillshelf.listing import parse

Lane = Literal["offered", "selected", "loaded", "followed"]
LANES: tuple[Lane, ...] = ("offered", "selected", "loaded", "followed")
_SEARCH, _LOAD = "search_skills", "load_skill_instructions"


@dataclass(frozen=True, slots=True)
class Step:
    """Something on a lane. `ok` is false for what was refused or did not hold."""

    at: int
    lane: Lane
    label: str
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Timeline:
    """The way of one trial: offered in the listing, selected by a call, loaded, followed as the checks say."""

    steps: tuple[Step, ...]
    length: int
    tools: tuple[tuple[int, str], ...]
    """The other tool calls, by when."""


@lru_cache(256)
def offered(system: str) -> tuple[tuple[str, bool], ...]:
    """The skills that a system prompt lists, and whether each is there in full."""
    return tuple((entry.name, entry.instructions is not None) for entry in parse(system))


def timeline(outcome: Outcome, skill: str = "") -> Timeline:
    """Events have an order and no times: one place on the line is one event. `skill`: the one under test."""
    steps, tools = [_offer(outcome, skill)], []
    at = 0
    for event in outcome.trace.events:
        step = _step(event)
        if step:
            at += 1
            steps.append(Step(at, *step))
        elif isinstance(event, ToolCalled):
            at += 1
            tools.append((at, event.name))
    for check in outcome.checks:
        at += 1
        said = fault(check.verdict.error) or check.verdict.reason
        steps.append(Step(at, "followed", f"{check.name}: {said}", check.verdict.passed))
    return Timeline(tuple(steps), at + 1, tuple(tools))


def _offer(outcome: Outcome, skill: str) -> Step:
    listed = dict(offered(outcome.trace.systems[0])) if outcome.trace.systems else {}
    full = " in full" if listed.get(skill) else ""
    if not skill:
        return Step(0, "offered", f"{len(listed)} skills listed", bool(listed))
    return Step(0, "offered", f"{skill} {'listed' if skill in listed else 'not listed'}{full}", skill in listed)


def _step(event: Event) -> tuple[Lane, str, bool] | None:
    match event:
        case ToolCalled(name=name, arguments=arguments) if name == _LOAD:
            wanted = (str(arguments.get(key) or "") for key in ("skill_name", "reference"))
            return "selected", " / ".join(filter(None, wanted)), True
        case ToolCalled(name=name, arguments=arguments) if name == _SEARCH:
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


def coverage_of(skill: str, text: SkillContent, outcomes: Sequence[Outcome]) -> Coverage:
    """What of a skill the trials with it loaded; instructions that the listing shows in full were seen too."""
    loaded, most = False, Counter[str]()
    for outcome in outcomes:
        if outcome.arm != "with":
            continue
        loaded = (
            loaded or skill in outcome.loaded or any((skill, True) in offered(one) for one in outcome.trace.systems)
        )
        pages = Counter[str]()
        for event in outcome.trace.events:
            if isinstance(event, ReferenceLoaded) and event.skill == skill:
                # Of a binary file nothing enters, and it was loaded all the same.
                pages[event.reference] += max(1, event.size)
        most |= pages
    return measure_coverage(skill, text, loaded, most)
