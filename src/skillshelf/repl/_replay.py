"""The end of a resumed conversation, as it looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from rich.console import RenderableType
from rich.text import Text

from skillshelf.agent import AgentCore
from skillshelf.agent import events as on
from skillshelf.agent.sessions import typed_text
from skillshelf.rendering import markdown
from skillshelf.repl._screen import FoldedResult, describe_call
from skillshelf.text import clean, count_noun, truncate

_SHOWN_EXCHANGES = 3
_MAX_TYPED = 1_000
_MAX_ANSWER = 6_000


@dataclass(slots=True)
class _Exchange:
    """A message of the user and everything until the next one."""

    typed: str
    parts: list[ModelRequestPart | ModelResponsePart] = field(default_factory=list)


def view_resumed(core: AgentCore) -> Sequence[RenderableType]:
    """Return the last exchanges of the session that goes on, and say how many there are."""
    conversation = core.conversation
    messages = conversation.session.transcript if conversation.session else conversation.messages
    exchanges = _split_exchanges(messages)
    shown = exchanges[-_SHOWN_EXCHANGES:]

    heading = f"Session {conversation.id}"
    if len(shown) < len(exchanges):
        heading += f": showing the last {len(shown)} of {count_noun(len(exchanges), 'message')}"
    else:
        heading += f": {count_noun(len(exchanges), 'message')}"
    blocks: list[RenderableType] = [Text(heading, "dim")]
    for exchange in shown:
        blocks += _view_exchange(exchange)
    return blocks


def _split_exchanges(messages: Sequence[ModelMessage]) -> list[_Exchange]:
    exchanges: list[_Exchange] = []
    for message in messages:
        typed = typed_text(message) if isinstance(message, ModelRequest) else ""
        if typed:
            exchanges.append(_Exchange(typed))
        if exchanges:
            exchanges[-1].parts += [part for part in message.parts if not isinstance(part, UserPromptPart)]
    return exchanges


def _view_exchange(exchange: _Exchange) -> Iterator[RenderableType]:
    yield Text()
    yield Text.assemble(("› ", "bold"), truncate(clean(exchange.typed), _MAX_TYPED))
    results = {part.tool_call_id: part for part in exchange.parts if isinstance(part, ToolReturnPart)}
    for part in exchange.parts:
        if isinstance(part, TextPart) and part.content.strip():
            yield markdown(truncate(part.content, _MAX_ANSWER))
        elif isinstance(part, ToolCallPart):
            yield _view_call(part, results.get(part.tool_call_id))


def _view_call(call: ToolCallPart, result: ToolReturnPart | None) -> RenderableType:
    try:
        arguments = call.args_as_dict()
    except ValueError:  # the model did not write JSON
        arguments = {"": str(call.args)}
    title = describe_call(on.ToolCalled(call.tool_call_id, call.tool_name, arguments))
    if result is None:  # it was interrupted, or had to be repeated
        return Text.assemble(("● ", "red"), title, no_wrap=True, overflow="ellipsis")
    text = result.model_response_str(wrap_if_error=False)
    returned = on.ToolReturned(call.tool_call_id, call.tool_name, text, ok=result.outcome == "success")
    return FoldedResult(title, returned)
