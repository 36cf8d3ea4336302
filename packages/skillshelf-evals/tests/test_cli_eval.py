"""`skillshelf eval` as people and CI use it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from chats import script, tool
from judging import decide
from processes import (
    Child,
    count_responses,
    count_trials,
    expect_each_call_once,
    model_options,
    suite,
    wait_until,
)
from provider import Provider
from skillshelf.cli._output import Output
from skillshelf_evals.cli._progress import Progress, ProgressBar

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]

GOOD = """
cases:
  - name: loads it
    prompt: fill in the form
    script:
      - {tool: load_skill_instructions, arguments: {skill_name: pdf}}
      - done
    checks: [{skill_loaded: pdf}, {response_contains: done}]
"""
BAD = GOOD.replace("loads it", "says it").replace("response_contains: done", "response_contains: never")
ERROR = "cases:\n  - {name: breaks, prompt: hi, script: [{fail: gone}], checks: [{response_contains: x}]}\n"
LIVE = "cases:\n  - {name: live, prompt: hi, tags: [slow], checks: [{response_contains: said}]}\n"


@pytest.fixture
def cases(write: Write) -> Callable[..., Path]:
    """Writes case files beside a skill, and returns its folder."""

    def write_cases(*texts: str) -> Path:
        folder = write("skills/pdf", references__a_md="# A\n\nText.\n").parent
        (folder / "evals").mkdir()
        for number, text in enumerate(texts):
            (folder / "evals" / f"{number}.yaml").write_text(text)
        return folder

    return write_cases


def test_exit_codes_tell_passed_missed_and_errors_apart(run: Run, cases: Callable[..., Path], tmp_path: Path) -> None:
    cases(GOOD, BAD, ERROR)
    codes = [run("eval", "-k", name)[0] for name in ("loads it", "says it", "breaks", "pdf")]
    assert codes == [0, 1, 3, 1]


def test_a_run_leaves_a_report_and_says_where(run: Run, cases: Callable[..., Path], tmp_path: Path) -> None:
    """It is in the folder that --report names, or in one of its own."""
    cases(GOOD, BAD)
    code, out, _ = run("eval", "skills", "--report", "out", "--github")
    assert code == 1
    assert "1 of 2 scripted cases passed" in out
    assert "out/report.html" in out
    assert "::error " in out
    assert ElementTree.parse(tmp_path / "out" / "junit.xml").getroot().tag == "testsuites"
    assert sum(count_trials(tmp_path / "out").values()) == 2


def test_json_for_a_program(run: Run, cases: Callable[..., Path]) -> None:
    cases(GOOD)
    code, out, said = run("eval", "--json")
    told = json.loads(out)
    assert (code, said, told["exit_code"]) == (0, "", 0)
    [trial] = told["trials"]
    assert (trial["case"], trial["arm"], trial["status"]) == ("pdf/loads it", "with", "passed")
    assert os.path.isfile(os.path.join(told["folder"], "run.json"))


def test_list_names_the_cases_and_the_faults(run: Run, cases: Callable[..., Path]) -> None:
    """A run does not start while a case cannot be read: it would be missing from the numbers."""
    cases(GOOD, "cases:\n  - {name: odd, promt: hi}\n")
    code, out, _ = run("eval", "list")
    assert code == 1
    assert "pdf/loads it" in out
    assert "1.yaml:2" in out
    code, out, said = run("eval")
    assert code == 2
    assert "nothing was run" in said
    code, out, _ = run("eval", "list", "--json")
    assert [one["case"] for one in json.loads(out)["cases"]] == ["pdf/loads it"]
    assert json.loads(run("eval", "--json")[1])["error"]["code"] == "invalid-cases"


def test_keep_going_runs_the_cases_that_can_be_read(run: Run, cases: Callable[..., Path]) -> None:
    """The exit code is not 0: the numbers are those of a part of the cases."""
    cases(GOOD, "cases:\n  - {name: odd, promt: hi}\n")
    code, out, _ = run("eval", "--keep-going")
    assert code == 3
    assert "1.yaml:2" in out
    assert "1 of 1 scripted case passed" in out
    assert "1 error in the case files: those cases are not in these numbers." in out
    code, out, _ = run("eval", "--keep-going", "--json")
    report = json.loads(out)
    assert (code, report["exit_code"]) == (3, 3)
    assert [(one["code"], one["line"]) for one in report["diagnostics"]] == [("case-invalid", 2)]
    assert "--keep-going" in run("eval")[2]


def test_keep_going_without_faults_changes_nothing(run: Run, cases: Callable[..., Path]) -> None:
    cases(GOOD, BAD)
    assert run("eval", "-k", "loads it", "--keep-going")[0] == 0
    code, out, _ = run("eval", "--keep-going", "--json")
    assert (code, json.loads(out)["diagnostics"]) == (1, [])


def test_a_set_that_lies_elsewhere_runs_for_the_skill_that_is_named(
    run: Run, cases: Callable[..., Path], write: Write, tmp_path: Path
) -> None:
    skill = cases()
    write("skills/docx")
    suite = tmp_path / "sets"
    suite.mkdir()
    (suite / "forms.yaml").write_text(GOOD)
    (suite / "triggers.json").write_text('[{"query": "Fill it in.", "should_trigger": true}]')
    for given in ("pdf", "skills/pdf", str(skill)):
        code, out, said = run("eval", "sets/forms.yaml", "--skill", given, "--json")
        assert (code, said) == (0, "")
        assert [trial["case"] for trial in json.loads(out)["trials"]] == ["pdf/loads it"]
    code, out, _ = run("eval", "list", "sets", "--skill", "pdf", "--json")
    assert [(case["skill"], case["should_trigger"]) for case in json.loads(out)["cases"]] == [
        ("pdf", None),
        ("pdf", True),
    ]
    code, _, said = run("eval", "list", "sets", "--skill", "pdg")
    assert code == 2
    assert "--skill: there is no skill 'pdg'. Did you mean 'pdf'?" in said


def test_no_cases_says_where_it_looked_and_how_to_write_one(run: Run, write: Write) -> None:
    write("skills/pdf")
    code, _, said = run("eval", "skills")
    assert code == 2
    assert "there is no case in skills" in said
    assert "cases:" in said
    assert "with 'x' in its name, query or tags" in run("eval", "skills", "-k", "x")[2]


def test_the_run_s_model_answers_cases_without_a_script(run: Run, cases: Callable[..., Path], tmp_path: Path) -> None:
    cases(LIVE)
    model = script(tmp_path, tool("load_skill_instructions", skill_name="pdf"), "said")
    assert run("eval", "--model", model)[0] == 0
    code, _, said = run("eval")
    assert code == 2
    assert "No model was chosen" in said


def test_a_case_runs_with_and_without_the_skill(run: Run, cases: Callable[..., Path], tmp_path: Path) -> None:
    """Misses of the baseline do not count: they are what the skill is for."""
    cases(LIVE.replace("response_contains: said", "skill_loaded: pdf"))
    model = script(tmp_path, tool("load_skill_instructions", skill_name="pdf"), "said")
    code, out, _ = run("eval", "--baseline", "none", "--report", "out", "--model", model)
    assert code == 0, out
    assert count_trials(tmp_path / "out") == {"pdf/live#with#1 passed": 1, "pdf/live#without#1 missed": 1}
    code, _, said = run("eval", "--baseline", "no-such-thing")
    assert code == 2
    assert "--baseline no-such-thing" in said


def test_a_scripted_case_is_tried_once_and_stands_apart_from_the_rates(
    run: Run, cases: Callable[..., Path], tmp_path: Path
) -> None:
    """It says nothing about the model: not by its repeats, and not by what it does without the skill."""
    cases(GOOD, LIVE)
    model = script(tmp_path, "said")
    options = ("--repeat", "2", "--baseline", "none", "--model", model, "--report", "out")
    code, out, _ = run("eval", *options)
    assert code == 0
    assert count_trials(tmp_path / "out") == {
        "pdf/loads it#with#1 passed": 1,
        "pdf/live#with#1 passed": 1,
        "pdf/live#with#2 passed": 1,
        "pdf/live#without#1 passed": 1,
        "pdf/live#without#2 passed": 1,
    }
    assert "2 of 2 trials passed, 100% [2%, 100%]; " in out
    assert "; 1 of 1 scripted case passed\n" in out
    assert "pdf/loads it: 1 of 1 passed, scripted" in (tmp_path / "out" / "junit.xml").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert re.search(r"scripted cases passed</span><strong><a [^>]*>1 of 1</a></strong>", page)


def test_a_baseline_for_scripted_cases_alone_says_that_nothing_is_compared(
    run: Run, cases: Callable[..., Path]
) -> None:
    cases(GOOD)
    code, _, said = run("eval", "--baseline", "none")
    assert (code, "--baseline none: no case can be compared." in said) == (0, True)


def test_compare_reads_runs_by_folder_and_by_name(run: Run, cases: Callable[..., Path]) -> None:
    cases(GOOD)
    run("eval", "--report", "a")
    name = json.loads(run("eval", "--json")[1])["run"]
    code, out, _ = run("eval", "compare", "a", name)
    assert code == 0
    assert name in out
    assert json.loads(run("eval", "compare", "a", name, "--json")[1])["only_a"] == []
    assert run("eval", "compare", "a")[0] == 2
    code, _, said = run("eval", "compare", "a", "nowhere")
    assert (code, "There is no run 'nowhere'" in said) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--engine", "mysql://x"], "argument --engine: give the address of a PostgreSQL server"),
        (["--parallel", "0"], "there are none without --engine"),
        (["--parallel", "-1"], "argument --parallel: give a whole number of at least 0, not '-1'"),
        (["--rate", "0"], "argument --rate: give a whole number of at least 1, not '0'"),
        (["--record", "a", "--replay", "b"], "not allowed with"),
        (["--resume", "nowhere"], "There is no run 'nowhere'"),
        (["--replay", "nowhere"], "nowhere"),
        (["no/such/path"], "no/such/path"),
        (["worker"], "a worker needs --engine"),
    ],
)
def test_wrong_use_is_said_in_a_sentence(run: Run, cases: Callable[..., Path], words: list[str], says: str) -> None:
    cases(LIVE)
    code, _, said = run("eval", *words)
    assert code == 2
    assert says in said
    assert "Traceback" not in said


def test_options_may_come_before_the_action(run: Run, cases: Callable[..., Path], tmp_path: Path) -> None:
    """An option's value is not mistaken for an action, and paths without an action are cases to run."""
    cases(GOOD)
    assert json.loads(run("eval", "--json", "list", "skills")[1])["cases"]
    assert json.loads(run("eval", "-C", str(tmp_path), "-kloads", "list", "--json")[1])["cases"]
    assert "there is no case with 'list'" in run("eval", "-k", "list", "skills", "--trust-workspace")[2]
    assert "1 of 1 scripted case passed" in run("eval", "run", "skills")[1]
    assert "1 of 1 scripted case passed" in run("eval", "--github", "skills")[1]


@pytest.mark.parametrize("action", ["list", "compare", "worker"])
def test_an_action_takes_only_its_own_options(run: Run, action: str) -> None:
    words = {"compare": ["a", "b"]}.get(action, [])
    code, _, said = run("eval", action, *words, "--keep-going")
    assert code == 2
    assert f"skillshelf eval {action}: error: unrecognized arguments: --keep-going" in said


def test_a_finished_run_is_not_resumed_and_a_changed_one_neither(run: Run, cases: Callable[..., Path]) -> None:
    folder = cases(GOOD, ERROR)
    assert run("eval", "-k", "loads", "--report", "a")[0] == 0
    assert "is finished" in run("eval", "--resume", "a")[2]
    assert run("eval", "--report", "b")[0] == 3
    assert run("eval", "--resume", "b")[0] == 3, "what was an error may be tried again"
    (folder / "SKILL.md").write_text("---\nname: pdf\ndescription: Other.\n---\n\nOther.\n")
    code, _, said = run("eval", "--resume", "b")
    assert (code, "have changed since" in said) == (2, True)


def test_a_recording_is_replayed_without_a_model(cases: Callable[..., Path], run: Run, tmp_path: Path) -> None:
    """Each trial gets its own answers, and the server is not needed."""
    pytest.importorskip("dbos", reason="the extra `evals` is not installed")
    cases(LIVE.replace("said", "well"))
    with Provider() as provider:
        assert run("eval", *model_options(provider), "--repeat", "2", "--record", "kept")[0] == 0
        asked = provider.asked
    code, out, said = run("eval", "--replay", "kept", "--repeat", "2")
    assert code == 0, out + said
    assert asked == 6


def test_model_chooses_among_the_recorded_models(
    cases: Callable[..., Path], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model from the user's settings is not required to be in the recording."""
    pytest.importorskip("dbos", reason="the extra `evals` is not installed")
    cases(LIVE.replace("said", "large"))
    with Provider(1, lambda body, number: f"I am {body['model']}.") as provider:
        for model in ("tiny", "large"):
            run("eval", "--base-url", provider.url, "--model", model, "--record", "kept")
    code, _, said = run("eval", "--replay", "kept")
    assert (code, "answers of several models: openai:large, openai:tiny" in said) == (2, True)
    assert [run("eval", "--replay", "kept", "--model", model)[0] for model in ("tiny", "large")] == [1, 0]
    code, _, said = run("eval", "--replay", "kept", "--model", "other")
    assert (code, "has no answers of other" in said) == (2, True)
    monkeypatch.setenv("SKILLSHELF_MODEL", "large")
    assert run("eval", "--replay", "kept", "--engine", "postgresql://127.0.0.1:1/x", "--parallel", "0")[0] == 0


def test_without_the_driver_a_run_with_workers_says_what_to_install(
    run: Run, cases: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on this machine does not need it."""
    cases(LIVE, GOOD)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    words = ["-m", "tiny", "--base-url", "http://127.0.0.1:1/v1", "--engine", "postgresql://127.0.0.1:1/evals"]
    code, _, said = run("eval", *words)
    assert (code, "pip install 'skillshelf[evals]'" in said) == (1, True)
    assert run("eval", "-k", "loads")[0] == 0


def test_an_interrupted_run_says_how_to_resume_it(tmp_path: Path) -> None:
    pytest.importorskip("dbos", reason="the extra `evals` is not installed")
    suite(tmp_path, 2)
    with Provider() as provider:
        child = Child("pdf", *model_options(provider), "--report", "report", "--parallel", "1", cwd=tmp_path)

        def interrupt(number: int) -> None:
            if number == 2:
                child.interrupt()

        provider.arrived = interrupt
        assert child.end() == 130, child.said()
        assert "Continue with `skillshelf eval --resume report --trust-workspace`" in child.said()
        assert "Traceback" not in child.said()
        wait_until(lambda: count_responses(tmp_path / "report") == 1)
        child = Child("--resume", "report", cwd=tmp_path)
        assert child.end() == 0, child.said()
        assert dict(provider.answered) == expect_each_call_once(2, 3)


def test_a_terminal_shows_a_progress_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from skillshelf_evals import Outcome, Trace

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    progress = ProgressBar(2, Output())
    with progress.shown():
        progress.add_outcome(Outcome("a", "with", 1, (), Trace()))
    out = capsys.readouterr().out
    assert "1/2" in out
    assert "1 passed" in out


def test_a_pipe_gets_a_line_of_progress_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error: standard output is for the report."""
    from skillshelf_agent.events import Usage
    from skillshelf_evals import Outcome, Trace

    lines: list[str] = []

    def has_line() -> bool:
        captured = capsys.readouterr()
        assert captured.out == ""
        lines.extend(captured.err.splitlines())
        return bool(lines)

    progress = Progress(2, seconds=0.01)
    progress.add_outcome(Outcome("a", "with", 1, (), Trace(usage=Usage(1, 1, cost=0.25))))
    with progress.shown():
        wait_until(has_line)
    assert lines[0] == "skillshelf: 1 of 2 trials, 1 passed, $0.25 for these, after 0 minutes"


def test_a_resumed_run_keeps_its_report_options_and_refuses_others(
    run: Run, cases: Callable[..., Path], tmp_path: Path
) -> None:
    """Another number of repeats would be another run."""
    cases(ERROR)
    assert run("eval", "--report", "a", "--github", "--gate", "no-new-failures")[0] == 3
    code, out, _ = run("eval", "--resume", "a")
    assert code == 3
    assert "::warning " in out
    assert "--gate no-new-failures: passed." in out
    code, _, said = run("eval", "--resume", "a", "--repeat", "5")
    assert (code, "did not begin with this repeat: 5. Leave it out" in said) == (2, True)
    assert run("eval", "skills", "--resume", "a")[0] == 2
    assert run("eval", "--resume", "a", "--timeout", "5")[0] == 2
    assert "Leave out --report" in run("eval", "--resume", "a", "--report", "b")[2]
    assert run("eval", ".", "--resume", "a")[0] == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--report", "skills/pdf/SKILL.md"), "--report: cannot write to the folder skills/pdf/SKILL.md: File exists"),
        (("--record", "skills/pdf/SKILL.md"), "--record: cannot write to the folder skills/pdf/SKILL.md: File exists"),
        (("--record", "/proc/x"), "--record: cannot write to the folder /proc/x"),
        (("--replay", "nowhere"), "--replay: there is no folder nowhere"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_run(
    run: Run, cases: Callable[..., Path], words: tuple[str, ...], said: str
) -> None:
    cases(GOOD, LIVE)
    code, out, complaint = run("eval", *words)
    assert (code, out) == (2, "")
    assert said in complaint


def test_a_judge_without_a_model_is_refused_before_anything_is_run(
    run: Run, cases: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process asks the judges, even if all cases are scripted or workers have the keys."""
    monkeypatch.delenv("SKILLSHELF_MODEL", raising=False)
    cases(GOOD.replace("{response_contains: done}", "{judge: It is done.}"))
    code, out, complaint = run("eval")
    assert (code, out) == (2, "")
    assert "model" in complaint


@pytest.mark.parametrize(
    ("words", "configured", "judge"),
    [
        ((), "tested", "tested"),
        (("--model", "tested"), "", "tested"),
        (("--model", "tested"), "tested", "tested"),
        (("--model", "tested"), "wise", "wise"),
        (("--model", "tested", "--judge", "strict"), "wise", "strict"),
        (("--judge", "strict"), "tested", "strict"),
    ],
)
def test_the_judge_is_not_the_model_under_test_if_another_is_configured(
    run: Run,
    cases: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    configured: str,
    judge: str,
) -> None:
    """The report says which model judged."""
    cases("cases:\n  - {name: one, prompt: hi, checks: [judge: It greets.]}\n")
    asked: list[str] = []

    def says(body: dict[str, Any], number: int) -> str:
        asked.append(body["model"])
        return decide("yes") if "numbered sentences" in str(body) else "Hello"

    with Provider(1, says) as provider:
        monkeypatch.setenv("SKILLSHELF_BASE_URL", provider.url)
        monkeypatch.setenv("SKILLSHELF_MODEL", configured)
        code, out, said = run("eval", "--json", *words)
    assert code == 0, said
    assert asked == ["tested", judge]
    assert json.loads(out)["judge"] == f"openai-chat:{judge}"


def test_a_run_cannot_be_resumed_with_another_judge(
    run: Run, cases: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts of two judges would be mixed."""
    cases("cases:\n  - {name: one, prompt: hi, script: [Hello], checks: [judge: It greets.]}\n")
    with Provider(1, "Maybe.") as provider:
        monkeypatch.setenv("SKILLSHELF_BASE_URL", provider.url)
        assert run("eval", "--judge", "wise", "--report", "out")[0] == 3
        code, _, said = run("eval", "--resume", "out", "--judge", "strict")
        assert (code, "did not begin with this judge: 'strict'" in said) == (2, True)
        provider.says = decide("yes")
        assert run("eval", "--resume", "out")[0] == 0
        assert provider.asked == 2


def test_a_new_skill_is_left_out_of_the_comparison_with_a_note(
    run: Run, cases: Callable[..., Path], tmp_path: Path
) -> None:
    model = script(tmp_path, "said")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    (tmp_path / "README.md").write_text("x")
    for words in (("init", "-q"), ("add", "README.md"), (*who, "commit", "-qm", "before")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    cases(LIVE)
    code, out, said = run("eval", "--baseline", "HEAD", "--model", model)
    assert (code, "1 of 1 trial passed" in out) == (0, True)
    assert "pdf is new since HEAD" in said


def test_old_finished_runs_are_removed(run: Run, cases: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted runs and those with --report stay."""
    from skillshelf_evals import _run_folder

    monkeypatch.setattr(_run_folder, "MAX_RUNS_KEPT", 3)
    cases(GOOD, ERROR)
    names = []
    for number in range(6):
        monkeypatch.setattr(_run_folder, "_make_id", lambda number=number: f"20260101-00000{number}-aaaaaa")
        names.append(json.loads(run("eval", "-k", "loads", "--json")[1])["run"])
    assert run("eval", "-k", "loads", "--report", "own")[0] == 0
    kept = [run("eval", "compare", name, names[-1])[0] for name in names]
    assert kept == [2, 2, 2, 0, 0, 0]


def test_the_judges_of_scripted_cases_are_part_of_the_estimate(
    run: Run, cases: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases("cases:\n  - {name: one, prompt: hi, script: [Hello], checks: [judge: It greets.]}\n")
    with Provider(1, decide("yes")) as provider:
        monkeypatch.setenv("SKILLSHELF_BASE_URL", provider.url)
        code, _, said = run("eval", "--judge", "wise")
        assert (code, "1 live trial, estimated at about 3,120 tokens" in said) == (0, True)
        code, _, said = run("eval", "--judge", "wise", "--max-cost", "1")
        assert (code, "the price of openai-chat:wise is not known" in said) == (2, True)
        assert provider.asked == 1
