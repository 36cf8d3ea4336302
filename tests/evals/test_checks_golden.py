"""Golden texts: what is compared, and what `--update-golden` may and may not store."""

import asyncio
from pathlib import Path

from skillshelf.evals import Case, Check, CheckResult, FileState, Message, Outcome, Trace, Verdict, check
from skillshelf.evals.check import bless
from skillshelf.evals.formats import find_cases

TRACE = Trace(answers=("First.", "I wrote out.txt."), files={"out.txt": FileState("Hello\n", True)})


def verdict(one: Check, trace: Trace = TRACE) -> Verdict:
    return asyncio.run(check.look(one, trace))


def _case(name: str, *checks: Check) -> Case:
    return Case(name, (Message("x"),), checks)


def _outcome(case: Case, trace: Trace, repeat: int = 1) -> Outcome:
    checks = () if trace.error else tuple(CheckResult(one.name, verdict(one, trace)) for one in case.checks)
    return Outcome(case.id, "with", repeat, checks, trace)


def tried(case: Case, answer: str, repeat: int = 1, error: str = "") -> Outcome:
    """A trial that answered this, and what the checks said of it."""
    return _outcome(case, Trace(answers=(answer,), error=error), repeat)


def test_line_endings_make_no_difference_to_a_golden_text(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_bytes(b"One\r\nTwo\r\n")
    one = check.golden(str(tmp_path / "answer.txt"))
    assert verdict(one, Trace(answers=("One\nTwo",))).passed
    missed = verdict(one, Trace(answers=("One\nThree",)))
    assert missed == Verdict(False, f"line 2 is 'Three'; {tmp_path}/answer.txt has 'Two'")


def test_a_missing_golden_text_says_how_to_make_it(tmp_path: Path) -> None:
    """A run then writes it, for the answer and for a file."""
    checks = (
        check.golden(str(tmp_path / "new" / "answer.txt")),
        check.golden(str(tmp_path / "out.txt"), file="out.txt"),
        check.golden(str(tmp_path / "none.txt"), file="none.txt"),
    )
    assert "--update-golden" in verdict(checks[0]).error
    case = _case("a", *checks)
    found = bless([case], [_outcome(case, TRACE)])
    assert found.written == (str(tmp_path / "new" / "answer.txt"), str(tmp_path / "out.txt"))
    assert [verdict(one).passed for one in checks] == [True, True, False]
    assert [bool(verdict(one).error) for one in checks] == [False, False, True]
    assert bless([case], found.outcomes).written == ()


def test_the_opposite_of_a_golden_check_is_never_written_from_a_run(tmp_path: Path) -> None:
    """Its path is relative to the case's folder, as without `not`."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "bad.txt").write_text("First.\n")
    one = (~check.golden("bad.txt")).below(str(tmp_path / "evals"), str(tmp_path))
    assert verdict(one, Trace(answers=("Second.",))).passed
    assert verdict(one, Trace(answers=("First.",))) == Verdict(False, f"not: it equals {one.arguments['path']}")
    assert bless([_case("a", one)], [tried(_case("a", one), "Third.")]).written == ()
    assert (~one).name == "golden bad.txt"
    assert verdict(~one, Trace(answers=("First.",))).passed


def test_the_path_of_an_opposite_golden_check_in_python_is_relative_to_its_file(tmp_path: Path) -> None:
    """A path that does not exist would let everything pass."""
    (tmp_path / "bad.txt").write_text("First.\n")
    (tmp_path / "cases.py").write_text(
        "from skillshelf.evals import *\n"
        "CASES = [Case('a', ('x',), (~check.golden('bad.txt'), check.golden('good.txt')))]\n"
    )
    [case], faults = find_cases([str(tmp_path / "cases.py")])
    assert not faults
    missed = Verdict(False, f"not: it equals {tmp_path / 'bad.txt'}")
    assert verdict(case.checks[0], Trace(answers=("First.",))) == missed
    assert bless([case], [tried(case, "First.")]).written == ()
    assert bless([case], [tried(case, "Good.")]).written == (str(tmp_path / "good.txt"),)
    assert (tmp_path / "bad.txt").read_text() == "First.\n"


def test_golden_texts_come_from_the_first_trial_that_passed_all_other_checks(tmp_path: Path) -> None:
    """The golden checks of every trial are then made again."""
    path = tmp_path / "answer.txt"
    case = _case("a", check.response_contains("good"), check.golden(str(path)))
    tries = [tried(case, "", 1, "down"), tried(case, "bad", 2), tried(case, "good 1", 3), tried(case, "good 2", 4)]
    found = bless([case], tries)
    assert (found.written, found.left, path.read_text()) == ((str(path),), (), "good 1\n")
    assert [one.status for one in found.outcomes] == ["error", "missed", "passed", "missed"]
    assert bless([case], found.outcomes).written == ()


def test_a_golden_text_stays_if_no_trial_passed_the_other_checks(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    path.write_text("old\n")
    case, other = _case("a", check.response_contains("good"), check.golden(str(path))), _case("b")
    found = bless([case, other], [tried(case, "bad"), tried(other, "x")])
    assert (found.written, path.read_text()) == ((), "old\n")
    assert found.left == ("a: no trial passed its other checks, so its golden files stay as they are",)


def test_a_golden_file_stays_if_two_cases_want_different_texts_in_it(tmp_path: Path) -> None:
    path = tmp_path / "answer.txt"
    cases = [_case(name, check.golden(str(path))) for name in "abc"]
    found = bless(cases[:2], [tried(cases[0], "one"), tried(cases[1], "two")])
    assert (found.written, path.exists()) == ((), False)
    assert found.left == (f"{path}: a and b want different texts in it, so it stays as it is",)
    found = bless(cases, [tried(case, "one") for case in cases])
    assert (found.written, found.left, path.read_text()) == ((str(path),), (), "one\n")
    twice = _case("d", check.golden(str(path)), check.golden(str(path), file="out.txt"))
    trace = Trace(answers=("one",), files={"out.txt": FileState("two", True)})
    found = bless([twice], [_outcome(twice, trace)])
    assert found.left == (f"{path}: d has two checks that want different texts in it, so it stays as it is",)
