"""The gate in front of the tools: it asks the person, tells the shelf what was written, and counts what a call took."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from anyio import to_thread
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied

from skillshelf.agent.policy import READING, SHELL, WRITING, Answer, Approval, Policy, preview

_OWN = READING | WRITING | {SHELL}
Ask = Callable[[Approval], Awaitable[Answer | None]]
"""The person's answer; None where nobody is there."""
Wrote = Callable[[str, bool], str]
"""Told a path that was written, and whether the person confirmed it: what to say to the model about it."""


class Gate(AbstractCapability[Any]):
    """Every call of a tool goes through here, whoever provides the tool."""

    id = "skillshelf_gate"

    def __init__(
        self, root: str, policy: Policy, ask: Ask, wrote: Wrote, answered: Callable[[ModelResponse], None]
    ) -> None:
        self._root, self._policy, self._ask_person = root, policy, ask
        self._wrote, self._answered = wrote, answered

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        if call.tool_name in _OWN and not ctx.tool_call_approved:
            decision = self._policy.decide(call.tool_name, args)
            if decision == "ask":
                raise ApprovalRequired
            if decision == "refuse":
                raise ToolFailed(self._refusal(call.tool_name))
        if call.tool_name == "write_file":
            await to_thread.run_sync(_make_folder, self._root, str(args.get("path", "")))
        return args

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        # One after the other: a person answers one question at a time.
        answers = {call.tool_call_id: await self._ask(call) for call in requests.approvals}
        return requests.build_results(approvals=answers)

    async def _ask(self, call: ToolCallPart) -> bool | ToolDenied:
        name, arguments = call.tool_name, call.args_as_dict()
        decision = self._policy.decide(name, arguments)
        if decision == "refuse":
            return ToolDenied(self._refusal(name))
        if decision == "allow":
            return True
        diff = await to_thread.run_sync(preview, self._root, name, arguments)
        answer = await self._ask_person(Approval(name, arguments, diff))
        if answer is None:
            return ToolDenied(
                f"{name} needs the person's approval, and nobody is there to ask. Do without it, or say what you would "
                "have done. (The person can allow it beforehand: --policy auto-edit for files, yolo for everything.)"
            )
        if answer == "no":
            return ToolDenied(
                f"The person did not allow this call of {name}. Do not repeat it; ask what to do instead."
            )
        if answer == "always":
            self._policy.always.add(name)
        return True

    def _refusal(self, tool: str) -> str:
        return (
            f"{tool} is not allowed: the policy is {self._policy.mode}. Reading works; only the person can change it."
        )

    async def after_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], result: Any
    ) -> Any:
        if call.tool_name not in WRITING:
            return result
        confirmed = ctx.tool_call_approved or self._policy.mode == "yolo" or call.tool_name in self._policy.always
        said = await to_thread.run_sync(self._wrote, str(args.get("path", "")), confirmed)
        return f"{result}\n\n{said}" if said else result

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self._answered(response)
        return response


def _make_folder(root: str, path: str) -> None:
    """The folder of a file that is about to be written: a model that writes a new skill expects no more of us."""
    folder = os.path.realpath(os.path.join(root, os.path.dirname(path)))
    if folder.startswith(f"{root}/") and "/.git/" not in f"{folder}/":
        with suppress(OSError):  # the write itself will say what is wrong
            os.makedirs(folder, exist_ok=True)
