"""Cut long tool results and arguments in a conversation. The cut says what is missing, so the model can call again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart

from skillshelf.agent._context import count_messages
from skillshelf.discovery import LOAD_TOOL
from skillshelf.tokens import Counter

_STUB_TOKENS = 200
"""What is left of an old result, about."""
_HEAD = 0.7
"""The part of it that is the beginning. The rest is the end, where commands say how they ended."""
_LEAST_SAVED = 50
"""Tokens that a cut must save. The sentence that says so takes some itself."""
_MAX_TRIES = 8


@dataclass(frozen=True, slots=True)
class Trimming:
    messages: list[ModelMessage]
    cut: int
    """How many results and arguments were cut."""


def trim_results(messages: Sequence[ModelMessage], aim: int, counter: Counter) -> Trimming:
    """Cut results, the oldest first, until the messages have at most `aim` tokens. The given ones are not changed.

    The results that the model has not answered yet are cut last, and keep as much as there is room for. Loaded skills
    are never cut.
    """
    new = list(messages)
    size = count_messages(new, counter)
    last = find_last_exchange(new)
    cuts = 0

    for index in range(last):
        if size <= aim:
            break
        trimmed = _trim_message(new[index], _STUB_TOKENS, counter, longer_than=2 * _STUB_TOKENS)
        if trimmed.cut:
            size -= count_messages([new[index]], counter) - count_messages(trimmed.messages, counter)
            new[index] = trimmed.messages[0]
            cuts += trimmed.cut

    if size > aim:
        parts = [part for message in new[last:] for part in message.parts]
        long = [part for part in parts if _is_longer(part, _STUB_TOKENS, counter)]
        taken = sum(counter(_text_of(part)) for part in long)
        share = max(_STUB_TOKENS, (aim - size + taken) // max(1, len(long)))
        for index in range(last, len(new)):
            trimmed = _trim_message(new[index], share, counter, longer_than=share + _LEAST_SAVED)
            new[index] = trimmed.messages[0]
            cuts += trimmed.cut
    return Trimming(new, cuts)


def find_last_exchange(messages: Sequence[ModelMessage]) -> int:
    """Return the index of the first message that must stay: the last one, and the calls that it answers."""
    last = len(messages) - 1
    if last < 0:
        return 0
    answered = {part.tool_call_id for part in messages[last].parts if isinstance(part, ToolReturnPart)}
    for index in range(last - 1, -1, -1):
        for part in messages[index].parts:
            if isinstance(part, ToolCallPart) and part.tool_call_id in answered:
                return index
    return last


def _trim_message(message: ModelMessage, tokens: int, counter: Counter, *, longer_than: int) -> Trimming:
    """Cut each result and argument of a message that is longer than this to about so many tokens."""
    parts: list[Any] = []
    cuts = 0
    for part in message.parts:
        shorter: Any = part
        if _is_longer(part, longer_than, counter):
            cuts += 1
            shorter = _cut_part(part, tokens, counter)
        parts.append(shorter)
    if not cuts:
        return Trimming([message], 0)
    changed: Any = message
    return Trimming([replace(changed, parts=parts)], cuts)


def _cut_part(part: Any, tokens: int, counter: Counter) -> Any:
    if isinstance(part, ToolReturnPart):
        return replace(part, content=_cut_middle(_text_of(part), part.tool_name, tokens, counter))
    return replace(part, args=_cut_arguments(part, tokens, counter))


def _is_longer(part: object, tokens: int, counter: Counter) -> bool:
    """Return True for a result or a call that may be cut and has more than so many tokens."""
    # A subclass has a content of its own form, and a picture is not text.
    if type(part) is ToolReturnPart:
        return part.tool_name != LOAD_TOOL and not part.files and counter(_text_of(part)) > tokens
    if type(part) is ToolCallPart:
        return part.tool_name != LOAD_TOOL and counter(_text_of(part)) > tokens
    return False


def _text_of(part: object) -> str:
    if isinstance(part, ToolReturnPart):
        return part.model_response_str(wrap_if_error=False)
    if isinstance(part, ToolCallPart):
        return "\n".join(_texts_of_arguments(part).values())
    return ""


def _texts_of_arguments(call: ToolCallPart) -> dict[str, str]:
    try:
        arguments = call.args_as_dict()
    except ValueError:  # the model did not write JSON
        return {}
    return {name: value for name, value in arguments.items() if isinstance(value, str)}


def _cut_arguments(call: ToolCallPart, tokens: int, counter: Counter) -> dict[str, Any]:
    arguments = call.args_as_dict()
    texts = _texts_of_arguments(call)
    share = tokens // max(1, len(texts))
    for name, text in texts.items():
        if counter(text) > share + _LEAST_SAVED:
            arguments[name] = _cut_middle(text, "", share, counter)
    return arguments


def _cut_middle(text: str, tool: str, tokens: int, counter: Counter) -> str:
    """Return the beginning and the end of a text, about so many tokens, and say what is missing between them."""
    total = counter(text)
    share = tokens / max(1, total)
    again = f" Call {tool} again if you need them." if tool else ""
    short = text
    for _ in range(_MAX_TRIES):  # tokens are not spread evenly, so the first cut may leave too much
        head = int(len(text) * share * _HEAD)
        tail = len(text) - int(len(text) * share * (1 - _HEAD))
        missing = max(0, total - counter(text[:head]) - counter(text[tail:]))
        mark = f"\n[… about {missing:,} tokens were removed here to make room.{again} …]\n"
        short = f"{text[:head]}{mark}{text[tail:]}"
        if counter(short) <= tokens + _LEAST_SAVED:
            break
        share *= 0.6
    return short
