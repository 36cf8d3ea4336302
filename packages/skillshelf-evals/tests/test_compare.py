"""Two runs, case by case."""

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from run_kit import case, run_of, scripted_case
from skillshelf_evals import CaseInfo, Run
from skillshelf_evals.report import compare, render_plain
from skillshelf_evals.report._comparison import RunComparison


def before() -> Run:
    return _run("old", dict(zip("abcdefg", "ppp mmm pmm ppm ppp pp ppp".split(), strict=True)))


def after() -> Run:
    return _run("new", dict(zip("abcdefh", "ppm ppp ppm pmm ppp ee ppp".split(), strict=True)))


def _run(run_id: str, words: dict[str, str], *, live: bool = False) -> Run:
    """Return a run, live or replayed: replayed cases end the same way every time."""
    run = run_of({case(name): (word,) for name, word in words.items()}, run_id=run_id)
    return replace(run, replayed=not live)


def _scripted_run(run_id: str, words: dict[str, str]) -> Run:
    return run_of({scripted_case(name): (word,) for name, word in words.items()}, run_id=run_id)


def _kinds(found: RunComparison) -> dict[str, str]:
    return {change.case: change.kind for change in found.changes}


def test_cases_of_two_runs_are_paired_by_id() -> None:
    """Newly failing cases come first. Errors leave a case untested, and cases of one run only are listed apart."""
    found = compare(before(), after())
    assert [(one.case, one.kind) for one in found.changes] == [
        ("pdf/a", "newly failing"),
        ("pdf/d", "worse"),
        ("pdf/f", "untested"),
        ("pdf/b", "newly passing"),
        ("pdf/c", "better"),
        ("pdf/e", "same"),
    ]
    assert (found.only_a, found.only_b) == (("pdf/g",), ("pdf/h",))
    assert found.versus.difference
    assert found.versus.difference.cases == 5
    assert found.versus.difference.value == pytest.approx((-1 / 3 + 1 + 1 / 3 - 1 / 3 + 0) / 5)
    assert found.versus.unpaired == 1


def test_a_case_with_another_prompt_is_another_case() -> None:
    """Two questions under one name are never paired."""
    old = run_of({replace(case("a"), turns_digest="1"): ("p",), replace(case("b"), turns_digest="2"): ("p",)})
    new = run_of({replace(case("a"), turns_digest="1"): ("p",), replace(case("b"), turns_digest="3"): ("m",)})
    found = compare(old, new)
    assert [change.case for change in found.changes] == ["pdf/a"]
    assert (found.only_a, found.only_b) == (("pdf/b",), ("pdf/b",))


def test_swapping_the_runs_changes_every_sign_and_nothing_else() -> None:
    one, other = compare(before(), after()).versus, compare(after(), before()).versus
    assert one.difference
    assert other.difference
    assert one.difference.value == pytest.approx(-other.difference.value)
    assert one.difference.interval.low == pytest.approx(-other.difference.interval.high)


def test_a_run_does_not_differ_from_itself() -> None:
    found = compare(before(), before())
    assert set(_kinds(found).values()) == {"same"}
    assert found.versus.difference
    assert (found.versus.difference.value, found.versus.difference.p) == (0, 1)
    assert found.exit_code() == 0


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [("p", "m", 1), ("p", "e", 3), ("m", "p", 0), ("m", "m", 0)],
)
def test_a_scripted_case_that_got_worse_sets_the_exit_code(old: str, new: str, code: int) -> None:
    """It ends the same way every time, so a change is no accident."""
    assert compare(_scripted_run("a", {"a": old}), _scripted_run("b", {"a": new})).exit_code() == code


def test_scripted_cases_have_no_part_in_the_difference_of_two_runs() -> None:
    """They are counted beside it. Twenty that pass do not make one live case that misses look like chance."""
    old = run_of({case("a"): ("ppp",), scripted_case("b"): ("p",), scripted_case("c"): ("p",)}, run_id="old")
    new = run_of({case("a"): ("ppm",), scripted_case("b"): ("p",), scripted_case("c"): ("m",)}, run_id="new")
    found = compare(old, new)
    assert found.versus.difference
    assert found.versus.difference.cases == 1
    assert found.versus.difference.new == pytest.approx(2 / 3)
    assert _kinds(found) == {"pdf/c": "newly failing", "pdf/a": "lower", "pdf/b": "same"}
    text = render_plain(found.tables)
    assert "scripted cases     2 of 2 passed before, 1 of 2 now" in text
    assert "newly failing            passed          missed" in text
    assert found.as_json()["statistics"]["scripted"]["after"] == {"passed": 1, "missed": 1, "errors": 0}


def test_a_case_that_is_scripted_in_one_run_only_is_not_compared() -> None:
    """A model that answers and a script that does are two different things under one name."""
    found = compare(run_of({case("a"): ("p",)}), run_of({scripted_case("a"): ("m",)}))
    assert (found.changes, found.only_a, found.only_b) == ((), ("pdf/a",), ("pdf/a",))
    assert "1 case with another prompt, or a script in one run only: not compared" in render_plain(found.tables)


def test_replayed_cases_are_compared_like_scripted_ones() -> None:
    """If one of the runs was live, chance may explain the difference."""
    old, new = _run("a", {"a": "pp"}, live=True), _run("b", {"a": "pm"}, live=True)
    recorded, replayed = replace(old, replayed=True), replace(new, replayed=True)
    assert _kinds(compare(recorded, replayed)) == {"pdf/a": "newly failing"}
    assert _kinds(compare(old, replayed)) == {"pdf/a": "lower"}


def test_a_live_case_newly_fails_only_beyond_chance() -> None:
    """One miss in five proves nothing; five in five do, and among twenty cases even those do not."""
    few = compare(_run("a", {"a": "ppppp"}, live=True), _run("b", {"a": "ppppm"}, live=True))
    assert (_kinds(few), few.exit_code()) == ({"pdf/a": "lower"}, 0)
    all_of_them = compare(_run("a", {"a": "ppppp"}, live=True), _run("b", {"a": "mmmmm"}, live=True))
    assert (_kinds(all_of_them), all_of_them.exit_code()) == ({"pdf/a": "newly failing"}, 1)

    others = dict.fromkeys("bcdefghijklmnopqrst", "ppppp")
    many = compare(_run("a", {"a": "ppppp", **others}, live=True), _run("b", {"a": "mmmmm", **others}, live=True))
    assert (_kinds(many)["pdf/a"], many.exit_code()) == ("lower", 0)
    assert many.changes[0].corrected_p == pytest.approx(20 * 2 / 252)


def test_a_gate_on_new_failures_ignores_chance() -> None:
    found = compare(_run("a", {"a": "ppp", "b": "pmm"}, live=True), _run("b", {"a": "ppm", "b": "mmm"}, live=True))
    assert found.new_failures == ("pdf/a",)
    assert [found.exit_code(), found.exit_code(no_new_failures=True)] == [0, 1]


def test_many_worse_cases_set_the_exit_code() -> None:
    """None of them says much, but all of them together do."""
    names = [f"c{at}" for at in range(9)]
    found = compare(
        _run("a", dict.fromkeys(names, "ppm"), live=True), _run("b", dict.fromkeys(names, "mmm"), live=True)
    )
    assert set(_kinds(found).values()) == {"lower"}
    assert found.versus.difference
    assert (found.versus.difference.verdict, found.exit_code()) == ("worse", 1)


def test_runs_without_a_common_case_are_not_compared() -> None:
    """There is no number, and the exit code says so."""
    found = compare(run_of({case("a"): ("p",)}), run_of({case("b"): ("p",)}))
    assert (found.versus.difference, found.changes, found.exit_code()) == (None, (), 3)
    assert "pass rate          –" in render_plain(found.tables)


def test_the_terminal_says_what_changed() -> None:
    """The totals come first, then each case that changed."""
    text = render_plain(compare(before(), after()).tables)
    assert text.startswith("new against old on 6 cases\n")
    assert "1 newly failing\n1 worse\n1 untested\n1 newly passing\n1 better\n1 same\n" in text
    assert "only in old: pdf/g\nonly in new: pdf/h\n" in text
    assert "pdf/a" in text
    assert "pdf/e" not in text


def test_the_terminal_says_what_may_be_chance() -> None:
    found = compare(_run("a", {"a": "ppp", "b": "pp"}, live=True), _run("b", {"a": "ppm", "b": "pp"}, live=True))
    text = render_plain(found.tables)
    assert "1 lower, which may be chance\n1 same\n" in text
    assert "Fisher's exact test of each live case, corrected for 2 cases (Holm)" in text


def test_a_comparison_is_available_as_json() -> None:
    found = json.loads(json.dumps(compare(before(), after()).as_json()))
    assert (found["a"], found["b"], found["verdict"], found["only_b"]) == ("old", "new", "open", ["pdf/h"])
    interval = found["statistics"]["difference"]["interval"]
    assert interval["low"] < 0 < interval["high"]
    assert found["cases"][0]["change"] == "newly failing"
    assert found["cases"][0]["statistics"]["after"]["missed"] == 1


@pytest.mark.parametrize(("rate", "cases", "repeats"), [(0.95, 10, 1), (0.95, 40, 1), (0.8, 8, 5)])
def test_two_runs_of_the_same_thing_seldom_fail(rate: float, cases: int, repeats: int) -> None:
    """At most 5% of comparisons of live runs exit with 1 if nothing changed. 60 are simulated."""
    draw = random.Random(cases + repeats)
    infos = [case(str(number)) for number in range(cases)]
    alarms = 0
    for _ in range(60):
        old, new = _live_run(infos, rate, repeats, draw), _live_run(infos, rate, repeats, draw)
        alarms += compare(old, new).exit_code() == 1
    assert alarms <= 0.05 * 60


def _live_run(infos: Sequence[CaseInfo], rate: float, repeats: int, draw: random.Random) -> Run:
    words = ["".join("p" if draw.random() < rate else "m" for _ in range(repeats)) for _ in infos]
    return run_of({info: (word,) for info, word in zip(infos, words, strict=True)})
