"""Claude Agent SDK, with a Transport that stands in for Claude Code: it speaks the SDK's control protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import count
from typing import Any

from skillshelf.adapters.claude_agent import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance._face import Call, Promise, Result, Said

from claude_agent_sdk import (  # isort: skip  # after the adapter, which says what to install
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    ToolPermissionContext,
    Transport,
)

_SERVER = "skillshelf"
Message = dict[str, Any]


class ScriptedClaude(Transport):
    """Claude Code with a model that follows a script: for each message the calls to make, and then the answer."""

    def __init__(self, options: ClaudeAgentOptions, *script: tuple[Sequence[Call], str]) -> None:
        self.options, self.script = options, list(script)
        self.systems: list[str] = []
        """What stood in the system prompt, model call by model call."""
        self.context: list[str] = []
        """What hooks put beside the messages."""
        self.ends: list[str] = []
        """What they put beside the message that is being answered, model call by model call."""
        self.tools: tuple[str, ...] = ()
        self.results: list[Result] = []
        self._out: asyncio.Queue[Message | BaseException | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Message]] = {}
        self._number = count()
        self._hooks: dict[str, list[str]] = {}
        self._playing: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Claude Code needs no start here."""

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_response":
            self._answers.pop(message["response"]["request_id"]).set_result(message["response"])
        elif message["type"] == "control_request":
            self._initialized(message)
        else:
            task = asyncio.get_running_loop().create_task(self._play(message["message"]["content"]))
            self._playing.add(task)
            task.add_done_callback(self._played)

    async def read_messages(self) -> AsyncIterator[Message]:
        while (message := await self._out.get()) is not None:
            if isinstance(message, BaseException):
                raise message
            yield message

    async def end_input(self) -> None:
        self._out.put_nowait(None)

    async def close(self) -> None:
        self._out.put_nowait(None)

    def is_ready(self) -> bool:
        return True

    def _played(self, task: asyncio.Task[None]) -> None:
        self._playing.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._out.put_nowait(error)

    def _initialized(self, message: Message) -> None:
        for event, matchers in (message["request"].get("hooks") or {}).items():
            self._hooks[event] = [name for matcher in matchers for name in matcher["hookCallbackIds"]]
        response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        self._out.put_nowait({"type": "control_response", "response": response})

    async def _play(self, prompt: str) -> None:
        calls, answer = self.script.pop(0)
        end = await self._prompted(prompt)
        if not self.tools:
            await self._start_server()
        for call in calls:
            self._model(end)
            await self._call(call)
        self._model(end)
        self._say({"type": "text", "text": answer})
        cost = {"duration_ms": 0, "duration_api_ms": 0, "num_turns": len(calls) + 1, "is_error": False}
        self._out.put_nowait({"type": "result", "subtype": "success", "session_id": "one", "result": answer, **cost})

    def _model(self, end: str) -> None:
        prompt: Any = self.options.system_prompt
        self.systems.append(prompt.get("append", prompt.get("prompt")))
        self.ends.append(end)

    def _say(self, block: Message) -> None:
        self._out.put_nowait({"type": "assistant", "message": {"model": "scripted", "content": [block]}})

    async def _prompted(self, prompt: str) -> str:
        """What the hooks put beside this message."""
        known = len(self.context)
        asked = {"hook_event_name": "UserPromptSubmit", "session_id": "one", "prompt": prompt}
        for name in self._hooks.get("UserPromptSubmit", ()):
            said = await self._ask({"subtype": "hook_callback", "callback_id": name, "input": asked})
            context = said.get("hookSpecificOutput", {}).get("additionalContext")
            self.context.extend([context] if context else [])
        return "\n\n".join(self.context[known:])

    async def _start_server(self) -> None:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "face", "version": "1"}}
        await self._server("initialize", client)
        await self._ask_server({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.tools = tuple(tool["name"] for tool in (await self._server("tools/list", {}))["result"]["tools"])

    async def _call(self, call: Call) -> None:
        name, number = f"mcp__{_SERVER}__{call.tool}", f"toolu_{next(self._number)}"
        self._say({"type": "tool_use", "id": number, "name": name, "input": call.arguments})
        refused, arguments = await self._permission(name, call.arguments, number)
        if refused:
            result = Result(refused, True)
        else:
            answer = (await self._server("tools/call", {"name": call.tool, "arguments": arguments}))["result"]
            result = Result("".join(block["text"] for block in answer["content"]), answer.get("isError", False))
        self.results.append(result)
        block = {"type": "tool_result", "tool_use_id": number, "content": result.text, "is_error": result.failed}
        self._out.put_nowait({"type": "user", "message": {"content": [block]}})

    async def _permission(self, name: str, arguments: Message, number: str) -> tuple[str, Message]:
        """Why the call may not be made, or what to make it with."""
        if name in self.options.allowed_tools:
            return "", arguments
        if not self.options.can_use_tool:
            return f"Claude requested permissions to use {name}, but you haven't granted it yet.", {}
        asked = {"subtype": "can_use_tool", "tool_name": name, "input": arguments, "tool_use_id": number}
        said = await self._ask(asked)
        return ("", said["updatedInput"]) if said["behavior"] == "allow" else (said["message"], {})

    async def _server(self, method: str, parameters: Message) -> Message:
        asked = {"jsonrpc": "2.0", "id": next(self._number), "method": method, "params": parameters}
        return await self._ask_server(asked)

    async def _ask_server(self, message: Message) -> Message:
        said = await self._ask({"subtype": "mcp_message", "server_name": _SERVER, "message": message})
        response: Message = said["mcp_response"]
        return response

    async def _ask(self, request: Message) -> Message:
        """What the SDK answers to a request of Claude Code."""
        number = f"cli_{next(self._number)}"
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        self._out.put_nowait({"type": "control_request", "request_id": number, "request": request})
        said = await answer
        if said["subtype"] == "error":
            raise RuntimeError(said["error"])
        response: Message = said["response"]
        return response


class _Conversation:
    def __init__(self, shelf: Shelf) -> None:
        options = Skills(shelf).options(ClaudeAgentOptions(can_use_tool=self._person))
        self.claude = ScriptedClaude(options)
        self.client = ClaudeSDKClient(options, self.claude)
        self.calls: Sequence[Call] = ()

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Said:
        claude, self.calls, said = self.claude, calls, ""
        asked, called = len(claude.systems), len(claude.results)
        claude.script.append((calls, answer))
        await self.client.query(text)
        async for message in self.client.receive_response():
            if isinstance(message, ResultMessage):
                said = message.result or ""
        systems, ends = tuple(claude.systems[asked:]), tuple(claude.ends[asked:])
        return Said(systems, claude.tools, tuple(claude.results[called:]), said, ends)

    async def close(self) -> None:
        await self.client.disconnect()

    async def _person(self, name: str, arguments: Message, context: ToolPermissionContext) -> PermissionResult:
        yes = Call(name.removeprefix(f"mcp__{_SERVER}__"), arguments, approve=True) in self.calls
        return PermissionResultAllow() if yes else PermissionResultDeny(message="The person said no.")


class ClaudeAgent:
    name = "claude-agent"
    exceptions: Mapping[Promise, str] = {
        "each-call": "Claude Code makes the model calls itself: what changed is told with the next message"
    }

    async def open(self, shelf: Shelf) -> _Conversation:
        conversation = _Conversation(shelf)
        await conversation.client.connect()
        return conversation


def make() -> ClaudeAgent:
    return ClaudeAgent()
