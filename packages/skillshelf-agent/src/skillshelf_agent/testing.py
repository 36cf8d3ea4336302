"""A model that follows a script. It stands in for the paid one, and everything else is real.

    model = ScriptedModel(call("load_skill_instructions", skill_name="pdf"), "Done.")

Everything here is public and stays.
"""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from skillshelf.errors import MissingExtraError, ModelUnavailableError, SkillError
from skillshelf.text import count_noun
from skillshelf.text.tokens import estimate

try:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
    from pydantic_ai.usage import RequestUsage
except ImportError:
    raise MissingExtraError("skillshelf_agent.testing", "chat") from None


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call the model makes."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fail:
    """A failure of the provider, perhaps after some text."""

    error: Exception
    after: str = ""


def call(tool: str, **arguments: Any) -> ScriptedCall:
    """Return a step of a script: the model calls a tool."""
    return ScriptedCall(tool, arguments)


def fail(error: Exception, after: str = "") -> Fail:
    """Return a step of a script: the provider fails, in mid-stream if there is text in `after`."""
    return Fail(error, after)


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that one call sent to the model."""

    system: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[str, ...]

    @property
    def text(self) -> str:
        """The system prompt and the parts of all messages, for a test to search in."""
        texts = [self.system]
        for message in self.messages:
            for part in message.parts:
                texts.append(str(getattr(part, "content", getattr(part, "args", ""))))
        return "\n".join(texts)


Action = str | ScriptedCall | Fail
Step = (
    str
    | ScriptedCall
    | Fail
    | list["str | ScriptedCall | Fail"]
    | Callable[[Request], "str | ScriptedCall | list[str | ScriptedCall]"]
)


class ScriptedModel(FunctionModel):
    """Answers each call with the next step: a text, a tool call, several of them, or a function of the request."""

    def __init__(self, *script: Step, name: str = "scripted") -> None:
        super().__init__(self._answer, stream_function=self._stream, model_name=name)
        self.script = list(script)
        self.requests: list[Request] = []
        """The requests to the model so far."""

    @asynccontextmanager
    async def request_stream(self, messages: list[ModelMessage], *args: Any, **keywords: Any) -> AsyncIterator[Any]:
        async with super().request_stream(messages, *args, **keywords) as response:
            # The base class has no way to count input when it streams, and a window that stays empty shows nothing.
            response._usage = RequestUsage(input_tokens=estimate(self.requests[-1].text))
            yield response

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> list[Action]:
        request = Request(info.instructions or "", tuple(messages), tuple(tool.name for tool in info.function_tools))
        self.requests.append(request)
        calls = len(self.requests)
        if calls > len(self.script):
            steps = count_noun(len(self.script), "step")
            raise SkillError(f"The script is too short: it has {steps}, and the model was called {calls} times.")
        step = self.script[calls - 1]
        actions = step(request) if callable(step) else step
        return list(actions) if isinstance(actions, list) else [actions]

    def _call_id(self, index: int) -> str:
        return f"call-{len(self.requests)}-{index}"

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts: list[TextPart | ToolCallPart] = []
        for index, action in enumerate(self._next(messages, info)):
            if isinstance(action, Fail):
                raise action.error
            if isinstance(action, ScriptedCall):
                parts.append(ToolCallPart(action.tool, action.arguments, self._call_id(index)))
            else:
                parts.append(TextPart(action))
        return ModelResponse(parts=parts)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for index, action in enumerate(self._next(messages, info)):
            if isinstance(action, ScriptedCall):
                arguments = json.dumps(action.arguments)
                yield {index: DeltaToolCall(action.tool, arguments, tool_call_id=self._call_id(index))}
            elif isinstance(action, Fail):
                if action.after:
                    yield action.after
                raise action.error
            else:
                for piece in _split_in_pieces(action):
                    yield piece


def _split_in_pieces(text: str) -> list[str]:
    """Split a text as a provider streams it: a few words at a time, with every space kept."""
    return re.findall(r"(?:[^ ]* ){3}|.+", text, re.S) or [""]


_SCRIPT_FORM = (
    "Write a JSON list of texts and of tool calls: "
    '["Hello.", {"tool": "read_file", "arguments": {"path": "README.md"}}].'
)


def read_script(path: str) -> list[Step]:
    """Return the steps in a JSON file: texts, `{"tool": …, "arguments": …}`, `{"fail": …, "after": …}`, and lists.

    Raises ModelUnavailableError.
    """
    try:
        with open(path, encoding="utf-8") as file:
            steps = json.load(file)
        script: list[Step] = []
        for step in steps:
            script.append([_read_action(value) for value in step] if isinstance(step, list) else _read_action(step))
        return script
    except FileNotFoundError:
        raise ModelUnavailableError(
            f"There is no file {path!r}, which --model script:{path} takes the model's answers from. {_SCRIPT_FORM}"
        ) from None
    except OSError as error:
        raise ModelUnavailableError(f"The script {path!r} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise ModelUnavailableError(f"{path!r} is not a script for a model: {error}. {_SCRIPT_FORM}") from None


def _read_action(value: Any) -> Action:
    if isinstance(value, str):
        return value
    if "fail" in value:
        return fail(ConnectionError(value["fail"]), value.get("after", ""))
    return ScriptedCall(value["tool"], dict(value.get("arguments", {})))
