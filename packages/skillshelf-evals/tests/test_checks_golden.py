"""Golden texts: what is compared with the text that is stored beside a case."""

import asyncio
from pathlib import Path

from skillshelf_evals import Check, FileState, Trace, Verdict, check
from skillshelf_evals.formats import find_cases

TRACE = Trace(answers=("First.", "I wrote out.txt."), files={"out.txt": FileState("Hello\n", True)})


def verdict(one: Check, trace: Trace = TRACE) -> Verdict:
    return asyncio.run(check.look(one, trace))


def test_line_endings_make_no_difference_to_a_golden_text(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_bytes(b"One\r\nTwo\r\n")
    one = check.golden(str(tmp_path / "answer.txt"))
    assert verdict(one, Trace(answers=("One\nTwo",))).passed
    missed = verdict(one, Trace(answers=("One\nThree",)))
    assert missed == Verdict(False, f"line 2 is 'Three'; {tmp_path}/answer.txt has 'Two'")


def test_a_file_of_the_workspace_is_compared_too(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("Hello")
    assert verdict(check.golden(str(tmp_path / "out.txt"), file="out.txt")).passed
    assert verdict(check.golden(str(tmp_path / "out.txt"), file="none.txt")) == Verdict(
        False, "there is no text file none.txt to compare"
    )


def test_a_missing_golden_text_is_an_error_and_no_miss(tmp_path: Path) -> None:
    assert "answer.txt cannot be read" in verdict(check.golden(str(tmp_path / "answer.txt"))).error


def test_the_path_of_an_opposite_golden_check_in_python_is_relative_to_its_file(tmp_path: Path) -> None:
    """A path that does not exist would let everything pass."""
    (tmp_path / "bad.txt").write_text("First.\n")
    (tmp_path / "cases.py").write_text(
        "from skillshelf_evals import *\nCASES = [Case('a', ('x',), (~check.golden('bad.txt'),))]\n"
    )
    [case], faults = find_cases([str(tmp_path / "cases.py")])
    assert not faults
    missed = Verdict(False, f"not: it equals {tmp_path / 'bad.txt'}")
    assert verdict(case.checks[0], Trace(answers=("First.",))) == missed
    assert verdict(case.checks[0], Trace(answers=("Second.",))).passed
