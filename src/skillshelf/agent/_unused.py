"""Why the model did not use a skill in a conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic_ai.messages import ModelRequest, UserPromptPart

from skillshelf.agent.sessions import loaded_skills, typed_text
from skillshelf.errors import SkillError
from skillshelf.listing import Level
from skillshelf.standing import Standing, explain_standing

if TYPE_CHECKING:
    from skillshelf.agent._core import AgentCore


@dataclass(frozen=True, slots=True)
class Unused:
    """How a skill stands with a request of this conversation, and what became of it."""

    standing: Standing
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
    standing = explain_standing(
        core.shelf, name, wanted, disclosure=core.disclosure, budget=core.budget, listing=listing
    )
    if not core.skills.trusted:  # this session trusts the workspace: nothing waits for a review
        obstacles = [obstacle for obstacle in standing.obstacles if obstacle.code not in ("unreviewed", "outdated")]
        standing = replace(standing, obstacles=tuple(obstacles))

    is_loaded = any(text.name == standing.name for text in loaded_skills(core.conversation.messages))
    return Unused(standing, _judge(standing, is_loaded, was_offered=listing is not None), is_loaded)


def _find_last_request(core: AgentCore) -> str:
    for message in reversed(core.conversation.messages):
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
            return typed_text(message)
    return ""


def _judge(standing: Standing, is_loaded: bool, *, was_offered: bool) -> str:
    if is_loaded:
        return "It was used: it is loaded in this conversation."
    if not standing.is_usable:
        return "The model could not use it."
    if not was_offered:
        return "This request was not sent to the model, so this is what it would have seen."
    if standing.level is None:
        return "The model did not see it: it is not in the listing. Only a search by the model would have found it."
    if standing.level == Level.NAME:
        return "The model saw its name alone, not what it is for."
    if standing.level == Level.SHORT:
        return "The model saw only the beginning of its description, and did not load it."
    if standing.level == Level.FULL:
        return "Its instructions are in every call, so there was nothing to load."
    return (
        "It was offered and ignored: the model had its whole description in the listing, and did not load it. Say in "
        "the description when to use it, in the words of such a request."
    )
