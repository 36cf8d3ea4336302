"""The numbers of evals, against enumeration: what an interval or a test promises must hold."""

import json
import random
import subprocess
import sys
from fractions import Fraction
from itertools import combinations, product
from math import comb, factorial
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillshelf import Shelf
from skillshelf_agent.events import Usage
from skillshelf_evals._coverage import Section, SkillContent, measure_coverage, read_skill_contents
from skillshelf_evals.stats import (
    Counts,
    Difference,
    Pair,
    Queries,
    Spending,
    TriggerTrial,
    clustered_rate,
    correct_together,
    count_confusion,
    difference,
    exact_rate,
    fisher,
    flaky_share,
    holm,
    is_right,
    mean,
    score_triggers,
    settle,
    sum_spending,
)
from skillshelf_evals.stats._exact import mcnemar, sign_flip
from skillshelf_evals.stats._rates import student_quantile

counts = st.integers(1, 6).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
pairs = st.lists(st.builds(Pair, st.just("c"), counts, counts), min_size=1, max_size=9)
single = st.sampled_from([(0, 1), (1, 1)])


def test_the_rate_of_a_case_has_the_published_interval() -> None:
    """8 of 10, as Clopper and Pearson have it."""
    rate = exact_rate(8, 10)
    assert rate.value == 0.8
    assert rate.interval
    assert (round(rate.interval.low, 4), round(rate.interval.high, 4)) == (0.4439, 0.9748)


@pytest.mark.parametrize("number", [1, 2, 5, 10, 30])
def test_the_interval_of_a_case_never_promises_too_much(number: int) -> None:
    """By enumeration, it holds the truth in at least 95% of runs, whatever the truth is."""
    intervals = [exact_rate(passed, number).interval for passed in range(number + 1)]
    for at in range(1, 100):
        truth = at / 100
        chances = (
            comb(number, passed) * truth**passed * (1 - truth) ** (number - passed)
            for passed, interval in enumerate(intervals)
            if interval and truth in interval
        )
        assert sum(chances) >= 0.95


@settings(deadline=None)
@given(st.integers(1, 60).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_an_end_is_where_chance_alone_would_give_as_much_in_a_fortieth_of_runs(given: tuple[int, int]) -> None:
    """Clopper and Pearson's definition, by binomial sums: 2.5% on each side."""
    passed, total = given
    interval = exact_rate(passed, total).interval
    assert interval
    if passed:
        assert _chance_of_at_least(passed, total, interval.low) == pytest.approx(0.025, abs=1e-6)
    if passed < total:
        assert _chance_of_at_least(total - passed, total, 1 - interval.high) == pytest.approx(0.025, abs=1e-6)


def _chance_of_at_least(passed: int, total: int, rate: float) -> float:
    return sum(comb(total, at) * rate**at * (1 - rate) ** (total - at) for at in range(passed, total + 1))


@settings(deadline=None)
@given(st.integers(1, 100).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_swapping_passes_and_misses_mirrors_the_interval(given: tuple[int, int]) -> None:
    passed, total = given
    one, other = exact_rate(passed, total).interval, exact_rate(total - passed, total).interval
    assert one
    assert other
    assert passed / total in one
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low))
    assert 0 <= one.low <= one.high <= 1


def test_no_trials_give_no_rate() -> None:
    """Errors never count as trials."""
    assert exact_rate(0, 0).value is None
    assert clustered_rate([]).interval is None
    assert Counts(1, 2, 7).trials == 3


@given(st.lists(single, min_size=1, max_size=40))
def test_with_one_trial_of_each_case_the_rate_over_cases_is_that_of_independent_trials(
    cases: list[tuple[int, int]],
) -> None:
    found = clustered_rate(cases)
    plain = exact_rate(sum(passed for passed, _ in cases), len(cases))
    assert (found.passed, found.total) == (plain.passed, plain.total)
    assert found.interval
    assert plain.interval
    assert (found.interval.low, found.interval.high) == pytest.approx((plain.interval.low, plain.interval.high))


@given(st.lists(st.booleans(), min_size=2, max_size=30), st.integers(2, 10))
def test_repeats_that_all_agree_count_as_one_trial(cases: list[bool], repeats: int) -> None:
    found = clustered_rate([(repeats * passed, repeats) for passed in cases]).interval
    plain = exact_rate(sum(cases), len(cases)).interval
    assert found
    assert plain
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


@settings(max_examples=60, deadline=None)
@given(st.lists(counts, min_size=1, max_size=12), st.data())
def test_one_more_pass_never_lowers_the_interval_of_a_rate(cases: list[tuple[int, int]], data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(cases) - 1))
    passed, total = cases[position]
    if passed == total:
        return
    more = [*cases[:position], (passed + 1, total), *cases[position + 1 :]]
    before, after = clustered_rate(cases), clustered_rate(more)
    assert before.interval
    assert after.interval
    assert before.value is not None
    assert before.value in before.interval
    assert after.interval.low >= before.interval.low - 1e-7
    assert after.interval.high >= before.interval.high - 1e-7


def test_the_interval_at_100_percent_is_as_narrow_as_just_below_it() -> None:
    """Ten cases of ten repeats: a miss more or less changes little."""
    all_passed = clustered_rate([(10, 10)] * 10).interval
    one_missed = clustered_rate([(10, 10)] * 9 + [(9, 10)]).interval
    assert all_passed
    assert one_missed
    assert (all_passed.low, one_missed.low) == pytest.approx((0.6915, 0.6843), abs=1e-4)


def test_the_random_weights_of_an_interval_are_integrated_and_not_drawn() -> None:
    """Drawn as Gaffke describes them, they give the same ends."""
    cases = [(0, 5), (2, 5), (4, 5), (5, 5), (5, 5), (1, 2)]
    draw = random.Random(5)
    lows, highs = [], []
    for _ in range(20_000):
        weights = [draw.expovariate(1) for _ in cases]
        added = draw.expovariate(1) * fmean(total for _, total in cases)
        passed = sum(weight * case_passed for weight, (case_passed, _) in zip(weights, cases, strict=True))
        total = sum(weight * case_total for weight, (_, case_total) in zip(weights, cases, strict=True))
        lows.append(passed / (total + added))
        highs.append((passed + added) / (total + added))
    interval = clustered_rate(cases).interval
    assert interval
    assert sorted(lows)[500] == pytest.approx(interval.low, abs=0.01)
    assert sorted(highs)[-500] == pytest.approx(interval.high, abs=0.01)


def test_flaky_cases_pass_sometimes_and_miss_sometimes() -> None:
    """Single trials cannot show it, so they are not counted."""
    assert flaky_share([(0, 1), (1, 1)]) is None
    assert flaky_share([(0, 3), (1, 3), (3, 3), (2, 2), (1, 1)]) == exact_rate(1, 4)


@pytest.mark.parametrize("number", range(13))
def test_mcnemar_is_the_tail_of_a_fair_coin(number: int) -> None:
    """Checked by enumeration of every way the coins can fall."""
    falls = [sum(fall) for fall in product((0, 1), repeat=number)]
    for only_new in range(number + 1):
        extreme = sum(abs(2 * heads - number) >= abs(2 * only_new - number) for heads in falls)
        assert mcnemar(number - only_new, only_new) == pytest.approx(extreme / 2**number)


@given(pairs)
def test_the_permutation_test_is_exact(given: list[Pair]) -> None:
    """Checked by enumeration of every choice of signs."""
    found = [one.difference for one in given]
    seen = float(abs(sum(found)))
    flips = [
        float(abs(sum(sign * one for sign, one in zip(signs, found, strict=True)))) for signs in _signs(len(found))
    ]
    assert sign_flip(found)[0] == pytest.approx(sum(one >= seen for one in flips) / len(flips))


def _signs(number: int) -> list[tuple[int, ...]]:
    return list(product((1, -1), repeat=number))


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=60))
def test_with_one_trial_each_the_permutation_test_is_mcnemars(differences: list[int]) -> None:
    p, method = sign_flip([Fraction(one) for one in differences])
    assert method == "exact permutation test on cases"
    assert p == pytest.approx(mcnemar(differences.count(-1), differences.count(1)))


def test_draws_come_close_to_the_exact_test() -> None:
    """Runs that are too large to enumerate use the same random draws each time."""
    found = [Fraction(at % 7 - 2, 7) for at in range(20)]
    exact, _ = sign_flip(found)
    too_fine = [*found, Fraction(1, 70_000)]
    drawn, method = sign_flip(too_fine)
    assert drawn == pytest.approx(exact, abs=0.02)
    assert method.endswith("draws")
    assert sign_flip(too_fine)[0] == drawn


@given(pairs)
def test_swapping_the_arms_changes_the_sign_and_nothing_else(given: list[Pair]) -> None:
    one = difference(given)
    other = difference([Pair(pair.case, pair.new, pair.base) for pair in given])
    assert one
    assert other
    assert one.value == pytest.approx(-other.value)
    assert one.p == pytest.approx(other.p)
    assert (one.interval.low, one.interval.high) == pytest.approx((-other.interval.high, -other.interval.low))
    assert -1 <= one.interval.low <= one.value + 1e-12
    assert one.value - 1e-12 <= one.interval.high <= 1


@given(pairs, st.data())
def test_one_more_pass_with_the_skill_never_makes_its_gain_look_worse(given: list[Pair], data: st.DataObject) -> None:
    """Neither the verdict nor an end of the interval."""
    position = data.draw(st.integers(0, len(given) - 1))
    passed, total = given[position].new
    if passed == total:
        return
    more = [*given[:position], Pair("c", given[position].base, (passed + 1, total)), *given[position + 1 :]]
    before, after = difference(given), difference(more)
    assert before
    assert after
    order = ["worse", "open", "better"]
    assert order.index(after.verdict) >= order.index(before.verdict)
    assert after.interval.low >= before.interval.low - 1e-12
    assert after.interval.high >= before.interval.high - 1e-12


@pytest.mark.parametrize("cases", [20, 40])
def test_the_gain_is_monotone_with_more_cases_than_can_be_enumerated(cases: int) -> None:
    draw = random.Random(cases)
    passes = [draw.randint(0, 4) for _ in range(cases)]
    ends = []
    for _ in range(30):
        found = difference([Pair("", (2, 5), (passed, 5)) for passed in passes])
        assert found
        ends.append((found.interval.low, found.interval.high))
        position = draw.choice([at for at, passed in enumerate(passes) if passed < 5])
        passes[position] += 1
    assert [low for low, _ in ends] == sorted(low for low, _ in ends)
    assert [high for _, high in ends] == sorted(high for _, high in ends)


@given(pairs)
def test_the_interval_excludes_0_exactly_if_the_test_rejects_it(given: list[Pair]) -> None:
    """An end at 0 is excluded if the verdict says so."""
    found = difference(given)
    assert found
    if found.p > 0.05:
        assert found.interval.low <= 0 <= found.interval.high
    else:
        assert found.interval.low >= 0 if found.value > 0 else found.interval.high <= 0


@given(st.lists(st.builds(Pair, st.just("c"), counts, counts), min_size=6, max_size=9))
def test_the_interval_is_that_of_the_inverted_test(given: list[Pair]) -> None:
    """By enumeration: every shift of all cases that the test rejects lies outside or is kept by the additional case."""
    found = difference(given)
    assert found
    differences = [pair.difference for pair in given]
    for at in range(-20, 21):
        shift = Fraction(at, 20)
        p, _ = sign_flip([value - shift for value in differences])
        if p > 0.05:
            assert found.interval.low - 1e-9 <= shift <= found.interval.high + 1e-9


def test_a_skill_that_reaches_100_percent_is_found_as_surely_as_one_that_comes_close() -> None:
    base = [Pair(str(at), (8, 10), (10, 10)) for at in range(10)]
    close = difference([*base[:9], Pair("9", (8, 10), (9, 10))])
    all_of_them = difference(base)
    assert close
    assert all_of_them
    assert (close.verdict, all_of_them.verdict) == ("better", "better")
    assert all_of_them.interval.low >= close.interval.low > 0.1


def test_cases_that_never_differ_do_not_prove_that_nothing_differs() -> None:
    """The interval does not shrink to a point, with single trials least of all."""
    single_trials = difference([Pair(str(at), (1, 1), (1, 1)) for at in range(10)])
    repeated = difference([Pair(str(at), (10, 10), (10, 10)) for at in range(10)])
    assert single_trials
    assert repeated
    assert (single_trials.interval.low, single_trials.interval.high) == pytest.approx((-1 / 3, 1 / 3))
    assert (repeated.interval.low, repeated.interval.high) == pytest.approx((-1 / 30, 1 / 30))


@pytest.mark.parametrize(("base", "new"), [((3, 4), (1, 4)), ((0, 5), (5, 5)), ((10, 10), (6, 10)), ((1, 1), (0, 3))])
def test_fishers_test_is_exact(base: tuple[int, int], new: tuple[int, int]) -> None:
    """Checked by enumeration of every way the passes can fall on the trials."""
    trials = base[1] + new[1]
    passed = base[0] + new[0]
    falls = [sum(at < base[1] for at in chosen) for chosen in combinations(range(trials), passed)]
    chances = {count: falls.count(count) / len(falls) for count in set(falls)}
    expected = sum(chance for chance in chances.values() if chance <= chances[base[0]] + 1e-12)
    assert fisher(base, new) == pytest.approx(expected)


def test_holm_gives_the_published_corrections() -> None:
    """0.01, 0.04, 0.03 and 0.005, as in R's `p.adjust`."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.7, 0.8]) == [1.0, 1.0]


def test_a_difference_among_many_must_be_clearer() -> None:
    found = difference([Pair(str(at), (0, 1), (1, 1)) for at in range(6)])
    assert found
    alone, among = correct_together([found]), correct_together([found, found])
    assert (alone[0].verdict, alone[0].corrected_p, alone[0].tests) == ("better", found.p, 1)
    assert (among[0].verdict, among[0].corrected_p, among[0].tests) == ("open", 2 * found.p, 2)
    assert isinstance(among[0], Difference)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=20), st.integers(2, 8))
def test_repeats_that_agree_do_not_change_a_verdict(given: list[tuple[bool, bool]], repeats: int) -> None:
    one = difference([Pair("", (base, 1), (new, 1)) for base, new in given])
    many = difference([Pair("", (base * repeats, repeats), (new * repeats, repeats)) for base, new in given])
    assert one
    assert many
    assert one.p == pytest.approx(many.p)


_TRUTHS = [(0.25, 0.25, 0.25, 0.25), (0.4, 0.1, 0.1, 0.4), (0.2, 0.6, 0.05, 0.15), (0.6, 0.3, 0.02, 0.08)]


@pytest.mark.parametrize("truth", _TRUTHS)
def test_the_interval_of_a_difference_covers_as_it_promises(truth: tuple[float, ...]) -> None:
    """By enumeration of all tables of ten pairs: both pass, only new, only base, neither."""
    held = settled = 0.0
    cells = [Pair("", (1, 1), (1, 1)), Pair("", (0, 1), (1, 1)), Pair("", (1, 1), (0, 1)), Pair("", (0, 1), (0, 1))]
    for table in product(range(11), repeat=4):
        if sum(table) != 10:
            continue
        chance = float(factorial(10))
        for number, share in zip(table, truth, strict=True):
            chance *= share**number / factorial(number)
        found = difference([cell for cell, number in zip(cells, table, strict=True) for _ in range(number)])
        assert found
        held += chance * (found.interval.low - 1e-9 <= truth[1] - truth[2] <= found.interval.high + 1e-9)
        settled += chance * (found.verdict != "open")
    assert held > 0.94
    if truth[1] == truth[2]:
        assert settled < 0.05


def test_repeats_of_few_cases_settle_nothing() -> None:
    """Three cases that always differ are three observations, not thirty."""
    found = difference([Pair(str(at), (0, 10), (10, 10)) for at in range(3)])
    assert found
    assert found.verdict == "open"
    assert found.p == 0.25


def test_six_cases_that_all_differ_are_settled() -> None:
    """The exact test needs at least six."""
    better = [Pair(str(at), (0, 1), (1, 1)) for at in range(6)]
    found, less = difference(better), difference(better[:5])
    assert found
    assert less
    assert (found.verdict, found.method, less.verdict) == ("better", "exact McNemar test", "open")
    assert difference([]) is None


def test_the_needed_runs_are_described_in_words() -> None:
    clear = [Pair(str(at), (0, 2), (2, 2)) for at in range(8)]
    even = [Pair(str(at), (1, 2), (1, 2)) for at in range(8)]
    noisy = [Pair(str(at), (1, 3), (2 if at % 3 else 1, 3)) for at in range(8)]
    said = [settle(one) for one in (clear, even, noisy)]
    assert settle([]) is None
    assert [one.text if one else "" for one in said] == [
        "settled",
        "no difference is seen: more runs will not settle it within 10,000",
        "needs about 40 repeats of these cases (592 more runs) or 46 cases in all (228 more runs)",
    ]


def _trials(*given: tuple[str, bool, str]) -> list[TriggerTrial]:
    return [
        TriggerTrial(f"{skill}{at}", skill, should, frozenset(loaded.split()))
        for at, (skill, should, loaded) in enumerate(given)
    ]


def test_precision_recall_and_the_confusion_matrix() -> None:
    """A trial that loads two skills counts in both columns. Negative queries of other skills say nothing."""
    trials = _trials(
        ("pdf", True, "pdf"),
        ("pdf", True, "csv"),
        ("pdf", True, "pdf csv"),
        ("pdf", False, "pdf"),
        ("pdf", False, "csv"),
        ("csv", True, "csv"),
        ("csv", True, ""),
    )
    pdf, csv = score_triggers("pdf", trials), score_triggers("csv", trials)
    assert (pdf.precision.passed, pdf.precision.total) == (2, 3)
    assert (pdf.recall.passed, pdf.recall.total) == (2, 3)
    assert (csv.precision.passed, csv.precision.total) == (1, 3)
    assert (csv.recall.passed, csv.recall.total) == (1, 2)
    assert csv.f1 == pytest.approx(0.4)
    found = count_confusion(trials)
    pdfs, csvs, others = Queries("pdf"), Queries("csv"), Queries("pdf", should=False)
    assert found.rows == (csvs, pdfs, others)
    assert list(map(str, found.rows)) == ["csv", "pdf", "not pdf"]
    assert found.columns == ("csv", "pdf", "")
    assert found.totals == {pdfs: 3, others: 2, csvs: 2}
    assert found.counts == {
        (pdfs, "pdf"): 2,
        (pdfs, "csv"): 2,
        (others, "pdf"): 1,
        (others, "csv"): 1,
        (csvs, "csv"): 1,
        (csvs, ""): 1,
    }
    right = {(row, column): is_right(row, column) for row in found.rows for column in found.columns}
    assert [where for where, held in right.items() if held] == [(csvs, "csv"), (pdfs, "pdf"), (others, "")]
    assert [where for where, held in right.items() if held is None] == [(others, "csv")]
    assert found.stolen == (("pdf", "csv", 2),)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.booleans(), st.sampled_from(["", "a", "b", "a b"])), min_size=1, max_size=20
    )
)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(given: list[tuple[str, bool, str]]) -> None:
    found = score_triggers("a", _trials(*given))
    precision, recall = found.precision.value, found.recall.value
    if precision and recall:
        assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    if found.f1 is not None:
        assert found.f1_interval
        assert found.f1_interval.low - 1e-9 <= found.f1 <= found.f1_interval.high + 1e-9


def test_student_gives_the_published_quantiles() -> None:
    """Two-sided 95%, to a thousandth."""
    table = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980}
    for freedom, value in table.items():
        assert student_quantile(0.975, freedom) == pytest.approx(value, rel=1.2e-3)


def test_the_mean_of_two_or_more_cases_has_an_interval() -> None:
    """By hand: 1, 2, 3 has a mean of 2 and reaches 4.303 / √3 to both sides."""
    found = mean([1.0, 2.0, 3.0])
    assert found
    assert found.interval
    assert (found.value, found.interval.high) == pytest.approx((2.0, 2 + 4.303 / 3**0.5), rel=1e-3)
    assert mean([]) is None
    assert mean([5.0]) == type(found)(5.0, None, 1)


def test_spending_counts_the_trials_without_a_price() -> None:
    found = sum_spending([(Usage(10, 2, 5, 0.5), 1.0), (Usage(1, 1), 2.0)])
    assert found == Spending(2, 11, 3, 5, 3.0, 0.5, 1)
    assert (found.tokens, found.is_priced) == (14, False)


_COVER_WITH_A_CPU_LIMIT = """
import json, resource, sys, time
from skillshelf_evals._coverage import SkillContent, measure_coverage

titles = json.load(sys.stdin)
limit = int(time.process_time()) + 3
resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
for title in titles:
    [section] = measure_coverage("pdf", SkillContent("# " + title), False, {}).unread
    assert section.title == title
"""


@pytest.mark.parametrize("count", [600, 1_200, 100_000])
def test_a_heading_of_many_spaces_costs_no_more_than_two_cpu_seconds(count: int) -> None:
    titles = ["a" + filling * count + "b" for filling in (" ", "\t", "#", " #")]
    command = [sys.executable, "-c", _COVER_WITH_A_CPU_LIMIT]
    done = subprocess.run(command, input=json.dumps(titles), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_coverage_names_files_and_sections_that_no_case_loaded() -> None:
    """Sections behind the last loaded page are unread. Headings in code do not count."""
    body = "# One\n\n```\n# not a heading\n```\n\n## Two ##\n"
    text = SkillContent("# Top\n## Sub\n", {"a.md": body, "b.md": "# Bee\n", "c.bin": ""})
    found = measure_coverage("pdf", text, True, {"a.md": 10})
    assert found.unloaded == ("b.md", "c.bin")
    assert (found.references, found.sections) == (3, 5)
    assert found.unread == (Section("a.md", "Two", body.index("## Two")), Section("b.md", "Bee", 0))
    assert found.gaps == ("b.md", "c.bin", "a.md # Two")
    assert measure_coverage("pdf", text, False, {}).gaps == ("SKILL.md", "a.md", "b.md", "c.bin")


def test_skill_contents_are_read_from_a_shelf(write, tmp_path) -> None:  # type: ignore[no-untyped-def]
    """A skill that is not there is left out."""
    write("skills/pdf", body="# How\n", references__a_md="# A\n")
    found = read_skill_contents(Shelf.open(tmp_path), ["pdf", "gone"])
    assert list(found) == ["pdf"]
    assert found["pdf"].instructions.strip() == "# How"
    assert found["pdf"].references == {"references/a.md": "# A\n"}
