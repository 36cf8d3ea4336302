"""An agent on a workspace for tests: only the model is scripted."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import UserPromptPart

from skillshelf.agent import AgentCore, Answer, Approval, Policy
from skillshelf.agent.events import BaseEvent, Event
from skillshelf.testing import ScriptedModel


class User:
    """Who is asked for approval: gives the answers in order and remembers the questions."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.questions: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.questions.append(approval)
        return self.answers.pop(0)


def agent(root: Path, *script: Any, mode: str = "yolo", user: User | None = None, **load: Any) -> AgentCore:
    core = AgentCore(ScriptedModel(*script), policy=Policy(mode), approve=user)  # type: ignore[arg-type]
    core.load_skills(root, **load)
    return core


def requests(core: AgentCore) -> Any:
    model = core.model.model
    assert isinstance(model, ScriptedModel)
    return model.requests


def say(core: AgentCore, *texts: str) -> list[Event]:
    """The events of these messages, one after the other."""

    async def run() -> list[Event]:
        return [event for text in texts for event in [one async for one in core.process_message(text)]]

    return asyncio.run(run())


def of(events: Sequence[Event], kind: type[BaseEvent]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def prompts(core: AgentCore) -> list[str]:
    """What the user said, as the history has it."""
    parts = [part for message in core.conversation.messages for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, UserPromptPart)]
