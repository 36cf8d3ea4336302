"""Gates: what decides about the exit code of a run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from run_kit import case, run_of, scripted_case
from skillshelf_evals import Run
from skillshelf_evals.report import Gates, judge_run, summarize
from skillshelf_evals.report._gates import Judgement


def _judge(run: Run, **gates: object) -> Judgement:
    return judge_run(summarize(run), Gates(**gates))  # type: ignore[arg-type]


def _live(word: str, cases: int = 10) -> Run:
    return run_of({case(str(number)): (word,) for number in range(cases)}, run_id=f"{word}-run")


def test_a_live_run_without_a_gate_exits_with_0_and_says_so() -> None:
    found = _judge(_live("ppm"))
    assert (found.exit_code, found.results) == (0, ())
    assert found.lines == (
        "Nothing was gated: 10 of 30 live trials missed, which does not fail the run. "
        "Choose --fail-under RATE or --gate worse-than RUN.",
    )
    assert _judge(_live("ppp")).lines[0].startswith("Nothing was gated: live cases do not fail a run by themselves.")


def test_errors_of_a_live_run_exit_with_3() -> None:
    assert _judge(_live("ppe")).exit_code == 3
    assert _judge(_live("ppe"), fail_under=0.5).exit_code == 3
    assert _judge(_live("eee"), fail_under=0.5).results[0].passed is None


@pytest.mark.parametrize("replayed", [False, True])
def test_a_miss_without_chance_in_it_exits_with_1(replayed: bool) -> None:
    """In a scripted case, and in any case of a replay."""
    run = replace(run_of({case("a") if replayed else scripted_case("a"): ("pm",)}), replayed=replayed)
    found = _judge(run)
    assert found.exit_code == 1
    kind = "replayed" if replayed else "scripted"
    assert found.lines == (f"{kind} cases: failed. 1 case missed: pdf/a",)


def test_a_name_with_a_line_break_stays_on_the_line_of_its_gate() -> None:
    """A line that begins with `::` would be a command to GitHub."""
    forged = run_of({scripted_case("a\n::error::forged"): ("m",)}, run_id="r\n::error::forged")
    assert _judge(forged).lines == ("scripted cases: failed. 1 case missed: pdf/a ::error::forged",)
    assert "\n" not in _judge(forged, worse_than=forged).lines[0]


def test_a_scripted_run_needs_no_word_about_gates() -> None:
    assert _judge(run_of({scripted_case("a"): ("p",)})).lines == ()


def test_the_lower_end_of_the_rate_must_reach_the_gate() -> None:
    """Ten cases that all pass reach 69%, however often they are repeated."""
    run = _live("ppp")
    assert [_judge(run, fail_under=rate).exit_code for rate in (0.69, 0.7)] == [0, 1]
    assert _judge(run, fail_under=0.7).lines == (
        "--fail-under 70%: failed. The pass rate is 100% [69%, 100%], and its lower end counts.",
    )


def test_a_run_must_not_be_worse_than_another() -> None:
    """Beyond chance, that is: fewer passes alone do not fail it."""
    before = _live("ppp")
    little = run_of({case(str(number)): ("ppm" if number < 3 else "ppp",) for number in range(10)})
    assert _judge(little, worse_than=before).exit_code == 0
    found = _judge(_live("pmm"), worse_than=before)
    assert found.exit_code == 1
    assert found.lines[0].startswith("--gate worse-than ppp-run: failed. −67 pp [")
    others = _judge(run_of({case("other"): ("p",)}), worse_than=before)
    assert (others.exit_code, others.results[0].passed) == (3, None)


def test_new_failures_are_those_that_the_other_run_does_not_have() -> None:
    """Known misses of a replay pass. A new case that misses does not."""
    before = replace(run_of({case("a"): ("m",), case("b"): ("p",)}), replayed=True)
    assert _judge(before, worse_than=before).exit_code == 1
    assert _judge(before, worse_than=before, no_new_failures=True).exit_code == 0
    after = replace(run_of({case("a"): ("m",), case("b"): ("m",), case("c"): ("m",)}), replayed=True)
    found = _judge(after, worse_than=before, no_new_failures=True)
    assert found.exit_code == 1
    assert found.lines[0] == "--gate no-new-failures: failed. 2 cases newly failing: pdf/b, pdf/c"


def test_without_another_run_no_case_may_miss() -> None:
    """Of live cases, the gate says that they can miss by chance."""
    found = _judge(_live("ppm"), no_new_failures=True)
    assert found.exit_code == 1
    assert found.lines[0].endswith("A live case can miss by chance: --gate worse-than RUN takes that into account.")
    assert _judge(_live("ppp"), no_new_failures=True).exit_code == 0


Command = Callable[..., tuple[int, str, str]]

CASES = """
cases:
  - name: a
    prompt: Say hello.
    script: [hello]
    checks:
      - response_contains: hello
"""


@pytest.fixture
def cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    evals = Path("skills/hello/evals")
    evals.mkdir(parents=True)
    evals.joinpath("cases.yaml").write_text(CASES)
    evals.parent.joinpath("SKILL.md").write_text("---\nname: hello\ndescription: Says hello.\n---\nSay it.\n")
    return tmp_path


def test_gates_are_given_on_the_command_line(run: Command, cases: Path) -> None:
    """`worse-than RUN` is two words, before or after the paths."""
    first = ("eval", "skills", "--trust-workspace", "--report", "one")
    assert run(*first)[0] == 0
    second = ("eval", "--gate", "worse-than", "one", "skills", "--trust-workspace", "--gate", "no-new-failures")
    code, out, _ = run(*second, "--report", "two")
    assert code == 0
    assert "--gate no-new-failures: passed. No case newly fails." in out
    assert "--gate worse-than " in out
    code, out, _ = run("eval", "skills", "--trust-workspace", "--fail-under", "50%", "--json")
    found = json.loads(out)
    assert (code, found["exit_code"], found["gates"][0]["name"]) == (3, 3, "--fail-under 50%")
    assert (found["gates"][0]["passed"], found["gates"][0]["reason"]) == (
        None,
        "The run has no live case, so it has no pass rate.",
    )
    assert run("eval", "compare", "one", "two", "--gate", "no-new-failures")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--fail-under", "90"), "give a rate such as 90% or 0.9, not '90'"),
        (("--fail-under", "most"), "give a rate such as 90% or 0.9, not 'most'"),
        (("--gate", "better"), "give `worse-than RUN` or `no-new-failures`, not 'better'"),
        (("--gate", "worse-than"), "worse-than needs a run"),
        (("--gate", "worse-than", "nowhere"), "nowhere"),
    ],
)
def test_a_gate_that_means_nothing_is_refused_before_anything_runs(
    run: Command, cases: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, complaint = run("eval", "skills", "--trust-workspace", *arguments)
    assert (code, out) == (2, "")
    assert message in complaint
