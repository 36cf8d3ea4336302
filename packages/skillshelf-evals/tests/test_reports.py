"""Reports of a run: the numbers, and what each reader makes of them."""

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.console import Console

from run_kit import TEXTS, case, hostile, outcome, result, run_of, sample, scripted_case
from skillshelf.text.rendering import Cleaned
from skillshelf.text.tables import Table
from skillshelf_agent.events import Failed, Usage
from skillshelf_evals import CaseInfo, CheckResult, Run, Verdict, check
from skillshelf_evals._coverage import SkillContent
from skillshelf_evals.report import (
    Gates,
    RunUnreadableError,
    annotate,
    compare,
    disarm_line,
    judge_run,
    read_run,
    render_junit,
    render_page,
    render_plain,
    render_rich,
    summarize,
    summary_as_json,
    summary_line,
    summary_tables,
    write_run,
)
from skillshelf_evals.report._format import format_interval, format_rate
from skillshelf_evals.report._summary import Fault, Miss, Summary
from skillshelf_evals.stats import Counts, Interval, exact_rate


def test_the_summary_counts_errors_apart() -> None:
    """They are in no denominator on any arm, and always shown."""
    summary = summarize(sample(), TEXTS)
    pdf = next(group for group in summary.skills if group.name == "pdf")
    assert pdf.arms["with"].counts == Counts(9, 5, 1)
    assert (pdf.arms["with"].rate.passed, pdf.arms["with"].rate.total) == (9, 14)
    assert pdf.arms["without"].counts == Counts(2, 7, 0)
    assert [(fault.times, fault.cases) for fault in summary.faults] == [(1, ("pdf/split",))]
    found = pdf.versus[0].difference
    assert found
    assert found.cases == 3
    assert found.value == pytest.approx((1 + 1 / 3 + 2 / 3) / 3)
    assert summary.total.arms["with"].counts == Counts(12, 5, 1)


def test_a_trial_with_a_judge_that_could_not_be_asked_is_an_error() -> None:
    whole = run_of({case("a"): ("p",)})
    broken = replace(whole.outcomes[0], checks=(CheckResult("judge", Verdict(False, error="judge: 503")),))
    summary = summarize(replace(whole, outcomes=(broken,)))
    assert summary.total.arms["with"].counts == Counts(0, 0, 1)
    assert summary.faults[0].message == "judge: 503"


def _tried(*verdicts: Verdict, words: tuple[str, ...] = ("p",)) -> Run:
    """A run of one trial whose checks said this."""
    whole = run_of({case("a"): words})
    checks = tuple(CheckResult(f"check {number}", verdict) for number, verdict in enumerate(verdicts, 1))
    return replace(whole, outcomes=(replace(whole.outcomes[0], checks=checks), *whole.outcomes[1:]))


def test_a_miss_counts_even_if_a_judge_could_not_be_asked() -> None:
    """The check that missed is shown, not the judge."""
    run = _tried(Verdict(True), Verdict(False, error="The judge could not be asked: 503"), Verdict(False, "no total"))
    summary = summarize(run)
    assert (run.outcomes[0].status, judge_run(summary, Gates(no_new_failures=True)).exit_code) == ("missed", 1)
    assert summary.total.arms["with"].counts == Counts(0, 1, 0)
    assert _table(summary, "Cases to look at").rows == [("missed", "0/1", "pdf/a", "check 3: no total")]
    assert summary.faults == ()
    assert "check 2: The judge could not be asked: 503" in render_page(summary)


def _table(summary: Summary, title: str) -> Table:
    return next(one for one in summary_tables(summary) if one.title == title)


def test_the_terminal_names_the_checks_that_failed() -> None:
    """As many as a cell has room for."""
    run = _tried(*(Verdict(False, f"reason {number}") for number in range(1, 6)))
    why = "check 1: reason 1; check 2: reason 2; check 3: reason 3; and 2 more"
    assert _table(summarize(run), "Cases to look at").rows[0][-1] == why
    long = _tried(Verdict(False, "x" * 1000))
    assert len(str(_table(summarize(long), "Cases to look at").rows[0][-1])) == 200


def test_a_miss_says_what_stopped_the_trial() -> None:
    """The reason comes before the checks, which can only say that there was no answer."""
    stop = Failed("UsageLimitExceeded", "The limit for one turn was reached. It is 50 calls.")
    run = run_of({case("a"): ("mmp",)}, {"pdf/a": (stop,)})
    first = replace(run.outcomes[0], trace=replace(run.outcomes[0].trace, events=()))
    summary = summarize(replace(run, outcomes=(first, *run.outcomes[1:])))
    why = _table(summary, "Cases to look at").rows[0][-1]
    told = "stopped: The limit for one turn was reached. It is 50 calls."
    assert why == f"{told}; response_contains 'total': it is not there"
    judgement = judge_run(summary, Gates(no_new_failures=True))
    [failure, _gate] = ElementTree.fromstring(render_junit(summary, judgement)).iter("failure")
    assert failure.attrib["message"] == f"{told} (1×)"
    assert f"\n{told} (1×)\nresponse_contains" in str(failure.text)
    assert [note.message for note in annotate(summary) if told in note.message]
    shown = render_page(summary)
    assert re.search("<b>stopped</b> <a [^>]*>1×</a>: The limit for one turn was reached.", shown)
    assert shown.count(f"<td>{told}") == 2
    assert summary.total.cases[0].main.stops == (Miss("stopped", stop.message, 1),)


def test_a_missing_recording_is_one_fault_for_all_trials() -> None:
    whole = run_of({case("a"): ("e",), case("b"): ("e",)})
    message = "recorded has no answers of m for this trial. Record it again"
    outcomes = tuple(replace(one, trace=replace(one.trace, error=message)) for one in whole.outcomes)
    summary = summarize(replace(whole, outcomes=outcomes))
    assert summary.faults == (Fault(message, 2, ("pdf/a", "pdf/b")),)


def test_long_errors_are_cut_in_tables() -> None:
    whole = run_of({case("a"): ("e",)})
    long = replace(whole.outcomes[0].trace, error="No model was chosen. " * 40)
    summary = summarize(replace(whole, outcomes=(replace(whole.outcomes[0], trace=long),)))
    assert max(map(len, render_plain(summary_tables(summary)).splitlines())) < 240


_FORGED = "::error file=README.md,line=1::forged"


@pytest.mark.parametrize("text", [f"x\n{_FORGED}", _FORGED, f" \t{_FORGED}", "::error", f"##[error]no\r\n{_FORGED}"])
def test_no_name_can_forge_a_workflow_command(text: str) -> None:
    """GitHub reads standard output: `::` after blanks begins a command, and so does `##[` anywhere."""
    summary = summarize(hostile(text), {text: SkillContent("", {text: ""})})
    made = render_plain(summary_tables(summary), summary_line(summary))
    made += render_plain(compare(hostile(text), hostile(text)).tables)
    for line in made.splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
    assert "error" in made


def test_ordinary_colons_stay() -> None:
    assert disarm_line("missed  tests/test_a.py::test_b: x") == "missed  tests/test_a.py::test_b: x"


@pytest.mark.parametrize(
    ("passed", "total", "shown"),
    [
        (1000, 1000, "100% [99%, 100%]"),
        (999, 1000, ">99% [99%, 100%]"),
        (0, 1000, "0% [0%, 1%]"),
        (1, 1000, "<1% [0%, 1%]"),
        (0, 0, "–"),
    ],
)
def test_an_interval_is_never_shown_narrower_than_it_is(passed: int, total: int, shown: str) -> None:
    """A thousand passes do not prove 100%, and 999 are not all."""
    assert format_rate(exact_rate(passed, total)) == shown


@given(st.floats(0, 1), st.floats(0, 1))
def test_ends_are_rounded_outwards(one: float, other: float) -> None:
    low, high = sorted((one, other))
    found = [int(end) / 100 for end in re.findall(r"\d+", format_interval(Interval(low, high)))]
    assert found[0] <= low + 1e-9
    assert high - 1e-9 <= found[1]
    assert max(low - found[0], found[1] - high) < 0.01 + 1e-9


def test_checks_of_loading_do_not_count_as_a_gain_over_no_skill() -> None:
    """A skill that is not there cannot be loaded. Its old version can."""
    rows = {
        case("ask", should=True): ("pp", "mm", "mm"),
        case("leave", should=False): ("pp", "pp", "pp"),
        case("fill"): ("pp", "mm", "mm"),
        case("merge"): ("mm", "pp", "pp"),
        case("late"): ("pp", "ee", "ee"),
    }
    run = run_of(rows)
    about_loading = (
        check.skill_loaded("pdf"),
        ~check.reference_denied("pdf"),
        check.reference_loaded("pdf", "a.md"),
        check.listing_contains("Fills"),
    )
    outcomes = [
        replace(
            one,
            checks=(
                *one.checks,
                *(result(made, Verdict(one.arm == "with", "none")) for made in about_loading if one.checks),
                *([result(check.skill_loaded("csv"), Verdict(True))] if one.case == "pdf/fill" else []),
            ),
        )
        for one in run.outcomes
    ]
    summary = summarize(replace(run, outcomes=tuple(outcomes)))
    without, old = summary.total.versus
    assert [(one.case, one.base, one.new) for one in without.pairs] == [
        ("pdf/fill", (0, 2), (2, 2)),
        ("pdf/merge", (2, 2), (0, 2)),
    ]
    assert (without.aside, without.unpaired, old.aside, len(old.pairs)) == (2, 1, 0, 4)
    assert without.account == (
        "2 cases compared; 2 left aside, because they check only what is offered or loaded; 1 not tried on both sides"
    )
    assert f"pdf against without: {without.account}" in _table(summary, "Gain").notes
    assert without.account in render_page(summary)
    assert without.tokens
    assert without.tokens.cases == 4


def test_a_skill_with_a_space_in_its_name_is_left_out_of_the_gain_too() -> None:
    """A reload of the skill is certain not to happen without it, and the check's name cannot say where it ends."""
    info = case("ask", "my skill")
    reloaded = check.skill_reloaded("my skill", "changed")
    outcomes = (outcome(info.id, "p", deciding=reloaded), outcome(info.id, "m", "without", deciding=reloaded))
    [versus] = summarize(replace(run_of({info: ("p", "m")}), outcomes=outcomes)).total.versus
    assert (versus.aside, versus.pairs) == (1, ())


def test_a_skill_with_only_trigger_cases_has_a_cost_and_no_gain() -> None:
    table = _table(summarize(run_of({case("ask", should=True): ("p", "m")})), "Gain")
    [row] = table.rows
    texts = [cell if isinstance(cell, str) else cell.text for cell in row]
    assert texts == ["pdf", "without", "0", "–", "–", "–", "+300", "+0.0 s", "+$0.0030"]
    assert len(table.notes) == 1


def test_the_cost_of_judges_is_not_a_cost_of_the_skill() -> None:
    """It is in the sum of the arm, and in no difference."""
    run = run_of({case("a"): ("p", "p")})
    judged = tuple(replace(one, judging=Usage(5000, 10, 0, 0.1)) for one in run.outcomes)
    plain, dear = summarize(run), summarize(replace(run, outcomes=judged))
    assert dear.total.arms["with"].spent.tokens == plain.total.arms["with"].spent.tokens + 5010
    assert dear.total.versus == plain.total.versus


def test_a_pipe_gets_every_table_in_plain_text() -> None:
    summary = summarize(sample(), TEXTS)
    assert render_plain(summary_tables(summary), summary_line(summary)) == snapshot("""\
Skills
skill  arm      passed       rate [95%]  errors  tokens    time     cost
csv    with        3/3  100% [2%, 100%]            3.5k   4.5 s  $0.0321
csv    without     3/3  100% [2%, 100%]            2.6k   4.5 s  $0.0231
pdf    with       9/14   64% [22%, 93%]       1   17.8k  22.5 s  $0.1626
pdf    without     2/9    22% [3%, 78%]            8.0k  13.5 s  $0.0708
all    with      12/17   71% [29%, 94%]       1   21.3k  27.0 s  $0.1947
all    without    5/12    42% [9%, 86%]           10.6k  18.0 s  $0.0939

Cases to look at
status  passed  case                          why
flaky      2/3  pdf/merge                     response_contains 'total': it is not there
missed     0/3  pdf/ask: 'Fill in this form'  skill_loaded pdf: it is not there
flaky      2/3  pdf/leave: 'What is a PDF?'   not skill_loaded pdf: it is not there
error      2/2  pdf/split                     ModelHTTPError: 529 overloaded

Gain
skill  against  cases  gain [95%]           verdict  corrected p  tokens per trial   \
time per trial           cost per trial
csv    without      1  ±0 pp [−100, +100]   open     1.000        +300               +0.0 s                   +$0.0030
pdf    without      3  +67 pp [−100, +100]  open     0.750        +300 [+300, +300]  \
+0.0 s [+0.0 s, +0.0 s]  +$0.0030 [+$0.0030, +$0.0030]
all    without      4  +50 pp [−100, +100]  open     0.750        +300 [+300, +300]  \
+0.0 s [+0.0 s, +0.0 s]  +$0.0030 [+$0.0030, +$0.0030]
csv against without: no difference is seen: more runs will not settle it within 10,000
pdf against without: 3 cases compared; 2 not tried on both sides
pdf against without: needs about 10 cases in all (40 more runs)
all against without: 4 cases compared; 2 not tried on both sides
all against without: needs about 16 cases in all (69 more runs)
p is corrected for 3 tests (Holm): if nothing differs, at most 5% of such tables have a verdict

Triggers
skill  precision [95%]  recall [95%]      F1 [95%]
pdf       0% [0%, 98%]  0% [0%, 98%]  0% [0%, 92%]

Who was loaded
should be loaded  trials  csv  pdf  (none)
pdf                    3    3
not pdf                3         3
csv was loaded in 3 trials that were for pdf

Coverage
skill  references  sections  never loaded
pdf           1/2       2/3  references/b.md

Infrastructure errors
trials  cases  what
     1      1  ModelHTTPError: 529 overloaded
neither passes nor misses: not in any rate above

12 of 17 trials passed, 71% [29%, 94%]; \
2 of 6 cases flaky; 1 infrastructure error apart; 31.9k tokens, $0.2886 with the baseline
""")


def test_a_terminal_shows_the_same_words() -> None:
    """Nothing is cut, and hostile characters are written out."""
    run = sample()
    evil = replace(run.outcomes[8], checks=(CheckResult("evil\x1b[31m", Verdict(False, "no")),))
    summary = summarize(replace(run, outcomes=(*run.outcomes[:8], evil, *run.outcomes[9:])), TEXTS)
    console = Console(width=160, no_color=True, record=True, file=StringIO())
    console.print(Cleaned(render_rich(summary_tables(summary), summary_line(summary))))
    shown = console.export_text()
    for part in ("pdf/merge", "Infrastructure errors", "Who was loaded", "+67 pp [−100, +100]", "evil<U+001B>"):
        assert part in shown
    assert "\x1b" not in shown


def test_a_thousand_misses_do_not_fill_the_screen() -> None:
    """The others are counted."""
    run = run_of({case(f"c{at}"): ("m",) for at in range(70)})
    table = next(one for one in summary_tables(summarize(run)) if one.title == "Cases to look at")
    assert (len(table.rows), table.notes) == (50, ("20 more rows are in the HTML report",))


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("ppp", "mmm"), 0),
        (("ppm",), 1),
        (("pme",), 1),
        (("ppe",), 3),
        (("ppp", "ppe"), 3),
        (("eee",), 3),
        (("",), 2),
    ],
)
def test_exit_codes_tell_misses_of_scripted_cases_from_errors(words: tuple[str, ...], code: int) -> None:
    """Misses on a baseline arm do not count."""
    assert judge_run(summarize(run_of({scripted_case("a"): words}))).exit_code == code


def _read_junit(run: Run, gates: Gates | None = None) -> ElementTree.Element:
    summary = summarize(run)
    return ElementTree.fromstring(render_junit(summary, judge_run(summary, gates)).encode())


def test_junit_has_a_testcase_for_each_case() -> None:
    """Failures have the reasons of their checks, and repeats are summed up."""
    root = _read_junit(replace(sample(), replayed=True))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["csv", "pdf"]
    counted = [suites["pdf"].get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counted == ["5", "3", "1", "0"]
    found = {one.get("name"): [child.tag for child in one] for one in suites["pdf"].iter("testcase")}
    assert found == {"fill": [], "merge": ["failure"], "split": ["error"], "ask": ["failure"], "leave": ["failure"]}
    failure = suites["pdf"].find("testcase[@name='merge']/failure")
    assert failure is not None
    assert failure.get("message") == "response_contains 'total': it is not there (1×)"
    assert "pdf/merge: 2 of 3 passed" in (failure.text or "")
    error = suites["pdf"].find("testcase[@name='split']/error")
    assert error is not None
    assert error.get("type") == "infrastructure"


def test_junit_shows_a_miss_that_does_not_fail_the_run_as_skipped_with_its_reason() -> None:
    """CI tools show it, and stay green. An error is one, whatever the gate."""
    root = _read_junit(run_of({case("a"): ("ppm",), case("b"): ("pme",)}))
    [suite] = root
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["2", "0", "1", "1"]
    skipped = suite.find("testcase[@name='a']/skipped")
    assert skipped is not None
    reason = "response_contains 'total': it is not there (1×)"
    assert skipped.attrib == {"message": f"missed, which does not fail the run: {reason}"}
    assert "pdf/a: 2 of 3 passed" in str(skipped.text)


def test_junit_has_a_testcase_for_each_gate() -> None:
    summary = summarize(run_of({case("a"): ("ppm",), case("b"): ("ppp",)}))
    suites = {}
    for fail_under in (0.0, 1.0):
        judgement = judge_run(summary, Gates(fail_under=fail_under))
        suites[fail_under] = list(ElementTree.fromstring(render_junit(summary, judgement)))[-1]
    assert [[child.tag for child in suite.iter()].count("failure") for suite in suites.values()] == [0, 1]
    failure = suites[1.0].find("testcase[@name='--fail-under 100%']/failure")
    assert failure is not None
    assert str(failure.get("message")).startswith("The pass rate is 83%")


_WORDS = st.text("pme", min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(_WORDS, st.booleans()), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([None, 0.0, 0.3, 1.0]),
    st.booleans(),
    st.none() | st.lists(_WORDS, min_size=1, max_size=4),
)
def test_junit_and_annotations_have_failures_if_the_exit_code_is_1_and_never_otherwise(
    words: list[tuple[str, bool]],
    replayed: bool,
    fail_under: float | None,
    no_new_failures: bool,
    before: list[str] | None,
) -> None:
    rows = {}
    for number, (word, is_live) in enumerate(words):
        info = case(str(number)) if is_live else scripted_case(str(number))
        rows[info] = (word,)
    earlier = run_of({case(str(number)): (word,) for number, word in enumerate(before)}) if before else None
    summary = summarize(replace(run_of(rows), replayed=replayed))
    judgement = judge_run(summary, Gates(fail_under, earlier, no_new_failures))
    root = ElementTree.fromstring(render_junit(summary, judgement))
    fails = judgement.exit_code == 1
    assert any(True for _ in root.iter("failure")) == fails
    assert any(note.severity == "error" for note in annotate(summary, judgement)) == fails
    for suite in root:
        for tag, name in {"failure": "failures", "error": "errors", "skipped": "skipped"}.items():
            assert len(list(suite.iter(tag))) == int(suite.get(name, ""))


_TESTCASE = {"name", "classname", "time"}
_SUITE = {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(), max_size=30))
def test_junit_is_legal_xml_whatever_a_reason_holds(text: str) -> None:
    """It may hold control characters, surrogates and markup. Ant's schema accepts the result."""
    run = run_of({CaseInfo(text, text, text, prompt=text, location=text): ("m",)})
    run = replace(run, outcomes=(outcome(text, "m", reason=text),), model=text, started=text)
    root = _read_junit(run)
    assert root.attrib == {}
    for suite in root:
        assert set(suite.attrib) == _SUITE
        assert [child.tag for child in suite] == ["properties", "testcase", "system-out", "system-err"]
        assert all(set(one.attrib) == _TESTCASE and len(one) <= 1 for one in suite.iter("testcase"))


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """It is read from its folder or its file, with surrogates."""
    for run in (sample(), hostile("\ud800\x00é")):
        write_run(summarize(run, TEXTS), tmp_path / "out")
        assert read_run(tmp_path / "out") == read_run(tmp_path / "out" / "run.json") == run
        assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["junit.xml", "report.html", "run.json"]


def _broken(change: Any) -> str:
    plain = json.loads(json.dumps(sample().as_json()))
    change(plain)
    return json.dumps(plain)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "another kind"),
        ('{"skillshelf_evals": true}', "another kind"),
        ('{"skillshelf_evals": 2}', "version 2"),
        ('{"skillshelf_evals": 1}', "run.id is missing"),
        (_broken(lambda run: run.update(repeats="three")), "run.repeats is 'three'"),
        (_broken(lambda run: run["outcomes"][0].update(arm="other")), "run.outcomes[0].arm is 'other'"),
        (_broken(lambda run: run["outcomes"][0]["trace"].update(seconds=float("nan"))), "it is not JSON"),
        (_broken(lambda run: run["outcomes"][0]["trace"].update(answers=[1])), "answers[0] is 1"),
        (
            _broken(lambda run: run["outcomes"][0]["trace"]["events"][0].update(event="new")),
            "trace.events[0] is {",
        ),
        (_broken(lambda run: run["outcomes"][0].update(case="pdf/none")), "not one of its cases"),
        (_broken(lambda run: run["cases"].append(run["cases"][0])), "a case twice"),
        (_broken(lambda run: run["outcomes"].append(run["outcomes"][0])), "trial 1 of 'pdf/fill', with, twice"),
        (_broken(lambda run: run["cases"][0].update(should_trigger="maybe")), "should_trigger is 'maybe'"),
        (_broken(lambda run: run.update(skills=[["a", 1]])), "run.skills is [['a', 1]]"),
    ],
)
def test_a_broken_or_newer_run_file_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(RunUnreadableError, match=re.escape(reason)) as caught:
        read_run(tmp_path)
    assert str(caught.value).startswith(f"{file}: it cannot be read as a run of evals: ")


def test_a_missing_run_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunUnreadableError, match="No such file"):
        read_run(tmp_path / "none")


def test_a_summary_is_available_as_json() -> None:
    """It has no traces, and each case once."""
    plain = json.loads(json.dumps(summary_as_json(summarize(sample(), TEXTS))))
    total = plain["statistics"]["total"]
    assert (plain["run"], plain["repeats"], total.keys() & {"cases"}) == ("r1", 3, set())
    assert total["arms"]["with"]["counts"] == {"passed": 12, "missed": 5, "errors": 1}
    rate = total["arms"]["with"]["rate"]
    assert rate["interval"]["low"] < rate["value"] < rate["interval"]["high"]
    assert plain["statistics"]["skills"][1]["versus"][0]["difference"]["verdict"] == "open"
    assert plain["statistics"]["confusion"] == [
        {"skill": "pdf", "should_trigger": True, "trials": 3, "loaded": [{"skill": "csv", "trials": 3}]},
        {"skill": "pdf", "should_trigger": False, "trials": 3, "loaded": [{"skill": "pdf", "trials": 3}]},
    ]
    assert plain["trials"][0] == {
        "case": "pdf/fill",
        "arm": "with",
        "repeat": 1,
        "status": "passed",
        "problem": "",
        "checks": [
            {"name": "tool_called run_command", "passed": True, "reason": "called", "problem": "", "unrecorded": False},
            {"name": "response_contains 'total'", "passed": True, "reason": "", "problem": "", "unrecorded": False},
        ],
    }
    assert "trace" not in json.dumps(plain)


def test_an_empty_run_has_reports_too() -> None:
    run = Run("r", "", "m", (), ())
    summary = summarize(run)
    assert render_plain(summary_tables(summary), summary_line(summary)) == "Nothing was tried.\n"
    assert "Nothing was tried." in render_page(summary)
    assert list(_read_junit(run)) == []
    assert annotate(summary) == ()
