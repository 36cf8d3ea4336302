"""From what pydantic-ai reports, and what the turn records, to our own events."""

from collections.abc import Iterator
from typing import Any

from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
    ToolReturnPart,
)

from skillshelf.agent.events import (
    Event,
    ReferenceDenied,
    ReferenceLoaded,
    SkillLoaded,
    Text,
    Thinking,
    ToolCalled,
    ToolReturned,
)
from skillshelf.turn import Turn


class Translator:
    """For one turn: it remembers what was told already."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._told = 0
        self._asked: dict[str, dict[str, Any]] = {}
        self.text: list[str] = []
        """The answer's pieces so far, of the last model call."""

    def __call__(self, event: Any) -> Iterator[Event]:
        yield from self.loads()
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                if text:
                    self.text.append(text)
                    yield Text(text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                if text:
                    yield Thinking(text)
            case FunctionToolCallEvent(part=call):
                self.text.clear()
                self._asked[call.tool_call_id] = arguments = _arguments(call)
                yield ToolCalled(call.tool_call_id, call.tool_name, arguments)
            case FunctionToolResultEvent(part=part):
                yield from self._result(part)

    def loads(self) -> Iterator[Event]:
        """What entered the conversation since the last look."""
        fresh = self._turn.activations[self._told :]
        self._told += len(fresh)
        for one in fresh:
            if one.reference:
                yield ReferenceLoaded(one.skill, one.reference, one.by, one.size)
            else:
                yield SkillLoaded(one.skill, one.by, one.size)

    def _result(self, part: Any) -> Iterator[Event]:
        ok = isinstance(part, ToolReturnPart) and part.outcome == "success"
        said = isinstance(part, ToolReturnPart)
        text = part.model_response_str(wrap_if_error=False) if said else part.model_response()
        asked = self._asked.get(part.tool_call_id, {})
        if not ok and part.tool_name == "load_skill_instructions" and asked.get("reference"):
            yield ReferenceDenied(str(asked.get("skill_name", "")), str(asked["reference"]), text)
        yield ToolReturned(part.tool_call_id, part.tool_name or "", text, ok)


def _arguments(call: ToolCallPart) -> dict[str, Any]:
    try:
        return call.args_as_dict()
    except ValueError:  # the model wrote no JSON; it is told so
        return {"": str(call.args)}
