"""What a check of loading is about, by the name that it has in a report."""

from __future__ import annotations

from dataclasses import dataclass

_SKILLS = frozenset({"skill_invoked", "skill_loaded", "skill_reloaded", "listing_contains"})
_REFERENCES = frozenset({"reference_loaded", "reference_denied"})


@dataclass(frozen=True, slots=True)
class About:
    """`skill_loaded pdf`, or `not reference_loaded pdf/references/a.md`."""

    kind: str
    skill: str
    reference: str = ""
    negated: bool = False


def about(check: str) -> About | None:
    """None for a check of anything else than what is offered and loaded."""
    name = check.removeprefix("not ")
    kind, _, rest = name.partition(" ")
    if kind in _SKILLS:  # a reload may say which kind of it
        return About(kind, rest.partition(" ")[0] if kind == "skill_reloaded" else rest, "", name != check)
    if kind in _REFERENCES:
        skill, _, reference = rest.partition("/")
        return About(kind, skill, reference, name != check)
    return None


def is_settled_without(check: str, skill: str) -> bool:
    """Whether a check comes out as it does because the skill is not on the shelf, whatever the agent does."""
    found = about(check)
    return found is not None and (found.skill == skill or found.kind == "listing_contains")
