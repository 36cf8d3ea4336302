"""Try a model call again that failed for a passing reason: which, how often, and after how many seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from skillshelf_agent._explain import is_unreadable

_FEW = 2
"""Retries if the next try will probably fail as well: nothing listens there, or the answer has another format."""
_REASONS: dict[type[ModelAPIError], str] = {
    ModelRateLimitError: "The provider's rate limit was reached",
    ModelUnavailableError: "The model is not available at the moment",
    ModelServerError: "The provider failed",
    ModelTimeoutError: "The provider did not answer in time",
    ModelConnectionError: "The connection to the provider broke",
}
_PASSING_STATUS = (408, 425, 429)


class PlannedRetry(NamedTuple):
    reason: str
    seconds: float
    of: int
    """How many retries there are for this reason."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How patient the agent is with a provider that fails."""

    attempts: int = 4
    """Retries of one model call. With 0, retries and time limits are those of the provider's own library."""
    longest_wait: float = 60.0
    """Seconds. If the provider wants a longer pause, the turn ends instead, and the error says how long."""
    silence: float = 300.0
    """Seconds without a byte after which a call is given up."""
    wait: Callable[[float], Awaitable[Any]] = asyncio.sleep

    def make_settings(self, model: Model[Any]) -> ModelSettings | None:
        """Return the settings of a request: its time limit, and no silent retries in the provider's library."""
        if not self.attempts:
            return None
        while isinstance(model, WrapperModel):
            model = model.wrapped
        settings = ModelSettings()
        if "timeout" not in model.unsupported_settings:
            settings["timeout"] = self.silence
        if "max_retries" not in model.unsupported_settings:
            settings["max_retries"] = 0
        return settings

    def plan(self, error: BaseException, attempt: int) -> PlannedRetry | None:
        """Return the retry after this many failed attempts, or None if there is none."""
        reason = _find_reason(error)
        if not reason:
            return None
        is_refused = isinstance(error, ModelConnectionError) and error.phase == "connect"
        of = min(self.attempts, _FEW) if is_refused or is_unreadable(error) else self.attempts
        seconds = float(2 ** (attempt - 1))
        if isinstance(error, ModelAPIError) and error.retry_after:
            seconds = max(seconds, error.retry_after)
        if attempt > of or seconds > self.longest_wait:
            return None
        return PlannedRetry(reason, seconds, of)


def _find_reason(error: BaseException) -> str:
    """Return why a call failed, if the reason may pass, and otherwise nothing."""
    if is_unreadable(error):
        return "The provider sent something that cannot be read"
    if isinstance(error, ModelConnectionError) and error.phase == "connect":
        return "The provider could not be reached"
    status = f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""
    for kind, reason in _REASONS.items():
        if isinstance(error, kind):
            return f"{reason}{status}"
    if isinstance(error, ModelHTTPError) and (error.status_code in _PASSING_STATUS or error.status_code >= 500):
        return f"The provider answered with an error{status}"
    return ""
