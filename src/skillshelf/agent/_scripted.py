"""A model that says what a script tells it to. It stands in for the paid one, and nothing else is made up."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from skillshelf.errors import MissingExtraError, ModelUnavailableError, SkillError
from skillshelf.tokens import estimate

try:
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
    from pydantic_ai.usage import RequestUsage
except ImportError:
    raise MissingExtraError("skillshelf.testing.ScriptedModel", "chat") from None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call the model makes."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fail:
    """The provider breaks off, after some text if any was said."""

    error: Exception
    after: str = ""


def call(tool: str, **arguments: Any) -> Call:
    """A step of a script: the model calls a tool."""
    return Call(tool, arguments)


def fail(error: Exception, after: str = "") -> Fail:
    """A step of a script: the provider fails, in mid-stream where `after` was said first."""
    return Fail(error, after)


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the model: everything it was sent."""

    system: str
    messages: tuple[ModelMessage, ...]
    tools: tuple[str, ...]

    @property
    def text(self) -> str:
        """All that was sent, the system prompt and every message's parts, for a test to look into."""
        parts = (part for message in self.messages for part in message.parts)
        return "\n".join([self.system, *(str(getattr(part, "content", getattr(part, "args", ""))) for part in parts)])


Step = str | Call | Fail | list["str | Call | Fail"] | Callable[[Request], "str | Call | list[str | Call]"]


class ScriptTooShortError(SkillError, AssertionError):
    """A scripted model was called more often than its script has steps."""

    def __init__(self, steps: int, calls: int) -> None:
        self.steps = steps
        self.calls = calls
        has = "1 step" if steps == 1 else f"{steps} steps"
        super().__init__(f"The script is too short: it has {has}, and the model was called {calls} times.")


class ScriptedModel(FunctionModel):
    """Answers each call with the next step: a text, a tool call, several of them, or a function of the request."""

    def __init__(self, *script: Step, name: str = "scripted") -> None:
        super().__init__(self._answer, stream_function=self._stream, model_name=name)
        self.script = list(script)
        self.requests: list[Request] = []
        """What the model was sent, call by call."""

    @asynccontextmanager
    async def request_stream(self, messages: list[ModelMessage], *args: Any, **keywords: Any) -> AsyncIterator[Any]:
        async with super().request_stream(messages, *args, **keywords) as response:
            # The base class counts no input when it streams, and a window that stays empty shows nothing.
            response._usage = RequestUsage(input_tokens=estimate(self.requests[-1].text))
            yield response

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> list[str | Call | Fail]:
        request = Request(info.instructions or "", tuple(messages), tuple(tool.name for tool in info.function_tools))
        self.requests.append(request)
        at = len(self.requests)
        if at > len(self.script):
            raise ScriptTooShortError(len(self.script), at)
        step = self.script[at - 1]
        said = step(request) if callable(step) else step
        return list(said) if isinstance(said, list) else [said]

    def _id(self, index: int) -> str:
        return f"call-{len(self.requests)}-{index}"

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        parts: list[TextPart | ToolCallPart] = []
        for index, one in enumerate(self._next(messages, info)):
            if isinstance(one, Fail):
                raise one.error
            call = ToolCallPart(one.tool, one.arguments, self._id(index)) if isinstance(one, Call) else None
            parts.append(call or TextPart(str(one)))
        return ModelResponse(parts=parts)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for index, one in enumerate(self._next(messages, info)):
            if isinstance(one, Call):
                yield {index: DeltaToolCall(one.tool, json.dumps(one.arguments), tool_call_id=self._id(index))}
            elif isinstance(one, Fail):
                if one.after:
                    yield one.after
                raise one.error
            else:
                for piece in _pieces(one):
                    yield piece


def _pieces(text: str) -> list[str]:
    """As a provider streams: a few words at a time, with every space where it was."""
    words = text.split(" ")
    return [" ".join(words[at : at + 3]) + (" " if at + 3 < len(words) else "") for at in range(0, len(words), 3)]


def read_script(path: str) -> list[Step]:
    """The steps in a JSON file: texts, `{"tool": …, "arguments": …}`, `{"fail": …, "after": …}`, and lists of them.

    Raises ModelUnavailableError.
    """
    try:
        with open(path, encoding="utf-8") as file:
            steps = json.load(file)
        return [[_step(one) for one in step] if isinstance(step, list) else _step(step) for step in steps]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailableError(
            f"{path!r} is no script for a model: {error}. Write a JSON list of texts and of tool calls like "
            '{"tool": "read_file", "arguments": {"path": "README.md"}}.'
        ) from None


def _step(value: Any) -> str | Call | Fail:
    if isinstance(value, str):
        return value
    if "fail" in value:
        return fail(ConnectionError(value["fail"]), value.get("after", ""))
    return Call(value["tool"], dict(value.get("arguments", {})))
