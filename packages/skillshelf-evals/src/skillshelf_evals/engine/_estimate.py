"""Before the first call of a run: which models it asks, and about how much that will cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.usage import RequestUsage

from skillshelf.errors import EvalError, ModelUnavailableError
from skillshelf_agent import ChosenModel, resolve, usage_of
from skillshelf_agent.events import Usage
from skillshelf_evals._case import Case, Message
from skillshelf_evals._plan import Plan
from skillshelf_evals.engine._guard import HOW_TO_PRICE, MILLION, Price
from skillshelf_evals.engine._models import JUDGE_ROLE, Options, find_replayed_judge, find_replayed_model

# What a call of the agent holds besides the user's message: the system prompt, the listing and seven tools.
_TOKENS_OF_A_CALL = 2_500
_CALLS_OF_A_MESSAGE = 3
_OUTPUT_OF_A_CALL = 250
# What a judge is shown of a usual trial, with its task, and what one verdict takes.
_TOKENS_OF_A_JUDGEMENT = 3_000
_TOKENS_OF_A_VERDICT = 60
_CHARACTERS_OF_A_TOKEN = 4


def name_models(cases: Sequence[Case], options: Options, notify: Callable[[str], None]) -> str:
    """Return the name of the run's model after checking that every model works. Raises ModelUnavailableError."""
    live = [case for case in cases if case.script is None]
    if options.replay:
        recorded = {find_replayed_model(options, case.model).id for case in live}
        return ", ".join(sorted(recorded)) or "scripted"
    if not live:
        return "scripted"
    if options.are_workers_alone:  # the workers have the API keys
        return options.settings.model

    names = []
    for model in sorted({case.model for case in live}):
        resolved = resolve(options.settings_for(model))
        names.append(resolved.name)
        if resolved.note:
            notify(resolved.note)
    return ", ".join(names)


def name_judges(cases: Sequence[Case], options: Options) -> str:
    """Return the names of the judges for the report, after checking that they work. Raises EvalError."""
    if not options.replay:
        return ", ".join(judge.name for judge in _resolve_judges(cases, options))
    names = set()
    for model in _find_judge_names(cases):
        with suppress(EvalError):  # its trials will say that they are not recorded
            names.add(find_replayed_judge(options, model or JUDGE_ROLE).id)
    return ", ".join(sorted(names))


def _resolve_judges(cases: Iterable[Case], options: Options) -> list[ChosenModel]:
    """Return the models that judge. They run here, even if workers run the trials. Raises EvalError."""
    judges = []
    for model in _find_judge_names(cases):
        try:
            judges.append(resolve(options.settings_for_judge(model)))
        except ModelUnavailableError as error:
            problem = f"The model for `judge` checks cannot be used: {str(error).rstrip('.')}"
            raise EvalError(problem, "Choose another one with --judge MODEL") from error
    return judges


def _find_judge_names(cases: Iterable[Case]) -> list[str]:
    """Return the models that `judge` checks ask for by name; the empty name is the run's judge."""
    models = {check.arguments["model"] or "" for case in cases for check in case.checks if check.is_judge}
    return sorted(model for model in models if isinstance(model, str))  # a case in Python may give the model itself


class Estimate(NamedTuple):
    """What the trials of a run will take, about."""

    trials: int
    """Those that cost something."""
    usage: Usage


def estimate_plan(plan: Plan, options: Options) -> Estimate:
    """Estimate what a run will take. Raises EvalError if a limit of dollars cannot be kept."""
    cases = [trial.case for trial in plan.trials]
    answered = [case for case in cases if not options.is_free(case)]
    judged = [case for case in cases if _needs_paid_judge(case, options)]
    trials = sum(1 for case in cases if not options.is_free(case) or _needs_paid_judge(case, options))
    usage = Usage(0, 0, cost=0.0)
    for model in sorted({case.model for case in answered}):
        estimated = estimate_usage([case for case in answered if case.model == model])
        usage += _add_price(estimated, resolve(options.settings_for(model)), options)
    judges = _resolve_judges(judged, options)
    if judges:
        # Checks rarely name judges of their own, so all of them are taken to cost as much as the first.
        usage += _add_price(estimate_judging(judged), judges[0], options)
    return Estimate(trials, usage)


def _needs_paid_judge(case: Case, options: Options) -> bool:
    return not options.is_judging_free and any(check.is_judge for check in case.checks)


def _add_price(usage: Usage, model: ChosenModel, options: Options) -> Usage:
    """Return an estimate with its cost, if the price is known. Raises EvalError if a limit of dollars needs it."""
    price = _find_price(model.model) or options.limits.price
    if options.limits.max_cost and price is None:
        raise EvalError(f"--max-cost: the price of {model.name} is not known", HOW_TO_PRICE)
    return price.add_to(usage) if price else usage


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
        # Each call repeats what was said before it: half of it all, on average.
        tokens_in += calls * (_TOKENS_OF_A_CALL + text + calls * _OUTPUT_OF_A_CALL // 2)
        tokens_out += calls * _OUTPUT_OF_A_CALL
    return Usage(tokens_in, tokens_out)


def estimate_judging(cases: Sequence[Case]) -> Usage:
    """Estimate the tokens of judging one trial of each of these cases: one call for all sentences of a case."""
    tokens_in = 0
    tokens_out = 0
    for case in cases:
        sentences = sum(1 for check in case.checks if check.is_judge)
        if sentences:
            tokens_in += _TOKENS_OF_A_JUDGEMENT + sentences * _TOKENS_OF_A_VERDICT
            tokens_out += sentences * _TOKENS_OF_A_VERDICT
    return Usage(tokens_in, tokens_out)


def _find_price(model: Model[Any]) -> Price | None:
    """Return the price of a model for calls of usual size, or None if it is not known."""
    price_in = _find_cost(model, RequestUsage(input_tokens=MILLION // 1_000))
    price_out = _find_cost(model, RequestUsage(output_tokens=MILLION // 1_000))
    if price_in is None or price_out is None:
        return None
    return Price(price_in * 1_000, price_out * 1_000)


def _find_cost(model: Model[Any], usage: RequestUsage) -> float | None:
    response = ModelResponse(
        [], usage=usage, model_name=model.model_name, provider_name=model.system, provider_url=model.base_url
    )
    return usage_of(response).cost
