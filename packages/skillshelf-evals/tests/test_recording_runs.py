"""Runs that are recorded and played back: each trial has its own answers, and nobody is asked or paid again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chats import script
from in_process import run
from judging import decide
from provider import Provider
from skillshelf.errors import EvalError
from skillshelf_agent import Settings
from skillshelf_evals import Case, Message, Outcome, Trace, check
from skillshelf_evals._recording import TrialRecording
from skillshelf_evals.engine import Options
from skillshelf_evals.engine._models import find_replayed_judge, find_replayed_model
from skillshelf_evals.engine._runner import add_worker_files

pytest.importorskip("dbos", reason="the extra `evals` is not installed")

SKILL = "---\nname: pdf\ndescription: Fills forms.\n---\n\n{}\n"
NOWHERE = "postgresql://127.0.0.1:1/nothing"


def numbered(body: dict[str, Any], number: int) -> str:
    """No two calls are answered alike."""
    return f"{body['model']} says {number}"


def live(name: str, *said: str, **more: Any) -> Case:
    return Case(name, tuple(map(Message, said or ("Hi",))), (check.response_contains("says"),), **more)


def recorded(folder: Path, cases: list[Case], provider: Provider, model: str = "tiny", **more: Any) -> list[str]:
    """The answers of a run that is recorded in `folder/kept`."""
    asks = Options(Settings(model=model, base_url=provider.url), record=str(folder / "kept"), pauses=())
    return answers(run(cases, folder / f"run-{model}-{provider.asked}", asks, **more))


def played(folder: Path, cases: list[Case], **more: Any) -> tuple[Outcome, ...]:
    given = {name: more.pop(name) for name in ("settings", "named", "engine", "parallel") if name in more}
    options = Options(replay=str(folder / "kept"), **given)
    return run(cases, folder / f"played-{len(list(folder.iterdir()))}", options, **more)


def answers(outcomes: tuple[Outcome, ...]) -> list[str]:
    assert [one.trace.error for one in outcomes] == [""] * len(outcomes)
    return [" ".join(one.trace.answers) for one in outcomes]


def files(folder: Path) -> set[str]:
    return {path.name for path in (folder / "kept").glob("call-*")}


# -- each trial its own -----------------------------------------------------------------------------------------------


def test_every_trial_is_replayed_with_its_own_answers(tmp_path: Path) -> None:
    """Two cases have the same prompt, one continues differently, and each is repeated."""
    cases = [live("one"), live("two"), live("three", "Hi", "Do X"), live("four", "Hi", "Do Y")]
    with Provider(1, numbered) as provider:
        first = recorded(tmp_path, cases, provider, repeats=2)
    assert len(set(first)) == 8
    assert answers(played(tmp_path, cases, repeats=2)) == first


def test_both_arms_are_replayed_with_their_own_answers(tmp_path: Path) -> None:
    """The listing of an old version may be the same, and then so is the first call."""
    now, old = tmp_path / "now" / "pdf", tmp_path / "before" / "pdf"
    for folder in (now, old):
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(f"Be {folder.parent.name}. " * 400))
    case = live("one", skill="pdf", skills=(str(now),), should_trigger=True)
    with Provider(1, numbered) as provider:
        first = recorded(tmp_path, [case], provider, baseline=str(old))
    assert len(set(first)) == 2
    assert answers(played(tmp_path, [case], baseline=str(old))) == first


def test_each_model_is_replayed_with_its_own_answers(tmp_path: Path) -> None:
    """The case's own model, a judge's and the run's get the same prompt and share a folder."""
    cases = [live("mine"), live("small", model="openai-chat:small")]
    with Provider(1, numbered) as provider:
        first = {model: recorded(tmp_path, cases, provider, model, repeats=2) for model in ("tiny", "large")}
    for model in ("tiny", "openai:tiny", "openai-chat:tiny"):
        assert answers(played(tmp_path, cases[:1], named=model, repeats=2)) == first["tiny"][:2]
    assert answers(played(tmp_path, cases[:1], named="large", repeats=2)) == first["large"][:2]
    assert answers(played(tmp_path, cases, settings=Settings(model="large"), repeats=2)) == first["large"]


def test_a_case_that_was_not_recorded_is_an_error(tmp_path: Path) -> None:
    """It does not get the answers of another case, even if the prompt is the same."""
    with Provider(1, numbered) as provider:
        recorded(tmp_path, [live("one")], provider)
    [outcome] = played(tmp_path, [live("renamed")])
    assert outcome.status == "error"
    assert "has no answers of openai:tiny for this trial" in outcome.trace.error


# -- which model ------------------------------------------------------------------------------------------------------


def test_a_model_that_was_not_recorded_is_refused(tmp_path: Path) -> None:
    """A model in the settings file is ignored, so that another user's recording can be replayed."""
    with Provider(1, numbered) as provider:
        first = recorded(tmp_path, [live("one")], provider)
    [outcome] = played(tmp_path, [live("one")], named="large")
    assert outcome.status == "error"
    assert "has no answers of large, only of openai:tiny" in outcome.trace.error
    assert answers(played(tmp_path, [live("one")], settings=Settings(model="a:favourite"))) == first


def test_of_several_models_one_must_be_named(tmp_path: Path) -> None:
    with Provider(1, numbered) as provider:
        for model in ("tiny", "large"):
            recorded(tmp_path, [live("one")], provider, model)
    with pytest.raises(EvalError, match=r"answers of several models: openai:large, openai:tiny\. Choose .* --model"):
        find_replayed_model(Options(replay=str(tmp_path / "kept")))


def test_a_recording_with_one_model_for_trials_and_one_for_checks_needs_no_name(tmp_path: Path) -> None:
    case = replace(live("one"), checks=(check.judge("It is well.", "openai-chat:wise"),))
    with Provider(1, lambda body, number: decide("yes") if body["model"] == "wise" else "Well.") as provider:
        recorded(tmp_path, [case], provider)
    [outcome] = played(tmp_path, [case])
    assert (outcome.status, find_replayed_model(Options(replay=str(tmp_path / "kept"))).id) == ("passed", "openai:tiny")


def test_a_model_is_replayed_with_its_recorded_window(tmp_path: Path) -> None:
    """Whatever the settings are now."""
    skill = tmp_path / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL.format("Fill it in."))
    case = live("one", "Please fill forms", skills=(str(skill),))
    with Provider(1, numbered) as provider:
        asks = Settings(model="tiny", base_url=provider.url, window=4321)
        first = answers(run([case], tmp_path / "run", Options(asks, record=str(tmp_path / "kept"), pauses=())))
    assert answers(played(tmp_path, [case], settings=Settings(window=99_999))) == first
    like = find_replayed_model(Options(replay=str(tmp_path / "kept")))
    assert like.window == 4321


# -- where it is played back ------------------------------------------------------------------------------------------


def test_a_replay_needs_no_workers(tmp_path: Path) -> None:
    with Provider(1, numbered) as provider:
        first = recorded(tmp_path, [live("one")], provider)
        asks = Settings(model="tiny", base_url=provider.url)
        again = played(tmp_path, [live("one")], settings=asks, engine=NOWHERE, parallel=0)
        assert (answers(again), provider.asked) == (first, 1)


def test_a_script_as_the_runs_model_is_recorded(tmp_path: Path) -> None:
    asks = Options(Settings(model=script(tmp_path, "It says so.")), record=str(tmp_path / "kept"))
    first = answers(run([live("one")], tmp_path / "run", asks))
    assert answers(played(tmp_path, [live("one")])) == first == ["It says so."]


@pytest.mark.parametrize("name", ["../../evil", "/evil", "call-evil.json", "model-../x.json", ".hidden", "notes.md"])
def test_a_workers_file_of_another_name_is_not_written(tmp_path: Path, name: str) -> None:
    """The name comes from a database. The trial becomes an error that says why."""
    recording = TrialRecording(str(tmp_path / "a" / "kept"), "one#with")
    trace = add_worker_files(Trace(answers=("Hi",)), {name: "{}"}, recording)
    assert trace.error.startswith(f"A worker sent {name!r}")
    assert list(tmp_path.rglob("*")) == []


def test_a_worker_can_only_write_recordings_of_its_own_trial(tmp_path: Path) -> None:
    own = str(TrialRecording(str(tmp_path), "one#with").next_file("m", "c0de"))
    other = str(TrialRecording(str(tmp_path), "two#with").next_file("m", "c0de"))
    for files_, says in (({own: "{}"}, ""), ({other: "{}"}, "A worker sent"), ({own: "no"}, "A worker sent")):
        assert add_worker_files(Trace(), files_, TrialRecording(str(tmp_path), "one#with")).error.startswith(says)
    assert [path.name for path in tmp_path.iterdir()] == [own]


def test_a_file_that_only_begins_like_a_recording_is_left_alone(tmp_path: Path) -> None:
    """It may be a note of the author, or a copy."""
    recording = TrialRecording(str(tmp_path), "one#with")
    outdated = str(recording.next_file("m", "c0de"))
    note = f"{outdated.removesuffix('-1.json')}.old.json"
    for name in (outdated, note, f"{outdated[:18]}.json"):
        (tmp_path / name).write_text("{}")
    recording.write(recording.next_file("m", "fade"), {})
    recording.remove_outdated()
    assert outdated not in {path.name for path in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) == 3


# -- recorded again ---------------------------------------------------------------------------------------------------


def test_recording_a_trial_again_removes_its_outdated_files(tmp_path: Path) -> None:
    """Other trials, other models and failed trials keep theirs."""
    with Provider(1, numbered) as provider:
        recorded(tmp_path, [live("one"), live("two")], provider, repeats=2)
        recorded(tmp_path, [live("one")], provider, "large")
        before = files(tmp_path)
        changed = [live("one", "Something else")]
        first = recorded(tmp_path, changed, provider)
        after = files(tmp_path)
        provider.broken = lambda number: 400
        asks = Options(Settings(model="tiny", base_url=provider.url), record=str(tmp_path / "kept"), pauses=())
        run([live("two", "Other")], tmp_path / "failed", asks)
    assert (len(before), len(after), len(before - after)) == (5, 5, 1)
    assert files(tmp_path) == after
    assert answers(played(tmp_path, changed, named="tiny")) == first


# -- judges -----------------------------------------------------------------------------------------------------------


def test_an_answer_of_a_judge_that_was_not_recorded_is_reported_as_such(tmp_path: Path) -> None:
    with Provider(1, numbered) as provider:
        recorded(tmp_path, [live("one")], provider)
    case = replace(live("one"), checks=(check.judge("It says where."),))
    (outcome,) = played(tmp_path, [case])
    assert outcome.status == "error"
    assert outcome.checks[0].verdict.unrecorded


def test_a_judge_is_replayed_if_the_work_names_the_workspace(tmp_path: Path) -> None:
    """The marks around the work are made from it, and the workspace is another each time."""
    case = replace(live("one"), checks=(check.judge("It says where."),))

    def says(body: dict[str, Any], number: int) -> str:
        system = str(body["messages"][0]["content"])
        return (
            decide("yes")
            if "numbered sentences" in system
            else f"It is in {system.split('the folder ')[1].split(':')[0]}/out.txt"
        )

    with Provider(1, says) as provider:
        [first] = recorded(tmp_path, [case], provider)
    [outcome] = played(tmp_path, [case])
    assert "skillshelf-eval-" in first
    assert outcome.status == "passed", outcome


def judged(rubric: str) -> Case:
    return Case("judged", (Message("hi"),), (check.judge(rubric, "openai-chat:tiny"),), script=("answer",))


@pytest.mark.parametrize(
    ("rubrics", "says", "asked"),
    [
        (("It is well.", "It is well."), (decide("yes"), decide("no")), 1),
        (("So " * 40 + "it is.", "So " * 40 + "it is not."), (decide("yes"), decide("no")), 2),
        (("It is well.", "It is well."), ("Maybe.", decide("no")), 2),
        (("It is well.", "It is well."), (decide("yes", "yes"), decide("no")), 2),
    ],
)
def test_a_verdict_is_cached_for_its_question(
    tmp_path: Path, rubrics: tuple[str, str], says: tuple[str, str], asked: int
) -> None:
    """A resumed run asks again if the question is another, however it is clipped, or if there was no verdict."""
    with Provider(1, lambda body, number: says[number - 1]) as provider:
        options = Options(Settings(base_url=provider.url), pauses=())
        outcomes = [run([judged(rubric)], tmp_path, options)[0] for rubric in rubrics]
        assert provider.asked == asked
    statuses = {decide("yes"): "passed", decide("no"): "missed"}
    assert [one.status for one in outcomes] == [statuses.get(said, "error") for said in (says[0], says[asked - 1])]


def test_the_judge_of_a_recording_is_replayed_whichever_judge_is_configured_now(tmp_path: Path) -> None:
    case = replace(live("one"), checks=(check.judge("It is well."),))
    with Provider(1, lambda body, number: decide("yes") if body["model"] == "wise" else "Well.") as provider:
        tested = Settings(model="tiny", base_url=provider.url)
        wise = replace(tested, model="wise")
        run([case], tmp_path / "run", Options(tested, record=str(tmp_path / "kept"), pauses=(), judge=wise))
        assert provider.asked == 2
    replayed = str(tmp_path / "kept")
    favourite = Settings(model="a:favourite")
    for number, options in enumerate(
        (
            Options(replay=replayed),
            Options(replay=replayed, judge=favourite),
            Options(replay=replayed, judge=wise, named_judge="wise"),
        )
    ):
        [outcome] = run([case], tmp_path / f"replay-{number}", options)
        assert outcome.status == "passed", outcome
        assert find_replayed_model(options).id == "openai:tiny"
    [outcome] = run([case], tmp_path / "other", Options(replay=replayed, named_judge="other"))
    assert "has no answers of other, only of openai:tiny, openai:wise" in outcome.checks[0].verdict.error


def test_of_several_recorded_judges_one_must_be_named(tmp_path: Path) -> None:
    case = replace(live("one"), checks=(check.judge("It is well."),))
    kept = str(tmp_path / "kept")
    with Provider(1, lambda body, number: "Well." if body["model"] == "tiny" else decide("yes")) as provider:
        tested = Settings(model="tiny", base_url=provider.url)
        for name in ("wise", "old"):
            judge = replace(tested, model=name)
            run([case], tmp_path / name, Options(tested, record=kept, pauses=(), judge=judge))
    with pytest.raises(EvalError, match=r"answers of several models: openai:old, openai:wise\. Choose .* --judge"):
        find_replayed_judge(Options(replay=kept))
    assert find_replayed_judge(Options(replay=kept, named_judge="old")).id == "openai:old"


def test_the_usage_of_judges_is_counted_apart_from_the_agents(tmp_path: Path) -> None:
    from skillshelf_agent.events import Usage

    checks = (check.judge("It is well."), ~check.judge("It is bad."))
    with Provider(1, lambda body, number: decide("yes", "no") if "bad" in str(body) else "Well.") as provider:
        options = Options(Settings(model="tiny", base_url=provider.url), pauses=())
        [outcome] = run([replace(live("one"), checks=checks)], tmp_path, options)
    assert outcome.status == "passed"
    assert (outcome.trace.usage, outcome.judging, outcome.usage) == (Usage(10, 5), Usage(10, 5), Usage(20, 10))


def test_a_cost_is_known_if_all_of_its_parts_are() -> None:
    from skillshelf_agent.events import Usage

    paid = Outcome("one", "with", 1, (), Trace(usage=Usage(1, 2, 0, 0.5)), Usage(3, 4, 1, 0.25))
    assert paid.usage == Usage(4, 6, 1, 0.75)
    assert replace(paid, judging=Usage(3, 4)).usage == Usage(4, 6)
    assert replace(paid, judging=None).usage == Usage(1, 2, 0, 0.5)
