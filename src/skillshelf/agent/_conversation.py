"""The conversation with the model: its history, its share of the window, and how it is shortened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from pydantic_ai.messages import (
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage, RunUsage
from pydantic_ai_harness.compaction import (
    SlidingWindowCompaction,
    SummarizingCompaction,
    compact_now,
    estimate_token_count,
)

from skillshelf.agent._explain import explain_error
from skillshelf.agent._models import usage_of
from skillshelf.agent.events import Usage
from skillshelf.agent.sessions import (
    LoadedText,
    Session,
    loaded_skills,
    make_prompt,
    make_sendable,
    prompt_text,
    strip_system_prompt,
)
from skillshelf.discovery import LOAD_TOOL
from skillshelf.errors import SessionError
from skillshelf.text import clean_line
from skillshelf.tokens import Counter, estimate

if TYPE_CHECKING:
    from skillshelf.agent._core import AgentCore

_NO_ANSWER = "[No answer: it was interrupted.]"

_FULL = 0.8
"""The part of the window that may be taken before compaction is due."""
# A longer first message lives on in the summary only: verbatim it could never be compacted.
_MAX_FIRST_MESSAGE_TOKENS = 1_000
# Marks a note for the model. It is on the part, where it survives that requests are merged. The model does not see it.
_NOTE = "skillshelf.compaction.note"


class Conversation:
    """The history without the system prompt. Skill texts are in it only if a skill was loaded or invoked."""

    def __init__(self, session: Session | None = None) -> None:
        """Without a session, the history is in memory only."""
        self.session = session
        self.messages: list[ModelMessage] = list(session.messages) if session else []
        self.id = session.id if session else uuid4().hex
        self._is_unsaved = False

    def add(self, messages: Sequence[ModelMessage]) -> str:
        """Append messages. Return the problem if saving begins to fail, and otherwise an empty string."""
        fresh = [strip_system_prompt(message) for message in messages]
        self.messages += fresh
        if not self.session or not fresh:
            return ""

        was_unsaved = self._is_unsaved
        try:
            self.session.append(fresh)
        except SessionError as error:
            self._is_unsaved = True
            return "" if was_unsaved else str(error)
        self._is_unsaved = False
        return ""

    def add_prompt(self, text: str, invoked_skill: str = "") -> str:
        """Append a message of the user, and the skill it brings. Return a problem as `add` does."""
        return self.add([make_prompt(text, invoked_skill)])

    def settle(self, text: str = "") -> str:
        """Complete a history that was cut short: each call gets a result, and the last message is the model's.

        `text` is the beginning of its answer. pydantic-ai merges and repairs an incomplete history when a run begins,
        and then ours would no longer be the beginning of its own. Return a problem as `add` does.
        """
        self.messages = make_sendable(self.messages)
        if not self.messages:
            return ""
        last = self.messages[-1]
        if isinstance(last, ModelResponse) and (not text or _has_text(last)):
            return ""
        return self.add([ModelResponse(parts=[TextPart(text or _NO_ANSWER)])])

    def replace(self, messages: Sequence[ModelMessage]) -> None:
        """Replace the history by a shorter one. Raises SessionError if that cannot be saved."""
        self.messages = [strip_system_prompt(message) for message in messages]
        if self.session:
            self.session.replace(self.messages)

    def close(self) -> None:
        """Release the session, so that another process can continue it."""
        if self.session:
            self.session.close()


def _has_text(response: ModelResponse) -> bool:
    return any(isinstance(part, TextPart) for part in response.parts)


# -- the window -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of the model's window, in tokens. All are estimates except `used`."""

    window: int
    system: int
    tools: int
    listing: tuple[tuple[str, int], ...]
    """Each skill's share of the section. The section's own words are under the empty name."""
    loaded: tuple[tuple[str, int], ...]
    """Skills and references that were loaded or invoked: `pdf`, `pdf/forms.md`."""
    history: int
    """The rest of the conversation."""
    used: int
    """The provider's own count at the last call."""

    @property
    def total(self) -> int:
        shares = sum(tokens for _, tokens in (*self.listing, *self.loaded))
        return self.system + self.tools + shares + self.history


def measure_context(core: AgentCore) -> Context:
    """Estimate the next model call, without the message that is not written yet."""
    count = core.shelf.counter
    loaded: list[tuple[str, int]] = []
    for text in loaded_skills(core.conversation.messages):
        name = f"{text.name}/{text.reference}" if text.reference else text.name
        loaded.append((name, count(text.text)))

    tools = 0
    for tool in core.loop.tools:
        tools += count(json.dumps([tool.name, tool.description, tool.parameters_json_schema]))

    conversation = sum(count(text) for message in core.conversation.messages for text in _texts_of(message))
    return Context(
        window=core.model.window,
        system=count(core.loop.instructions),
        tools=tools,
        listing=tuple(_measure_listing(core, count)) if core.model.tools else (),
        loaded=tuple(loaded),
        history=max(0, conversation - sum(tokens for _, tokens in loaded)),
        used=core.used,
    )


def _measure_listing(core: AgentCore, count: Counter) -> Iterator[tuple[str, int]]:
    listing = core.listing
    rest = listing.tokens
    for entry in listing.entries:
        tokens = count(entry.render())
        rest -= tokens
        yield entry.name, tokens
    yield "", max(0, rest)


def _texts_of(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        for value in (getattr(part, "content", None), getattr(part, "args", None)):
            if value:
                yield str(value)


# -- compaction -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    keep_tokens: int = 8_000
    """About this many tokens at the end of the history stay word for word."""
    skill_tokens: int = 10_000
    """Skill texts from before them are put back within this many tokens, the last used first."""
    counter: Counter = estimate


@dataclass(frozen=True, slots=True)
class Compacted:
    """A shortened history."""

    messages: list[ModelMessage]
    before: int
    """Tokens of the old messages, by estimate."""
    after: int
    usage: Usage
    """The tokens and the price of the summary."""
    kept_skills: tuple[LoadedText, ...] = ()
    """Texts that are in the new history, the last used at the end."""
    dropped_skills: tuple[LoadedText, ...] = ()
    """Texts that are not. The model gets their names."""
    summary: str = ""
    problem: str = ""
    """Why there is no summary, in words for the user."""


def needs_compaction(messages: Sequence[ModelMessage], window: int, used: int = 0) -> bool:
    """Return True if four fifths of the window are taken, by the provider's last count (`used`) or by estimate."""
    return window > 0 and max(used, estimate_token_count(messages, estimate)) >= _FULL * window


async def compact(
    messages: Sequence[ModelMessage],
    model: Model,
    *,
    focus: str = "",
    fallback: bool = True,
    limits: CompactionLimits | None = None,
) -> Compacted:
    """Return a shorter history that goes on with the task. The given messages are not changed.

    If the model cannot summarize, the oldest messages are dropped without a summary. Without `fallback`, its error is
    raised instead.
    """
    limits = limits or CompactionLimits()
    old = _without_notes(messages)
    run_usage = RunUsage()
    problem = ""

    try:
        strategy = _summarizing(old, limits)
        short = await compact_now(strategy, old, model=model, focus=focus or None, usage=run_usage)
    except Exception as error:  # whatever a provider's library raises: the conversation must be able to go on
        if not fallback:
            raise
        sliding = SlidingWindowCompaction[None](max_tokens=1, keep_tokens=limits.keep_tokens, tokenizer=limits.counter)
        short = await compact_now(sliding, old, model=model)
        reason = explain_error(error).message
        problem = f"The model could not summarize ({reason}): the oldest messages went without a summary."

    usage = _usage_of_run(run_usage, model)
    before = estimate_token_count(list(messages), limits.counter)
    if short == old:
        return Compacted(list(messages), before, before, usage, tuple(loaded_skills(messages)))

    still_there = loaded_skills(short)
    lost = [text for text in loaded_skills(old) if text not in still_there]
    put_back, dropped = _choose_texts(lost, limits)
    new = _insert_skills(short, old, put_back, dropped)
    return Compacted(
        new,
        before,
        after=estimate_token_count(new, limits.counter),
        usage=usage,
        kept_skills=(*put_back, *still_there),
        dropped_skills=tuple(dropped),
        summary="" if problem else _find_summary(short),
        problem=problem,
    )


def _usage_of_run(run: RunUsage, model: Model) -> Usage:
    if not run.requests:
        return Usage(0, 0, cost=0.0)
    counts = {field.name: getattr(run, field.name) for field in fields(RequestUsage)}
    return usage_of(
        ModelResponse(
            parts=[],
            usage=RequestUsage(**counts),
            model_name=model.model_name,
            provider_name=model.system,
            provider_url=model.base_url,
        )
    )


def _summarizing(messages: list[ModelMessage], limits: CompactionLimits) -> SummarizingCompaction[None]:
    return SummarizingCompaction[None](
        max_tokens=1,  # due at once: compact_now does not ask, but one limit must be set
        keep_tokens=limits.keep_tokens,
        tokenizer=limits.counter,
        preserve_first_user_message=_begins_with_task(messages, limits),
    )


def _begins_with_task(messages: list[ModelMessage], limits: CompactionLimits) -> bool:
    """Return True if the user's first message is worth keeping: it is short, and not the text of a skill."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                is_short = limits.counter(prompt_text(part)) <= _MAX_FIRST_MESSAGE_TOKENS
                return is_short and not loaded_skills([message])
    return False


def _choose_texts(texts: list[LoadedText], limits: CompactionLimits) -> tuple[list[LoadedText], list[LoadedText]]:
    """Return the texts that fit, whole, and the others. The last texts are chosen first."""
    room = limits.skill_tokens
    fitting: set[LoadedText] = set()
    for text in reversed(texts):
        tokens = limits.counter(text.text)
        if tokens <= room:
            room -= tokens
            fitting.add(text)
    return [text for text in texts if text in fitting], [text for text in texts if text not in fitting]


def _insert_skills(
    short: list[ModelMessage], old: list[ModelMessage], put_back: list[LoadedText], dropped: list[LoadedText]
) -> list[ModelMessage]:
    """Put skill texts before the messages that were kept, as loads: a user message would read as a new request."""
    if not put_back and not dropped:
        return short
    calls: list[ToolCallPart] = []
    results: list[ToolReturnPart | UserPromptPart] = []
    for text in put_back:
        call = ToolCallPart(LOAD_TOOL, _load_arguments(text))
        calls.append(call)
        results.append(ToolReturnPart(LOAD_TOOL, text.text, call.tool_call_id))
    if dropped:
        results.append(_make_note(dropped))

    inserted: list[ModelMessage] = []
    if calls:
        inserted.append(ModelResponse(parts=calls))
    inserted.append(ModelRequest(parts=results))
    at = len(short) - _count_common_end(short, old)
    return [*short[:at], *inserted, *short[at:]]


def _load_arguments(text: LoadedText) -> dict[str, str | int]:
    arguments: dict[str, str | int] = {"skill_name": text.name}
    if text.reference:
        arguments["reference"] = text.reference
    if text.offset:
        arguments["offset"] = text.offset
    return arguments


def _make_note(dropped: list[LoadedText]) -> UserPromptPart:
    names = "; ".join(clean_line(str(text)) for text in dropped)
    note = (
        "[Note from the application, not a request: these skill texts were loaded earlier and are no longer in this "
        f"conversation. Load them again with {LOAD_TOOL} when you need them: {names}.]"
    )
    return UserPromptPart([TextContent(note, metadata=_NOTE)])


def _without_notes(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages without the notes of an earlier compaction, which are out of date at this one."""
    cleaned: list[ModelMessage] = []
    for message in messages:
        if isinstance(message, ModelRequest) and any(_is_note(part) for part in message.parts):
            message = replace(message, parts=[part for part in message.parts if not _is_note(part)])
        if message.parts:
            cleaned.append(message)
    return cleaned


def _is_note(part: object) -> bool:
    if not isinstance(part, UserPromptPart) or isinstance(part.content, str):
        return False
    return any(isinstance(item, TextContent) and item.metadata == _NOTE for item in part.content)


def _count_common_end(left: list[ModelMessage], right: list[ModelMessage]) -> int:
    count = 0
    for a, b in zip(reversed(left), reversed(right), strict=False):
        if a is not b:
            break
        count += 1
    return count


def _find_summary(messages: Sequence[ModelMessage]) -> str:
    summary = ""
    for message in messages:
        for part in message.parts:
            if isinstance(message, ModelRequest) and isinstance(part, CompactionPart):
                summary = part.content or ""
    return summary
