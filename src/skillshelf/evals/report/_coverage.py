"""The parts of a skill that the trials of a run loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from skillshelf.agent.events import ReferenceLoaded
from skillshelf.evals._results import Outcome
from skillshelf.evals.stats import Coverage, SkillContent, measure_coverage
from skillshelf.listing import parse


@lru_cache(256)
def list_offered(system: str) -> tuple[tuple[str, bool], ...]:
    """Return the skills that a system prompt lists, and whether each is there in full."""
    return tuple((entry.name, entry.instructions is not None) for entry in parse(system))


def cover_skill(skill: str, content: SkillContent, outcomes: Sequence[Outcome]) -> Coverage:
    """Return the parts of a skill that trials loaded. Instructions that the listing shows in full count as loaded."""
    is_loaded = False
    most_bytes: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.arm != "with":
            continue
        if skill in outcome.loaded or any((skill, True) in list_offered(system) for system in outcome.trace.systems):
            is_loaded = True
        loaded_bytes: Counter[str] = Counter()
        for event in outcome.trace.events:
            if isinstance(event, ReferenceLoaded) and event.skill == skill:
                # A binary file was loaded, too, though nothing of it enters the conversation.
                loaded_bytes[event.reference] += max(1, event.size)
        most_bytes |= loaded_bytes

    return measure_coverage(skill, content, is_loaded, most_bytes)
