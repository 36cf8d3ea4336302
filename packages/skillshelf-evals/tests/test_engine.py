"""Runs that survive: killed and begun again, every case counts once and no model call is paid for twice."""

import asyncio
import io
import json
import sqlite3
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
)
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturnPart

from in_process import run
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
from skillshelf import BaseSkill
from skillshelf.errors import EvalError, RunStoppedError
from skillshelf_agent import Settings
from skillshelf_agent.testing import ScriptedModel, call, fail
from skillshelf_evals import Case, Edit, Message, check, make_plan
from skillshelf_evals.engine import (
    Options,
    PackedPlan,
    RunFolder,
    begin_run,
    lock_run,
    read_run_folder,
)
from skillshelf_evals.engine._guard import CircuitBreaker, RunGuard
from skillshelf_evals.engine._packing import Packer, Unpacker
from skillshelf_evals.engine._response_cache import CachedModel
from skillshelf_evals.engine._store import RunStore, file_error, open_file_store
from skillshelf_evals.report import find_run_folder

CASES, CALLS = 4, 3


def scripted(number: int, *script: object) -> Case:
    steps = script or (f"answer {number}",)
    return Case(f"case {number}", (Message("hi"),), (check.response_contains("answer"),), script=steps)


def test_scripted_cases_run_here_in_the_order_of_the_plan(tmp_path: Path) -> None:
    """Whatever order they end in. More trials of one would end the same way, so it has one."""
    outcomes = run([scripted(number) for number in range(9)], tmp_path, repeats=2)
    assert [(one.case, one.repeat, one.status) for one in outcomes] == [
        (f"case {number}", 1, "passed") for number in range(9)
    ]


def test_a_provider_that_fails_in_a_script_is_an_error_of_one_trial(tmp_path: Path) -> None:
    """It is neither a pass nor a miss, and its checks are not made."""
    broken, fine = run([scripted(1, fail(ConnectionError("gone"))), scripted(2)], tmp_path)
    assert (broken.status, broken.checks, fine.status) == ("error", (), "passed")
    assert "Could not reach the provider" in broken.trace.error


def test_a_killed_run_is_resumed(tmp_path: Path) -> None:
    """It is killed before its trials, at the first call, between calls, near the end, and after the trials."""
    evals = suite(tmp_path, CASES)
    report = tmp_path / "report"
    begun = report / "state" / "begun.json"
    with Provider(CALLS) as provider:
        words = ["pdf", *model_options(provider), "--report", "report", "--parallel", "2"]

        is_dead = threading.Event()

        def answer_nothing_before_the_kill(number: int) -> None:
            is_dead.wait(60)

        provider.arrived = answer_nothing_before_the_kill
        child = Child(*words, cwd=tmp_path)
        wait_until(begun.exists)
        child.kill()
        is_dead.set()
        first = json.loads(begun.read_text())["id"]
        for number in (1, 2, 5):
            with provider.lock:
                child = Child(*words, cwd=tmp_path)
                provider.kill_at(number, child.kill, lambda: count_responses(report))
            assert child.end() == -9, child.said()
        assert sum(provider.answered.values()) == 5

        (evals / "hold").touch()
        child = Child(*words, cwd=tmp_path)
        wait_until((evals / "held").exists)
        wait_until(lambda: count_responses(report) == CASES * CALLS)
        child.kill()
        assert not (report / "run.json").exists()

        (evals / "hold").unlink()
        child = Child("--resume", "report", cwd=tmp_path)
        assert child.end() == 0, child.said()
        assert dict(provider.answered) == expect_each_call_once(CASES, CALLS)
    assert count_trials(report) == {f"pdf/case {number}#with#1 passed": 1 for number in range(CASES)}
    assert json.loads((report / "run.json").read_text())["id"] == first
    assert sorted(path.name for path in (report / "state").iterdir()) == ["begun.json", "lock"]


MADE_HERE = """
from skillshelf import BaseSkill
from skillshelf_evals import Case, Message, check

class Lookup(BaseSkill):
    name, description, instructions = "lookup", "Finds things.", "Look it up."

CASES = [
    Case(f"case {number}", (Message(f"prompt {number}"),), (check.response_contains("well"),), code_skills=(Lookup,))
    for number in range(2)
]
"""


@pytest.mark.long
def test_a_run_is_not_resumed_if_a_case_that_cannot_be_packed_changed(tmp_path: Path) -> None:
    """Changed back, it goes on and pays for nothing again."""
    (tmp_path / "suite.py").write_text(MADE_HERE)
    with Provider(CALLS) as provider:
        with provider.lock:
            child = Child("suite.py", *model_options(provider), "--report", "report", "--parallel", "1", cwd=tmp_path)
            provider.kill_at(3, child.kill, lambda: count_responses(tmp_path / "report"))
        assert child.end() == -9, child.said()
        for old, new in (("prompt {", "other {"), ("Finds things", "Finds all"), ("Look it up", "Look")):
            (tmp_path / "suite.py").write_text(MADE_HERE.replace(old, new))
            child = Child("--resume", "report", cwd=tmp_path)
            assert child.end() == 2, child.said()
            assert "have changed since" in child.said()
        (tmp_path / "suite.py").write_text(MADE_HERE)
        child = Child("--resume", "report", cwd=tmp_path)
        assert child.end() == 0, child.said()
        assert dict(provider.answered) == expect_each_call_once(2, CALLS)


def fingerprint(*cases: Case) -> str:
    return PackedPlan(make_plan(cases), Options()).fingerprint


class Skill(BaseSkill):
    name, description, instructions = "made", "Is made here.", "Do."


def test_the_digest_of_a_case_that_cannot_be_packed_covers_its_code(tmp_path: Path) -> None:
    """A function counts by its module, a skill object by the file of the case; anything unknown counts as changed."""
    source = tmp_path / "cases.py"
    source.write_text("# one")
    stays = Case("a", (Message("x"),), code_skills=(Skill(),), location=f"{source}:1")
    assert fingerprint(stays) == fingerprint(replace(stays, code_skills=(Skill(),)))
    assert fingerprint(stays) != fingerprint(replace(stays, turns=(Message("y"),)))
    before = fingerprint(stays)
    source.write_text("# two")
    assert fingerprint(stays) != before
    nowhere = replace(stays, location="")
    assert fingerprint(nowhere) != fingerprint(nowhere)
    function = Case("a", (Message("x"),), script=(lambda request: "said",))
    assert fingerprint(function) == fingerprint(function)
    made: dict[str, Any] = {"__name__": "nowhere"}
    exec("def step(request): return 'said'", made)
    unknown = replace(function, script=(made["step"],))
    assert fingerprint(unknown) != fingerprint(unknown)


def begun(case: Case, folder: Path, options: Options) -> Path:
    """The state of a run that was begun and that `run` goes on with."""
    (folder / "stage").mkdir()
    return Path(begin_run(str(folder), PackedPlan(make_plan([case]), options).fingerprint, {}).state)


def test_a_damaged_database_is_reported_as_the_runs_own(tmp_path: Path) -> None:
    live, options = Case("live", (Message("x"),)), Options(Settings(model="tiny", base_url="http://127.0.0.1:1/v1"))
    state = begun(live, tmp_path, options)
    (state / "run.sqlite").write_text("no database " * 99)
    with pytest.raises(RunStoppedError, match=r"The run's database /.*run.sqlite cannot be used: .*not a data") as said:
        run([live], tmp_path, options)
    assert said.value.fix == f"The file is damaged. Remove {tmp_path} and begin a new run"


def test_a_new_run_is_not_advised_if_it_would_fail_again() -> None:
    refused = sqlite3.connect(":memory:")
    refused.execute("CREATE TABLE versions (at INTEGER NOT NULL)")
    with closing(refused), pytest.raises(sqlite3.IntegrityError) as fault:
        refused.execute("INSERT INTO versions VALUES (NULL)")
    said = str(file_error("/runs/first/state/run.sqlite", fault.value))
    assert "A new run would not help" in said
    assert sqlite3.sqlite_version in said


def test_a_database_in_a_folder_that_cannot_be_written_names_the_folder() -> None:
    with pytest.raises(sqlite3.OperationalError) as fault:
        sqlite3.connect("/nowhere/state/run.sqlite")
    said = str(file_error("/nowhere/state/run.sqlite", fault.value))
    assert "Make sure that /nowhere/state can be written to and has room" in said


def test_a_failing_call_is_retried_and_then_an_error(tmp_path: Path) -> None:
    """Another start tries these trials again, and pays for no answer twice."""
    live = Case("live", (Message("prompt 0"),), (check.response_contains("well"),))
    with Provider(CALLS) as provider:
        options = Options(Settings(model="tiny", base_url=provider.url), pauses=(0.01, 0.01))
        provider.broken = lambda number: 400 if number == 2 else 0
        [refused] = run([live], tmp_path, options)
        assert refused.status == "error"
        assert "HTTP 400" in refused.trace.error
        assert provider.asked == 2, "a request that was refused is not sent again"

        provider.broken = lambda number: 503 if number == 3 else 0
        [outcome] = run([live], tmp_path, options)
        assert (outcome.status, outcome.trace.answer) == ("passed", "All is well.")
        assert dict(provider.answered) == expect_each_call_once(1, CALLS)


def test_a_run_belongs_to_one_process(tmp_path: Path) -> None:
    """A second process would pay for everything again."""
    folder = str(tmp_path)
    with lock_run(folder), pytest.raises(EvalError, match="another process"), lock_run(folder):
        pass


def test_a_folder_holds_the_last_run(tmp_path: Path) -> None:
    """The same work is resumed. Other work, or finished work, starts over."""
    folder = str(tmp_path)
    first = begin_run(folder, "a", {"paths": ["x"]})
    assert begin_run(folder, "a", {}) == first
    other = begin_run(folder, "b", {})
    assert other.id != first.id
    other.finish(failed=False)
    assert read_run_folder(folder) == RunFolder(folder, other.id, other.started, "b", {}, finished=True)
    assert begin_run(folder, "b", {}).id != other.id
    assert find_run_folder(folder) == folder
    with pytest.raises(EvalError, match="no run 'nowhere'"):
        find_run_folder("nowhere")


def test_a_case_is_packed_without_its_checks_and_evals(tmp_path: Path) -> None:
    evals = suite(tmp_path / "there", 1)
    case = Case(
        "all of it",
        (Message("one"), Edit("a.txt", None), Edit("b.txt", "two")),
        skill="pdf",
        should_trigger=False,
        files={"a.txt": b"\x00\xff"},
        skills=(str(evals.parent),),
        script=("text", call("read_file", path="a.txt"), ["said", fail(ConnectionError("gone"), "half")]),
        policy="ask",
        model="some:model",
    )
    packer = Packer()
    digest = packer.pack(case)
    there = Unpacker(str(tmp_path / "here")).unpack(digest, packer.blobs.__getitem__)
    again = Packer()
    assert again.pack(there) == digest
    assert (there.turns, there.files, there.policy, there.model) == (case.turns, case.files, "ask", "some:model")
    assert there.should_trigger is False
    stays = {"checks", "tags", "location", "is_named"}
    assert set(json.loads(packer.blobs[digest])) == {field.name for field in fields(Case)} - stays | {"commands"}
    [skill] = there.skills
    assert sorted(path.name for path in Path(skill).iterdir()) == ["SKILL.md"]


@pytest.mark.parametrize("names", [("../out.txt",), ("link", "link/out.txt"), ("/out.txt",)])
def test_a_packed_skill_writes_no_file_outside_its_folder(tmp_path: Path, names: tuple[str, ...]) -> None:
    """It comes from a database that others write to."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            if name == "link":
                member.type, member.linkname = tarfile.SYMTYPE, str(tmp_path)
            archive.addfile(member, None if name == "link" else io.BytesIO())
    packer = Packer()
    digest = packer.pack(Case("a", (Message("x"),), skills=(str(suite(tmp_path / "there", 1).parent),)))
    blobs = {key: data if key == digest else packed.getvalue() for key, data in packer.blobs.items()}
    with pytest.raises(EvalError, match="leads out of its folder"):
        Unpacker(str(tmp_path / "here")).unpack(digest, blobs.__getitem__)
    assert list(tmp_path.rglob("out.txt")) == []


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """The store of a run that was interrupted: it is not known to be empty."""
    path = str(tmp_path / "run.sqlite")
    open_file_store(path, "run").close()
    with closing(open_file_store(path, "run")) as opened:
        yield opened


def test_the_first_stored_response_stays(store: RunStore) -> None:
    """If two processes paid for one call, both use the first one's response."""
    store.add("responses", "call", "first")
    store.add("responses", "call", "second")
    other = store.for_run("other")
    assert (store.find("responses", "call"), store.find("responses", "no"), other.find("responses", "call")) == (
        "first",
        None,
        None,
    )
    store.forget()
    assert store.find("responses", "call") is None


def test_a_judge_is_paid_once(tmp_path: Path) -> None:
    """A second start that finds its trials done asks no judge again."""
    case = Case("judged", (Message("hi"),), (check.judge("it is well", "openai-chat:tiny"),), script=("answer",))
    with Provider(1, says=decide("yes")) as provider:
        options = Options(Settings(base_url=provider.url), pauses=())
        [first] = run([case], tmp_path, options)
        [second] = run([case], tmp_path, options)
    assert first.checks == second.checks
    assert (first.status, provider.asked) == ("passed", 1)


def test_a_cached_response_names_the_new_workspace(store: RunStore) -> None:
    """A resumed trial has another folder, and the model may have named the old one."""
    said: list[str | None] = []
    for folder in ("/here/skillshelf-eval-aaaaaaaa", "/there/skillshelf-eval-bbbbbbbb"):
        model = CachedModel(ScriptedModel(f"see {folder}/out.txt"), store, RunGuard(()), "trial")
        asked = ModelRequest.user_text_prompt("hi", instructions=f"You work in {folder}.")
        said.append(asyncio.run(model_request(model, [asked])).text)
    assert said == ["see /here/skillshelf-eval-aaaaaaaa/out.txt", "see /there/skillshelf-eval-bbbbbbbb/out.txt"]


@pytest.mark.parametrize(
    ("tool", "told", "asks"),
    [("run_command", "12:01", 1), ("load_skill_instructions", "# Other", 2), ("", "", 2)],
    ids=["the time a command prints", "the text of a skill", "the prompt"],
)
def test_a_cached_response_answers_only_the_same_question(tool: str, told: str, asks: int, store: RunStore) -> None:
    """The output of commands is not part of the question."""
    said: list[str | None] = []
    for prompt, text in (("hi", "first"), ("hi" if tool else "ho", told), ("hi" if tool else "ho", told)):
        parts = [ToolReturnPart(tool, text, "c1")] if tool else []
        messages = [ModelRequest.user_text_prompt(prompt), ModelRequest(parts)]
        model = CachedModel(ScriptedModel(f"answer {len(said) + 1}"), store, RunGuard(()), "trial")
        said.append(asyncio.run(model_request(model, messages)).text)
    assert said == ["answer 1", f"answer {asks}", f"answer {asks}"]


def calls_of(breaker: CircuitBreaker, *faults: Exception | None) -> list[str]:
    """Make calls one after the other, each with the next of these faults until one is None, and name their ends."""
    left = list(faults)
    ends: list[str] = []

    async def ask() -> ModelResponse:
        fault = left.pop(0)
        if fault:
            raise fault
        return ModelResponse([])

    async def call_all() -> None:
        while left:
            try:
                await breaker.call(ask)
                ends.append("answered")
            except Exception as error:
                ends.append(type(error).__name__)

    asyncio.run(call_all())
    return ends


GONE, BUSY = ConnectionError("gone"), ModelServerError("tiny", "overloaded")
LIMITED, REFUSED = ModelRateLimitError("tiny", "slow down"), ValueError("bad request")
WRONG_KEY = ModelAuthenticationError("tiny", "no such key")


@pytest.mark.parametrize(
    ("faults", "ends"),
    [
        ([GONE, BUSY, None], ["answered"]),
        ([LIMITED, LIMITED, LIMITED, None], ["answered"]),
        ([LIMITED] * 4, ["ModelRateLimitError"]),
        ([REFUSED, None], ["ValueError", "answered"]),
        ([GONE] * 4, ["RunStoppedError"]),
        ([ModelQuotaExceededError("tiny", "no credit")], ["RunStoppedError"]),
        ([WRONG_KEY], ["RunStoppedError"]),
        ([None, WRONG_KEY, None], ["answered", "ModelAuthenticationError", "answered"]),
        ([None, *[WRONG_KEY] * 3], ["answered", *["ModelAuthenticationError"] * 2, "RunStoppedError"]),
        ([BUSY] * 4 + [BUSY] * 2, ["ModelServerError", "ModelServerError", "RunStoppedError"]),
        ([BUSY] * 4 + [None] + [BUSY] * 4, ["ModelServerError", "answered", "ModelServerError"]),
    ],
    ids=[
        "back after two failures",
        "a rate limit that ends",
        "a rate limit that does not end",
        "a refused request is not repeated",
        "unreachable",
        "without credit",
        "a wrong key",
        "a single refusal",
        "a key that was withdrawn",
        "three failing calls in a row",
        "an answer in between",
    ],
)
def test_calls_are_repeated_until_the_provider_is_down(faults: list[Exception | None], ends: list[str]) -> None:
    assert calls_of(CircuitBreaker((0.0, 0.0, 0.0)), *faults) == ends


def test_a_dead_provider_is_asked_by_one_call_at_a_time() -> None:
    """The other calls wait for its result, and fail with it."""
    asked = []

    async def ask() -> ModelResponse:
        asked.append(1)
        await asyncio.sleep(0)
        raise GONE

    async def call_together() -> list[object]:
        breaker = CircuitBreaker((0.0, 0.0, 0.0))
        return await asyncio.gather(*(breaker.call(ask) for _ in range(50)), return_exceptions=True)

    ends = asyncio.run(call_together())
    assert {type(end) for end in ends} == {RunStoppedError}
    assert len(asked) == 50 + 3


def test_a_run_whose_provider_is_gone_stops_and_is_resumed(tmp_path: Path) -> None:
    """No further trial is begun, and no answer is paid for twice."""
    cases = [Case(f"case {at}", (Message(f"prompt {at}"),), (check.response_contains("well"),)) for at in range(20)]
    with Provider(CALLS) as provider:
        options = Options(Settings(model="tiny", base_url=provider.url), pauses=(0.01,) * 3)
        provider.broken = lambda number: 503 if number > 20 else 0
        with pytest.raises(RunStoppedError, match="The provider is down"):
            run(cases, tmp_path, options)
        trials_at_once, probes, attempts_of_the_client = 4, 3, 3
        assert provider.asked <= 20 + (trials_at_once + probes) * attempts_of_the_client

        provider.broken = lambda number: 0
        outcomes = run(cases, tmp_path, options)
        assert [outcome.status for outcome in outcomes] == ["passed"] * 20
        assert dict(provider.answered) == expect_each_call_once(20, CALLS)


def test_a_finished_trial_is_not_made_again(tmp_path: Path) -> None:
    """A second start finds its trace, and asks the model nothing."""
    live = Case("live", (Message("prompt 0"),), (check.response_contains("well"),))
    with Provider(CALLS) as provider:
        options = Options(Settings(model="tiny", base_url=provider.url))
        [first] = run([live], tmp_path, options)
        [second] = run([live], tmp_path, options)
    assert first == second
    assert provider.asked == CALLS
