"""The check `run`: a command in the workspace after the last turn, recorded in the trace."""

import asyncio
import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from in_process import run as run_in_process
from provider import Provider
from skillshelf.errors import EvalError
from skillshelf_agent import ChosenModel, Settings
from skillshelf_agent.testing import ScriptedModel, call, fail
from skillshelf_evals import Case, Check, Edit, Message, Outcome, Trace, Verdict, check, run_trial
from skillshelf_evals._trace import trace_from_json
from skillshelf_evals.engine import Options
from skillshelf_evals.engine._packing import Packer, Unpacker
from skillshelf_evals.report import read_run

Run = Callable[..., tuple[int, str, str]]
Write = Callable[..., Path]

_GREET = "print('Hello,', open('name.txt').read())"


def case_of(*checks: Check, script: tuple[Any, ...] = ("Done.",), **fields: Any) -> Case:
    return Case("a", (Message("Do it."),), checks, script=script, **fields)


def trial_of(*checks: Check, **fields: Any) -> Trace:
    case = case_of(*checks, **fields)
    return asyncio.run(run_trial(case, ChosenModel.from_model(ScriptedModel(*(case.script or ())))))


def verdict_of(made: Check, **fields: Any) -> Verdict:
    return asyncio.run(check.look(made, trial_of(made, **fields)))


def test_the_agents_program_is_run_in_its_workspace() -> None:
    writes = call("write_file", path="greet.py", content=_GREET)
    made = check.run("python3 greet.py", stdout="Hello, Ada")
    assert verdict_of(made, script=(writes, "Done."), files={"name.txt": b"Ada"}) == Verdict(True, "exit code 0")
    last_line = "FileNotFoundError: [Errno 2] No such file or directory: 'name.txt'"
    missed = verdict_of(made, script=(writes, "Done."))
    assert missed == Verdict(False, f"exit code 1; stderr ends with {last_line!r}"), "not the folder, which is random"


@pytest.mark.parametrize(
    ("made", "passes", "reason"),
    [
        (check.run("exit 3"), False, "exit code 3; it printed nothing"),
        (check.run("exit 3", exit_code=3), True, "exit code 3"),
        (check.run("exit 3", exit_code=None), True, "exit code 3"),
        (check.run("kill -9 $$", exit_code=137), True, "exit code 137"),
        (check.run("no-such-program", exit_code=127), True, "exit code 127"),
        (check.run("echo yes", stdout="yes"), True, "exit code 0"),
        (check.run("echo yes >&2", stdout="yes"), False, "exit code 0; stdout: ''"),
        (check.run("echo 3 rows", stdout_matches=r"^\d+ rows$"), True, "exit code 0; stdout: '3 rows\\n'"),
        (check.run("echo no rows", stdout_matches=r"^\d+ rows$"), False, "exit code 0; stdout: 'no rows\\n'"),
        (~check.run("test -e gone.txt"), True, "not: exit code 1; it printed nothing"),
    ],
    ids=lambda value: value.name if isinstance(value, Check) else "",
)
def test_exit_code_and_output_decide(made: Check, passes: bool, reason: str) -> None:
    assert verdict_of(made) == Verdict(passes, reason)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": ""}, "command is empty"),
        ({"command": " \n"}, "cannot be run"),
        ({"command": "a\0b"}, "cannot be run"),
        ({"command": "a\ud800"}, "unicode"),
        ({"command": "x" * 20_001}, "cannot be run"),
        ({"command": "a", "exit_code": 256}, "exit_code is 256"),
        ({"command": "a", "exit_code": "0"}, "exit_code is '0'"),
        ({"command": "a", "timeout": 0}, "timeout is 0"),
        ({"command": "a", "timeout": 601}, "timeout is 601"),
        ({"command": "a", "stdout": ""}, "stdout is empty"),
        ({"command": "a", "stdout_matches": "("}, "is not a regular expression"),
        ({"command": "a", "stdin": "x"}, "stdin"),
    ],
)
def test_a_command_that_cannot_be_meant_is_refused_before_the_run(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(EvalError, match=message.replace("(", r"\(")):
        check.from_config("run", arguments)


def test_case_files_write_a_command_or_a_mapping(tmp_path: Path, run: Run) -> None:
    (tmp_path / "cases.yaml").write_text("""
cases:
  - name: runs
    prompt: go
    script: [{tool: write_file, arguments: {path: a.py, content: "print(6 * 7)"}}, done]
    checks:
      - run: python3 a.py
      - run: {command: python3 a.py, stdout: "42"}
      - run: {command: python3 a.py, stdout_matches: '^\\d+$', timeout: 30}
      - run: {command: python3 b.py, exit_code: 2}
""")
    code, out, err = run("eval", "cases.yaml", "--report", "report", "--json")
    assert code == 0, out + err
    [outcome] = read_run(tmp_path / "report").outcomes
    ran = [(command.command, command.timeout, command.exit_code) for command in outcome.trace.command_runs]
    expected = [("python3 a.py", 60.0, 0), ("python3 a.py", 30.0, 0), ("python3 b.py", 60.0, 2)]
    assert ran == expected, "a command that two checks share is run once"
    assert outcome.trace.command_runs[0].stdout == "42\n"


def test_files_stay_as_the_agent_left_them_and_new_ones_can_be_checked() -> None:
    """A command's files are not taken for the agent's."""
    made = check.run("echo changed > in.txt; echo changed >> own.txt; printf 'a\\377' > out.bin; echo made > out.txt")
    writes = call("write_file", path="own.txt", content="agent")
    trace = trial_of(made, script=(writes, "Done."), files={"in.txt": b"case"})
    assert (trace.files["in.txt"].text, trace.files["in.txt"].changed) == ("case", False)
    assert trace.files["own.txt"].text == "agent"
    assert set(trace.changed_files) == {"own.txt"}
    assert (trace.files["out.bin"].data, trace.files["out.bin"].by_check) == (b"a\xff", True)
    for path, passes in {"out.txt": True, "in.txt": False}.items():
        assert asyncio.run(check.look(check.file_contains(path, "made"), trace)).passed == passes
    unchanged = asyncio.run(check.look(check.file_unchanged("out.txt"), trace))
    assert unchanged.error == "The case has no file out.txt that could change."


def test_commands_run_in_the_order_of_the_checks_after_edits_of_the_case() -> None:
    """So a test that the agent must not see can be written with the last turn."""
    checks = (check.run("sh hidden.sh > first"), check.run("cat first", stdout="hidden"))
    case = Case("a", (Message("Do it."), Edit("hidden.sh", "echo hidden")), checks, script=("Done.",))
    trace = asyncio.run(run_trial(case, ChosenModel.from_model(ScriptedModel("Done."))))
    assert [asyncio.run(check.look(made, trace)).passed for made in checks] == [True, True]


def test_no_command_is_run_if_the_provider_failed() -> None:
    trace = trial_of(check.run("true"), script=(fail(ConnectionError("gone")),))
    assert (bool(trace.error), trace.command_runs) == (True, ())


def test_the_result_survives_as_json_and_is_checked_again_without_running() -> None:
    made = check.run("echo $$", stdout_matches=r"\d")
    trace = trial_of(made)
    again = trace_from_json(json.loads(json.dumps(trace.without_data().as_json())))
    assert again.command_runs == trace.command_runs
    assert asyncio.run(check.look(made, again)).passed
    other = asyncio.run(check.look(check.run("echo another"), again))
    assert other.error == "The command was not run with this trial."


_NEVER_THE_SAME = "cat /proc/sys/kernel/random/uuid"


def test_a_resumed_run_has_the_result_and_a_replay_runs_the_command_again(tmp_path: Path) -> None:
    """A replay makes the workspace again with the agent's own tools, so there is something to test."""
    case = replace(case_of(check.run(_NEVER_THE_SAME)), script=None)
    with Provider(2) as provider:
        options = Options(Settings(model="tiny", base_url=provider.url), record=str(tmp_path / "kept"), pauses=())
        first = printed(run_in_process([case], tmp_path / "run", options))
        resumed = printed(run_in_process([case], tmp_path / "run", options))
        assert provider.asked == 2
    replayed = printed(run_in_process([case], tmp_path / "replay", Options(replay=str(tmp_path / "kept"))))
    assert first == resumed
    assert len(replayed) == len(first)
    assert replayed != first


def printed(outcomes: tuple[Outcome, ...]) -> str:
    [outcome] = outcomes
    assert outcome.status == "passed"
    return outcome.trace.command_runs[0].stdout


def test_the_command_travels_with_a_packed_case(tmp_path: Path) -> None:
    """A worker runs it, and the process that began the run makes the check. Another command is another case."""
    made = check.run("echo there", stdout="there", timeout=30)
    case = case_of(made, check.response_contains("Done"))
    packer = Packer()
    digest = packer.pack(case)
    there = Unpacker(str(tmp_path)).unpack(digest, packer.blobs.__getitem__)
    trace = asyncio.run(run_trial(there, ChosenModel.from_model(ScriptedModel("Done."))))
    assert asyncio.run(check.look(made, trace)).passed
    assert packer.pack(case_of(check.run("echo elsewhere"))) != digest


def test_a_baseline_arm_runs_the_command_too(tmp_path: Path, write: Write) -> None:
    skill = write("skills/pdf", "pdf").parent
    case = replace(case_of(check.run("true"), skill="pdf", skills=(str(skill),)), script=None)
    with Provider(1) as provider:
        options = Options(Settings(model="tiny", base_url=provider.url), pauses=())
        outcomes = run_in_process([case], tmp_path / "run", options, baseline="none")
    assert [(outcome.arm, len(outcome.trace.command_runs)) for outcome in outcomes] == [("with", 1), ("without", 1)]


def test_a_judge_sees_how_the_command_ended() -> None:
    trace = trial_of(check.run("echo 42; echo oops >&2; exit 3"))
    work = check.describe_work(trace)
    assert "# Commands that were run afterwards to test the work" in work
    assert "- echo 42; echo oops >&2; exit 3 ended with exit code 3 and printed\n| 42\n| \n| oops" in work
    block = check.describe_work(trial_of(check.run("true\necho 43\n")))
    assert "- true ⏎ echo 43 ended with exit code 0 and printed\n| 43" in block
    assert "Commands that were run" not in check.describe_work(replace(trace, command_runs=()))


def test_files_of_a_command_are_artefacts_that_say_so(tmp_path: Path) -> None:
    case = case_of(check.run("echo x > out.csv"), script=(call("write_file", path="a.py", content="1"), "Done."))
    [outcome] = run_in_process([case], tmp_path)
    made = {artefact.name: artefact.by_check for artefact in outcome.artefacts.files}
    assert made == {"a.py": False, "out.csv": True}


def first_sheet(trace: Trace) -> bool:
    """Check a spreadsheet by its bytes."""
    data = trace.changed_files["out.xlsx"].data
    assert data is not None
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        return b"<v>42</v>" in book.read("xl/worksheets/sheet1.xml")


def test_a_python_check_reads_the_bytes_of_a_document(tmp_path: Path) -> None:
    program = (
        "import zipfile\nwith zipfile.ZipFile('out.xlsx', 'w') as book:\n"
        "    book.writestr('xl/worksheets/sheet1.xml', '<c><v>42</v></c>')\n"
    )
    steps = (call("write_file", path="a.py", content=program), call("run_command", command="python3 a.py"), "Done.")
    outcomes: tuple[Outcome, ...] = run_in_process([case_of(check.custom(first_sheet), script=steps)], tmp_path)
    assert [outcome.status for outcome in outcomes] == ["passed"]
    assert (tmp_path / outcomes[0].artefacts.files[1].path).suffix == ".xlsx"
