"""Making room in the model's window: what is old becomes a summary, and the skills in use stay."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import (
    SlidingWindowCompaction,
    SummarizingCompaction,
    compact_now,
    estimate_token_count,
)

from skillshelf.agent._explain import explain
from skillshelf.agent.sessions import LOAD_TOOL, LoadedText, loaded_skills, prompt_text
from skillshelf.text import clean_line
from skillshelf.tokens import Counter, estimate

FULL = 0.8
"""The part of the window that may be taken before compaction is due."""
KEEP_TOKENS = 8_000
SKILLS_CAP = 10_000
# A longer first message lives on in the summary only: verbatim it could never be compacted.
_FIRST_TOKENS = 1_000
# On the part, where it survives that requests are merged. The model does not see it.
_NOTE = "skillshelf.compaction.note"

__all__ = ["Compacted", "LoadedText", "compact", "loaded_skills", "needs_compaction"]


@dataclass(frozen=True, slots=True)
class Compacted:
    messages: list[ModelMessage]
    before: int
    """Tokens of the messages, as estimated."""
    after: int
    kept_skills: tuple[LoadedText, ...] = ()
    """Texts that are in the new history, the one used last at the end."""
    dropped_skills: tuple[LoadedText, ...] = ()
    """Texts that are not; the model is told their names."""
    summary: str = ""
    problem: str = ""
    """Why there is no summary, in words for the person."""


def needs_compaction(messages: Sequence[ModelMessage], window: int, used: int = 0) -> bool:
    """Whether four fifths of the window are taken: by what the provider counted last (`used`), or by estimate."""
    return window > 0 and max(used, estimate_token_count(messages, estimate)) >= FULL * window


async def compact(
    messages: Sequence[ModelMessage],
    model: Model,
    *,
    focus: str = "",
    keep_tokens: int = KEEP_TOKENS,
    skills_cap: int = SKILLS_CAP,
    usage: RunUsage | None = None,
    fallback: bool = True,
    counter: Counter = estimate,
) -> Compacted:
    """A shorter history that goes on with the task; the given messages stay as they are.

    About the last `keep_tokens` stay word for word. Skill texts from before them are put back, those used last first,
    as far as `skills_cap` tokens go. What the summary takes is added to `usage`.
    Where the model cannot summarize, the oldest messages go without a summary; without `fallback`, its error is raised.
    """
    old = _without_notes(messages)
    problem = ""
    try:
        short = await compact_now(
            _summarizing(old, keep_tokens, counter), old, model=model, focus=focus or None, usage=usage
        )
    except Exception as error:  # whatever a provider's library raises: the conversation must be able to go on
        if not fallback:
            raise
        sliding = SlidingWindowCompaction[None](max_tokens=1, keep_tokens=keep_tokens, tokenizer=counter)
        short = await compact_now(sliding, old, model=model)
        problem = f"The model could not summarize ({explain(error)[1]}): the oldest messages went without a summary."
    before = estimate_token_count(list(messages), counter)
    if short == old:
        return Compacted(list(messages), before, before, tuple(loaded_skills(messages)))
    here = loaded_skills(short)
    back, gone = _within(skills_cap, [text for text in loaded_skills(old) if text not in here], counter)
    new = _with_skills(short, old, back, gone)
    after = estimate_token_count(new, counter)
    return Compacted(new, before, after, (*back, *here), tuple(gone), "" if problem else _summary(short), problem)


def _summarizing(messages: list[ModelMessage], keep_tokens: int, counter: Counter) -> SummarizingCompaction[None]:
    first = _first_prompt(messages)
    return SummarizingCompaction[None](
        max_tokens=1,  # due at once: compact_now does not ask, but one limit must be set
        keep_tokens=keep_tokens,
        tokenizer=counter,
        preserve_first_user_message=not first.startswith("Apply Skill ") and counter(first) <= _FIRST_TOKENS,
    )


def _within(cap: int, texts: list[LoadedText], counter: Counter) -> tuple[list[LoadedText], list[LoadedText]]:
    """The texts that fit, whole, those that came in last first; and the others."""
    fits: set[LoadedText] = set()
    for text in reversed(texts):
        cost = counter(text.text)
        if cost <= cap:
            cap -= cost
            fits.add(text)
    return [text for text in texts if text in fits], [text for text in texts if text not in fits]


def _with_skills(
    short: list[ModelMessage], old: list[ModelMessage], back: list[LoadedText], gone: list[LoadedText]
) -> list[ModelMessage]:
    """As loads, before the messages that were kept: a user message would read as a new request."""
    if not back and not gone:
        return short
    at = len(short) - _common_end(short, old)
    calls = [ToolCallPart(LOAD_TOOL, _arguments(text)) for text in back]
    pairs = zip(calls, back, strict=True)
    request = ModelRequest(parts=[ToolReturnPart(LOAD_TOOL, text.text, call.tool_call_id) for call, text in pairs])
    if gone:
        request = replace(request, parts=[*request.parts, _note(gone)])
    middle: list[ModelMessage] = [ModelResponse(parts=calls), request] if calls else [request]
    return [*short[:at], *middle, *short[at:]]


def _arguments(text: LoadedText) -> dict[str, str | int]:
    arguments: dict[str, str | int] = {"skill_name": text.name}
    if text.reference:
        arguments["reference"] = text.reference
    if text.offset:
        arguments["offset"] = text.offset
    return arguments


def _note(gone: list[LoadedText]) -> UserPromptPart:
    names = "; ".join(clean_line(str(text)) for text in gone)
    words = (
        "[Note from the application, not a request: these skill texts were loaded earlier and are no longer in this "
        f"conversation. Load them again with {LOAD_TOOL} when you need them: {names}.]"
    )
    return UserPromptPart([TextContent(words, metadata=_NOTE)])


def _without_notes(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The notes of an earlier compaction are out of date at this one."""
    cleaned: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, ModelRequest) and any(map(_is_note, message.parts)):
            message = replace(message, parts=[part for part in message.parts if not _is_note(part)])
        if message.parts:
            cleaned.append(message)
    return cleaned


def _is_note(part: object) -> bool:
    if not isinstance(part, UserPromptPart) or isinstance(part.content, str):
        return False
    return any(isinstance(item, TextContent) and item.metadata == _NOTE for item in part.content)


def _common_end(one: list[ModelMessage], other: list[ModelMessage]) -> int:
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a is not b), min(len(one), len(other)))


def _first_prompt(messages: Sequence[ModelMessage]) -> str:
    parts = (part for message in messages for part in message.parts if isinstance(part, UserPromptPart))
    return next(map(prompt_text, parts), "")


def _summary(messages: Sequence[ModelMessage]) -> str:
    requests = (message for message in messages if isinstance(message, ModelRequest))
    found = [part.content or "" for one in requests for part in one.parts if isinstance(part, CompactionPart)]
    return found[-1] if found else ""
