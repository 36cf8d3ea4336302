"""The money of a run: an estimate before it begins, and limits at which it stops and can be resumed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from in_process import run
from processes import Child, count_trials, expect_each_call_once, model_options, suite
from provider import Provider
from skillshelf.errors import RunStoppedError
from skillshelf_agent import Settings
from skillshelf_agent.events import Usage
from skillshelf_evals import Case, Message, check, make_plan
from skillshelf_evals.engine import Options, Price, SpendingLimits
from skillshelf_evals.engine._estimate import estimate_judging, estimate_usage
from skillshelf_evals.report import read_history, read_run

CALLS = 3
TOKENS_OF_A_CALL = 15
"""Of the provider on loopback: 10 of input and 5 of output."""


def live_cases(count: int) -> list[Case]:
    checks = (check.response_contains("well"),)
    return [Case(f"case {number}", (Message(f"prompt {number}"),), checks) for number in range(count)]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (SpendingLimits(max_tokens=300), "used 300 tokens, and --max-tokens is 300"),
        (SpendingLimits(max_cost=0.4, price=Price(1_000, 2_000)), r"cost \$0.40, and --max-cost is \$0.40"),
    ],
    ids=["tokens", "dollars"],
)
def test_a_run_stops_at_its_limit_and_is_resumed_with_a_higher_one(
    tmp_path: Path, limits: SpendingLimits, reason: str
) -> None:
    """A call in progress is the last one, and no answer is paid for twice."""
    with Provider(CALLS) as provider:
        settings = Settings(model="tiny", base_url=provider.url)
        with pytest.raises(RunStoppedError, match=reason):
            run(live_cases(20), tmp_path, Options(settings, limits=limits, parallel=1))
        assert provider.asked == 20

        with pytest.raises(RunStoppedError, match="Give a higher --max-"):
            run(live_cases(20), tmp_path, Options(settings, limits=limits, parallel=1))
        assert provider.asked == 20

        outcomes = run(live_cases(20), tmp_path, Options(settings, limits=SpendingLimits(price=limits.price)))
        assert dict(provider.answered) == expect_each_call_once(20, CALLS)
    assert {outcome.status for outcome in outcomes} == {"passed"}
    expected = CALLS * (10 * 1_000 + 5 * 2_000) / 1e6 if limits.price else None
    assert outcomes[0].usage.cost == expected


def test_a_run_that_reaches_its_limit_with_its_last_call_is_complete(tmp_path: Path) -> None:
    with Provider(CALLS) as provider:
        limits = SpendingLimits(max_tokens=CALLS * TOKENS_OF_A_CALL)
        [outcome] = run(live_cases(1), tmp_path, Options(Settings(model="tiny", base_url=provider.url), limits=limits))
    assert outcome.status == "passed"


def test_a_price_is_only_used_if_the_cost_is_not_known() -> None:
    price = Price(1.0, 4.0)
    assert price.add_to(Usage(1_000_000, 500_000)) == Usage(1_000_000, 500_000, cost=3.0)
    assert price.add_to(Usage(1_000_000, 500_000, cost=0.5)).cost == 0.5


def test_a_limit_in_dollars_needs_a_price_before_anything_is_paid(tmp_path: Path) -> None:
    suite(tmp_path, 2)
    with Provider(CALLS) as provider:
        child = Child("pdf", *model_options(provider), "--max-cost", "1", cwd=tmp_path)
        assert child.end() == 2, child.said()
        assert provider.asked == 0
    assert "--max-cost: the price of openai-chat:tiny is not known. Give --price IN/OUT" in child.said()


def test_the_command_line_says_what_a_run_may_cost_and_how_to_continue_it(tmp_path: Path) -> None:
    suite(tmp_path, 4)
    with Provider(CALLS) as provider:
        words = ["pdf", *model_options(provider), "--price", "1000/2000", "--report", "report"]
        child = Child(*words, "--max-cost", "$0.1", "--parallel", "1", cwd=tmp_path)
        assert child.end() == 3, child.said()
        assert "4 live trials, estimated at about " in child.said()
        assert "--max-cost is $0.10. Give a higher --max-cost to continue." in child.said()
        assert "Stopped after 1 of 4 trials, 1 passed, $0.06 for these." in child.said()
        assert "Continue with `skillshelf eval --resume report --trust-workspace`" in child.said()

        child = Child("--resume", "report", "--max-cost", "5", cwd=tmp_path)
        assert child.end() == 0, child.said()
        assert dict(provider.answered) == expect_each_call_once(4, CALLS)
    assert len(count_trials(tmp_path / "report")) == 4


def test_scripted_trials_cost_nothing_whatever_the_price(tmp_path: Path) -> None:
    """Nor are they in the cost of the run, which is that of all arms."""
    suite(tmp_path, 1)
    scripted = {"name": "s", "prompt": "p", "script": ["said"], "checks": [{"response_contains": "said"}]}
    (tmp_path / "pdf" / "evals" / "scripted.yaml").write_text(json.dumps([scripted]))
    with Provider(CALLS) as provider:
        words = ["pdf", *model_options(provider), "--price", "1000/2000", "--report", "report", "--baseline", "none"]
        child = Child(*words, cwd=tmp_path)
        assert child.end() == 0, child.said()
    costs = {outcome.case: outcome.usage.cost for outcome in read_run(tmp_path / "report").outcomes}
    assert [cost for case, cost in costs.items() if case == "pdf/s"] == [None]
    assert "; 90 tokens, $0.12 with the baseline; 1 of 1 scripted case passed" in child.said()
    [record] = read_history(str(tmp_path / "report")).records
    assert (round(record.summary.total.spent.cost, 6), record.summary.total.spent.unpriced) == (0.12, 0)


def test_an_estimate_grows_with_messages_and_judges() -> None:
    one = estimate_usage([Case("a", (Message("hi"),))])
    two = estimate_usage([Case("a", (Message("hi"), Message("and then?")))])
    judged = Case("a", (Message("hi"),), (check.judge("it is well"),))
    twice = Case("a", (Message("hi"),), (check.judge("it is well"), check.judge("it is short")))
    assert estimate_judging([Case("a", (Message("hi"),))]) == Usage(0, 0)
    assert 0 < estimate_judging([judged]).input < estimate_judging([twice]).input < 2 * estimate_judging([judged]).input
    assert one.input * 2 < two.input
    assert one.cost is None


def test_queries_that_check_their_outcome_too_are_made_without_the_skill(tmp_path: Path) -> None:
    skill = suite(tmp_path, 1).parent
    loaded = check.skill_loaded("pdf")
    query = Case("a", (Message("x"),), (loaded,), skill="pdf", skills=(str(skill),), should_trigger=True)
    both = replace(query, name="b", checks=(loaded, check.response_contains("done")))
    plan = make_plan([query, both], 1, "none")
    assert [(trial.case.name, trial.arm) for trial in plan.trials] == [("a", "with"), ("b", "with"), ("b", "without")]


def test_queries_are_not_made_without_the_skill_they_are_about(tmp_path: Path) -> None:
    """A skill that is not there cannot trigger, so there is nothing to compare."""
    skill = suite(tmp_path, 1).parent
    task = Case("task", (Message("fill it in"),), skill="pdf", skills=(str(skill),))
    query = Case("query", (Message("fill it in"),), skill="pdf", skills=(str(skill),), should_trigger=True)
    plan = make_plan([task, query], 2, "none")
    assert [(trial.case.name, trial.arm) for trial in plan.trials] == [
        ("task", "with"),
        ("task", "with"),
        ("task", "without"),
        ("task", "without"),
        ("query", "with"),
        ("query", "with"),
    ]
    assert plan.new == ()
