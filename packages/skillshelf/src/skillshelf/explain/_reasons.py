"""The reasons why a model doesn't see or can't use a skill, with the sentence that every interface shows."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from skillshelf.errors import SkillNotFoundError
from skillshelf.listing import Level, Listing, Shortened
from skillshelf.settings import describe_choice
from skillshelf.skills import MAX_DESCRIPTION, Candidate, Diagnostic, SkillDescriptor
from skillshelf.sources.attachable import describe_attaching, list_attachable
from skillshelf.text import clean_line, closest_names, count_noun, list_names, truncate
from skillshelf.trust import Pending, Trust, TrustedSource, find_pending_skill, needs_review

if TYPE_CHECKING:
    from skillshelf.search import Match
    from skillshelf.shelf import Shelf

ReasonCode = Literal[
    "missing",
    "not-attached",
    "broken",
    "off",
    "manual",
    "unreviewed",
    "outdated",
    "approved",
    "shadowed",
    "copy",
    "excluded",
    "no-match",
    "weak",
    "outranked",
    "left-out",
    "name-only",
    "shortened",
    "tools-missing",
]
UNUSABLE: frozenset[ReasonCode] = frozenset({"missing", "not-attached", "broken", "off", "manual", "unreviewed"})
"""Reasons that keep a skill from the model altogether, whatever the request."""
MAX_NAMED_WORDS = 5
_MAX_NAMED_SKILLS = 3
MAX_ECHOED = 200
"""Characters of a name or a request that are repeated in a sentence."""
_RAISE_BUDGET = "raise the budget in your settings, or keep fewer and shorter skills here"


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why the model may not come across a skill."""

    code: ReasonCode
    message: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.message} ({self.fix})" if self.fix else self.message


# --- names without a skill ---


def explain_absence(shelf: "Shelf", name: str, command: str = "skillshelf") -> Reason:
    """Explain to the user why there is no skill of this name on the shelf.

    `command` begins the commands in fixes: the chat has `/skills`.
    """
    skill = _find_off(shelf, name)
    if skill is not None:
        return explain_off("it", shelf.chosen.key_for(skill), command)

    notes = list(shelf.catalog.diagnostics)
    for source in shelf.sources:
        if isinstance(source, TrustedSource):
            if any(pending.name == name for pending in source.find_pending()):
                return _explain_unreviewed(command)
            notes += source.unusable

    for note in notes:
        folder = os.path.basename(os.path.dirname(note.path))
        if note.severity == "error" and name in (folder, os.path.basename(note.path)):
            return Reason("broken", describe_broken("its file", note), note.fix or "`skillshelf check` explains it")

    attaching = describe_attaching()
    if name in attaching:
        return Reason("not-attached", "it comes with skillshelf, and isn't attached here", attaching[name])

    fix = "/skills lists all skills" if command == "/skills" else "`skillshelf list` shows all skills"
    closest = _find_closest(shelf, name)
    if closest:
        fix = f"did you mean {' or '.join(map(repr, closest))}?"
    return Reason("missing", f"there is no skill named {truncate(name, MAX_ECHOED)!r}", fix)


def explain_unavailable(shelf: "Shelf", name: str, command: str = "skillshelf") -> SkillNotFoundError:
    """Return an error that tells the user why there is no skill of this name. `command`: see `explain_absence`."""
    reason = explain_absence(shelf, name, command)
    if reason.code == "missing":
        hint = f"{reason.fix[0].upper()}{reason.fix[1:]}"
        if not hint.endswith("?"):
            hint += "."
        return SkillNotFoundError(name, _find_closest(shelf, name), hint=hint)
    return SkillNotFoundError(name, reason=reason.message, hint=f"Fix: {reason.fix}.")


def explain_to_model(shelf: "Shelf", error: SkillNotFoundError) -> SkillNotFoundError:
    """Return an error that tells the model if the user turned the skill off; otherwise this one.

    Other reasons are for the user alone: they may quote a file that nobody has approved.
    """
    if _find_off(shelf, error.name) is None:
        return error
    return SkillNotFoundError(error.name, reason=_describe_off("the user", "it"), hint="Go on without it.")


def explain_off(what: str, name: str, command: str = "skillshelf") -> Reason:
    """Say that the user turned skills off, and how to turn the one of this name on again."""
    return Reason("off", _describe_off("you", what), f"`{command} set {name} auto` turns it on")


def _describe_off(who: str, what: str) -> str:
    return f"{who} turned {what} off"


def describe_broken(what: str, fault: Diagnostic) -> str:
    return f"{what} can't be used as it is: {fault.message.rstrip('.')}"


def _find_off(shelf: "Shelf", name: str) -> SkillDescriptor | None:
    for candidate in shelf.chosen.off:
        if name in (candidate.found.name, candidate.descriptor.qualified):
            return candidate.descriptor
    return None


def _find_closest(shelf: "Shelf", name: str) -> tuple[str, ...]:
    names = [*shelf.catalog, *(skill.name for skill in list_attachable())]
    return closest_names(name.partition("@")[0] or name, dict.fromkeys(names))


# --- skills on the shelf ---


def explain_usability(shelf: "Shelf", candidate: Candidate, command: str = "skillshelf") -> Iterator[Reason]:
    """Yield what keeps the model from a skill on the shelf, whatever the listing has room for."""
    skill = candidate.descriptor
    if skill.disclosure == "manual":
        fix = "remove `disclosure: manual` from its SKILL.md"
        if shelf.chosen.choice_for(skill) == "manual":
            fix = f"`{command} set {shelf.chosen.key_for(skill)} auto` undoes your choice"
        yield Reason("manual", f"its disclosure is manual: {describe_choice('manual')}", fix)

    review = describe_review(shelf, candidate, command)
    if review is not None and review.code != "approved":
        yield review

    if shelf.catalog.find(skill.name) != candidate:
        shadowed = shelf.catalog.explain_shadowed(candidate)
        yield Reason("shadowed", shadowed.message, shadowed.fix)


def describe_review(shelf: "Shelf", candidate: Candidate, command: str = "skillshelf") -> Reason | None:
    """Return whether the agent uses a project skill as it is now; None for skills that need no review."""
    source = shelf.sources[candidate.place.source]
    if not needs_review(source):
        return None
    trust = Trust.open()
    pending = find_pending_skill(source, candidate.descriptor.location, trust)
    if pending is None and trust.find_own(source.root):
        return Reason("approved", "the repository is your own, so the agent uses it as it is")
    if pending is None:
        return Reason("approved", "you approved it, so the agent uses it as it is")
    if pending.status == "new":
        return _explain_unreviewed(command)
    return Reason("outdated", describe_outdated("it"), f"`{command} trust` shows the changes and asks")


def _explain_unreviewed(command: str) -> Reason:
    return Reason("unreviewed", describe_waiting("it", 1), f"`{command} trust` shows it and asks")


def describe_waiting(what: str, count: int, *, whose: str = "your") -> str:
    """Say that content waits for a review: `2 skills are waiting for your review, and can't be used until then`."""
    verb = "is" if count == 1 else "are"
    return f"{what} {verb} waiting for {whose} review, and can't be used until then"


def describe_outdated(what: str, *, whose: str = "your") -> str:
    """Say that approved content has changed: `pdf, sql changed since your review: the approved version is in use`."""
    return f"{what} changed since {whose} review: the approved version is in use"


def describe_pending(pending: Iterable[Pending]) -> list[str]:
    """Name what waits for the user's review, in a sentence for each cause."""
    new: dict[str, None] = {}  # skills in several folders may share a name
    by_agent: dict[str, None] = {}
    changed: dict[str, None] = {}
    for content in pending:
        names = new
        if content.by_agent:
            names = by_agent
        elif content.status == "changed":
            names = changed
        names[clean_line(content.name)] = None

    sentences = []
    if new:
        sentences.append(f"{describe_waiting(_list_skills(new), len(new))}.")
    if by_agent:
        what = f"{_list_skills(by_agent)}, changed while the agent was at work,"
        sentences.append(f"{describe_waiting(what, len(by_agent))}.")
    if changed:
        sentences.append(f"{describe_outdated(_list_skills(changed))}.")
    return sentences


def _list_skills(names: Iterable[str]) -> str:
    return list_names(list(names), _MAX_NAMED_SKILLS)


def explain_missing_tools(shelf: "Shelf", skill: SkillDescriptor) -> Iterator[Reason]:
    """Yield the tools that the model isn't offered because the skill's policy blocks them."""
    blocked = [name for name, permission in shelf.permissions_of(skill.name).items() if permission == "blocked"]
    if blocked:
        message = f"the skill's policy blocks tools, so the model doesn't have them: {', '.join(blocked)}"
        yield Reason("tools-missing", message)


# --- the listing ---


def describe_level(level: Level) -> str:
    """Return what the listing shows of a skill at this level."""
    if level == Level.NAME:
        return "its name only"
    if level == Level.SHORT:
        return "the beginning of its description"
    if level == Level.WHOLE:
        return "its description"
    return "its instructions"


def explain_listing(
    shelf: "Shelf",
    skill: SkillDescriptor,
    listing: Listing,
    budget: int,
    *,
    match: "Match | None" = None,
    command: str = "skillshelf",
) -> Iterator[Reason]:
    """Yield why the listing doesn't show all of a skill's description.

    With `match`, the words of the request that are in the missing part are named.
    """
    level = listing.level_of(skill.name)
    if level is None:
        message = f"the listing leaves it out: the budget of {budget:,} tokens has no room for its name"
        yield Reason("left-out", message, _RAISE_BUDGET)
    elif level == Level.NAME and shelf.chosen.choice_for(skill) == "name":
        fix = f"`{command} set {shelf.chosen.key_for(skill)} auto` shows its description"
        yield Reason("name-only", f"{describe_choice('name')}, as you chose", fix)
    elif level == Level.NAME:
        message = f"{describe_choice('name')}: the budget of {budget:,} tokens has no room for its description"
        yield Reason("name-only", message, _RAISE_BUDGET)
    elif Shortened(skill.name, "description") in listing.shortened:
        yield _explain_shortened(skill, listing, budget, match)


def _explain_shortened(skill: SkillDescriptor, listing: Listing, budget: int, match: "Match | None") -> Reason:
    entry = next(entry for entry in listing.entries if entry.name == skill.name)
    shown = entry.description.lower()
    cut: list[str] = []
    if match is not None:
        cut = [word.word for word in match.words if word.field == "description" and word.word.lower() not in shown]

    message = f"the budget of {budget:,} tokens has room for the beginning of its description only"
    fix = "put what matters most into its first sentence"
    if len(skill.description) > MAX_DESCRIPTION and len(entry.description) >= MAX_DESCRIPTION // 2:
        message = f"its description is longer than {MAX_DESCRIPTION:,} characters, and the listing shows no more"
        fix = "shorten it"
    if cut:
        message += f"; {', '.join(map(repr, cut[:MAX_NAMED_WORDS]))} is cut off"
    return Reason("shortened", message, fix)


def describe_listing(shelf: "Shelf", skill: SkillDescriptor, listing: Listing, budget: int) -> Iterator[str]:
    """Yield what the listing shows of a skill, and why it doesn't show more."""
    reasons = list(explain_listing(shelf, skill, listing, budget))
    level = listing.level_of(skill.name)
    if level is not None and level >= Level.WHOLE:
        chosen = ", as you chose" if shelf.chosen.choice_for(skill) == "full" else ""
        yield f"the listing shows {describe_level(level)}{chosen}"
    yield from map(str, reasons)

    missing = {entry.what for entry in listing.shortened if entry.name == skill.name}
    if "references" in missing and level is not None and level >= Level.WHOLE:
        references = count_noun(len(skill.main_references), "reference")
        yield f"the listing doesn't name all of its {references}: loading it does"
    if "instructions" in missing:
        cause = "its disclosure is `always`" if skill.disclosure == "always" else "it is a code skill"
        yield f"its instructions should be shown because {cause}, but don't fit into the budget of {budget:,} tokens"
