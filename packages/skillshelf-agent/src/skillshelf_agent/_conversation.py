"""A conversation with the model: its history, in memory and in the session's file, and what it has cost."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart

from skillshelf.errors import SessionError
from skillshelf_agent._attachments import Attachment
from skillshelf_agent._todos import Todo, find_todos
from skillshelf_agent.events import NOTHING_SPENT, Usage
from skillshelf_agent.sessions import Session, make_sendable, strip_system_prompt

_NO_ANSWER = "[No answer: it was interrupted.]"


class Spending:
    """Tokens and prices, by model."""

    def __init__(self) -> None:
        self.by_model: dict[str, Usage] = {}

    def add(self, model: str, usage: Usage) -> None:
        if usage != NOTHING_SPENT:
            self.by_model[model] = self.by_model.get(model, NOTHING_SPENT) + usage

    def add_all(self, other: Spending) -> None:
        for model, usage in other.by_model.items():
            self.add(model, usage)

    @property
    def total(self) -> Usage:
        return sum(self.by_model.values(), NOTHING_SPENT)


class Conversation:
    """The history without the system prompt. Skill texts are in it only if a skill was loaded or invoked."""

    def __init__(self, session: Session | None = None) -> None:
        """Without a session, the history is in memory only."""
        self.session = session
        self.messages: list[ModelMessage] = list(session.messages) if session else []
        self.id = session.id if session else uuid4().hex
        self.spending = Spending()
        """What the conversation has cost so far, side conversations included."""
        self.invoked: set[str] = set()
        """Skills that the user asked for by name. The model may load these even if they are for the user alone."""
        self.todos: list[Todo] = find_todos(session.transcript) if session else []
        """What the model is to do, as it said last."""
        self.refused_models: set[str] = set()
        """Skills about which the user knows that their model cannot be had."""
        self._attachments: list[Attachment] = []
        self._is_unsaved = False

    @property
    def spent(self) -> Usage:
        """The tokens and the price of the conversation so far, side conversations included."""
        return self.spending.total

    def attach(self, attachment: Attachment) -> None:
        """Keep something for the user's next message."""
        self._attachments.append(attachment)

    def take_attachments(self) -> list[Attachment]:
        """Return what waits for the user's next message, once."""
        waiting = self._attachments
        self._attachments = []
        return waiting

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

    def rewind(self, position: int) -> None:
        """Go on without the messages of the transcript from this index on. Raises SessionError if it isn't saved."""
        if self.session is None:
            raise SessionError("This conversation is not saved in files, so it cannot be rewound.")
        try:
            self.session.rewind(position)
        finally:  # it is rewound in memory, even if that could not be saved
            self.messages = make_sendable(self.session.messages)
            self.todos = find_todos(self.session.transcript)

    def close(self) -> None:
        """Release the session, so that another process can continue it."""
        if self.session:
            self.session.close()


def _has_text(response: ModelResponse) -> bool:
    return any(isinstance(part, TextPart) for part in response.parts)
