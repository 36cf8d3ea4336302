"""The model's window: what fills it, and how full it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    CompactionPart,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryFeedbackPart,
    TextContent,
    TextPart,
    ThinkingPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from skillshelf.adapters.pydantic_ai import Skills
from skillshelf.listing import Feed, Listing
from skillshelf.shelf.workspace_skills import WorkspaceSkills
from skillshelf.text.tokens import Counter, count_tool, estimate
from skillshelf_agent._attachments import estimate_files
from skillshelf_agent._conversation import Conversation
from skillshelf_agent._models import ChosenModel
from skillshelf_agent.sessions import loaded_skills

_FULL = 0.8
"""The part of the window that may be taken before compaction is due. The rest is for the answer."""
_AIM = 0.6
"""The part of the window that compaction leaves taken, so that it is not due again at once."""
_LEAST_COUNTED = 0.7
"""The part of our estimate that a provider's count must reach. Some servers count only what was not cached."""
_MAX_NAMED_PARTS = 3


@dataclass(frozen=True, slots=True)
class Room:
    """How many tokens the messages of a conversation may take."""

    limit: int
    """With more than these, the next call would leave the model too little for its answer."""
    aim: int
    """Compaction tries to get down to these."""


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of the model's window, in tokens. All are estimates except `counted`."""

    window: int
    system: int
    """The agent's own instructions and the project's."""
    tools: tuple[tuple[str, int], ...]
    """Each code skill's tools. The others are under the empty name."""
    listing: tuple[tuple[str, int], ...]
    """Each skill's share of the section. The section's own words are under the empty name."""
    loaded: tuple[tuple[str, int], ...]
    """Skills and references that were loaded or invoked: `pdf`, `pdf/forms.md`."""
    history: int
    """The rest of the conversation."""
    last_message: int = 0
    """The part of the history that is the user's last message."""
    counted: int = 0
    """The provider's own count at the last call, with its answer. 0 if it reports none, or too few to be true."""
    since: int = 0
    """The estimate of the messages that came after that call."""

    @property
    def fixed(self) -> int:
        """The tokens of every call, however short the conversation is."""
        return self.system + sum(tokens for _, tokens in (*self.tools, *self.listing))

    @property
    def estimated(self) -> int:
        """All parts together."""
        return self.fixed + sum(tokens for _, tokens in self.loaded) + self.history

    @property
    def used(self) -> int:
        """The provider's count and the estimate of what came since; without a count, the estimate of everything."""
        return self.counted + self.since if self.counted else self.estimated

    @property
    def is_full(self) -> bool:
        """True if the next call would leave too little of the window for the answer."""
        return self.window > 0 and max(self.used, self.estimated) >= _FULL * self.window

    @property
    def room(self) -> Room:
        """The tokens that the messages may take, by estimate. If the provider counts more, there is less room."""
        excess = 1.0
        if self.counted:
            excess = max(1.0, self.counted / max(1, self.estimated - self.since))
        window = self.window / excess
        return Room(int(_FULL * window) - self.fixed, int(_AIM * window) - self.fixed)


class Window:
    """Everything in a request beside the conversation, and what all of it takes together."""

    def __init__(
        self,
        instructions: str,
        skills: WorkspaceSkills,
        capability: Skills,
        *,
        list_tools: Callable[[], tuple[ToolDefinition, ...]],
        leave_out: Callable[[Iterable[ToolDefinition]], tuple[ToolDefinition, ...]],
    ) -> None:
        """`list_tools` returns all tools, and `leave_out` those of them that the model is offered."""
        self.instructions = instructions
        self._skills = skills
        self._feeds = capability.feeds
        self.list_tools = list_tools
        self._leave_out = leave_out
        self._measured_tools: tuple[tuple[ToolDefinition, ...], tuple[tuple[str, int], ...]] = ((), ())
        self._measured: tuple[Sequence[ModelMessage], tuple[Any, ...], Context] | None = None
        """The last measured conversation, what else its measure depends on, and the measure."""

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model gets now."""
        return self._leave_out(self.list_tools())

    @property
    def counter(self) -> Counter:
        return self._skills.shelf.counter

    def feed(self, conversation: Conversation) -> Feed:
        """Return what keeps the listing of a conversation up to date."""
        return self._feeds.get_or_make(conversation.id)

    def measure_saved(self, conversation: Conversation, model: ChosenModel) -> Context:
        """Measure the next call of a saved conversation, if something has changed since the last time."""
        messages = conversation.messages
        state = (len(messages), self.feed(conversation).listing(), model, self._skills.guidance)
        last = self._measured
        # A history grows at its end, or is replaced by another list: it need not be compared.
        if last is not None and last[0] is messages and last[1] == state:
            return last[2]
        context = self.measure(conversation, model, messages)
        self._measured = (messages, state, context)
        return context

    def measure(
        self, conversation: Conversation, model: ChosenModel, messages: Sequence[ModelMessage], *, by_skill: bool = True
    ) -> Context:
        """Measure the next model call with these messages, without the message that is not written yet.

        Without `by_skill`, the listing is measured as a whole: for 1,000 skills, their shares take longer than
        everything else.
        """
        count = self.counter
        loaded: list[tuple[str, int]] = []
        for text in loaded_skills(messages):
            name = f"{text.name}/{text.reference}" if text.reference else text.name
            loaded.append((name, count(text.text)))

        listing = self.feed(conversation).listing()
        context = Context(
            window=model.window,
            system=count(self.instructions) + count(self._skills.guidance),
            tools=self._measure_tools(),
            listing=tuple(_measure_listing(listing, count, by_skill)),
            loaded=tuple(loaded),
            history=max(0, count_messages(messages, count) - sum(tokens for _, tokens in loaded)),
            last_message=_count_last_message(messages, count),
        )
        counted, after = _find_count(messages)
        since = count_messages(messages[after:], count)
        estimated_text = context.estimated - since - estimate_files(messages[:after])  # a small image takes far fewer
        if counted < _LEAST_COUNTED * estimated_text:
            return context
        return replace(context, counted=counted, since=since)

    def _measure_tools(self) -> tuple[tuple[str, int], ...]:
        """Return the tokens of the tools. They are counted when they change, because every model call asks for them."""
        tools = self.tools
        if self._measured_tools[0] != tools:
            shelf = self._skills.shelf
            owners = {
                tool: name
                for name, skill in shelf.catalog.items()
                if skill.tools
                for tool in shelf.permissions_of(name)
            }
            shares: dict[str, int] = {}
            for tool in tools:
                owner = owners.get(tool.name, "")
                tokens = count_tool(tool.name, tool.description or "", tool.parameters_json_schema, self.counter)
                shares[owner] = shares.get(owner, 0) + tokens
            self._measured_tools = (tools, tuple(shares.items()))
        return self._measured_tools[1]


def count_messages(messages: Sequence[ModelMessage], counter: Counter = estimate) -> int:
    """Return the tokens of a conversation without its system prompt. Those of images and documents are estimates."""
    texts = (text for message in messages for part in message.parts for text in texts_of(part))
    return sum(map(counter, texts)) + estimate_files(messages)


def texts_of(part: ModelRequestPart | ModelResponsePart) -> Iterator[str]:
    """Yield what the model reads of a part. Files and the system prompt are left out."""
    if isinstance(part, UserPromptPart):
        for item in [part.content] if isinstance(part.content, str) else part.content:
            if isinstance(item, str):
                yield item
            elif isinstance(item, TextContent):
                yield item.content
    elif isinstance(part, BaseToolCallPart):
        yield part.tool_name
        yield part.args_as_json_str()
    elif isinstance(part, BaseToolReturnPart):
        yield part.model_response_str()
    elif isinstance(part, RetryFeedbackPart):
        yield part.model_response()
    elif isinstance(part, TextPart | ThinkingPart | CompactionPart):
        yield part.content or ""


def explain_full(context: Context, model: str) -> str:
    """Say that the window is too small, which parts fill it, and what the user can do about it."""
    listing = sum(tokens for _, tokens in context.listing)
    loaded = sum(tokens for _, tokens in context.loaded)
    remedies = ["/model chooses a model with a larger window"]
    if context.history > context.last_message:
        remedies.insert(0, "/new begins a new conversation")
    if listing + loaded > context.window // 10:
        remedies.append("/skills set NAME off leaves out a skill")
    if context.last_message > context.estimated // 2:
        remedies.insert(0, "send less at once, or name a file instead of its text")
    return (
        f"The conversation does not fit in the window of {model}: {max(context.used, context.estimated):,} of "
        f"{context.window:,} tokens ({describe_largest(context)}). You can: {'; '.join(remedies)}."
    )


def describe_largest(context: Context) -> str:
    """Name the parts that fill most of the window."""
    parts = {
        "your last message": context.last_message,
        "the rest of the conversation": max(0, context.history - context.last_message),
        "loaded skills": sum(tokens for _, tokens in context.loaded),
        "the listing of skills": sum(tokens for _, tokens in context.listing),
        "the tools": sum(tokens for _, tokens in context.tools),
        "the instructions": context.system,
    }
    largest = sorted(parts.items(), key=lambda part: -part[1])[:_MAX_NAMED_PARTS]
    return ", ".join(f"{name} {tokens:,}" for name, tokens in largest if tokens)


def _find_count(messages: Sequence[ModelMessage]) -> tuple[int, int]:
    """Return the provider's last count, and the index of the first message that it does not cover."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            return message.usage.input_tokens + message.usage.output_tokens, index + 1
    return 0, 0


def _count_last_message(messages: Sequence[ModelMessage], count: Counter) -> int:
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            prompts = [part for part in message.parts if isinstance(part, UserPromptPart)]
            if prompts and not loaded_skills([message]):
                return count_messages([ModelRequest(parts=prompts)], count)
            if prompts:
                return 0  # it is among the loaded skills
    return 0


def _measure_listing(listing: Listing, count: Counter, by_skill: bool) -> Iterator[tuple[str, int]]:
    rest = listing.tokens
    for entry in listing.entries if by_skill else ():
        tokens = count(entry.render())
        rest -= tokens
        yield entry.name, tokens
    yield "", max(0, rest)
