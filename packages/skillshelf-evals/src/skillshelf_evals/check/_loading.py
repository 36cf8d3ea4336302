"""Checks of what was offered to the model and what it loaded: skills, references, reloads, the listing."""

from typing import Literal

from skillshelf.errors import EvalError
from skillshelf.listing import OPENING, Entry, parse
from skillshelf_agent.events import ReferenceDenied, ReferenceLoaded, SkillInvoked, SkillLoaded, SkillsReloaded
from skillshelf_evals._text import list_items
from skillshelf_evals._trace import Trace
from skillshelf_evals.check._check import (
    Check,
    NonEmpty,
    ReferenceName,
    SkillName,
    Verdict,
    built_in,
    is_reference_named,
)

Kind = Literal["added", "changed", "removed"]
KINDS: tuple[Kind, ...] = ("added", "changed", "removed")


@built_in(is_of_loading=True)
def skill_invoked(trace: Trace, name: SkillName) -> Verdict:
    """Check that the user asked for the skill with `/skills:<name>`."""
    invoked = [event.skill for event in trace.events if isinstance(event, SkillInvoked)]
    return Verdict(name in invoked, f"skills invoked: {list_items(invoked)}")


@built_in(is_of_loading=True)
def skill_loaded(trace: Trace, name: SkillName) -> Verdict:
    """Check that the skill's instructions entered the conversation, at the user's or the model's request."""
    loaded = [event.skill for event in trace.events if isinstance(event, SkillLoaded)]
    return Verdict(name in loaded, f"skills loaded: {list_items(loaded)}")


def trigger(skill: str, should: bool | None) -> tuple[Check, ...]:
    """Return the check that `should_trigger` stands for; none if a case does not say. Raises EvalError."""
    if should is None:
        return ()
    if not skill:
        raise EvalError("it is not known which skill should trigger", "Name the skill under test too")
    loaded = skill_loaded(skill)
    return (loaded if should else ~loaded,)


def _find_missing_reference(trace: Trace, skill: str, reference: str) -> str:
    """Return a sentence if the skill has no such reference and the model did not ask for it."""
    denied = [event for event in trace.events if isinstance(event, ReferenceDenied)]
    if any(event.skill == skill and is_reference_named(event.reference, reference) for event in denied):
        return ""  # the model asked for it and did not get it: this is what the opposite is meant to show
    names = _listed_references(trace, skill)
    if names is None or any(is_reference_named(name, reference) for name in names):
        return ""
    return f"{skill} has no reference {reference} that could be left alone; it has: {list_items(names)}"


@built_in(
    bare="reference",
    describe=lambda skill, reference: f"{skill}/{reference}",
    moot=_find_missing_reference,
    is_of_loading=True,
)
def reference_loaded(trace: Trace, skill: SkillName, reference: ReferenceName) -> Verdict:
    """Check that the reference entered the conversation. Its file name is enough."""
    loaded = [event for event in trace.events if isinstance(event, ReferenceLoaded)]
    held = any(event.skill == skill and is_reference_named(event.reference, reference) for event in loaded)
    names = [f"{event.skill}/{event.reference}" for event in loaded]
    return Verdict(held, f"references loaded: {list_items(names)}")


@built_in(
    bare="reference",
    describe=lambda skill, reference: f"{skill}/{reference}" if reference else skill,
    is_of_loading=True,
)
def reference_denied(trace: Trace, skill: SkillName, reference: str | None = None) -> Verdict:
    """Check that the model asked for a reference that the skill does not offer: for this one, if it is named."""
    denied = [event for event in trace.events if isinstance(event, ReferenceDenied)]
    held = any(event.skill == skill and reference in (None, event.reference) for event in denied)
    names = [f"{event.skill}/{event.reference}" for event in denied]
    return Verdict(held, f"references denied: {list_items(names)}")


@built_in(is_of_loading=True)
def skill_reloaded(trace: Trace, name: SkillName, kind: Kind | None = None) -> Verdict:
    """Check that the shelf noticed that the skill was added, changed or removed."""
    kinds = (kind,) if kind else KINDS
    reloads = [event for event in trace.events if isinstance(event, SkillsReloaded)]
    held = any(name in getattr(event, kind) for event in reloads for kind in kinds)
    names = [f"{kind} {skill}" for event in reloads for kind in KINDS for skill in getattr(event, kind)]
    return Verdict(held, f"reloads: {list_items(names)}")


@built_in(describe=lambda text: text, is_of_loading=True)
def listing_contains(trace: Trace, text: NonEmpty) -> Verdict:
    """Check that the Available Skills section of a model call had the skill of this name, or this text."""
    listed = [entry for system in trace.systems for entry in _parse_listing(system)]
    held = any(text == entry.name or text in _entry_text(entry) for entry in listed)
    return Verdict(held, f"skills listed: {list_items([entry.name for entry in listed])}")


def _parse_listing(system: str) -> list[Entry]:
    # The last section is ours: a project's AGENTS.md comes before it, and no skill can write the opening tag.
    start = max(0, system.rfind(OPENING))
    return parse(system[start:])


def _listed_references(trace: Trace, skill: str) -> list[str] | None:
    """Return the skill's references as listed for the model; None if the skill or some of them were not listed."""
    entries = [entry for system in trace.systems for entry in _parse_listing(system) if entry.name == skill]
    if not entries or any(not entry.description or entry.more for entry in entries):
        return None
    return [name for entry in entries for name in entry.references]


def _entry_text(entry: Entry) -> str:
    return "\n".join([entry.description, *entry.references, entry.instructions or ""])
