"""What was said so far, in memory and in the session's file."""

from collections.abc import Sequence
from uuid import uuid4

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from skillshelf.agent.sessions import Session
from skillshelf.agent.sessions.history import stripped
from skillshelf.errors import SessionError


class Conversation:
    """The history without the system prompt: skill text is in it only where a skill was loaded or invoked."""

    def __init__(self, session: Session | None = None) -> None:
        """Without a session, what is said is kept in memory only."""
        self.session = session
        self.messages: list[ModelMessage] = list(session.messages) if session else []
        self.id = session.id if session else uuid4().hex
        self._unsaved = False

    def keep(self, messages: Sequence[ModelMessage]) -> str:
        """The history is now this, of which we have the beginning. What is wrong with saving, when that begins."""
        fresh = [stripped(message) for message in messages[len(self.messages) :]]
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

    def end_with(self, text: str) -> str:
        """The answer was cut short after this text, which the framework may not have put in its history."""
        last = self.messages[-1] if self.messages else None
        if not text or (isinstance(last, ModelResponse) and any(isinstance(part, TextPart) for part in last.parts)):
            return ""
        return self.keep([*self.messages, ModelResponse(parts=[TextPart(text)])])

    def compacted(self, messages: Sequence[ModelMessage]) -> None:
        """The history is now this, shorter one. Raises SessionError where that is in memory only."""
        self.messages = [stripped(message) for message in messages]
        if self.session:
            self.session.replace(self.messages)

    def close(self) -> None:
        """Let another process go on with it."""
        if self.session:
            self.session.close()


def asked(text: str) -> ModelRequest:
    """A user message as the history holds it."""
    return ModelRequest(parts=[UserPromptPart(text)])
