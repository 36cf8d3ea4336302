"""Why the model did not use a skill in a conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelRequest, UserPromptPart

from skillshelf.agent.sessions import loaded_skills, typed_text
from skillshelf.errors import SkillError
from skillshelf.explain import RequestExplanation, explain_request

if TYPE_CHECKING:
    from skillshelf.agent._core import AgentCore


@dataclass(frozen=True, slots=True)
class Unused:
    """Whether a skill comes up for a request of this conversation, and what became of it."""

    explanation: RequestExplanation
    verdict: str
    """What the model did or could not do, in a sentence or two."""
    is_loaded: bool
    """True if the skill was loaded in this conversation after all."""


def explain_unused(core: AgentCore, name: str, request: str = "") -> Unused:
    """Explain why the model did not use a skill for a request, by default the user's last message.

    For the last message, this is about the listing that the model got. Raises SkillError if there is no request.
    """
    last = _find_last_request(core)
    wanted = request.strip() or last
    if not wanted:
        raise SkillError("Nothing was said yet. Give the request: /why-not NAME fill in this form")

    listing = core.listing if wanted == last else None
    explanation = explain_request(
        core.shelf,
        name,
        wanted,
        disclosure=core.disclosure,
        budget=core.budget,
        listing=listing,
        command="/skills",
    )
    if not core.skills.trusted:  # this session trusts the workspace: nothing waits for a review
        reasons = [reason for reason in explanation.reasons if reason.code not in ("unreviewed", "outdated")]
        explanation = replace(explanation, reasons=tuple(reasons))

    is_loaded = any(text.name == explanation.name for text in loaded_skills(core.conversation.messages))
    verdict = explanation.describe_use(is_loaded=is_loaded, was_offered=listing is not None)
    return Unused(explanation, verdict, is_loaded)


def _find_last_request(core: AgentCore) -> str:
    for message in reversed(core.conversation.messages):
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
            return typed_text(message)
    return ""
