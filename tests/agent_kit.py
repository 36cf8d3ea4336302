"""An agent on a workspace for tests: only the model is scripted."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import UserPromptPart

from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.sources.workspace import Workspace
from skillshelf_agent import AgentCore, Answer, Approval, Policy, Sessions
from skillshelf_agent.events import BaseEvent, Event
from skillshelf_agent.testing import ScriptedModel


class User:
    """A user who gives these answers in order, and remembers the questions."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.questions: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.questions.append(approval)
        return self.answers.pop(0)


def agent(
    root: Path | Workspace,
    *script: Any,
    mode: str = "yolo",
    user: User | None = None,
    sessions: Sessions | None = None,
    **skills: Any,
) -> AgentCore:
    """Make an agent. The other arguments are those of WorkspaceSkills."""
    return AgentCore(
        ScriptedModel(*script),
        WorkspaceSkills(root, **skills),
        policy=Policy(mode),  # type: ignore[arg-type]
        approve=user,
        sessions=sessions,
    )


def requests(core: AgentCore) -> Any:
    model = core.model.model
    assert isinstance(model, ScriptedModel)
    return model.requests


def say(core: AgentCore, *texts: str) -> list[Event]:
    """Send the messages one after the other, and return all events."""

    async def run() -> list[Event]:
        events: list[Event] = []
        for text in texts:
            async for event in core.process_message(text):
                events.append(event)
        return events

    return asyncio.run(run())


def of(events: Sequence[Event], kind: type[BaseEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def prompts(core: AgentCore) -> list[str]:
    """Return the user's messages in the history."""
    parts = [part for message in core.conversation.messages for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
