"""The money of a run: prices, an estimate before the first call, and limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RequestUsage

from skillshelf.agent import usage_of
from skillshelf.agent.events import Usage
from skillshelf.errors import RunStoppedError
from skillshelf.evals._case import Case, Message
from skillshelf.evals._text import show_dollars
from skillshelf.evals.check import is_judge

if TYPE_CHECKING:
    from pydantic_ai.models import Model

_MILLION = 1_000_000
# What a call of the agent holds besides the user's message: the system prompt, the listing and seven tools.
_TOKENS_OF_A_CALL = 2_500
_CALLS_OF_A_MESSAGE = 3
_OUTPUT_OF_A_CALL = 250
# What a judge is shown of a usual trial, with its task, and what one verdict takes.
_TOKENS_OF_A_JUDGEMENT = 3_000
_TOKENS_OF_A_VERDICT = 60
_CHARACTERS_OF_A_TOKEN = 4


class Price(NamedTuple):
    """US dollars for a million tokens."""

    input: float
    output: float

    def add_to(self, usage: Usage) -> Usage:
        """Return a usage with its cost, if that is not known already."""
        if usage.cost is not None:
            return usage
        return replace(usage, cost=(usage.input * self.input + usage.output * self.output) / _MILLION)


@dataclass(frozen=True, slots=True)
class Limits:
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
                f"The run has cost {show_dollars(spent.cost)}, and --max-cost is {show_dollars(self.max_cost)}",
                "Give a higher --max-cost to continue",
            )
        return None


HOW_TO_PRICE = "Give --price IN/OUT, in dollars for a million tokens, or --max-tokens instead"


def estimate_usage(cases: Sequence[Case]) -> Usage:
    """Estimate the tokens of one trial of each of these cases, without their judges.

    It takes three calls for each message of the user, each with everything said before.
    """
    tokens_in = 0
    tokens_out = 0
    for case in cases:
        messages = [turn.text for turn in case.turns if isinstance(turn, Message)]
        calls = len(messages) * _CALLS_OF_A_MESSAGE
        text = sum(len(message) for message in messages) // _CHARACTERS_OF_A_TOKEN
        if case.script is None:
            # Each call repeats what was said before it: half of it all, on average.
            tokens_in += calls * (_TOKENS_OF_A_CALL + text + calls * _OUTPUT_OF_A_CALL // 2)
            tokens_out += calls * _OUTPUT_OF_A_CALL
    return Usage(tokens_in, tokens_out)


def estimate_judging(cases: Sequence[Case]) -> Usage:
    """Estimate the tokens of judging one trial of each of these cases: one call for all sentences of a case."""
    tokens_in = 0
    tokens_out = 0
    for case in cases:
        sentences = sum(1 for check in case.checks if is_judge(check))
        if sentences:
            tokens_in += _TOKENS_OF_A_JUDGEMENT + sentences * _TOKENS_OF_A_VERDICT
            tokens_out += sentences * _TOKENS_OF_A_VERDICT
    return Usage(tokens_in, tokens_out)


def find_price(model: Model[Any]) -> Price | None:
    """Return the price of a model for calls of usual size, or None if it is not known."""
    price_in = _find_cost(model, RequestUsage(input_tokens=_MILLION // 1_000))
    price_out = _find_cost(model, RequestUsage(output_tokens=_MILLION // 1_000))
    if price_in is None or price_out is None:
        return None
    return Price(price_in * 1_000, price_out * 1_000)


def _find_cost(model: Model[Any], usage: RequestUsage) -> float | None:
    response = ModelResponse(
        [], usage=usage, model_name=model.model_name, provider_name=model.system, provider_url=model.base_url
    )
    return usage_of(response).cost
