"""Sessions: what was said is there again, in a file a person can read, and nothing of the system prompt with it."""

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

from skillshelf.agent.sessions import LoadedText, Session, Sessions, loaded_skills
from skillshelf.descriptor import SkillDescriptor
from skillshelf.errors import SessionError
from skillshelf.files import system
from skillshelf.slash import apply_message


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


def saved(sessions: Sessions, *messages: ModelMessage, model: str = "m") -> str:
    """The path of a session that holds these, and whose model was changed to this one."""
    with sessions.create("m") as session:
        session.append(messages)
        session.use(model)
        return session.path


def reopened(sessions: Sessions, id: str = "") -> Session:
    with sessions.open(id) as session:
        return session


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_a_conversation_is_there_again(sessions: Sessions) -> None:
    """What was appended, in one go or several, is the history of the reopened session."""
    said: list[ModelMessage] = [
        ask("hello"),
        call("read", "1", path="a"),
        result("read", "1", {"lines": [1, None]}),
        answer("done"),
    ]
    with sessions.create("openai:gpt") as session:
        session.append(said[:1])
        session.append(said[1:])
    again = reopened(sessions, session.id)
    assert (again.messages, again.transcript, again.notes) == (said, said, ())
    assert (again.id, again.path, again.workspace) == (session.id, session.path, sessions.workspace)
    assert (again.model, again.created) == ("openai:gpt", session.created)


def test_no_file_before_the_first_message(sessions: Sessions, tmp_path: Path) -> None:
    """A session in which nothing was said leaves nothing behind; a change of model waits for the first message."""
    with sessions.create() as session:
        session.use("a")
        session.append([])
        assert not (tmp_path / "state").exists()
        session.append([ask("hello")])
    assert [json.loads(line).popitem()[0] for line in Path(session.path).read_text().splitlines()[1:]] == [
        "model",
        "message",
    ]


def test_the_file_is_plain_lines(sessions: Sessions) -> None:
    """A header and one record in a line, with the words as they were typed: grep finds them."""
    path = Path(saved(sessions, ask("für „grep“\nsecond line"), answer("ok"), model="second"))
    header, *records = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(header) == {"skillshelf_session", "id", "workspace", "created", "model"}
    assert (header["skillshelf_session"], header["id"] + ".jsonl", header["model"]) == (1, path.name, "m")
    assert [list(record) for record in records] == [["message"], ["message"], ["model"]]
    assert "für „grep“" in path.read_text()


def test_a_compaction_replaces_the_history_and_keeps_the_file(sessions: Sessions) -> None:
    """After it, the history is the short one and what came later; everything that was said is still in the file."""
    with sessions.create() as session:
        session.append([ask("long story"), answer("long answer")])
        session.replace([ask("summary")])
        session.append([answer("go on")])
    again = reopened(sessions)
    assert (again.messages, again.transcript) == (session.messages, session.transcript)
    assert [part.content for message in again.messages for part in message.parts] == ["summary", "go on"]  # type: ignore[union-attr]
    assert [part.content for message in again.transcript for part in message.parts] == [  # type: ignore[union-attr]
        "long story",
        "long answer",
        "go on",
    ]


def test_a_session_can_begin_with_a_history(sessions: Sessions) -> None:
    """One that begins with what another left off at has that as its conversation, its title and its count."""
    with sessions.create() as session:
        session.replace([ask("from before"), answer("x")])
        session.append([ask("more")])
    again = reopened(sessions)
    assert again.transcript == again.messages == session.transcript == session.messages
    assert [(info.title, info.messages) for info in sessions.list()] == [("from before", 3)]


def test_the_model_is_the_one_used_last(sessions: Sessions) -> None:
    """A change is a line of its own; using the same one again is none."""
    with sessions.create("first") as session:
        session.append([ask("x")])
        for model in ("first", "second", "second"):
            session.use(model)
    assert (reopened(sessions).model, sessions.list()[0].model) == ("second", "second")
    assert Path(session.path).read_text().count('{"model":') == 1


def test_a_skill_counts_as_loaded_only_in_the_message_that_applies_it() -> None:
    """As it is made for a model with tools and for one without; words that only begin like it are words."""
    skill = SkillDescriptor("pdf", "Fill in forms.")
    applied = apply_message(skill, "Fill in.", "now")
    routed = (
        'Apply Skill "pdf"\n\n<skill name="pdf">\nFollow.\n<instructions>\nFill in.\n</instructions>\n</skill>\n\nnow'
    )
    for text in (applied, routed):
        assert loaded_skills([ask(text)]) == [LoadedText("pdf", "", text)]
    assert loaded_skills([ask('Apply Skill "pdf" to my taxes'), ask('Apply Skill "pdf"\n\nplease')]) == []


# -- the system prompt ------------------------------------------------------------------------------------------------

LISTING = "Available Skills: pdf, release-notes"


def test_no_system_prompt_is_saved(sessions: Sessions) -> None:
    """B6: whatever part of a request holds the listing, it is neither in the file nor in the history."""
    carriers: list[Any] = [
        SystemPromptPart(LISTING),
        InstructionBaselinePart(instructions=[InstructionPart(LISTING, on_change="append")]),
        InstructionDeltaPart(id=None, content=LISTING),
    ]
    given = ModelRequest(parts=[*carriers, UserPromptPart("hello")], instructions=LISTING)
    with sessions.create() as session:
        session.append([given, answer("hi")])
        session.replace([given, answer("hi")])
    assert LISTING not in Path(session.path).read_text()
    assert LISTING not in repr(session.messages)
    assert reopened(sessions).messages[0].parts == given.parts[3:]
    assert given.instructions == LISTING


def test_a_real_run_leaves_no_listing_and_can_go_on(sessions: Sessions) -> None:
    """B6: an agent's run is saved without its instructions, and an agent goes on with the reopened history."""
    agent = Agent(TestModel(custom_output_text="ok"), instructions=lambda: LISTING)
    run = agent.run_sync("hello")
    assert any(message.instructions for message in run.all_messages() if isinstance(message, ModelRequest))
    path = saved(sessions, *run.new_messages())
    assert LISTING not in Path(path).read_text()
    again = agent.run_sync("more", message_history=reopened(sessions).messages)
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
    """Turns with and without tools, each call with its result."""
    said: list[ModelMessage] = []
    for turn in range(draw(st.integers(1, 4))):
        said.append(ModelRequest(parts=draw(st.lists(prompts, min_size=1, max_size=2))))
        for step in range(draw(st.integers(0, 2))):
            ids = [f"{turn}-{step}-{number}" for number in range(draw(st.integers(1, 2)))]
            arguments = draw(st.dictionaries(texts, values, max_size=2) | texts)
            calls = [ToolCallPart("tool", arguments, id) for id in ids]
            said.append(ModelResponse(parts=[*draw(st.lists(answers, max_size=1)), *calls], model_name="m"))
            said.append(ModelRequest(parts=[ToolReturnPart("tool", draw(values), id) for id in ids]))
        said.append(ModelResponse(parts=draw(st.lists(answers, min_size=1, max_size=2)), model_name="m"))
    return said


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=conversations(), cuts=st.lists(st.integers(0, 20), max_size=3))
def test_any_conversation_comes_back_as_it_was(sessions: Sessions, said: list[ModelMessage], cuts: list[int]) -> None:
    """Append, close and reopen, at any points: the history is equal to what was said."""
    session = sessions.create()
    id, start = session.id, 0
    for cut in [*sorted(cuts), len(said)]:
        session.append(said[start:cut])
        start = max(start, cut)
        session.close()
        if os.path.exists(session.path):
            session = sessions.open(id)
        else:
            session = sessions.create()
            id = session.id
    session.close()
    assert (session.messages, session.notes) == (said, ())
    if said:
        os.unlink(session.path)


def test_what_has_no_json_form_is_kept_as_words(sessions: Sessions) -> None:
    """Half a surrogate pair, bytes, NaN or an object in a tool's result never stop a session from being saved."""
    odd: list[ModelMessage] = [
        ask("half \ud800 pair"),
        call("t", "1", n=float("nan")),
        result("t", "1", {"b": b"\xff", "o": object()}),
    ]
    saved(sessions, *odd, answer("end"))
    again = reopened(sessions)
    assert again.messages[0].parts[0].content == "half ? pair"  # type: ignore[union-attr]
    assert (len(again.messages), again.notes) == (4, ())


# -- going on after a crash -------------------------------------------------------------------------------------------


def test_a_call_without_a_result_gets_one(sessions: Sessions) -> None:
    """A crash between call and result: the reopened history says that it was interrupted, and an agent takes it."""
    saved(sessions, ask("go"), call("read", "7", path="a"))
    again = reopened(sessions)
    part = again.messages[-1].parts[0]
    assert isinstance(part, ToolReturnPart)
    assert (part.tool_call_id, part.outcome, len(again.messages)) == ("7", "interrupted", 3)
    run = Agent(TestModel(custom_output_text="ok")).run_sync("go on", message_history=again.messages)
    assert run.output == "ok"


def test_an_answer_that_was_paused_does_not_block_the_next_question(sessions: Sessions) -> None:
    """A provider's pause that the process did not survive counts as an interruption."""
    saved(sessions, ask("go"), replace(answer("thinking"), state="suspended"))
    run = Agent(TestModel(custom_output_text="ok")).run_sync("go on", message_history=reopened(sessions).messages)
    assert run.output == "ok"


def test_the_repair_is_the_same_each_time(sessions: Sessions) -> None:
    """A repaired history that went on is repaired at the same place when it is opened again."""
    saved(sessions, ask("go"), call("read", "7", path="a"))
    with sessions.open() as session:
        session.append([ask("go on"), answer("ok")])
    once, twice = reopened(sessions), reopened(sessions)
    assert once.messages == twice.messages
    kinds = [[part.part_kind for part in message.parts] for message in once.messages]
    assert kinds == [["user-prompt"], ["tool-call"], ["tool-return", "user-prompt"], ["text"]]


# -- finding one ------------------------------------------------------------------------------------------------------


def test_the_list_tells_what_each_was_about(sessions: Sessions) -> None:
    """The one changed last first: first words, model, number of messages."""
    first = saved(sessions, ask("What\n is\x1b[2J this? " + "long " * 50), answer("x"), model="second")
    second = saved(sessions, ask("hello"), answer("x"), ask("y"))
    os.utime(first, (1, 1))
    one, two = sessions.list()
    assert (one.id, one.title, one.model, one.messages, one.problem) == (Path(second).stem, "hello", "m", 3, "")
    assert (two.id, two.model, two.messages) == (Path(first).stem, "second", 2)
    assert two.title.startswith("What is<U+001B>[2J this? long")
    assert (len(two.title), two.title[-1], two.changed.year) == (80, "…", 1970)
    assert one.created == reopened(sessions, one.id).created


def test_the_list_counts_the_current_history(sessions: Sessions) -> None:
    """After a compaction, the number is that of the messages which are left, and the title stays."""
    with sessions.create() as session:
        session.append([ask("first words"), answer("x"), ask("y"), answer("z")])
        session.replace([ask("summary"), answer("z")])
        session.append([ask("more")])
    assert [(info.title, info.messages) for info in sessions.list()] == [("first words", 3)]


def test_a_file_is_read_again_only_when_it_changed(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key after `/resume ` asks for the list; what was read is remembered, and listing the ids opens no file."""
    opened: list[str] = []
    open_file = system.open

    def record_open(path: str, flags: int, *rest: int) -> int:
        opened.append(path)
        return open_file(path, flags, *rest)

    monkeypatch.setattr(system, "open", record_open)
    one, two = (saved(sessions, ask(text)) for text in ("one", "two"))
    os.utime(one, (1, 1))
    opened.clear()
    assert list(sessions.ids()) == [Path(two).stem, Path(one).stem]
    assert opened == []
    assert sessions.list() == sessions.list()
    assert sorted(opened) == sorted([one, two])
    with sessions.open(Path(one).stem) as session:
        session.append([answer("more")])
    opened.clear()
    assert [info.messages for info in sessions.list()] == [2, 1]
    assert opened == [one]


def test_opening_by_id_beginning_or_end(sessions: Sessions) -> None:
    """A whole id, an unambiguous beginning, the four last letters; nothing means the one changed last."""
    older, newer = (Path(saved(sessions, ask(text))) for text in ("older", "newer"))
    older = older.rename(older.with_name("20200101-000000-abcd.jsonl"))
    os.utime(older, (1, 1))
    assert reopened(sessions).id == newer.stem
    assert {reopened(sessions, asked).id for asked in (older.stem, "2020", "abcd")} == {older.stem}
    os.utime(older)
    assert reopened(sessions).id == older.stem


def test_an_unknown_id_names_near_ones(sessions: Sessions) -> None:
    """A mistyped id, and one that fits several, are answered with ids that exist."""
    with pytest.raises(SessionError, match=r"no session of .* yet"):
        sessions.open()
    ids = sorted(Path(saved(sessions, ask("x"))).stem for _ in range(2))
    with pytest.raises(SessionError, match=ids[0]):
        sessions.open(ids[0][:-1] + "!")
    with pytest.raises(SessionError, match=f"fits 2 sessions: .*{ids[0]}"):
        sessions.open("20")
    for hostile in ("../x", "/etc/passwd", "\0", "zzz"):
        with pytest.raises(SessionError, match="There is no session"):
            sessions.open(hostile)


def test_workspaces_do_not_mix(tmp_path: Path) -> None:
    """Two folders of one name have sessions of their own, in folders that tell which is which."""
    one, two = (Sessions(str(tmp_path / name / "My Project"), str(tmp_path)) for name in "ab")
    path = Path(saved(one, ask("x")))
    assert path.parent.name.startswith("my-project-")
    assert path.parent.parent == tmp_path / "sessions"
    assert two.list() == []


def test_the_state_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a home given, sessions are below XDG_STATE_HOME, and nothing is written to the workspace."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    workspace = tmp_path / "work"
    workspace.mkdir()
    assert saved(Sessions(str(workspace)), ask("x")).startswith(str(tmp_path / "xdg" / "skillshelf" / "sessions" / ""))
    assert list(workspace.iterdir()) == []


def test_a_thousand_sessions_are_listed_quickly(sessions: Sessions) -> None:
    """Less than a second and a half for a thousand sessions of 30 messages, since few lines of each are parsed."""
    turn: list[ModelMessage] = [ask("x" * 500), call("read", "1", path="a"), result("read", "1", "y" * 3000)]
    path = Path(saved(sessions, ask("first"), *turn * 10))
    data = path.read_bytes()
    for number in range(999):
        path.with_name(f"20200101-{number:06}-abcd.jsonl").write_bytes(data)
    start = time.process_time()
    infos = sessions.list()
    assert time.process_time() - start < 1.5
    assert {(info.title, info.messages, info.problem) for info in infos} == {("first", 31, "")}
    assert len(infos) == 1000


# -- one at a time ---------------------------------------------------------------------------------------------------


def test_an_open_session_can_be_listed_and_not_opened_again(sessions: Sessions) -> None:
    """Whoever has it open is the only one who writes to it."""
    with sessions.create() as session:
        session.append([ask("x")])
        with pytest.raises(SessionError, match="open already"):
            sessions.open()
        assert [info.messages for info in sessions.list()] == [1]
    assert reopened(sessions).messages == session.messages


def test_a_session_that_is_let_go_can_be_opened(sessions: Sessions) -> None:
    """Closing ends the lock; what comes after it stays in memory and is refused in words."""
    session = sessions.create()
    session.append([ask("x")])
    session.close()
    with sessions.open() as again:
        again.append([answer("y")])
    with pytest.raises(SessionError, match="closed"):
        session.append([answer("z")])
    assert len(session.messages) == 2


def test_messages_are_not_changed_by_saving(sessions: Sessions) -> None:
    """The caller's objects stay as they were, and are not copied where there is nothing to strip."""
    given = ask("x")
    before = replace(given)
    with sessions.create() as session:
        session.append([given])
    assert session.messages[0] is given
    assert given == before


def test_the_folder_is_for_this_user_alone(sessions: Sessions, tmp_path: Path, umask: Callable[[int], None]) -> None:
    """K11: folders 0700 and files 0600, whatever the umask."""
    umask(0)
    path = Path(saved(sessions, ask("x")))
    made = [path, *path.parents[: len(path.relative_to(tmp_path).parts) - 1]]
    assert [oct(stat.S_IMODE(one.stat().st_mode)) for one in made] == ["0o600", "0o700", "0o700", "0o700"]


@pytest.fixture
def umask() -> Any:
    before = os.umask(0)
    os.umask(before)
    yield os.umask
    os.umask(before)
