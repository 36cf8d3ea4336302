"""What was offered and what entered the conversation: skills, references, reloads, the listing."""

from typing import Literal

from skillshelf.agent.events import ReferenceDenied, ReferenceLoaded, SkillInvoked, SkillLoaded, SkillsReloaded
from skillshelf.errors import EvalError
from skillshelf.evals.checks.base import Check, Verdict
from skillshelf.evals.checks.words import some
from skillshelf.evals.trace import Trace
from skillshelf.listing.markup import OPENING, Entry, parse

Kind = Literal["added", "changed", "removed"]
_KINDS = ("added", "changed", "removed")


def skill_invoked(name: str) -> Check:
    """The person asked for the skill with `/skills:<name>`."""

    def look(trace: Trace) -> Verdict:
        found = [event.skill for event in trace.events if isinstance(event, SkillInvoked)]
        return Verdict(name in found, f"skills invoked: {some(found)}")

    return Check(f"skill_invoked {name}", look)


def skill_loaded(name: str) -> Check:
    """The skill's instructions entered the conversation, by whomever."""

    def look(trace: Trace) -> Verdict:
        found = [event.skill for event in trace.events if isinstance(event, SkillLoaded)]
        return Verdict(name in found, f"skills loaded: {some(found)}")

    return Check(f"skill_loaded {name}", look)


def reference_loaded(skill: str, reference: str) -> Check:
    """The reference entered the conversation; its file name alone will do."""

    def look(trace: Trace) -> Verdict:
        found = [event for event in trace.events if isinstance(event, ReferenceLoaded)]
        held = any(one.skill == skill and _same(one.reference, reference) for one in found)
        return Verdict(held, f"references loaded: {some([f'{one.skill}/{one.reference}' for one in found])}")

    return Check(f"reference_loaded {skill}/{reference}", look)


def reference_denied(skill: str, reference: str | None = None) -> Check:
    """The model asked for what the skill does not offer; for this, where it is named."""

    def look(trace: Trace) -> Verdict:
        found = [event for event in trace.events if isinstance(event, ReferenceDenied)]
        held = any(one.skill == skill and reference in (None, one.reference) for one in found)
        return Verdict(held, f"references denied: {some([f'{one.skill}/{one.reference}' for one in found])}")

    return Check(f"reference_denied {skill}/{reference}" if reference else f"reference_denied {skill}", look)


def skill_reloaded(name: str, kind: Kind | None = None) -> Check:
    """The shelf took notice that the skill was added, changed or removed."""
    if kind is not None and kind not in _KINDS:
        raise EvalError(f"kind is {kind!r}", f"It is one of {', '.join(_KINDS)}")
    kinds = (kind,) if kind else _KINDS

    def look(trace: Trace) -> Verdict:
        found = [event for event in trace.events if isinstance(event, SkillsReloaded)]
        held = any(name in getattr(event, one) for event in found for one in kinds)
        said = [f"{one} {skill}" for event in found for one in _KINDS for skill in getattr(event, one)]
        return Verdict(held, f"reloads: {some(said)}")

    return Check(f"skill_reloaded {name} {kind or ''}".rstrip(), look)


def listing_contains(text: str) -> Check:
    """The Available Skills section of some model call had the skill of this name, or this text."""

    def look(trace: Trace) -> Verdict:
        listed = [entry for system in trace.systems for entry in _listed(system)]
        held = any(text == one.name or text in _shown(one) for one in listed)
        return Verdict(held, f"skills listed: {some([one.name for one in listed])}")

    return Check(f"listing_contains {text}", look)


def _listed(system: str) -> list[Entry]:
    # The last section: what a project's AGENTS.md says stands before it, and what a skill says cannot open the tag.
    return parse(system[max(0, system.rfind(OPENING)) :])


def _shown(entry: Entry) -> str:
    return "\n".join([entry.description, *entry.references, entry.instructions or ""])


def _same(loaded: str, asked: str) -> bool:
    return loaded == asked or loaded.endswith(f"/{asked}")
