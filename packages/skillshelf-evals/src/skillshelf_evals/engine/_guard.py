"""What a run may still ask its models: calls are repeated, until the provider is down or the budget is spent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelConnectionError,
    ModelNotFoundError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelResponse

from skillshelf.errors import RunStoppedError
from skillshelf_agent import explain_error, usage_of
from skillshelf_agent.events import Usage
from skillshelf_evals._text import format_money

HOW_TO_PRICE = "Give --price IN/OUT, in dollars for a million tokens, or --max-tokens instead"
MILLION = 1_000_000
RETRY_PAUSES = (1.0, 3.0, 9.0, 27.0)
"""Seconds before each further attempt at a call that failed with a transient error."""
MAX_PAUSE = 90.0
MAX_PROBES = 3
"""Further attempts at a provider that does not answer. With those that its client makes they take about 20 seconds."""
MAX_FAILED_CALLS = 3
"""After this many failed calls without an answer in between, a provider that fails is taken to be down."""
UNREACHABLE_ERRORS = (ModelConnectionError, ModelRequestTimeout, ConnectionError, TimeoutError)
DOWN_ERRORS = (ModelServerError, ModelUnavailableError, *UNREACHABLE_ERRORS)
REFUSALS = (ModelAuthenticationError, ModelNotFoundError)
"""Errors that most probably concern every call: a wrong key, or a model that the provider does not have."""

Ask = Callable[[], Awaitable[ModelResponse]]


class Price(NamedTuple):
    """US dollars for a million tokens."""

    input: float
    output: float

    def add_to(self, usage: Usage) -> Usage:
        """Return a usage with its cost, if that is not known already."""
        if usage.cost is not None:
            return usage
        return replace(usage, cost=(usage.input * self.input + usage.output * self.output) / MILLION)


@dataclass(frozen=True, slots=True)
class SpendingLimits:
    """How much a run may spend. 0 is no limit."""

    max_cost: float = 0.0
    """US dollars."""
    max_tokens: int = 0
    price: Price | None = None
    """For models whose price is not known."""

    def add_cost(self, usage: Usage) -> Usage:
        return self.price.add_to(usage) if self.price else usage

    def find_excess(self, spent: Usage) -> RunStoppedError | None:
        """Return why a run that has spent this must stop, or None if it may go on."""
        tokens = spent.input + spent.output
        if self.max_tokens and tokens >= self.max_tokens:
            return RunStoppedError(
                f"The run has used {tokens:,} tokens, and --max-tokens is {self.max_tokens:,}",
                "Give a higher --max-tokens to continue",
            )
        if not self.max_cost:
            return None
        if spent.cost is None:
            return RunStoppedError("The price of a model is not known, so --max-cost cannot be kept", HOW_TO_PRICE)
        if spent.cost >= self.max_cost:
            return RunStoppedError(
                f"The run has cost {format_money(spent.cost)}, and --max-cost is {format_money(self.max_cost)}",
                "Give a higher --max-cost to continue",
            )
        return None


NO_LIMITS = SpendingLimits()


class CircuitBreaker:
    """Calls one provider for all trials of a process, and notices that it is down.

    A rate limit concerns one call, which waits and tries again. After any other transient failure, one call at a time
    probes whether the provider is back, and the other failed calls wait for its result.
    """

    def __init__(self, pauses: Sequence[float] = RETRY_PAUSES) -> None:
        self._pauses = pauses
        self._probing = asyncio.Lock()
        self._answers = 0
        self._failed_calls = 0
        """Calls that were given up since the last answer."""

    async def call(self, ask: Ask) -> ModelResponse:
        """Return the response to a call. Raises RunStoppedError if the provider is down, or the call's own error."""
        for pause in self._pauses:
            try:
                return self._note_answer(await ask())
            except ModelRateLimitError as error:
                await _sleep(pause, error)
            except DOWN_ERRORS as error:
                return await self._probe(ask, error)
            except ModelQuotaExceededError as error:
                raise _provider_down(error) from error
            except REFUSALS as error:
                self._failed_calls += 1
                if not self._answers or self._failed_calls >= MAX_FAILED_CALLS:
                    raise RunStoppedError(explain_error(error).message.rstrip(".")) from error
                raise  # some providers refuse single requests like this
        return self._note_answer(await ask())

    def _note_answer(self, response: ModelResponse) -> ModelResponse:
        self._answers += 1
        self._failed_calls = 0
        return response

    async def _probe(self, ask: Ask, error: Exception) -> ModelResponse:
        answers = self._answers
        async with self._probing:
            # If another call was given up meanwhile, and none was answered, this one would fail too.
            is_known_to_fail = self._failed_calls and self._answers == answers
            for pause in () if is_known_to_fail else self._pauses[:MAX_PROBES]:
                await _sleep(pause, error)
                try:
                    return self._note_answer(await ask())
                except (ModelRateLimitError, *DOWN_ERRORS) as repeated:
                    error = repeated

            if self._answers != answers:
                raise error  # the provider answers others, so it is this call that fails
            self._failed_calls += 1
            if isinstance(error, UNREACHABLE_ERRORS) or self._failed_calls >= MAX_FAILED_CALLS:
                raise _provider_down(error) from error
            raise error


def _provider_down(error: Exception) -> RunStoppedError:
    reason = explain_error(error).message.rstrip(".")
    return RunStoppedError(f"The provider is down: {reason}")


async def _sleep(pause: float, error: Exception) -> None:
    requested = getattr(error, "retry_after", None) or 0.0
    # Trials that were refused together must not come back together.
    uneven = pause * random.uniform(0.75, 1.25)
    await asyncio.sleep(min(MAX_PAUSE, max(uneven, requested)))


class RunGuard:
    """Makes the paid calls of one run in one process, until something stops the run."""

    def __init__(self, pauses: Sequence[float] = RETRY_PAUSES, limits: SpendingLimits = NO_LIMITS) -> None:
        self.stopped: RunStoppedError | None = None
        """Why the run must not make another paid call."""
        self.spent = Usage(0, 0, cost=0.0)
        """The usage of the run, with that of an earlier start."""
        self._pauses = pauses
        self._limits = limits
        self._breakers: dict[str, CircuitBreaker] = {}

    async def call(self, model: str, ask: Ask) -> ModelResponse:
        """Make a paid call of a model. Raises RunStoppedError if the run must stop, or the call's own error."""
        if self.stopped:
            raise self.stopped
        breaker = self._breakers.setdefault(model, CircuitBreaker(self._pauses))
        try:
            response = await breaker.call(ask)
        except RunStoppedError as error:
            self.stopped = error
            raise
        self.add_usage(usage_of(response))
        return response

    def add_usage(self, usage: Usage) -> None:
        """Count what was spent. A run over its budget makes no further call."""
        self.spent += self._limits.add_cost(usage)
        self.stopped = self.stopped or self._limits.find_excess(self.spent)
