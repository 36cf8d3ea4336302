"""Checks of what was offered to the model and what it loaded: skills, references, reloads, the listing."""

from typing import Literal

from skillshelf.agent.events import ReferenceDenied, ReferenceLoaded, SkillInvoked, SkillLoaded, SkillsReloaded
from skillshelf.errors import EvalError
from skillshelf.evals._text import list_items
from skillshelf.evals._trace import Trace
from skillshelf.evals.check._check import About, Check, Verdict, built_in, refuse_empty
from skillshelf.listing import OPENING, Entry, parse

Kind = Literal["added", "changed", "removed"]
KINDS: tuple[Kind, ...] = ("added", "changed", "removed")


@built_in(skill_argument="name")
def skill_invoked(name: str) -> Check:
    """Check that the user asked for the skill with `/skills:<name>`."""
    refuse_empty("skill_invoked", name=name)

    def look(trace: Trace) -> Verdict:
        invoked = [event.skill for event in trace.events if isinstance(event, SkillInvoked)]
        return Verdict(name in invoked, f"skills invoked: {list_items(invoked)}")

    return Check(f"skill_invoked {name}", look, about=About("skill_invoked", name))


@built_in(skill_argument="name")
def skill_loaded(name: str) -> Check:
    """Check that the skill's instructions entered the conversation, at the user's or the model's request."""
    refuse_empty("skill_loaded", name=name)

    def look(trace: Trace) -> Verdict:
        loaded = [event.skill for event in trace.events if isinstance(event, SkillLoaded)]
        return Verdict(name in loaded, f"skills loaded: {list_items(loaded)}")

    return Check(f"skill_loaded {name}", look, about=About("skill_loaded", name))


def trigger(skill: str, should: bool | None) -> tuple[Check, ...]:
    """Return the check that `should_trigger` stands for; none if a case does not say. Raises EvalError."""
    if should is None:
        return ()
    if not skill:
        raise EvalError("it is not known which skill should trigger", "Name the skill under test too")
    loaded = skill_loaded(skill)
    return (loaded if should else ~loaded,)


@built_in(bare_argument="reference", skill_argument="skill")
def reference_loaded(skill: str, reference: str) -> Check:
    """Check that the reference entered the conversation. Its file name is enough."""
    refuse_empty("reference_loaded", skill=skill, reference=reference)

    def look(trace: Trace) -> Verdict:
        loaded = [event for event in trace.events if isinstance(event, ReferenceLoaded)]
        held = any(event.skill == skill and _is_named(event.reference, reference) for event in loaded)
        names = [f"{event.skill}/{event.reference}" for event in loaded]
        return Verdict(held, f"references loaded: {list_items(names)}")

    def moot(trace: Trace) -> str:
        denied = [event for event in trace.events if isinstance(event, ReferenceDenied)]
        if any(event.skill == skill and _is_named(event.reference, reference) for event in denied):
            return ""  # the model asked for it and did not get it: this is what the opposite is meant to show
        names = _listed_references(trace, skill)
        if names is None or any(_is_named(name, reference) for name in names):
            return ""
        return f"{skill} has no reference {reference} that could be left alone; it has: {list_items(names)}"

    about = About("reference_loaded", skill, reference)
    return Check(f"reference_loaded {skill}/{reference}", look, moot, about)


@built_in(bare_argument="reference", skill_argument="skill")
def reference_denied(skill: str, reference: str | None = None) -> Check:
    """Check that the model asked for a reference that the skill does not offer: for this one, if it is named."""
    refuse_empty("reference_denied", skill=skill)

    def look(trace: Trace) -> Verdict:
        denied = [event for event in trace.events if isinstance(event, ReferenceDenied)]
        held = any(event.skill == skill and reference in (None, event.reference) for event in denied)
        names = [f"{event.skill}/{event.reference}" for event in denied]
        return Verdict(held, f"references denied: {list_items(names)}")

    name = f"reference_denied {skill}/{reference}" if reference else f"reference_denied {skill}"
    return Check(name, look, about=About("reference_denied", skill, reference or ""))


@built_in(skill_argument="name")
def skill_reloaded(name: str, kind: Kind | None = None) -> Check:
    """Check that the shelf noticed that the skill was added, changed or removed."""
    refuse_empty("skill_reloaded", name=name)
    if kind is not None and kind not in KINDS:
        raise EvalError(f"kind is {kind!r}", f"Choose one of {', '.join(KINDS)}")
    kinds = (kind,) if kind else KINDS

    def look(trace: Trace) -> Verdict:
        reloads = [event for event in trace.events if isinstance(event, SkillsReloaded)]
        held = any(name in getattr(event, kind) for event in reloads for kind in kinds)
        names = [f"{kind} {skill}" for event in reloads for kind in KINDS for skill in getattr(event, kind)]
        return Verdict(held, f"reloads: {list_items(names)}")

    shown = f"skill_reloaded {name} {kind}" if kind else f"skill_reloaded {name}"
    return Check(shown, look, about=About("skill_reloaded", name))


@built_in()
def listing_contains(text: str) -> Check:
    """Check that the Available Skills section of a model call had the skill of this name, or this text."""
    refuse_empty("listing_contains", text=text)

    def look(trace: Trace) -> Verdict:
        listed = [entry for system in trace.systems for entry in _parse_listing(system)]
        held = any(text == entry.name or text in _entry_text(entry) for entry in listed)
        return Verdict(held, f"skills listed: {list_items([entry.name for entry in listed])}")

    return Check(f"listing_contains {text}", look, about=About("listing_contains", text))


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


def _is_named(reference: str, name: str) -> bool:
    return reference == name or reference.endswith(f"/{name}")
