"""Recording and replay: the same call gives the same answer without a model, and another call fails loudly."""

import asyncio
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings

from skillshelf.errors import EvalError
from skillshelf.sandbox import find_sandbox
from skillshelf_agent import ChosenModel
from skillshelf_agent.events import ToolReturned, Usage
from skillshelf_agent.testing import ScriptedModel, call
from skillshelf_evals import Case, Message, Recording, Replay, Trace, run_trial
from skillshelf_evals._recording import TrialRecording, find_recorded_model

SKILL = "---\nname: demo\ndescription: {about}\n---\n\nDo it.\n"
CASE = Case("demo", (Message("Say hello, then look."), Message("And again.")))


def skill(tmp_path: Path, about: str = "Does demos.") -> str:
    path = tmp_path / "skills" / "demo" / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SKILL.format(about=about))
    return str(path.parent)


def trial(model: Model[Any], folder: str, case: Case = CASE) -> Trace:
    return asyncio.run(run_trial(replace(case, skills=(folder,)), ChosenModel.from_model(model)))


def script() -> ScriptedModel:
    return ScriptedModel(
        call("load_skill_instructions", skill_name="demo"),
        ["Looking.", call("list_directory", path=".")],
        "Hello there, all is as it should be.",
        "Again.",
    )


def plain(trace: Trace) -> Any:
    """A trace without its pieces of text, its seconds and the ids of calls."""
    text = json.dumps(replace(trace, seconds=0.0).as_json())
    value = json.loads(text)
    value["events"] = [one for one in value["events"] if one["event"] != "text"]
    value["systems"] = len(value["systems"])  # the workspace is elsewhere
    return value


def ask(model: Model[Any], prompt: str = "Hello", **more: Any) -> ModelResponse:
    return asyncio.run(model_request(model, [ModelRequest.user_text_prompt(prompt, **more)]))


# -- the round trip -------------------------------------------------------------------------------------------------


def test_a_trial_is_replayed_without_the_model(tmp_path: Path) -> None:
    """The same turns in another workspace give the same events, answers, files and usage."""
    folder, records = skill(tmp_path), str(tmp_path / "records")
    first = trial(Recording(script(), records), folder)
    again = trial(Replay(records), folder)
    assert first.error == ""
    assert plain(again) == plain(first)


def test_recordings_hold_no_paths_of_this_machine(tmp_path: Path) -> None:
    """They are committed."""
    trial(Recording(script(), str(tmp_path / "records")), skill(tmp_path))
    texts = [path.read_text() for path in (tmp_path / "records").iterdir()]
    assert len(texts) == 5  # four calls, and what the model is like
    assert not any("/tmp" in text or str(tmp_path) in text for text in texts)


def test_a_replayed_answer_names_the_workspace_of_its_own_run(tmp_path: Path) -> None:
    """A command with the absolute path of a file works when it is replayed elsewhere."""

    def look(request: Any) -> Any:
        root = request.system.split("the folder ")[1].split(":")[0]
        return call("run_command", command=f"ls {root}/note.txt")

    folder, records = skill(tmp_path), str(tmp_path / "records")
    case = Case("look", (Message("Look."),), files={"note.txt": b"Hi"})
    trial(Recording(ScriptedModel(look, "Done."), records), folder, case)
    again = trial(Replay(records), folder, case)
    assert again.error == ""
    assert "note.txt" in str(again.events)
    assert "skillshelf-eval-workspace" not in str(again.events)


def _told(request: Any) -> str:
    """The temporary folder of commands, as the last one printed it."""
    return str(request.messages[-1].parts[-1].content).split("TMPDIR=")[1].split()[0]


@pytest.mark.skipif(not find_sandbox(), reason="commands have no temporary folder of their own here")
def test_the_temporary_folder_of_commands_is_not_part_of_a_call(tmp_path: Path) -> None:
    """It has another name in each trial, and a replayed answer names that of its own run."""
    folder, records = skill(tmp_path), str(tmp_path / "records")
    case = Case("look", (Message("Look."),))
    steps = (
        call("run_command", command="echo TMPDIR=$TMPDIR"),
        lambda request: call("run_command", command=f"touch {_told(request)}/new && ls {_told(request)}"),
        "Done.",
    )
    first = trial(Recording(ScriptedModel(*steps), records), folder, case)
    again = trial(Replay(records), folder, case)
    assert (first.error, again.error) == ("", "")
    assert _results(first)[1] == _results(again)[1] == "[stdout]\nnew\n"
    assert _results(first)[0] != _results(again)[0]


def _results(trace: Trace) -> list[str]:
    return [event.text for event in trace.events if isinstance(event, ToolReturned)]


@pytest.mark.parametrize("names", [("tmp", "a b"), ("a b", "tmp"), ("it's [x] (1)", "other")])
def test_a_recording_is_replayed_with_another_temporary_folder(
    tmp_path: Path, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:

    def root(request: Any) -> str:
        return str(request.system.split('the folder "')[1].split('": ')[0])

    steps = (
        lambda request: call("write_file", path=f"{root(request)}/new.txt", content="New."),
        lambda request: f"It is in {root(request)}.",
    )
    folder, records = skill(tmp_path), str(tmp_path / "records")
    case = Case("look", (Message("Look."),))
    models: tuple[Callable[[], Model], ...] = (
        lambda: Recording(ScriptedModel(*steps), records),
        lambda: Replay(records),
    )
    for name, model in zip(names, models, strict=True):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        trace = trial(model(), folder, case)
        assert (trace.error, "new.txt" in trace.files) == ("", True)
        assert trace.answer.startswith(f"It is in {tmp_path / name}/skillshelf-eval-")
    assert not any(str(tmp_path) in path.read_text() for path in (tmp_path / "records").iterdir())


_STEP = st.one_of(
    st.text(min_size=1),
    st.builds(lambda path: call("read_file", path=path), st.text(min_size=1, max_size=20)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(_STEP, min_size=1, max_size=3), st.booleans())
def test_a_replay_gives_what_was_recorded(said: list[Any], streamed: bool) -> None:
    """Whatever the model says, streamed or at once."""
    with TemporaryDirectory() as folder:
        responses = [_call(Recording(ScriptedModel(said), folder), streamed)]
        responses += [_call(Replay(folder), mode) for mode in (True, False)]
    first, *others = [(one.parts, one.usage, one.model_name, one.timestamp) for one in responses]
    assert others == [first, first]


def _call(model: Model[Any], streamed: bool) -> ModelResponse:
    async def run() -> ModelResponse:
        messages, parameters = [ModelRequest.user_text_prompt("Go")], ModelRequestParameters()
        if not streamed:
            return await model.request(list(messages), None, parameters)
        async with model.request_stream(list(messages), None, parameters) as stream:
            async for _ in stream:
                pass
        return stream.get()

    return asyncio.run(run())


def test_a_stream_that_breaks_off_is_not_recorded(tmp_path: Path) -> None:
    from skillshelf_agent.testing import fail

    trace = trial(Recording(ScriptedModel(fail(ConnectionError("gone"), "Well")), str(tmp_path / "r")), skill(tmp_path))
    assert trace.error
    assert not (tmp_path / "r").exists()


# -- what is the same call ------------------------------------------------------------------------------------------


def test_each_repeat_has_its_own_answer(tmp_path: Path) -> None:
    folder = str(tmp_path)
    for repeat in (1, 2):
        ask(Recording(ScriptedModel(f"Answer {repeat}"), TrialRecording(folder, repeat=repeat)))
    played = [ask(Replay(TrialRecording(folder, repeat=repeat))).text for repeat in (1, 2, 1)]
    assert played == ["Answer 1", "Answer 2", "Answer 1"]


def test_a_call_twice_in_one_trial_has_two_answers(tmp_path: Path) -> None:
    """They come back in the order in which they were given."""
    model = Recording(ScriptedModel("One", "Two"), str(tmp_path))
    assert [ask(model).text, ask(model).text] == ["One", "Two"]
    played = Replay(str(tmp_path))
    assert [ask(played).text, ask(played).text] == ["One", "Two"]


def test_one_repeat_more_than_was_recorded_fails(tmp_path: Path) -> None:
    """It does not get the answer of another repeat."""
    ask(Recording(ScriptedModel("One"), str(tmp_path)))
    with pytest.raises(EvalError, match=r"was recorded 1 times .*made once more.*--record"):
        ask(Replay(TrialRecording(str(tmp_path), repeat=2)))


def test_ids_and_times_are_not_part_of_a_call(tmp_path: Path) -> None:
    """Providers choose the ids of tool calls at random."""

    def history(name: str) -> list[Any]:
        return [
            ModelRequest.user_text_prompt("Go"),
            ModelResponse([ToolCallPart("look", '{"at":  1}', name)]),
            ModelRequest.user_text_prompt("On"),
        ]

    asyncio.run(model_request(Recording(ScriptedModel("One"), str(tmp_path)), history("a")))
    assert asyncio.run(model_request(Replay(str(tmp_path)), history("b"))).text == "One"


def test_the_times_of_a_long_listing_are_not_part_of_a_call(tmp_path: Path) -> None:
    """The output of `ls -l` would make every recording out of date at once."""

    def history(line: str) -> list[Any]:
        asked, told = ToolCallPart("run_command", {"command": "ls -la"}, "a"), ToolReturnPart("run_command", line, "a")
        return [ModelRequest.user_text_prompt("Go"), ModelResponse([asked]), ModelRequest([told])]

    asyncio.run(
        model_request(
            Recording(ScriptedModel("One"), str(tmp_path)), history("-rw-r--r-- 1 ada ada 7 Nov 15 11:01 a.txt")
        )
    )
    played = Replay(str(tmp_path))
    assert asyncio.run(model_request(played, history("-rw-r--r-- 2 root root 7 Dec 1 2025 a.txt"))).text == "One"
    with pytest.raises(EvalError, match="message 3"):
        asyncio.run(model_request(played, history("-rw-r--r-- 1 ada ada 7 Nov 15 11:01 b.txt")))


async def _hi(messages: Any, info: Any) -> ModelResponse:
    return ModelResponse([TextPart("Hi")])


def test_headers_and_timeouts_are_not_part_of_a_call(tmp_path: Path) -> None:
    """A key in a header is not written to a file."""
    secret = ModelSettings(extra_headers={"Authorization": "s3cret"}, timeout=5, temperature=0.5)
    messages = [ModelRequest.user_text_prompt("Go")]
    asyncio.run(model_request(Recording(ScriptedModel("One"), str(tmp_path)), messages, model_settings=secret))
    asyncio.run(model_request(Recording(FunctionModel(_hi, settings=secret), str(tmp_path / "own")), messages))
    assert not any("s3cret" in path.read_text() for path in tmp_path.rglob("*.json"))
    other = ModelSettings(timeout=9, temperature=0.5)
    assert asyncio.run(model_request(Replay(str(tmp_path)), messages, model_settings=other)).text == "One"


def test_several_models_share_a_folder(tmp_path: Path) -> None:
    """The agent's and the judge's calls are found by their model."""
    folder = str(tmp_path)
    for name in ("worker", "judge"):
        ask(Recording(ScriptedModel(f"I {name}", name=name), folder))
    assert [ask(Replay(folder, find_recorded_model(folder, name))).text for name in ("worker", "function:judge")] == [
        "I worker",
        "I judge",
    ]
    assert ask(Replay(folder, find_recorded_model(folder, preferred="judge"))).text == "I judge"
    with pytest.raises(EvalError, match="has no answers of other, only of function:judge, function:worker"):
        find_recorded_model(folder, "other")
    with pytest.raises(EvalError, match="answers of several models: function:judge, function:worker"):
        Replay(folder)


def test_half_a_surrogate_pair_is_recorded(tmp_path: Path) -> None:
    """A provider's JSON can hold one, and UTF-8 cannot. The answer was paid for, so it must not be lost."""
    ask(Recording(ScriptedModel("Half \ud83d"), str(tmp_path)))
    [path] = tmp_path.glob("call-*")
    assert json.loads(path.read_text())["answer"]["parts"][0]["content"] == "Half \ud83d"


def test_the_agent_treats_a_replay_like_the_recorded_model(tmp_path: Path) -> None:
    """The abilities of a model decide what it is sent."""

    profile = ModelProfile(supports_tools=False, context_window=1234)
    ask(Recording(FunctionModel(_hi, model_name="small", profile=profile), str(tmp_path)))
    played = Replay(str(tmp_path))
    assert (played.model_id, played.profile["supports_tools"], played.context_window) == ("function:small", False, 1234)


# -- out of date ----------------------------------------------------------------------------------------------------


def test_a_replay_with_a_changed_skill_is_an_error_that_says_so(tmp_path: Path) -> None:
    """The error has the line that differs and how to record again."""
    records = str(tmp_path / "records")
    trial(Recording(script(), records), skill(tmp_path))
    trace = trial(Replay(records), skill(tmp_path, "Does other things."))
    assert trace.error.startswith("this call is not in")
    assert "the system prompt: line" in trace.error
    assert "Does other things." in trace.error
    assert "Does demos." in trace.error
    assert trace.error.endswith("The same command with --record instead of --replay asks the model")
    assert trace.unrecorded
    assert trace.usage == Usage(0, 0, cost=0.0)


@pytest.mark.parametrize(
    ("prompt", "more", "said"),
    [
        ("Good bye", {}, "message 1: line 1 is 'user-prompt Good bye', recorded with 'user-prompt Hello'"),
        ("Hello", {"instructions": "Be brief."}, "the system prompt: line 1 is 'Be brief.', recorded with ''"),
    ],
)
def test_the_difference_to_the_nearest_recorded_call_is_named(
    tmp_path: Path, prompt: str, more: dict[str, Any], said: str
) -> None:
    ask(Recording(ScriptedModel("One"), str(tmp_path)))
    with pytest.raises(EvalError) as caught:
        ask(Replay(str(tmp_path)), prompt, **more)
    assert str(caught.value).split("there differs in ")[1].startswith(said)


def test_changed_tools_are_named(tmp_path: Path) -> None:
    from pydantic_ai.tools import ToolDefinition

    messages = [ModelRequest.user_text_prompt("Go")]
    parameters = [ModelRequestParameters(function_tools=[ToolDefinition(name=name)]) for name in ("look", "run")]
    asyncio.run(Recording(ScriptedModel("One"), str(tmp_path)).request(list(messages), None, parameters[0]))
    with pytest.raises(EvalError, match="the tools: look, run"):
        asyncio.run(Replay(str(tmp_path)).request(list(messages), None, parameters[1]))


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="has no recordings"):
        Replay(str(tmp_path / "nothing"))


def test_a_recording_of_another_version_is_made_again(tmp_path: Path) -> None:
    """The message says so, and after a new recording the old files do no harm."""
    old: dict[str, Any] = {
        "id": "function:scripted",
        "name": "scripted",
        "system": "function",
        "profile": {},
        "settings": None,
    }
    (tmp_path / "model-0123abcd.json").write_text(json.dumps(old))
    with pytest.raises(EvalError, match=r"no recordings but those of another version of skillshelf\. .*--record"):
        Replay(str(tmp_path))
    ask(Recording(ScriptedModel("One"), str(tmp_path)))
    assert ask(Replay(str(tmp_path))).text == "One"


def test_a_damaged_recording_is_named(tmp_path: Path) -> None:
    ask(Recording(ScriptedModel("One"), str(tmp_path)))
    [path] = tmp_path.glob("call-*")
    path.write_text("{")
    with pytest.raises(EvalError, match=f"{path.name}: it is not a recording"):
        ask(Replay(str(tmp_path)))
