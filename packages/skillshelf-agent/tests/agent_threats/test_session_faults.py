"""SESSION FAULTS: killed writers, full disks, damaged files. Saved messages survive, and losses are reported."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from repository import TESTS
from skillshelf.errors import SessionError
from skillshelf.files import system
from skillshelf_agent.sessions import Session, Sessions

KILLED = """
import json, os, sys
sys.path.insert(0, sys.argv[3])
from faults.harness import Armed
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from skillshelf_agent.sessions import Sessions

def turn(number, size):
    return [ModelRequest(parts=[UserPromptPart(f"{number} " + "é" * size)]),
            ModelResponse(parts=[TextPart(f"answer {number} " + "x" * size)], model_name="m")]

def write_until_killed(home, size, armed, report):
    session = Sessions(sys.argv[1], home).create("m")
    with armed:
        for number in range(1_000):
            session.append(turn(number, size))
            os.write(report, b".")

# The first append builds the serializer, which takes longer than the rest, so do it once here and not in each child.
Sessions(sys.argv[1], f"{sys.argv[2]}-warm").create("m").append(turn(0, 1))
print("ready", flush=True)
for kind in ("kill", "torn"):
    for size in (10, 5_000, 400_000):
        for at in range(1, 11):
            home = f"{sys.argv[2]}-{kind}-{size}-{at}"
            reading, writing = os.pipe()
            pid = os.fork()
            if not pid:
                write_until_killed(home, size, Armed(kind, at), writing)
                os._exit(1)
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                turns = len(pipe.read())
            status = os.waitpid(pid, 0)[1]
            print(json.dumps([home, turns, os.WTERMSIG(status)]), flush=True)
"""
STEPS = """
import os, signal, sys
from pydantic_ai.messages import ModelRequest, UserPromptPart
from skillshelf_agent.sessions import Sessions
from skillshelf.files import system

def kill_after(left):
    def counted(real):
        def wrapped(*given, **named):
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*given, **named)
        return wrapped
    for name in ("open", "write", "fsync", "mkdir", "fstat", "ftruncate", "close"):
        setattr(system, name, counted(getattr(system, name)))

print("ready", flush=True)
for step in range(100):
    pid = os.fork()
    if not pid:
        session = Sessions(sys.argv[1], f"{sys.argv[2]}-{step}").create("m")
        kill_after(step)
        session.append([ModelRequest(parts=[UserPromptPart("one")])])
        session.append([ModelRequest(parts=[UserPromptPart("two")])])
        os._exit(0)
    if not os.waitpid(pid, 0)[1]:
        break
print(step, flush=True)
"""
HOLDER = """
import sys
from skillshelf_agent.sessions import Sessions
session = Sessions(sys.argv[1], sys.argv[2]).open()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(str(tmp_path / "project"), str(tmp_path / "state"))


def ask(text: str) -> ModelRequest:
    return ModelRequest(parts=[UserPromptPart(text)])


def answer(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)], model_name="m")


def save_session(sessions: Sessions, *messages: ModelMessage) -> Path:
    with sessions.create("m") as session:
        session.append(messages)
        return Path(session.path)


def reopen(sessions: Sessions) -> Session:
    with sessions.open() as session:
        return session


def read_texts(session: Session) -> list[str]:
    return [str(part.content) for message in session.messages for part in message.parts]  # type: ignore[union-attr]


@contextmanager
def start_child(script: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


# -- killed -----------------------------------------------------------------------------------------------------------


def test_a_killed_writer_loses_no_saved_turn(sessions: Sessions, tmp_path: Path) -> None:
    """K01: killed at each of its first file operations and within its first writes, it loses no appended turn."""
    with start_child(KILLED, sessions.workspace, tmp_path / "state", TESTS) as process:
        outcomes = [json.loads(line) for line in process.communicate()[0].splitlines()]
    for home, turns, signalled in outcomes:
        assert signalled == signal.SIGKILL
        child_sessions = Sessions(sessions.workspace, home)
        if not child_sessions.list():
            assert turns == 0
            continue
        with child_sessions.open() as session:
            numbers = [text.split()[0] for text in read_texts(session) if text[:1].isdigit()]
            assert numbers[:turns] == [str(number) for number in range(turns)]
            assert len(numbers) <= turns + 1
            session.append([ask("after the crash"), answer("fine")])
        again = reopen(child_sessions)
        assert (again.transcript, again.notes) == (session.transcript, ())
    assert len(outcomes) == 60
    assert sum(turns for _, turns, _ in outcomes) > 30


def test_each_step_of_a_write_can_be_the_last(sessions: Sessions, tmp_path: Path) -> None:
    """K01: killed before each system call of two appends, it leaves a whole file, and the session continues."""
    with start_child(STEPS, sessions.workspace, tmp_path / "state") as process:
        steps = int(process.communicate()[0])
    outcomes = []
    for step in range(steps + 1):
        child_sessions = Sessions(sessions.workspace, str(tmp_path / f"state-{step}"))
        outcomes.append("")
        if child_sessions.list():
            assert [info.problem for info in child_sessions.list()] == [""]
            with child_sessions.open() as session:
                outcomes[-1] = "".join(read_texts(session))
                assert session.notes == ()
                session.append([answer("on")])
    assert outcomes == sorted(outcomes, key=len)
    assert set(outcomes) == {"", "one", "onetwo"}


def test_the_next_process_does_not_wait_for_a_dead_one(sessions: Sessions, tmp_path: Path) -> None:
    """K06: a second process is refused while the first has the session, and accepted once the first is dead."""
    save_session(sessions, ask("x"))
    with start_child(HOLDER, sessions.workspace, tmp_path / "state") as process:
        with pytest.raises(SessionError, match="open already"):
            sessions.open()
        assert [info.title for info in sessions.list()] == ["x"]
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert read_texts(reopen(sessions)) == ["x"]


# -- torn and damaged -------------------------------------------------------------------------------------------------


def test_a_last_line_torn_at_any_byte_is_set_aside(sessions: Sessions) -> None:
    """K01: earlier lines are used, the fragment is set aside and reported, and appending continues."""
    path = save_session(sessions, ask("first"), answer("second"), ask("thïrd"))
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(whole)):
        path.write_bytes(whole[:end])
        torn = Path(f"{path}.torn")
        with sessions.open() as session:
            session.append([answer("after")])
        again = reopen(sessions)
        complete = end == len(whole) - 1
        assert read_texts(again) == ["first", "second", *(["thïrd"] if complete else []), "after"]
        assert again.notes == ()
        if complete or end == start:
            assert (session.notes, torn.exists()) == ((), False)
        else:
            assert torn.read_bytes() == whole[start:end] + b"\n"
            assert f"never finished ({end - start} bytes). It was moved to {torn}" in session.notes[0]
            torn.unlink()


def test_a_torn_line_on_a_full_disk_is_reported(sessions: Sessions) -> None:
    """K02: a fragment that cannot be set aside stays, is reported, and does not spoil later lines."""
    path = save_session(sessions, ask("first"), answer("second"))
    path.write_bytes(path.read_bytes() + b'{"message":{"par')
    Path(f"{path}.torn").mkdir()
    with sessions.open() as session:
        session.append([ask("after")])
    assert "left in the file" in session.notes[0]
    again = reopen(sessions)
    assert "Line 4 of" in again.notes[0]
    assert (read_texts(again)[:2], read_texts(again)[-1]) == (["first", "second"], "after")


def test_zeros_at_the_end_are_set_aside(sessions: Sessions) -> None:
    """K10: some file systems leave zeros after a power cut; they are treated like a torn line."""
    path = save_session(sessions, ask("first"))
    path.write_bytes(path.read_bytes() + bytes(4096))
    again = reopen(sessions)
    assert (read_texts(again), len(again.notes)) == (["first"], 1)
    assert Path(f"{path}.torn").read_bytes() == bytes(4096) + b"\n"


def test_a_damaged_line_in_the_middle_is_skipped(sessions: Sessions) -> None:
    """K10: lines before and after are used, the model and the user learn of the gap, and the file stays."""
    path = save_session(sessions, ask("one"), answer("two"), ask("three"), answer("four"), ask("five"))
    whole = path.read_bytes().splitlines(keepends=True)
    for number, damage in ((2, b"\0" * 40), (3, b'{"message":{"parts":[{"part_kind":"new"}]}}'), (4, b"{"), (5, b"[]")):
        damaged = b"".join([*whole[: number - 1], damage + b"\n", *whole[number:]])
        path.write_bytes(damaged)
        again = reopen(sessions)
        assert again.notes == (f"Line {number} of {path} cannot be read. The conversation goes on with the rest.",)
        texts = ["one", "two", "three", "four", "five"]
        del texts[number - 2]
        assert [text for text in read_texts(again) if not text.startswith("[Part of")] == texts
        kinds = [message.kind for message in again.messages]
        assert kinds[0] == "request"
        assert all(kind != next_kind for kind, next_kind in pairwise(kinds))
        assert path.read_bytes() == damaged


def test_a_damaged_line_leaves_no_half_of_a_tool_call(sessions: Sessions) -> None:
    """K10: a result without its call, or a call without its result, is dropped."""
    call = ModelResponse(parts=[ToolCallPart("read", {}, "1")], model_name="m")
    returned = ModelRequest(parts=[ToolReturnPart("read", "text", "1")])
    path = save_session(sessions, ask("one"), call, returned, answer("two"))
    whole = path.read_bytes().splitlines(keepends=True)
    for number in (3, 4):
        path.write_bytes(b"".join([*whole[: number - 1], b"?\n", *whole[number:]]))
        parts = [part for message in reopen(sessions).messages for part in message.parts]
        calls = {part.tool_call_id for part in parts if isinstance(part, ToolCallPart)}
        assert calls == {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}


def test_a_damaged_header_is_reported(sessions: Sessions) -> None:
    """K10: the list reports it, and opening still restores the conversation."""
    path = save_session(sessions, ask("one"), answer("two"))
    path.write_bytes(b"\xff" + path.read_bytes()[1:])
    assert "first line" in sessions.list()[0].problem
    again = reopen(sessions)
    assert (read_texts(again), "Line 1 of" in again.notes[0]) == (["one", "two"], True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (random.Random(1).randbytes(100_000), "nothing that can be read"),
        (b"\0" * 5000, "nothing that can be read"),
        (b'{"skillshelf_sess', "nothing that can be read"),
        (b"[" * 100_000, "nothing that can be read"),
        (b'{"skillshelf_session":1}\n{"message":5}\n', "nothing that can be read"),
        (b'{"skillshelf_session":2,"new":1}\n{"x":1}\n', "newer skillshelf"),
        (b'{"other":1}\n', "not a session"),
        (b'["list"]\n', "not a session"),
        (b'{"skillshelf_session":"1"}\n', "not a session"),
    ],
)
def test_an_unusable_file_is_refused(sessions: Sessions, content: bytes, reason: str) -> None:
    """K10: the error has its path and a remedy, the list shows the problem if it can, and the file stays."""
    good = save_session(sessions, ask("one"))
    bad = good.with_name("20990101-000000-xxxx.jsonl")
    bad.write_bytes(content)
    with pytest.raises(SessionError, match=reason) as error:
        sessions.open("2099")
    assert str(bad) in str(error.value)
    assert "left as it is" in str(error.value)
    infos = {info.id: info for info in sessions.list()}
    assert len(infos) == 2
    assert infos[good.stem].problem == ""
    assert infos[bad.stem].problem or b'_session":1}' in content
    assert bad.read_bytes() == content


def test_entries_that_are_not_files_are_not_opened(sessions: Sessions, tmp_path: Path) -> None:
    """K03: a FIFO, a folder, a link and an empty file among the sessions neither block nor break the list."""
    folder = save_session(sessions, ask("one")).parent
    os.mkfifo(folder / "a.jsonl")
    (folder / "b.jsonl").mkdir()
    (tmp_path / "secret").write_text("secret\n")
    (folder / "c.jsonl").symlink_to(tmp_path / "secret")
    (folder / "d.jsonl").touch()
    assert [info.title for info in sessions.list()] == ["one"]
    assert read_texts(reopen(sessions)) == ["one"]


def test_records_of_unknown_kinds_are_ignored(sessions: Sessions) -> None:
    """A record that a later version adds to this format is not damage."""
    path = save_session(sessions, ask("one"))
    path.write_bytes(path.read_bytes() + b'{"mood":"good"}\n\n{"model":"T"}\n')
    again = reopen(sessions)
    assert (read_texts(again), again.notes, again.model) == (["one"], (), "T")


# -- full disks and missing permissions -------------------------------------------------------------------------------


@contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files to this many bytes: a full disk, for this process alone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_at_any_byte_loses_nothing(sessions: Sessions) -> None:
    """K02: the file stays whole, the history stays in memory, and all of it is saved once there is room."""
    with sessions.create() as session:
        session.append([ask("one")])
        path = Path(session.path)
        size, before = path.stat().st_size, path.read_bytes()
        for more in range(0, 200, 7):
            with (
                limit_file_size(size + more),
                pytest.raises(SessionError, match="goes on, but it is not saved") as error,
            ):
                session.append([ask(f"lost {more}")])
            assert path.read_bytes() == before
        assert "bytes for" in str(error.value)
        assert len(session.messages) == 30
        session.append([answer("room")])
    assert reopen(sessions).transcript == session.messages


def test_half_a_record_is_removed_before_the_next_write(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """K02, K03: this covers the case that even truncating the file failed at first."""

    def fail_truncation(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with sessions.create() as session:
        session.append([ask("one")])
        with limit_file_size(os.path.getsize(session.path) + 50), monkeypatch.context() as patch:
            patch.setattr(system, "ftruncate", fail_truncation)
            with pytest.raises(SessionError, match="not saved"):
                session.append([ask("two")])
        assert not Path(session.path).read_bytes().endswith(b"\n")
        session.append([answer("three")])
    again = reopen(sessions)
    assert (again.transcript, again.notes) == (session.transcript, ())


def test_a_new_session_waits_for_room_on_a_full_disk(sessions: Sessions, tmp_path: Path) -> None:
    """K02: a session that cannot be created leaves no empty file, and is created once there is room."""
    with sessions.create() as session:
        with limit_file_size(10), pytest.raises(SessionError, match="not saved"):
            session.append([ask("one")])
        assert [path for path in (tmp_path / "state").rglob("*") if path.is_file()] == []
        session.append([answer("two")])
    assert read_texts(reopen(sessions)) == ["one", "two"]


@pytest.mark.usefixtures("ordinary_user")
def test_a_read_only_folder_is_reported(sessions: Sessions, tmp_path: Path) -> None:
    """K03, K11: saving fails with a message, existing sessions can be read, and an unreadable file is in the list."""
    path = save_session(sessions, ask("one"))
    path.chmod(0o400)
    path.parent.chmod(0o500)
    try:
        with sessions.create() as fresh, pytest.raises(SessionError, match="not saved: Permission denied"):
            fresh.append([ask("x")])
        with sessions.open() as session, pytest.raises(SessionError, match="not saved: Permission denied"):
            session.append([answer("two")])
        assert (read_texts(session), "cannot be written" in session.notes[0]) == (["one", "two"], True)
        path.chmod(0)
        assert "cannot be read: Permission denied" in sessions.list()[0].problem
        with pytest.raises(SessionError, match="cannot be opened: Permission denied"):
            sessions.open()
    finally:
        path.parent.chmod(0o700)
    assert path.exists()


def test_a_conversation_works_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """K11: without a place for sessions there are none, and the conversation continues unsaved."""
    monkeypatch.setenv("HOME", "not-an-absolute-path")
    monkeypatch.chdir(tmp_path)
    homeless = Sessions(str(tmp_path))
    with homeless.create() as session, pytest.raises(SessionError, match="XDG_STATE_HOME"):
        session.append([ask("x")])
    assert (len(session.messages), homeless.list(), list(tmp_path.iterdir())) == (1, [], [])
    with pytest.raises(SessionError, match="no session of"):
        homeless.open()


def test_deleting_the_file_of_an_open_session_is_reported(sessions: Sessions) -> None:
    """K13: the user learns that later messages are not saved; nothing is lost from memory."""
    with sessions.create() as session:
        session.append([ask("one")])
        os.unlink(session.path)
        with pytest.raises(SessionError, match="its file was deleted"):
            session.append([answer("two")])
    assert len(session.messages) == 2


def test_deep_nesting_costs_one_line(sessions: Sessions) -> None:
    """K10: a line of a hundred thousand brackets does not affect the others."""
    path = save_session(sessions, ask("one"))
    deep = b'{"message":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    path.write_bytes(path.read_bytes() + deep + json.dumps({"model": "T"}).encode() + b"\n")
    again = reopen(sessions)
    assert (read_texts(again)[0], again.model, "Line 3 of" in again.notes[0]) == ("one", "T", True)
    assert sessions.list()[0].model == "T"
