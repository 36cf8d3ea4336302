"""Reports of a run: the numbers, and what each reader makes of them."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.console import Console
from run_kit import case, loads, outcome, run_of

from skillshelf.agent.events import ReferenceDenied, ReferenceLoaded, SkillInvoked, ToolCalled
from skillshelf.cli.reports import github
from skillshelf.evals.checks.base import Verdict
from skillshelf.evals.report import as_json, blame, exit_code, junit, page, read_run, summarize, terminal, write_run
from skillshelf.evals.report.files import RunUnreadableError
from skillshelf.evals.report.html import elements
from skillshelf.evals.report.seen import Step, timeline
from skillshelf.evals.results import CaseInfo, CheckResult, Run
from skillshelf.evals.stats import Counts, SkillText
from skillshelf.rendering import Cleaned

TEXTS = {"pdf": SkillText("# Forms\n", {"references/a.md": "# A\n", "references/b.md": "# B\n"})}


def sample(path: str = "skills/pdf/SKILL.md") -> Run:
    """Two skills with a baseline, an error, a stolen trigger and one that came for nothing."""
    rows = {
        case("fill"): ("ppp", "mmm"),
        case("merge"): ("ppm", "mmp"),
        case("split"): ("pep", "pmm"),
        case("sum", "csv"): ("ppp", "ppp"),
        case("ask", should=True, prompt="Fill in this form"): ("mmm",),
        case("leave", should=False, prompt="What is a PDF?"): ("mpp",),
    }
    events = {
        "pdf/fill": loads("pdf", "references/a.md"),
        "pdf/merge": loads("pdf"),
        "pdf/ask": loads("csv"),
        "pdf/leave": loads("pdf"),
        "csv/sum": loads("csv"),
    }
    return run_of(rows, events, skills={"pdf": path})


def test_the_summary_counts_errors_apart() -> None:
    """In no denominator, on no arm, and always shown."""
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
    """The reason is the judge's."""
    whole = run_of({case("a"): ("p",)})
    broken = replace(whole.outcomes[0], checks=(CheckResult("judge", Verdict(False, error="judge: 503")),))
    summary = summarize(replace(whole, outcomes=(broken,)))
    assert summary.total.arms["with"].counts == Counts(0, 0, 1)
    assert summary.faults[0].message == "judge: 503"


def test_the_terminal_shows_all_of_it_in_plain_text() -> None:
    """What a pipe gets."""
    summary = summarize(sample(), TEXTS)
    assert terminal.plain(terminal.tables(summary), terminal.headline(summary)) == snapshot("""\
Skills
skill  arm      passed        rate [95%]  errors  tokens    time     cost
csv    with        3/3  100% [21%, 100%]            3.5k   4.5 s  $0.0321
csv    without     3/3  100% [21%, 100%]            2.6k   4.5 s  $0.0231
pdf    with       9/14    64% [26%, 90%]       1   17.8k  22.5 s  $0.1626
pdf    without     2/9     22% [3%, 73%]            8.0k  13.5 s  $0.0708
all    with      12/17    71% [33%, 92%]       1   21.3k  27.0 s  $0.1947
all    without    5/12    42% [11%, 80%]           10.6k  18.0 s  $0.0939

Cases to look at
status  passed  case       why
missed     2/3  pdf/merge  response_contains('total'): it is not there
missed     0/3  pdf/ask    response_contains('total'): it is not there
missed     2/3  pdf/leave  response_contains('total'): it is not there
error      2/2  pdf/split  ModelHTTPError: 529 overloaded

Gain
skill  against  gain [95%]         verdict  p      tokens per trial   cost per trial
csv    without  ±0 pp [−99, +99]   open     1.000  +300               +$0.0030
pdf    without  +67 pp [−39, +94]  open     0.250  +300 [+300, +300]  +$0.0030 [+$0.0030, +$0.0030]
all    without  +50 pp [−11, +84]  open     0.250  +300 [+300, +300]  +$0.0030 [+$0.0030, +$0.0030]
csv against without: no difference is seen: more runs will not settle it within 10,000
pdf against without: needs about 6 cases in all (17 more runs)
all against without: needs about 8 cases in all (23 more runs)

Triggers
skill  precision [95%]  recall [95%]      F1 [95%]
pdf       0% [0%, 79%]  0% [0%, 79%]  0% [0%, 79%]

Who was loaded
should be loaded  trials  csv  pdf  (none)
pdf                    3    3
(none)                 3         3
csv was loaded in 3 trials that were for pdf

Coverage
skill  references  sections  never loaded
pdf           1/2       2/3  references/b.md

Infrastructure errors
trials  cases  what
     1      1  ModelHTTPError: 529 overloaded
neither passes nor misses: in no rate above

12 of 17 trials passed, 71% [33%, 92%]; pass@3 80%, pass^3 40%; 1 infrastructure error apart; 21.3k tokens, $0.1947
""")


def test_the_screen_shows_the_same_words() -> None:
    """Cut nowhere; hostile characters are written out."""
    run = sample()
    evil = replace(run.outcomes[8], checks=(CheckResult("evil\x1b[31m", Verdict(False, "no")),))
    summary = summarize(replace(run, outcomes=(*run.outcomes[:8], evil, *run.outcomes[9:])), TEXTS)
    console = Console(width=160, no_color=True, record=True, file=StringIO())
    console.print(Cleaned(terminal.rich(terminal.tables(summary), terminal.headline(summary))))
    shown = console.export_text()
    for words in ("pdf/merge", "Infrastructure errors", "Who was loaded", "+67 pp [−39, +94]", "evil<U+001B>"):
        assert words in shown
    assert "\x1b" not in shown


def test_a_thousand_misses_do_not_fill_the_screen() -> None:
    """The rest is counted."""
    run = run_of({case(f"c{at}"): ("m",) for at in range(70)})
    table = next(one for one in terminal.tables(summarize(run)) if one.title == "Cases to look at")
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
def test_exit_codes_tell_misses_from_errors(words: tuple[str, ...], code: int) -> None:
    """A baseline that misses gates nothing."""
    assert exit_code(run_of({case("a"): words})) == code


def test_junit_has_a_testcase_for_each_case() -> None:
    """Failures with the reasons of the checks, errors apart, repeats summed up."""
    root = ElementTree.fromstring(junit(summarize(sample())))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["csv", "pdf"]
    counted = [suites["pdf"].get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counted == ["5", "3", "1", "0"]
    found = {one.get("name"): [child.tag for child in one] for one in suites["pdf"].iter("testcase")}
    assert found == {"fill": [], "merge": ["failure"], "split": ["error"], "ask": ["failure"], "leave": ["failure"]}
    failure = suites["pdf"].find("testcase[@name='merge']/failure")
    assert failure is not None
    assert failure.get("message") == "response_contains('total'): it is not there (1×)"
    assert "pdf/merge: 2 of 3 passed, 67% [21%, 94%]" in (failure.text or "")
    error = suites["pdf"].find("testcase[@name='split']/error")
    assert error is not None
    assert error.get("type") == "infrastructure"


_TESTCASE = {"name", "classname", "time"}
_SUITE = {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}


@settings(max_examples=50, deadline=None)
@given(st.text(st.characters(), max_size=30))
def test_junit_is_legal_xml_whatever_a_reason_holds(text: str) -> None:
    """Control characters, surrogates and markup; and no more than Ant's schema knows."""
    run = run_of({CaseInfo(text, text, text, prompt=text, location=text): ("m",)})
    run = replace(run, outcomes=(outcome(text, "m", reason=text),), model=text, started=text)
    made = junit(summarize(run)).encode()
    root = ElementTree.fromstring(made)
    assert root.attrib == {}
    for suite in root:
        assert set(suite.attrib) == _SUITE
        assert [child.tag for child in suite] == ["properties", "testcase", "system-out", "system-err"]
        assert all(set(one.attrib) == _TESTCASE and len(one) <= 1 for one in suite.iter("testcase"))


def test_blame_falls_on_the_line_that_can_be_mended(tmp_path: Path) -> None:
    """A missed trigger on `description:`, a case that was not followed where it is written, gaps as notes."""
    skill = tmp_path / "SKILL.md"
    skill.write_text("---\nname: pdf\ndescription: Does it.\n---\n")
    notes = blame(summarize(sample(str(skill)), TEXTS))
    assert [(note.severity, note.code, note.path, note.line) for note in notes] == [
        ("error", "trigger-missed", str(skill), 3),
        ("error", "trigger-false", str(skill), 3),
        ("error", "case-missed", "skills/pdf/evals/cases.yaml", 7),
        ("info", "coverage-gap", str(skill), 1),
    ]
    assert notes[0].message == "not loaded where it should be: 'Fill in this form' (passed 0 of 3)"
    assert github(notes[2]).startswith("::error file=skills/pdf/evals/cases.yaml,line=7,title=case-missed::pdf/merge")
    assert github(notes[3]).endswith("::no case loaded 1 of 2 references: references/b.md")


def test_blame_without_a_file_is_on_line_one() -> None:
    """A SKILL.md that is gone by now still gets its annotation."""
    assert blame(summarize(sample("gone/SKILL.md")))[0].line == 1


def test_a_timeline_goes_from_offered_to_followed() -> None:
    """In the order of events; what was refused or did not hold is marked."""
    events = (
        ToolCalled("0", "search_skills", {"query": "forms"}),
        ToolCalled("9", "read_file", {"path": "a"}),
        SkillInvoked("pdf", ""),
        *loads("pdf"),
        ReferenceDenied("pdf", "x.md", "not listed"),
    )
    found = timeline(outcome("c", "m", events=events), "pdf")
    assert found.steps == (
        Step(0, "offered", "pdf listed"),
        Step(1, "selected", "search: forms"),
        Step(3, "selected", "/skills:pdf"),
        Step(4, "selected", "pdf"),
        Step(5, "loaded", "pdf"),
        Step(6, "loaded", "pdf / x.md: not listed", False),
        Step(7, "followed", "tool_called('run_command'): called"),
        Step(8, "followed", "response_contains('total'): it is not there", False),
    )
    assert (found.tools, found.length) == (((2, "read_file"),), 9)
    assert timeline(outcome("c", "p"), "gone").steps[0] == Step(0, "offered", "gone not listed", False)


class _Seen(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def _look(html: str) -> _Seen:
    seen = _Seen()
    seen.feed(html)
    return seen


def test_the_page_shows_every_plot_and_needs_nothing_else() -> None:
    """No address of another place, no style or handler in an attribute."""
    html = page(summarize(sample(), TEXTS))
    seen = _look(html)
    for title in ("Pass rates", "Gain", "Cost against gain", "Triggers", "Coverage", "Infrastructure errors", "Cases"):
        assert f">{title}</h2>" in html
    assert {"svg", "details", "table", "caption", "nav"} <= set(seen.tags)
    assert seen.tags.count("script") == seen.tags.count("style") == 1
    assert all(value.startswith("#") for name, value in seen.attributes if name in ("href", "src"))
    assert not re.search(r"https?://|@import|url\(", html)
    assert len(set(_ids(seen))) == len(_ids(seen))


def _ids(seen: _Seen) -> list[str]:
    return [value for name, value in seen.attributes if name == "id"]


_PAYLOADS = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror=alert(1)>',
    "</style></script></title><script>1</script>",
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "<!--",
    "]]>",
    "&lt;b&gt;",
]


def hostile(text: str) -> Run:
    """A run in which whatever comes from outside is this text."""
    info = CaseInfo(text + "1", text, text, True, text, text)
    other = replace(info, id=text + "2", should_trigger=None)
    events = (*loads(text, text), ReferenceLoaded(text, text, "model", 3), ToolCalled("1", text, {text: text}))
    outcomes = [
        outcome(one.id, letter, arm, 0, events, reason=text, answer=text)
        for one in (info, other)
        for letter, arm in (("m", "with"), ("p", "without"))
    ]
    stray = replace(outcomes[0], repeat=1, trace=replace(outcomes[0].trace, error=text or "x", systems=(text,)))
    return Run(text, text, text, (info, other), (*outcomes, stray), {text: text}, 2, text)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(_PAYLOADS) | st.text(max_size=8), max_size=4).map("".join))
def test_nothing_in_a_run_can_become_markup(text: str) -> None:
    """The page has the tags and attributes of an innocent one, and nothing besides."""
    texts = {text: SkillText(f"# {text}\n", {text: text})}
    innocent, seen = _look(page(summarize(hostile("innocent")))), _look(page(summarize(hostile(text), texts)))
    known = set(innocent.tags) | {"ul", "li", "q", "p", "pre"}
    assert set(seen.tags) <= known
    assert seen.tags.count("script") == seen.tags.count("style") == 1
    assert not [name for name, _ in seen.attributes if name.startswith("on") or name in ("style", "src", "srcdoc")]
    assert all(value.startswith("#") for name, value in seen.attributes if name == "href")


def test_text_is_escaped_by_being_text() -> None:
    """Only what the module made is markup; hidden characters are written out."""
    assert elements.tag("p", "<b>", elements.tag("i", "\u202e&")) == "<p>&lt;b&gt;<i>&lt;U+202E&gt;&amp;</i></p>"
    assert elements.tag("p", class_='"', hidden=False, lang=None) == '<p class="&quot;"></p>'


def test_a_long_run_still_opens() -> None:
    """Trials beyond what a page can hold are left to `run.json`, the ones that missed are not."""
    rows = {case(f"c{at}"): ("p",) for at in range(500)} | {case("bad"): ("m",)}
    html = page(summarize(run_of(rows)))
    assert html.count('class="trial"') == 400
    assert "101 more cases are in run.json." in html
    assert html.index("pdf/bad") < html.index("pdf/c1<")


@pytest.mark.skipif(not shutil.which("chromium"), reason="no chromium here to open the page with")
def test_a_browser_runs_nothing_that_an_answer_holds(tmp_path: Path) -> None:
    """The page's own few lines run, under its policy; a payload that got through would change the title."""
    write_run(hostile("".join(_PAYLOADS)), tmp_path)
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*browser, "--dump-dom", f"file://{tmp_path / 'report.html'}"], capture_output=True, text=True, timeout=60
    )
    assert "<title>owned" not in done.stdout
    assert re.search(r'<p class="buttons"(?! hidden)', done.stdout), done.stderr


def test_a_run_comes_back_as_it_was_written(tmp_path: Path) -> None:
    """From its folder or its file; surrogates and all."""
    for run in (sample(), hostile("\ud800\x00é")):
        write_run(run, tmp_path / "out", TEXTS)
        assert read_run(tmp_path / "out") == read_run(tmp_path / "out" / "run.json") == run
        assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["junit.xml", "report.html", "run.json"]


def _broken(change: Any) -> str:
    plain = json.loads(json.dumps(sample().as_json()))
    change(plain)
    return json.dumps(plain)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no JSON"),
        ("[]", "another kind"),
        ('{"skillshelf_evals": true}', "another kind"),
        ('{"skillshelf_evals": 2}', "version 2"),
        ('{"skillshelf_evals": 1}', "KeyError"),
        (_broken(lambda run: run.update(repeats="3")), "run.repeats is '3'"),
        (_broken(lambda run: run["outcomes"][0].update(arm="other")), "run.outcomes[0].arm is 'other'"),
        (_broken(lambda run: run["outcomes"][0]["trace"].update(seconds=float("nan"))), "seconds is nan"),
        (_broken(lambda run: run["outcomes"][0]["trace"].update(answers=[1])), "answers[0] is 1"),
        (_broken(lambda run: run["outcomes"][0]["trace"]["events"][0].update(event="new")), "KeyError"),
        (_broken(lambda run: run["outcomes"][0].update(case="pdf/none")), "none of its cases"),
        (_broken(lambda run: run["cases"].append(run["cases"][0])), "a case twice"),
        (_broken(lambda run: run["cases"][0].update(should_trigger=1)), "should_trigger is 1"),
        (_broken(lambda run: run.update(skills=[["a", 1]])), "run.skills.a is 1"),
    ],
)
def test_a_broken_or_newer_file_is_refused_in_words(tmp_path: Path, text: str, reason: str) -> None:
    """Before any number is made of it."""
    file = tmp_path / "run.json"
    file.write_text(text)
    with pytest.raises(RunUnreadableError, match=re.escape(reason)) as caught:
        read_run(tmp_path)
    assert str(caught.value).startswith(f"{file}: it cannot be read as a run of evals: ")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """With the same error."""
    with pytest.raises(RunUnreadableError, match="No such file"):
        read_run(tmp_path / "none")


def test_the_numbers_are_there_for_programs() -> None:
    """Plain values all through, without the traces."""
    plain = json.loads(json.dumps(as_json(summarize(sample(), TEXTS))))
    assert plain["total"]["arms"]["with"]["counts"] == {"passed": 12, "missed": 5, "errors": 1}
    assert plain["skills"][1]["versus"][0]["difference"]["verdict"] == "open"
    assert {"expected": "pdf", "loaded": "csv", "trials": 3} in plain["confusion"]["cells"]
    assert "trace" not in json.dumps(plain)


def test_an_empty_run_has_reports_too() -> None:
    """Nothing was tried, and every report says so in its way."""
    run = Run("r", "", "m", (), ())
    summary = summarize(run)
    assert terminal.plain(terminal.tables(summary), terminal.headline(summary)) == "Nothing was tried.\n"
    assert "Nothing was tried." in page(summary)
    assert list(ElementTree.fromstring(junit(summary))) == []
    assert blame(summary) == ()
