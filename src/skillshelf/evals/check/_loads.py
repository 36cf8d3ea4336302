"""What was offered and what entered the conversation: skills, references, reloads, the listing."""

from typing import Literal

from skillshelf.agent.events import ReferenceDenied, ReferenceLoaded, SkillInvoked, SkillLoaded, SkillsReloaded
from skillshelf.errors import EvalError
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._base import Check, Verdict
from skillshelf.evals.check._words import refuse_empty, some
from skillshelf.listing import OPENING, Entry, parse

Kind = Literal["added", "changed", "removed"]
_KINDS = ("added", "changed", "removed")


def skill_invoked(name: str) -> Check:
    """The person asked for the skill with `/skills:<name>`."""
    refuse_empty("skill_invoked", name=name)

    def look(trace: Trace) -> Verdict:
        found = [event.skill for event in trace.events if isinstance(event, SkillInvoked)]
        return Verdict(name in found, f"skills invoked: {some(found)}")

    return Check(f"skill_invoked {name}", look)


def skill_loaded(name: str) -> Check:
    """The skill's instructions entered the conversation, by whomever."""
    refuse_empty("skill_loaded", name=name)

    def look(trace: Trace) -> Verdict:
        found = [event.skill for event in trace.events if isinstance(event, SkillLoaded)]
        return Verdict(name in found, f"skills loaded: {some(found)}")

    return Check(f"skill_loaded {name}", look)


def trigger(skill: str, should: bool | None) -> tuple[Check, ...]:
    """What `should_trigger` means; nothing where it is not said. Raises EvalError."""
    if should is None:
        return ()
    if not skill:
        raise EvalError("it is not known which skill should trigger", "Name the skill under test too")
    return (skill_loaded(skill) if should else ~skill_loaded(skill),)


def reference_loaded(skill: str, reference: str) -> Check:
    """The reference entered the conversation; its file name alone will do."""
    refuse_empty("reference_loaded", skill=skill, reference=reference)

    def look(trace: Trace) -> Verdict:
        found = [event for event in trace.events if isinstance(event, ReferenceLoaded)]
        held = any(one.skill == skill and _same(one.reference, reference) for one in found)
        return Verdict(held, f"references loaded: {some([f'{one.skill}/{one.reference}' for one in found])}")

    def moot(trace: Trace) -> str:
        denied = [event for event in trace.events if isinstance(event, ReferenceDenied)]
        if any(one.skill == skill and _same(one.reference, reference) for one in denied):
            return ""  # it was asked for, and kept from the model: that is what the opposite is to show
        names = _references(trace, skill)
        if names is None or any(_same(name, reference) for name in names):
            return ""
        return f"{skill} has no reference {reference} that could be left alone; it has: {some(names)}"

    return Check(f"reference_loaded {skill}/{reference}", look, moot)


def reference_denied(skill: str, reference: str | None = None) -> Check:
    """The model asked for what the skill does not offer; for this, where it is named."""
    refuse_empty("reference_denied", skill=skill)

    def look(trace: Trace) -> Verdict:
        found = [event for event in trace.events if isinstance(event, ReferenceDenied)]
        held = any(one.skill == skill and reference in (None, one.reference) for one in found)
        return Verdict(held, f"references denied: {some([f'{one.skill}/{one.reference}' for one in found])}")

    return Check(f"reference_denied {skill}/{reference}" if reference else f"reference_denied {skill}", look)


def skill_reloaded(name: str, kind: Kind | None = None) -> Check:
    """The shelf took notice that the skill was added, changed or removed."""
    refuse_empty("skill_reloaded", name=name)
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
    refuse_empty("listing_contains", text=text)

    def look(trace: Trace) -> Verdict:
        listed = [entry for system in trace.systems for entry in _listed(system)]
        held = any(text == one.name or text in _shown(one) for one in listed)
        return Verdict(held, f"skills listed: {some([one.name for one in listed])}")

    return Check(f"listing_contains {text}", look)


def _listed(system: str) -> list[Entry]:
    # The last section: what a project's AGENTS.md says stands before it, and what a skill says cannot open the tag.
    return parse(system[max(0, system.rfind(OPENING)) :])


def _references(trace: Trace, skill: str) -> list[str] | None:
    """Those that the model was shown; None where they were not all shown, or the skill was not."""
    shown = [entry for system in trace.systems for entry in _listed(system) if entry.name == skill]
    if not shown or any(not one.description or one.more for one in shown):
        return None
    return [name for one in shown for name in one.references]


def _shown(entry: Entry) -> str:
    return "\n".join([entry.description, *entry.references, entry.instructions or ""])


def _same(loaded: str, asked: str) -> bool:
    return loaded == asked or loaded.endswith(f"/{asked}")
