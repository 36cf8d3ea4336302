"""Claude Agent SDK, with a Transport that replaces Claude Code and speaks the SDK's control protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import count
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    PermissionResult,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    ToolPermissionContext,
    Transport,
)

from skillshelf.adapters.claude_agent import Skills
from skillshelf.shelf import Shelf
from skillshelf.testing.conformance import Call, Promise, Reply, Result

_SERVER = "skillshelf"
Message = dict[str, Any]


class ScriptedClaude(Transport):
    """Claude Code with a scripted model: for each message, the calls to make and then the answer."""

    def __init__(self, options: ClaudeAgentOptions, *script: tuple[Sequence[Call], str]) -> None:
        self.options = options
        self.script = list(script)
        self.system_prompts: list[str] = []
        """The system prompt of each model call."""
        self.context: list[str] = []
        """The texts that hooks added to messages."""
        self.last_messages: list[str] = []
        """The texts that hooks added to the message being answered, for each model call."""
        self.tools: tuple[str, ...] = ()
        self.results: list[Result] = []
        self._output: asyncio.Queue[Message | BaseException | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Message]] = {}
        self._numbers = count()
        self._hooks: dict[str, list[str]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Do nothing: there is no program to start."""

    async def write(self, data: str) -> None:
        message = json.loads(data)
        if message["type"] == "control_response":
            self._answers.pop(message["response"]["request_id"]).set_result(message["response"])
        elif message["type"] == "control_request":
            self._initialize(message)
        else:
            task = asyncio.get_running_loop().create_task(self._answer_message(message["message"]["content"]))
            self._running.add(task)
            task.add_done_callback(self._finish)

    async def read_messages(self) -> AsyncIterator[Message]:
        while True:
            message = await self._output.get()
            if message is None:
                return
            if isinstance(message, BaseException):
                raise message
            yield message

    async def end_input(self) -> None:
        self._output.put_nowait(None)

    async def close(self) -> None:
        self._output.put_nowait(None)

    def is_ready(self) -> bool:
        return True

    def _finish(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error:
            self._output.put_nowait(error)

    def _initialize(self, message: Message) -> None:
        for event, matchers in (message["request"].get("hooks") or {}).items():
            self._hooks[event] = [name for matcher in matchers for name in matcher["hookCallbackIds"]]
        response = {"subtype": "success", "request_id": message["request_id"], "response": {}}
        self._output.put_nowait({"type": "control_response", "response": response})

    async def _answer_message(self, prompt: str) -> None:
        calls, answer = self.script.pop(0)
        added = await self._run_prompt_hooks(prompt)
        if not self.tools:
            await self._start_server()
        for call in calls:
            self._record_request(added)
            await self._call_tool(call)
        self._record_request(added)
        self._send_block({"type": "text", "text": answer})
        cost = {"duration_ms": 0, "duration_api_ms": 0, "num_turns": len(calls) + 1, "is_error": False}
        self._output.put_nowait({"type": "result", "subtype": "success", "session_id": "one", "result": answer, **cost})

    def _record_request(self, added: str) -> None:
        prompt: Any = self.options.system_prompt
        self.system_prompts.append(prompt.get("append", prompt.get("prompt")))
        self.last_messages.append(added)

    def _send_block(self, block: Message) -> None:
        self._output.put_nowait({"type": "assistant", "message": {"model": "scripted", "content": [block]}})

    async def _run_prompt_hooks(self, prompt: str) -> str:
        """Run the hooks for a message and return the texts that they add to it."""
        before = len(self.context)
        event = {"hook_event_name": "UserPromptSubmit", "session_id": "one", "prompt": prompt}
        for name in self._hooks.get("UserPromptSubmit", ()):
            response = await self._ask_sdk({"subtype": "hook_callback", "callback_id": name, "input": event})
            context = response.get("hookSpecificOutput", {}).get("additionalContext")
            if context:
                self.context.append(context)
        return "\n\n".join(self.context[before:])

    async def _start_server(self) -> None:
        client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "face", "version": "1"}}
        await self._call_server("initialize", client)
        await self._send_to_server({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = await self._call_server("tools/list", {})
        self.tools = tuple(tool["name"] for tool in listed["result"]["tools"])

    async def _call_tool(self, call: Call) -> None:
        name = f"mcp__{_SERVER}__{call.tool}"
        number = f"toolu_{next(self._numbers)}"
        self._send_block({"type": "tool_use", "id": number, "name": name, "input": call.arguments})
        refusal, arguments = await self._ask_permission(name, call.arguments, number)
        if refusal:
            result = Result(refusal, True)
        else:
            response = await self._call_server("tools/call", {"name": call.tool, "arguments": arguments})
            answer = response["result"]
            result = Result("".join(block["text"] for block in answer["content"]), answer.get("isError", False))
        self.results.append(result)
        block = {"type": "tool_result", "tool_use_id": number, "content": result.text, "is_error": result.failed}
        self._output.put_nowait({"type": "user", "message": {"content": [block]}})

    async def _ask_permission(self, name: str, arguments: Message, number: str) -> tuple[str, Message]:
        """Return the reason for a refusal, or the arguments to make the call with."""
        if name in self.options.allowed_tools:
            return "", arguments
        if not self.options.can_use_tool:
            return f"Claude requested permissions to use {name}, but you haven't granted it yet.", {}
        response = await self._ask_sdk(
            {"subtype": "can_use_tool", "tool_name": name, "input": arguments, "tool_use_id": number}
        )
        if response["behavior"] == "allow":
            return "", response["updatedInput"]
        return response["message"], {}

    async def _call_server(self, method: str, parameters: Message) -> Message:
        return await self._send_to_server(
            {"jsonrpc": "2.0", "id": next(self._numbers), "method": method, "params": parameters}
        )

    async def _send_to_server(self, message: Message) -> Message:
        response = await self._ask_sdk({"subtype": "mcp_message", "server_name": _SERVER, "message": message})
        mcp_response: Message = response["mcp_response"]
        return mcp_response

    async def _ask_sdk(self, request: Message) -> Message:
        """Send a request of Claude Code to the SDK, and return the response."""
        number = f"cli_{next(self._numbers)}"
        answer = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self._output.put_nowait({"type": "control_request", "request_id": number, "request": request})
        envelope = await answer
        if envelope["subtype"] == "error":
            raise RuntimeError(envelope["error"])
        response: Message = envelope["response"]
        return response


class _Conversation:
    def __init__(self, shelf: Shelf) -> None:
        options = Skills(shelf).options(ClaudeAgentOptions(can_use_tool=self._answer_question))
        self.claude = ScriptedClaude(options)
        self.client = ClaudeSDKClient(options, self.claude)
        self.calls: Sequence[Call] = ()

    async def say(self, text: str, calls: Sequence[Call], answer: str) -> Reply:
        claude = self.claude
        first_request = len(claude.system_prompts)
        first_result = len(claude.results)
        self.calls = calls
        claude.script.append((calls, answer))

        final_answer = ""
        await self.client.query(text)
        async for message in self.client.receive_response():
            if isinstance(message, ResultMessage):
                final_answer = message.result or ""
        return Reply(
            system_prompts=tuple(claude.system_prompts[first_request:]),
            tools=claude.tools,
            results=tuple(claude.results[first_result:]),
            answer=final_answer,
            last_messages=tuple(claude.last_messages[first_request:]),
        )

    async def close(self) -> None:
        await self.client.disconnect()

    async def _answer_question(self, name: str, arguments: Message, context: ToolPermissionContext) -> PermissionResult:
        call = Call(name.removeprefix(f"mcp__{_SERVER}__"), arguments, approve=True)
        if call in self.calls:
            return PermissionResultAllow()
        return PermissionResultDeny(message="The user said no.")


class ClaudeAgent:
    name = "claude-agent"
    exceptions: Mapping[Promise, str] = {
        "each-call": "Claude Code makes the model calls itself: changes are announced with the next message"
    }

    async def open(self, shelf: Shelf) -> _Conversation:
        conversation = _Conversation(shelf)
        await conversation.client.connect()
        return conversation
