"""OpenAI Agents SDK, with the scripted Model of its own tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agents import Agent, RunConfig, Runner, ToolApprovalItem, ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message, function_call

from skillshelf.adapters.openai_agents import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance import Call, Promise, Reply, Result


class _Conversation:
    def __init__(self, shelf: Shelf) -> None:
        skills = Skills(shelf)
        self.agent = Agent[None]("face", instructions=skills.instructions(), tools=[*skills.tools()])
        self.history: list[Any] = []
        self.messages_sent = 0

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        self.messages_sent += 1
        steps = [
            function_call(call.tool, json.dumps(call.arguments), call_id=f"call-{self.messages_sent}-{index}")
            for index, call in enumerate(calls)
        ]
        model = ScriptedModel([*([step] for step in steps), [assistant_message(answer)]])
        messages = [*self.history, {"role": "user", "content": text}]
        config = RunConfig(model=model, tracing_disabled=True)

        run = await Runner.run(self.agent, messages, max_turns=len(calls) + 1, run_config=config)
        while run.interruptions:
            state = run.to_state()
            for item in run.interruptions:
                if _is_approved(item, calls):
                    state.approve(item)
                else:
                    state.reject(item)
            run = await Runner.run(self.agent, state, run_config=config)
        self.history = run.to_input_list()
        returned = [item for item in run.new_items if isinstance(item, ToolCallOutputItem)]
        return Reply(
            system_prompts=tuple(call.system_instructions or "" for call in model.calls),
            tools=tuple(tool.name for tool in model.calls[0].tools),
            results=tuple(Result(str(item.output)) for item in returned),
            answer=str(run.final_output),
        )

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def _is_approved(question: ToolApprovalItem, calls: Sequence[Call]) -> bool:
    return Call(question.name or "", json.loads(question.arguments or "{}"), approve=True) in calls


class OpenAIAgents:
    name = "openai-agents"
    exceptions: Mapping[Promise, str] = {"errors-marked": "the SDK's tool outputs have no mark for an error"}

    async def open(self, shelf: Shelf) -> _Conversation:
        return _Conversation(shelf)
