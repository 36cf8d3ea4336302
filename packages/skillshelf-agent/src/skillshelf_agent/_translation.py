"""What pydantic-ai reports of a run, in the events of a turn."""

from __future__ import annotations

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

from skillshelf.shelf import Turn
from skillshelf_agent.events import (
    Event,
    LoadRepeated,
    ReferenceLoaded,
    SkillLoaded,
    Text,
    Thinking,
    ToolCalled,
    ToolReturned,
)


class EventTranslator:
    """Turns the events of pydantic-ai and the loads of one turn into our events."""

    def __init__(self, turn: Turn) -> None:
        self.answer: list[str] = []
        """The pieces of the last model call's answer so far."""
        self._turn = turn
        self._reported_loads = 0
        self._reported_repeats = 0

    def translate(self, event: Any) -> Iterator[Event]:
        yield from self.new_loads()
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                if text:
                    self.answer.append(text)
                    yield Text(text)
            case (
                PartStartEvent(part=ThinkingPart(content=text))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=text))
            ):
                if text:
                    yield Thinking(text)
            case FunctionToolCallEvent(part=call):
                self.answer.clear()
                yield ToolCalled(call.tool_call_id, call.tool_name, _arguments_of(call))
            case FunctionToolResultEvent(part=part):
                yield self._translate_result(part)

    def _translate_result(self, part: Any) -> ToolReturned:
        name = part.tool_name or ""
        # The model does not have a tool that its skill's policy blocks. To pydantic-ai, its name is unknown.
        is_blocked = any(tool.name == name for tool in self._turn.shelf.blocked_tools())
        if not isinstance(part, ToolReturnPart):  # the model is asked to try again
            return ToolReturned(part.tool_call_id, name, part.model_response(), ok=False, refused=is_blocked)
        return ToolReturned(
            part.tool_call_id,
            name,
            part.model_response_str(wrap_if_error=False),
            ok=part.outcome == "success",
            refused=is_blocked or part.outcome == "denied",
        )

    def new_loads(self) -> Iterator[Event]:
        """Yield an event for each text that entered the conversation since the last time."""
        fresh = self._turn.activations[self._reported_loads :]
        self._reported_loads += len(fresh)
        for load in fresh:
            if load.reference:
                yield ReferenceLoaded(load.skill, load.reference, load.by, load.size)
            else:
                yield SkillLoaded(load.skill, load.by, load.size)

        repeats = self._turn.repeats[self._reported_repeats :]
        self._reported_repeats += len(repeats)
        for load in repeats:
            yield LoadRepeated(load.skill, load.reference, load.by, load.size)


def _arguments_of(call: ToolCallPart) -> dict[str, Any]:
    try:
        return call.args_as_dict()
    except ValueError:  # the model did not write JSON, and is informed of that
        return {"": str(call.args)}
