"""The terminal agent, with its scripted model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace

from faces.pydantic_ai import last_message
from skillshelf.shelf import Shelf
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.testing.conformance import Call, Reply, Result
from skillshelf_agent import AgentCore, Answer, Approval
from skillshelf_agent.events import Finished, ToolReturned
from skillshelf_agent.testing import ScriptedCall as Step
from skillshelf_agent.testing import ScriptedModel


@dataclass
class _Conversation:
    core: AgentCore
    folder: tempfile.TemporaryDirectory[str]

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        async def approve(approval: Approval) -> Answer:
            return "yes" if Call(approval.tool, approval.arguments, approve=True) in calls else "no"

        self.core.gate.approve = approve
        model = ScriptedModel(*(Step(call.tool, call.arguments) for call in calls), answer)
        self.core.model = replace(self.core.model, model=model)
        events = [event async for event in self.core.process_message(text)]
        returned = [event for event in events if isinstance(event, ToolReturned)]
        last = events[-1]
        return Reply(
            system_prompts=tuple(request.system for request in model.requests),
            tools=model.requests[0].tools,
            results=tuple(Result(event.text, not event.ok) for event in returned),
            answer=last.text if isinstance(last, Finished) else str(last),
            last_messages=tuple(last_message(request) for request in model.requests),
        )

    async def close(self) -> None:
        self.folder.cleanup()


class Agent:
    name = "skillshelf-chat"

    async def open(self, shelf: Shelf) -> _Conversation:
        folder = tempfile.TemporaryDirectory(prefix="skillshelf-conformance-")
        core = AgentCore(ScriptedModel(), WorkspaceSkills(os.path.realpath(folder.name), shelf))
        return _Conversation(core, folder)
