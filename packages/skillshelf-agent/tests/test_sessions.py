"""Test sessions: conversations survive in readable files, without the system prompt."""

import json
import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    InstructionBaselinePart,
    InstructionDeltaPart,
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel

from skillshelf.errors import SessionError
from skillshelf.files import system
from skillshelf.skills import SkillDescriptor
from skillshelf.slash import apply_message
from skillshelf_agent.sessions import InUse, LoadedText, Session, Sessions, loaded_skills


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(str(tmp_path / "My Project"), str(tmp_path / "state"))


def ask(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def answer(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)], model_name="test")


def call(name: str, id: str, **arguments: Any) -> ModelResponse:
    return ModelResponse(parts=[ToolCallPart(name, arguments, id)], model_name="test")


def result(name: str, id: str, content: Any) -> ModelRequest:
    return ModelRequest(parts=[ToolReturnPart(name, content, id)])


def save_session(sessions: Sessions, *messages: ModelMessage, model: str = "m") -> str:
    """Save a session with these messages, change its model, and return its path."""
    with sessions.create("m") as session:
        session.append(messages)
        session.use(InUse(model=model))
        return session.path


def reopen(sessions: Sessions, id: str = "") -> Session:
    with sessions.open(id) as session:
        return session


# -- saved conversations ----------------------------------------------------------------------------------------------


def test_a_conversation_can_be_reopened(sessions: Sessions) -> None:
    """Messages appended at once or in several steps are the history of the reopened session."""
    messages: list[ModelMessage] = [
        ask("hello"),
        call("read", "1", path="a"),
        result("read", "1", {"lines": [1, None]}),
        answer("done"),
    ]
    with sessions.create("openai:gpt") as session:
        session.append(messages[:1])
        session.append(messages[1:])
    again = reopen(sessions, session.id)
    assert (again.messages, again.transcript, again.notes) == (messages, messages, ())
    assert (again.id, again.path, again.workspace) == (session.id, session.path, sessions.workspace)
    assert (again.model, again.created) == ("openai:gpt", session.created)


def test_no_file_is_created_before_the_first_message(sessions: Sessions, tmp_path: Path) -> None:
    """An empty session leaves nothing behind. A change of model is written with the first message."""
    with sessions.create() as session:
        session.use(InUse(model="a"))
        session.append([])
        assert not (tmp_path / "state").exists()
        session.append([ask("hello")])
    assert [json.loads(line).popitem()[0] for line in Path(session.path).read_text().splitlines()[1:]] == [
        "model",
        "message",
    ]


def test_the_file_consists_of_plain_lines(sessions: Sessions) -> None:
    """It has a header and one record per line, with the text as typed, so grep finds it."""
    path = Path(save_session(sessions, ask("für „grep“\nsecond line"), answer("ok"), model="second"))
    header, *records = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(header) == {"skillshelf_session", "id", "workspace", "created", "model", "base_url", "policy"}
    assert (header["skillshelf_session"], header["id"] + ".jsonl", header["model"]) == (1, path.name, "m")
    assert [list(record) for record in records] == [["message"], ["message"], ["model"]]
    assert "für „grep“" in path.read_text()


def test_a_compaction_replaces_the_history_and_keeps_the_file(sessions: Sessions) -> None:
    """The history is the short one plus later messages, but the file still holds the whole conversation."""
    with sessions.create() as session:
        session.append([ask("long story"), answer("long answer")])
        session.replace([ask("summary")])
        session.append([answer("go on")])
    again = reopen(sessions)
    assert (again.messages, again.transcript) == (session.messages, session.transcript)
    assert [part.content for message in again.messages for part in message.parts] == ["summary", "go on"]  # type: ignore[union-attr]
    assert [part.content for message in again.transcript for part in message.parts] == [  # type: ignore[union-attr]
        "long story",
        "long answer",
        "go on",
    ]


def test_a_session_can_start_from_an_existing_history(sessions: Sessions) -> None:
    """It has the other session's conversation, title and number of messages."""
    with sessions.create() as session:
        session.replace([ask("from before"), answer("x")])
        session.append([ask("more")])
    again = reopen(sessions)
    assert again.transcript == again.messages == session.transcript == session.messages
    assert [(info.title, info.messages) for info in sessions.list()] == [("from before", 3)]


def test_the_model_is_the_one_used_last(sessions: Sessions) -> None:
    """Each change of model is a line of its own; using the same model again is not a change."""
    with sessions.create("first") as session:
        session.append([ask("x")])
        for model in ("first", "second", "second"):
            session.use(InUse(model=model))
    assert (reopen(sessions).model, sessions.list()[0].model) == ("second", "second")
    assert Path(session.path).read_text().count('{"model":') == 1


def test_a_session_recalls_what_it_was_used_with(sessions: Sessions) -> None:
    """The model, its address and the policy are those of the last message; of earlier versions, nothing is recalled."""
    first = InUse(model="openai-chat:x", base_url="http://localhost:1/v1", policy="ask")
    with sessions.create(in_use=first) as session:
        session.append([ask("hi")])
        assert sessions.recall_settings(session.id) == first.model_dump()
        second = InUse(model="anthropic:y", base_url="", policy="auto-edit")
        session.use(second)
    assert reopen(sessions).in_use == second
    assert sessions.recall_settings(session.id) == second.model_dump()

    old = Path(save_session(sessions, ask("old")))
    assert sessions.recall_settings(old.stem) == {}


@pytest.mark.parametrize("wrong", ['"policy":"anything"', '"policy":["yolo"]', '"policy":null'])
def test_a_wrong_policy_is_not_recalled(sessions: Sessions, wrong: str) -> None:
    with sessions.create() as session:
        session.append([ask("hi")])
    with Path(session.path).open("a") as file:
        file.write(f'{{"model":"m","base_url":"",{wrong}}}\n')
    assert sessions.recall_settings(session.id) == {"model": "m", "base_url": ""}
    assert reopen(sessions).notes == ()


def test_a_workspace_that_holds_its_sessions_recalls_nothing(tmp_path: Path) -> None:
    """The agent's commands could have written another address there, or another policy."""
    sessions = Sessions(str(tmp_path), str(tmp_path / "state"))
    with sessions.create(in_use=InUse(model="m", base_url="http://evil.example", policy="yolo")) as session:
        session.append([ask("hi")])
    assert sessions.recall_settings(session.id) == {}


def test_a_session_has_a_name(sessions: Sessions) -> None:
    """It is in the list, and it opens the session. Without one, the first message says what it is about."""
    with sessions.create() as session:
        session.rename("first")
        session.append([ask("hello")])
        session.rename("fix the login")
    save_session(sessions, ask("another"))
    infos = {info.id: info for info in sessions.list()}
    assert infos.pop(session.id).about == "fix the login · hello"
    assert [info.about for info in infos.values()] == ["another"]
    assert reopen(sessions, "fix the login").name == "fix the login"
    with pytest.raises(SessionError, match="no session 'first'"):
        sessions.open("first")


def test_a_skill_counts_as_loaded_only_in_the_message_that_applies_it() -> None:
    """Text that only begins like such a message does not count."""
    applied = apply_message(SkillDescriptor("pdf", "Fill in forms."), "Fill in.", "now")
    assert loaded_skills([ask(applied)]) == [LoadedText("pdf", "", applied)]
    assert loaded_skills([ask('Apply Skill "pdf" to my taxes'), ask('Apply Skill "pdf"\n\nplease')]) == []


# -- the system prompt ------------------------------------------------------------------------------------------------

LISTING = "Available Skills: pdf, release-notes"


def test_no_system_prompt_is_saved(sessions: Sessions) -> None:
    """B6: no part of a request that holds the listing ends up in the file or in the history."""
    carriers: list[Any] = [
        SystemPromptPart(LISTING),
        InstructionBaselinePart(instructions=[InstructionPart(LISTING, on_change="append")]),
        InstructionDeltaPart(id=None, content=LISTING),
    ]
    message = ModelRequest(parts=[*carriers, UserPromptPart("hello")], instructions=LISTING)
    with sessions.create() as session:
        session.append([message, answer("hi")])
        session.replace([message, answer("hi")])
    assert LISTING not in Path(session.path).read_text()
    assert LISTING not in repr(session.messages)
    assert reopen(sessions).messages[0].parts == message.parts[3:]
    assert message.instructions == LISTING


def test_a_real_run_saves_no_listing_and_can_continue(sessions: Sessions) -> None:
    """B6: a run is saved without its instructions, and an agent continues with the reopened history."""
    agent = Agent(TestModel(custom_output_text="ok"), instructions=lambda: LISTING)
    run = agent.run_sync("hello")
    assert any(message.instructions for message in run.all_messages() if isinstance(message, ModelRequest))
    path = save_session(sessions, *run.new_messages())
    assert LISTING not in Path(path).read_text()
    again = agent.run_sync("more", message_history=reopen(sessions).messages)
    assert len(again.all_messages()) == 4


# -- any messages -----------------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=40)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
pictures = st.binary(max_size=9).map(
    lambda data: BinaryContent.narrow_type(BinaryContent(data, media_type="image/png"))
)
prompts = st.builds(UserPromptPart, texts | st.lists(texts | pictures, min_size=1, max_size=3))
answers = st.builds(TextPart, texts) | st.builds(ThinkingPart, texts)


@st.composite
def conversations(draw: st.DrawFn) -> list[ModelMessage]:
    """Draw turns with and without tools, each call with its result."""
    messages: list[ModelMessage] = []
    for turn in range(draw(st.integers(1, 4))):
        messages.append(ModelRequest(parts=draw(st.lists(prompts, min_size=1, max_size=2))))
        for step in range(draw(st.integers(0, 2))):
            ids = [f"{turn}-{step}-{number}" for number in range(draw(st.integers(1, 2)))]
            arguments = draw(st.dictionaries(texts, values, max_size=2) | texts)
            calls = [ToolCallPart("tool", arguments, id) for id in ids]
            messages.append(ModelResponse(parts=[*draw(st.lists(answers, max_size=1)), *calls], model_name="m"))
            messages.append(ModelRequest(parts=[ToolReturnPart("tool", draw(values), id) for id in ids]))
        messages.append(ModelResponse(parts=draw(st.lists(answers, min_size=1, max_size=2)), model_name="m"))
    return messages


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(messages=conversations(), cuts=st.lists(st.integers(0, 20), max_size=3))
def test_any_conversation_is_restored_exactly(
    sessions: Sessions, messages: list[ModelMessage], cuts: list[int]
) -> None:
    """Append, close and reopen at arbitrary points; the history equals the conversation."""
    session = sessions.create()
    id, start = session.id, 0
    for cut in [*sorted(cuts), len(messages)]:
        session.append(messages[start:cut])
        start = max(start, cut)
        session.close()
        if os.path.exists(session.path):
            session = sessions.open(id)
        else:
            session = sessions.create()
            id = session.id
    session.close()
    assert (session.messages, session.notes) == (messages, ())
    if messages:
        os.unlink(session.path)


def test_values_without_a_json_form_are_saved_as_text(sessions: Sessions) -> None:
    """Half a surrogate pair, bytes, NaN or an object in a tool's result never stop a session from being saved."""
    odd_messages: list[ModelMessage] = [
        ask("half \ud800 pair"),
        call("t", "1", n=float("nan")),
        result("t", "1", {"b": b"\xff", "o": object()}),
    ]
    save_session(sessions, *odd_messages, answer("end"))
    again = reopen(sessions)
    assert again.messages[0].parts[0].content == "half ? pair"  # type: ignore[union-attr]
    assert (len(again.messages), again.notes) == (4, ())


# -- continuing after a crash -----------------------------------------------------------------------------------------


def test_a_call_without_a_result_is_marked_as_interrupted(sessions: Sessions) -> None:
    """After a crash between call and result, an agent can continue with the reopened history."""
    save_session(sessions, ask("go"), call("read", "7", path="a"))
    again = reopen(sessions)
    part = again.messages[-1].parts[0]
    assert isinstance(part, ToolReturnPart)
    assert (part.tool_call_id, part.outcome, len(again.messages)) == ("7", "interrupted", 3)
    run = Agent(TestModel(custom_output_text="ok")).run_sync("go on", message_history=again.messages)
    assert run.output == "ok"


def test_a_paused_answer_does_not_block_the_next_question(sessions: Sessions) -> None:
    """A provider's pause counts as an interruption if the process did not survive it."""
    save_session(sessions, ask("go"), replace(answer("thinking"), state="suspended"))
    run = Agent(TestModel(custom_output_text="ok")).run_sync("go on", message_history=reopen(sessions).messages)
    assert run.output == "ok"


def test_a_history_is_repaired_the_same_way_each_time(sessions: Sessions) -> None:
    """A repaired history that continued is repaired at the same place when it is opened again."""
    save_session(sessions, ask("go"), call("read", "7", path="a"))
    with sessions.open() as session:
        session.append([ask("go on"), answer("ok")])
    once, twice = reopen(sessions), reopen(sessions)
    assert once.messages == twice.messages
    kinds = [[part.part_kind for part in message.parts] for message in once.messages]
    assert kinds == [["user-prompt"], ["tool-call"], ["tool-return", "user-prompt"], ["text"]]


# -- finding a session ------------------------------------------------------------------------------------------------


def test_the_list_describes_each_session(sessions: Sessions) -> None:
    """Sessions are sorted by last change, with their first words, model and number of messages."""
    first = save_session(sessions, ask("What\n is\x1b[2J this? " + "long " * 50), answer("x"), model="second")
    second = save_session(sessions, ask("hello"), answer("x"), ask("y"))
    os.utime(first, (1, 1))
    newest, oldest = sessions.list()
    assert (newest.id, newest.title, newest.model, newest.messages, newest.problem) == (
        Path(second).stem,
        "hello",
        "m",
        3,
        "",
    )
    assert (oldest.id, oldest.model, oldest.messages) == (Path(first).stem, "second", 2)
    assert oldest.title.startswith("What is<U+001B>[2J this? long")
    assert (len(oldest.title), oldest.title[-1], oldest.changed.year) == (80, "…", 1970)
    assert newest.created == reopen(sessions, newest.id).created


def test_the_list_counts_the_current_history(sessions: Sessions) -> None:
    """After a compaction the list counts the remaining messages, and the title stays."""
    with sessions.create() as session:
        session.append([ask("first words"), answer("x"), ask("y"), answer("z")])
        session.replace([ask("summary"), answer("z")])
        session.append([ask("more")])
    assert [(info.title, info.messages) for info in sessions.list()] == [("first words", 3)]


def test_a_file_is_read_again_only_when_it_changed(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key after `/resume ` requests the list, so parsed files are cached, and listing the ids opens no file."""
    opened_paths: list[str] = []
    open_file = system.open

    def record_open(path: str, flags: int, *rest: int) -> int:
        opened_paths.append(path)
        return open_file(path, flags, *rest)

    monkeypatch.setattr(system, "open", record_open)
    first, second = (save_session(sessions, ask(text)) for text in ("one", "two"))
    os.utime(first, (1, 1))
    opened_paths.clear()
    assert list(sessions.ids()) == [Path(second).stem, Path(first).stem]
    assert opened_paths == []
    assert sessions.list() == sessions.list()
    assert sorted(opened_paths) == sorted([first, second])
    with sessions.open(Path(first).stem) as session:
        session.append([answer("more")])
    opened_paths.clear()
    assert [info.messages for info in sessions.list()] == [2, 1]
    assert opened_paths == [first]


def test_a_session_opens_by_the_beginning_or_end_of_its_id(sessions: Sessions) -> None:
    """An unambiguous beginning or the last four letters suffice. Without an id, the session changed last opens."""
    older, newer = (Path(save_session(sessions, ask(text))) for text in ("older", "newer"))
    older = older.rename(older.with_name("20200101-000000-abcd.jsonl"))
    os.utime(older, (1, 1))
    assert reopen(sessions).id == newer.stem
    assert {reopen(sessions, prefix).id for prefix in (older.stem, "2020", "abcd")} == {older.stem}
    os.utime(older)
    assert reopen(sessions).id == older.stem


def test_an_unknown_id_suggests_existing_ones(sessions: Sessions) -> None:
    """This covers mistyped and ambiguous ids."""
    with pytest.raises(SessionError, match=r"no session of .* yet"):
        sessions.open()
    ids = sorted(Path(save_session(sessions, ask("x"))).stem for _ in range(2))
    with pytest.raises(SessionError, match=ids[0]):
        sessions.open(ids[0][:-1] + "!")
    with pytest.raises(SessionError, match=f"fits 2 sessions: .*{ids[0]}"):
        sessions.open("20")
    for hostile in ("../x", "/etc/passwd", "\0", "zzz"):
        with pytest.raises(SessionError, match="There is no session"):
            sessions.open(hostile)


def test_sessions_of_workspaces_do_not_mix(tmp_path: Path) -> None:
    """Two folders with the same name have separate sessions, in folders with distinct names."""
    first, second = (Sessions(str(tmp_path / name / "My Project"), str(tmp_path)) for name in "ab")
    path = Path(save_session(first, ask("x")))
    assert path.parent.name.startswith("my-project-")
    assert path.parent.parent == tmp_path / "sessions"
    assert second.list() == []


def test_the_state_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without an explicit home, sessions are below XDG_STATE_HOME, and the workspace stays untouched."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    workspace = tmp_path / "work"
    workspace.mkdir()
    assert save_session(Sessions(str(workspace)), ask("x")).startswith(
        str(tmp_path / "xdg" / "skillshelf" / "sessions" / "")
    )
    assert list(workspace.iterdir()) == []


def test_a_thousand_sessions_are_listed_quickly(sessions: Sessions) -> None:
    """A thousand sessions of 30 messages take less than 1.5 seconds, since few lines of each are parsed."""
    turn: list[ModelMessage] = [ask("x" * 500), call("read", "1", path="a"), result("read", "1", "y" * 3000)]
    path = Path(save_session(sessions, ask("first"), *turn * 10))
    data = path.read_bytes()
    for number in range(999):
        path.with_name(f"20200101-{number:06}-abcd.jsonl").write_bytes(data)
    start = time.process_time()
    infos = sessions.list()
    assert time.process_time() - start < 1.5
    assert {(info.title, info.messages, info.problem) for info in infos} == {("first", 31, "")}
    assert len(infos) == 1000


# -- one writer at a time ----------------------------------------------------------------------------------------------


def test_an_open_session_can_be_listed_but_not_opened_again(sessions: Sessions) -> None:
    """Only one process at a time can write to it."""
    with sessions.create() as session:
        session.append([ask("x")])
        with pytest.raises(SessionError, match="open already"):
            sessions.open()
        assert [info.messages for info in sessions.list()] == [1]
    assert reopen(sessions).messages == session.messages


def test_a_closed_session_can_be_opened_again(sessions: Sessions) -> None:
    """Closing releases the lock; later messages stay in memory, and the refusal is explained."""
    session = sessions.create()
    session.append([ask("x")])
    session.close()
    with sessions.open() as again:
        again.append([answer("y")])
    with pytest.raises(SessionError, match="closed"):
        session.append([answer("z")])
    assert len(session.messages) == 2


def test_saving_does_not_change_messages(sessions: Sessions) -> None:
    """The caller's objects stay as they are, and are copied only if something must be removed."""
    message = ask("x")
    before = replace(message)
    with sessions.create() as session:
        session.append([message])
    assert session.messages[0] is message
    assert message == before


def test_only_the_user_can_read_the_folder(sessions: Sessions, tmp_path: Path, umask: Callable[[int], None]) -> None:
    """K11: folders have mode 0700 and files 0600, whatever the umask."""
    umask(0)
    path = Path(save_session(sessions, ask("x")))
    created = [path, *path.parents[: len(path.relative_to(tmp_path).parts) - 1]]
    assert [oct(stat.S_IMODE(path_created.stat().st_mode)) for path_created in created] == [
        "0o600",
        "0o700",
        "0o700",
        "0o700",
    ]


@pytest.fixture
def umask() -> Any:
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)
