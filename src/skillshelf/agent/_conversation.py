"""What was said so far, in memory and in the session's file."""

from collections.abc import Sequence
from uuid import uuid4

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from skillshelf.agent.sessions import Session, make_sendable, strip_system_prompt
from skillshelf.errors import SessionError

_NO_ANSWER = "[No answer: it was interrupted.]"


class Conversation:
    """The history without the system prompt: skill text is in it only where a skill was loaded or invoked."""

    def __init__(self, session: Session | None = None) -> None:
        """Without a session, what is said is kept in memory only."""
        self.session = session
        self.messages: list[ModelMessage] = list(session.messages) if session else []
        self.id = session.id if session else uuid4().hex
        self._unsaved = False

    def add(self, messages: Sequence[ModelMessage]) -> str:
        """What was said goes on with these. Returns what is wrong with saving, when that begins."""
        fresh = [strip_system_prompt(message) for message in messages]
        self.messages += fresh
        if not self.session or not fresh:
            return ""
        was_unsaved, self._unsaved = self._unsaved, False
        try:
            self.session.append(fresh)
        except SessionError as error:
            self._unsaved = True
            return "" if was_unsaved else str(error)
        return ""

    def ask(self, text: str) -> str:
        """The person said this, and it did not reach the model."""
        return self.add([ModelRequest(parts=[UserPromptPart(text)])])

    def settle(self, text: str = "") -> str:
        """Put in order what was cut short: each call has a result, and the last word is the model's.

        `text`: what it had said. pydantic-ai merges and mends a history that is not in order when a run begins, and
        then ours would no longer be the beginning of its own.
        """
        self.messages = make_sendable(self.messages)
        last = self.messages[-1] if self.messages else None
        if last is None or (isinstance(last, ModelResponse) and (not text or _has_text(last))):
            return ""
        return self.add([ModelResponse(parts=[TextPart(text or _NO_ANSWER)])])

    def compacted(self, messages: Sequence[ModelMessage]) -> None:
        """The history is now this, shorter one. Raises SessionError where that is in memory only."""
        self.messages = [strip_system_prompt(message) for message in messages]
        if self.session:
            self.session.replace(self.messages)

    def close(self) -> None:
        """Let another process go on with it."""
        if self.session:
            self.session.close()


def _has_text(response: ModelResponse) -> bool:
    return any(isinstance(part, TextPart) for part in response.parts)
