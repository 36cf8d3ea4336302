"""What fills the model's window, in tokens."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage

from skillshelf.agent._core import AgentCore
from skillshelf.agent.sessions import loaded_skills
from skillshelf.tokens import Counter


@dataclass(frozen=True, slots=True)
class Context:
    """The shares of the window. Estimates, but for `used`, which the provider counted at the last call."""

    window: int
    system: int
    tools: int
    listing: tuple[tuple[str, int], ...]
    """Each skill's share of the section; the section's own words are under the empty name."""
    loaded: tuple[tuple[str, int], ...]
    """Skills and references that were loaded or invoked: `pdf`, `pdf/forms.md`."""
    history: int
    """Everything else that was said."""
    used: int

    @property
    def total(self) -> int:
        shares = (tokens for _, tokens in (*self.listing, *self.loaded))
        return self.system + self.tools + sum(shares) + self.history


def measure(core: AgentCore) -> Context:
    """What the next model call will send, less the message that is not written yet."""
    count = core.shelf.counter
    loaded = tuple(
        ("/".join(filter(None, (one.name, one.reference))), count(one.text))
        for one in loaded_skills(core.conversation.messages)
    )
    said = sum(count(text) for message in core.conversation.messages for text in _texts(message))
    return Context(
        window=core.model.window,
        system=count(core.loop.instructions),
        tools=sum(
            count(json.dumps([one.name, one.description, one.parameters_json_schema])) for one in core.loop.tools
        ),
        listing=tuple(_listing(core, count)) if core.model.tools else (),
        loaded=loaded,
        history=max(0, said - sum(tokens for _, tokens in loaded)),
        used=core.used,
    )


def _listing(core: AgentCore, count: Counter) -> Iterator[tuple[str, int]]:
    listing = core.listing
    shares = [(entry.name, count(entry.render())) for entry in listing.entries]
    yield from shares
    yield "", max(0, listing.tokens - sum(tokens for _, tokens in shares))


def _texts(message: ModelMessage) -> Iterator[str]:
    for part in message.parts:
        for value in (getattr(part, "content", None), getattr(part, "args", None)):
            if value:
                yield value if isinstance(value, str) else str(value)
