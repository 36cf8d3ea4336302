"""Two runs, case by case."""

import json
from dataclasses import replace

import pytest

from evals.run_kit import case, run_of
from skillshelf.evals import Run
from skillshelf.evals.report import compare, comparison_as_json, comparison_exit_code, comparison_tables, render_plain


def before() -> Run:
    return run_of(
        {case(name): (word,) for name, word in zip("abcdefg", "ppp mmm pmm ppm ppp pp ppp".split(), strict=True)},
        run_id="old",
    )


def after() -> Run:
    return run_of(
        {case(name): (word,) for name, word in zip("abcdefh", "ppm ppp ppm pmm ppp ee ppp".split(), strict=True)},
        run_id="new",
    )


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


def test_different_prompts_are_never_paired() -> None:
    """Two runs may use one name for different questions."""
    asked = replace(case("a"), turns_digest="1")
    changed = replace(asked, turns_digest="2", prompt="Something else")
    found = compare(run_of({asked: ("ppp",)}), run_of({changed: ("mmm",)}, run_id="new"))
    assert (found.changes, found.only_a, found.only_b) == ((), ("pdf/a",), ("pdf/a",))
    assert "1 case with another prompt in each run: not compared" in render_plain(comparison_tables(found))


def test_swapping_the_runs_changes_every_sign_and_nothing_else() -> None:
    one, other = compare(before(), after()).versus, compare(after(), before()).versus
    assert one.difference
    assert other.difference
    assert one.difference.value == pytest.approx(-other.difference.value)
    assert one.difference.interval.low == pytest.approx(-other.difference.interval.high)


def test_a_run_does_not_differ_from_itself() -> None:
    found = compare(before(), before())
    assert {one.kind for one in found.changes} == {"same"}
    assert found.versus.difference
    assert (found.versus.difference.value, found.versus.difference.p) == (0, 1)
    assert comparison_exit_code(found) == 0


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [(("pp",), ("pm",), 1), (("pm",), ("mm",), 0), (("pp",), ("ee",), 3), (("mm",), ("pp",), 0)],
)
def test_a_newly_failing_case_sets_the_exit_code(old: tuple[str], new: tuple[str], code: int) -> None:
    """A case that passes less often proves nothing; many of them do."""
    assert comparison_exit_code(compare(run_of({case("a"): old}), run_of({case("a"): new}))) == code


def test_many_worse_cases_set_the_exit_code() -> None:
    names = [f"c{at}" for at in range(9)]
    found = compare(run_of({case(name): ("ppm",) for name in names}), run_of({case(name): ("mmm",) for name in names}))
    assert found.versus.difference
    assert (found.versus.difference.verdict, comparison_exit_code(found)) == ("worse", 1)


def test_runs_without_a_common_case_are_not_compared() -> None:
    """There is no number, and the exit code says so."""
    found = compare(run_of({case("a"): ("p",)}), run_of({case("b"): ("p",)}))
    assert (found.versus.difference, found.changes, comparison_exit_code(found)) == (None, (), 3)
    assert "pass rate          –" in render_plain(comparison_tables(found))


def test_the_terminal_says_what_changed() -> None:
    """The totals come first, then each case that changed."""
    text = render_plain(comparison_tables(compare(before(), after())))
    assert text.startswith("new against old on 6 cases\n")
    assert "1 newly failing\n1 worse\n1 untested\n1 newly passing\n1 better\n1 same\n" in text
    assert "only in old: pdf/g\nonly in new: pdf/h\n" in text
    assert "pdf/a" in text
    assert "pdf/e" not in text


def test_a_comparison_is_available_as_json() -> None:
    found = json.loads(json.dumps(comparison_as_json(compare(before(), after()))))
    assert (found["a"], found["b"], found["verdict"], found["only_b"]) == ("old", "new", "open", ["pdf/h"])
    interval = found["statistics"]["difference"]["interval"]
    assert interval["low"] < 0 < interval["high"]
    assert found["cases"][0]["change"] == "newly failing"
    assert found["cases"][0]["statistics"]["after"]["missed"] == 1
