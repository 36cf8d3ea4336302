"""Every claim of docs/reference/eval-statistics.md about how often something happens, by simulation.

The simulations are seeded, so a test passes or fails for good. A share of 100 to 400 runs has a standard error of one
to two points, which the limits leave room for.
"""

import random
from collections.abc import Callable
from itertools import pairwise
from statistics import fmean

import pytest

from power import PAGE, Design, make_table, measure_power, simulate_pairs
from skillshelf_evals.stats import Pair, TriggerTrial, clustered_rate, difference, holm, score_triggers, settle
from skillshelf_evals.stats._exact import sign_flip

Rates = tuple[float, float]
"""The true pass rates of a case, without and with the skill."""
Population = Callable[[random.Random], Rates]


def _passes(rate: float, trials: int, draw: random.Random) -> int:
    return sum(draw.random() < rate for _ in range(trials))


def test_the_table_of_power_is_the_one_in_the_reference() -> None:
    assert make_table() in PAGE.read_text("utf-8")


def test_80_to_100_percent_is_found_as_surely_as_80_to_99() -> None:
    for design in (Design(8, 5), Design(10, 5), Design(10, 10)):
        assert measure_power(0.8, 1.0, design) >= measure_power(0.8, 0.99, design) - 0.03
    assert measure_power(0.8, 1.0, Design(10, 5)) > 0.75
    assert measure_power(0.8, 1.0, Design(10, 10)) > 0.99


@pytest.mark.parametrize("design", [Design(6, 1), Design(6, 5), Design(10, 5), Design(20, 1)])
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.95])
def test_a_skill_that_changes_nothing_gets_a_verdict_in_at_most_5_percent_of_runs(rate: float, design: Design) -> None:
    assert measure_power(rate, rate, design) <= 0.065


def test_twenty_skills_that_change_nothing_get_a_verdict_in_at_most_5_percent_of_tables() -> None:
    """Without the correction, it would be half of them."""
    draw = random.Random(20)
    tables = []
    for _ in range(200):
        runs = [simulate_pairs(0.7, 0.7, Design(20, 5), draw) for _ in range(20)]
        tables.append([sign_flip([pair.difference for pair in pairs])[0] for pairs in runs])
    assert fmean(min(p_values) <= 0.05 for p_values in tables) > 0.4
    assert fmean(min(holm(p_values)) <= 0.05 for p_values in tables) <= 0.065


def test_a_history_of_runs_without_a_change_has_a_verdict_in_at_most_5_percent_of_cases() -> None:
    """Each of twelve runs is compared with the one before, so every run is part of two comparisons."""
    draw = random.Random(12)
    histories = []
    for _ in range(200):
        runs = [[(_passes(0.8, 5, draw), 5) for _ in range(10)] for _ in range(12)]
        pairs = [
            [Pair("", old, new).difference for old, new in zip(before, after, strict=True)]
            for before, after in pairwise(runs)
        ]
        histories.append([sign_flip(differences)[0] for differences in pairs])
    assert fmean(min(p_values) <= 0.05 for p_values in histories) > 0.2
    assert fmean(min(holm(p_values)) <= 0.05 for p_values in histories) <= 0.065


def _same_everywhere(base: float, new: float) -> Population:
    return lambda draw: (base, new)


def _differing(draw: random.Random) -> Rates:
    base = 0.6 * draw.random()
    return base, base + 0.4


def _carried_by(share: float) -> Population:
    """Return cases of which some never pass without the skill, while the others do not need it."""
    return lambda draw: (0.0 if draw.random() < share else 0.95, 0.95)


@pytest.mark.parametrize("design", [Design(8, 5), Design(10, 1), Design(10, 5), Design(10, 10)])
@pytest.mark.parametrize(
    ("population", "gain"),
    [(_same_everywhere(0.8, 1.0), 0.2), (_same_everywhere(0.95, 0.99), 0.04), (_differing, 0.4)],
    ids=["80 to 100%", "95 to 99%", "cases that differ"],
)
def test_the_interval_of_a_gain_holds_the_truth(population: Population, gain: float, design: Design) -> None:
    assert _coverage_of_gain(population, gain, design) >= 0.93


@pytest.mark.parametrize(
    ("share", "design", "documented"),
    [(0.1, Design(10, 5), 0.88), (0.2, Design(10, 5), 0.88)],
)
def test_the_interval_of_a_gain_that_few_cases_carry_is_as_unsure_as_documented(
    share: float, design: Design, documented: float
) -> None:
    """The test knows nothing of a case that never shows a difference, so the interval is too narrow."""
    assert _coverage_of_gain(_carried_by(share), 0.95 * share, design) == pytest.approx(documented, abs=0.06)
    assert f"{documented:.0%}" in PAGE.read_text("utf-8")


def _coverage_of_gain(population: Population, gain: float, design: Design, runs: int = 100) -> float:
    draw = random.Random(f"{gain} {design}")
    held = []
    for _ in range(runs):
        pairs = []
        for _ in range(design.cases):
            base, new = population(draw)
            passes = [(_passes(rate, design.repeats, draw), design.repeats) for rate in (base, new)]
            pairs.append(Pair("", passes[0], passes[1]))
        found = difference(pairs)
        assert found
        held.append(found.interval.low - 1e-9 <= gain <= found.interval.high + 1e-9)
    return fmean(held)


_POPULATIONS: dict[str, tuple[Callable[[random.Random], float], float]] = {
    "all alike": (lambda draw: 0.9, 0.9),
    "all different": (lambda draw: draw.random(), 0.5),
    "all or nothing": (lambda draw: float(draw.random() < 0.9), 0.9),
    "one in ten never passes": (lambda draw: 0.0 if draw.random() < 0.1 else 0.98, 0.882),
}


@pytest.mark.parametrize("design", [Design(5, 5), Design(10, 1), Design(10, 10), Design(20, 5)])
@pytest.mark.parametrize("name", _POPULATIONS)
def test_the_interval_of_a_rate_holds_the_truth_whatever_the_cases_are(name: str, design: Design) -> None:
    rate, truth = _POPULATIONS[name]
    draw = random.Random(f"{name} {design}")
    held = []
    above = []
    for _ in range(150):
        cases = [(_passes(rate(draw), design.repeats, draw), design.repeats) for _ in range(design.cases)]
        interval = clustered_rate(cases).interval
        assert interval
        held.append(truth in interval)
        above.append(interval.low > truth)
    assert fmean(held) >= 0.94
    assert fmean(above) <= 0.04, "a gate at the true rate is passed in at most 2.5% of runs"


@pytest.mark.parametrize("design", [Design(6, 1), Design(10, 3), Design(20, 3)])
def test_the_intervals_of_triggers_hold_the_truth(design: Design) -> None:
    """Queries differ: half of each kind are easy. Of the loads that are tried for, 80 and 15% happen on average."""
    draw = random.Random(f"triggers {design}")
    recalls: list[bool] = []
    precisions: list[bool] = []
    f1s: list[bool] = []
    precision = 0.8 / (0.8 + 0.15)
    f1 = 2 * 0.8 * precision / (0.8 + precision)
    for _ in range(80):
        trials = []
        for should, rates in ((True, (0.6, 1.0)), (False, (0.3, 0.0))):
            for number in range(design.cases):
                rate = draw.choice(rates)
                for _ in range(design.repeats):
                    loaded = frozenset({"pdf"} if draw.random() < rate else ())
                    trials.append(TriggerTrial(f"{should} {number}", "pdf", should, loaded))
        score = score_triggers("pdf", trials)
        recalls.append(score.recall.interval is not None and 0.8 in score.recall.interval)
        precisions.append(score.precision.interval is not None and precision in score.precision.interval)
        f1s.append(score.f1_interval is not None and f1 in score.f1_interval)
    assert fmean(recalls) >= 0.94
    assert fmean(precisions) >= 0.92
    assert fmean(f1s) >= 0.94


@pytest.mark.parametrize(("fail_under", "cases"), [(0.7, 11), (0.8, 17), (0.9, 36)])
def test_so_many_cases_that_all_pass_reach_a_gate(fail_under: float, cases: int) -> None:
    """One fewer does not, however often they are repeated."""
    for repeats in (1, 5):
        enough = clustered_rate([(repeats, repeats)] * cases).interval
        too_few = clustered_rate([(repeats, repeats)] * (cases - 1)).interval
        assert enough
        assert too_few
        assert too_few.low < fail_under <= enough.low


def test_five_cases_can_never_settle_a_gain_and_six_can() -> None:
    for cases, verdict in ((5, "open"), (6, "better")):
        found = difference([Pair(str(number), (0, 50), (50, 50)) for number in range(cases)])
        assert found
        assert found.verdict == verdict


@pytest.mark.parametrize(
    ("base", "new", "design"),
    [
        (0.5, 0.7, Design(8, 5)),
        (0.8, 1.0, Design(6, 5)),
        (0.8, 1.0, Design(8, 3)),
        (0.8, 0.95, Design(10, 5)),
        (0.5, 0.8, Design(10, 1)),
    ],
)
def test_the_runs_that_are_said_to_settle_a_difference_do(base: float, new: float, design: Design) -> None:
    """Of runs that measured the true difference and left it open: their advice settles it in about four of five."""
    draw = random.Random(f"{base} {new} {design}")
    by_repeats: list[bool] = []
    by_cases: list[bool] = []
    for _ in range(600):
        pairs = simulate_pairs(base, new, design, draw)
        measured = float(sum(pair.difference for pair in pairs)) / design.cases
        advice = settle(pairs)
        if advice is None or abs(measured - (new - base)) > 0.15 * (new - base):
            continue
        if advice.repeats:
            by_repeats.append(_is_settled(base, new, Design(design.cases, advice.repeats), draw))
        if advice.cases:
            by_cases.append(_is_settled(base, new, Design(advice.cases, design.repeats), draw))
        if len(by_cases) >= 40:
            break

    assert len(by_cases) >= 30
    assert fmean(by_cases) >= 0.65
    if design.repeats > 1:
        assert len(by_repeats) >= 10
        assert fmean(by_repeats) >= 0.65


def _is_settled(base: float, new: float, design: Design, draw: random.Random) -> bool:
    pairs = simulate_pairs(base, new, design, draw)
    return sign_flip([pair.difference for pair in pairs])[0] <= 0.05
