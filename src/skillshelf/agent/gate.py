"""The gate in front of the tools: it asks the person, and tells the shelf what was written."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapToolExecuteHandler
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied

from skillshelf.agent.changes import Change, change_of
from skillshelf.agent.policy import READING, SHELL, WRITING, Approval

if TYPE_CHECKING:
    from skillshelf.agent.exchange import Exchange
    from skillshelf.trust import UnreviewedFile

_OWN = READING | WRITING | {SHELL}


class Gate(AbstractCapability[Any]):
    """Every call of a tool goes through here, whoever provides the tool."""

    id = "skillshelf_gate"

    def __init__(self, root: str, current: Callable[[], Exchange]) -> None:
        """`current`: the exchange that is going on."""
        self._root, self._current = root, current
        self._changes: dict[str, tuple[Change, bool]] = {}
        """By call: the write that is under way, and whether what it changes was agreed to."""
        self._folders: dict[str, list[str]] = {}
        """By call: the folders that were made for it."""

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        if call.tool_name not in _OWN:
            return args
        change = None
        if call.tool_name in WRITING:
            change = await to_thread.run_sync(change_of, self._root, call.tool_name, args)
            if change.path and not change.path.startswith(f"{self._root}/"):
                raise ToolFailed(f"{change.shown!r} lies outside the workspace. Use a path inside it.")
        if not ctx.tool_call_approved:
            unreviewed = await self._unreviewed_files(call.tool_name, args)
            self._decide(call.tool_name, args, change, unreviewed)
        if change:
            agreed = await to_thread.run_sync(self._current().is_agreed, change.path)
            self._changes[call.tool_call_id] = change, agreed
            self._folders[call.tool_call_id] = await to_thread.run_sync(_make_folders, change.path)
        return args

    async def _unreviewed_files(self, tool: str, args: dict[str, Any]) -> tuple[UnreviewedFile, ...]:
        exchange = self._current()
        if tool != SHELL or exchange.policy.mode in ("yolo", "read-only"):
            return ()
        return await to_thread.run_sync(exchange.unreviewed_files, str(args.get("command", "")))

    def _decide(
        self, tool: str, args: dict[str, Any], change: Change | None, unreviewed: tuple[UnreviewedFile, ...]
    ) -> None:
        policy = self._current().policy
        decision = policy.decide(tool, change.path if change else "", str(args.get("command", "")))
        if decision == "allow" and unreviewed:  # "always" was said of the script as it was
            decision = "ask"
        if decision == "ask":
            # With the arguments as they will be used: what the model wrote may be mended JSON.
            facts = {"arguments": args, "diff": change.diff if change else "", "unreviewed": unreviewed}
            raise ApprovalRequired(metadata=facts)
        if decision == "refuse":
            raise ToolFailed(self._refusal(tool))

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults:
        # One after the other: a person answers one question at a time.
        facts = requests.metadata
        answers = {
            one.tool_call_id: await self._ask(one, facts.get(one.tool_call_id, {})) for one in requests.approvals
        }
        return requests.build_results(approvals=answers)

    async def _ask(self, call: ToolCallPart, facts: dict[str, Any]) -> bool | ToolDenied:
        name, exchange = call.tool_name, self._current()
        policy = exchange.policy
        if policy.mode == "read-only":
            return ToolDenied(self._refusal(name))
        if policy.mode == "yolo":
            return True
        confinement = await to_thread.run_sync(lambda: exchange.confinement) if name == SHELL else None
        approval = Approval(
            name, facts.get("arguments", {}), facts.get("diff", ""), confinement, facts.get("unreviewed", ())
        )
        answer = await exchange.ask(approval)
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
            policy.allow_always(name, str(facts.get("arguments", {}).get("command", "")))
        return True

    def _refusal(self, tool: str) -> str:
        mode = self._current().policy.mode
        return f"{tool} is not allowed: the policy is {mode}. Reading works; only the person can change it."

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        exchange = self._current()
        try:
            result = await handler(args)
        except BaseException:
            for folder in self._folders.pop(call.tool_call_id, ()):
                with suppress(OSError):  # somebody else has put something there
                    os.rmdir(folder)
            raise
        finally:
            change, agreed = self._changes.pop(call.tool_call_id, (None, False))
        self._folders.pop(call.tool_call_id, None)
        if change is None:
            return result
        confirmed = agreed and (ctx.tool_call_approved or exchange.policy.mode == "yolo")
        said = await to_thread.run_sync(exchange.wrote, change, confirmed)
        return f"{result}\n\n{said}" if said else result

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self._current().answered(response)
        return response


def _make_folders(path: str) -> list[str]:
    """The missing folders of a file that is about to be written, innermost first: a model that writes expects it."""
    missing = []
    folder = os.path.dirname(path)
    while folder and not os.path.lexists(folder) and "/.git" not in folder:
        missing.append(folder)
        folder = os.path.dirname(folder)
    with suppress(OSError):  # the write itself will say what is wrong
        for one in reversed(missing):
            os.mkdir(one)
    return missing
