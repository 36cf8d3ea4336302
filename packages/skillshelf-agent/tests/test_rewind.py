"""Going back to an earlier message: the conversation, its file, and the files that its turns changed."""

import asyncio
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from agent_kit import agent, prompts, requests, say
from chats import OnTerminal, script, tool
from skillshelf.errors import SessionError
from skillshelf_agent import AgentCore, Policy, Settings, SteeringMessage, Todo
from skillshelf_agent.sessions import Session, SessionInfo, Sessions, SideTranscript, export_markdown
from skillshelf_agent.terminal import Pipe
from skillshelf_agent.testing import ScriptedModel, call


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def start(work: Path, *steps: object) -> AgentCore:
    return agent(work, *steps, sessions=Sessions(str(work)))


def write(path: str, content: str) -> object:
    return call("write_file", path=path, content=content)


def exchange(word: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(word)]), ModelResponse(parts=[TextPart(f"{word}!")])]


def words(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for message in messages for part in message.parts]  # type: ignore[union-attr]


def info(session: Session, sessions: Sessions) -> SessionInfo:
    [found] = [each for each in sessions.list() if each.id == session.id]
    return found


# -- the session's file -----------------------------------------------------------------------------------------------


def test_a_rewound_session_reopens_as_it_was_left(work: Path) -> None:
    """The list, the history and the transcript agree, and what was said after that message is still in the file."""
    sessions = Sessions(str(work))
    with sessions.create() as session:
        session.append([*exchange("one"), *exchange("two")])
        session.rewind(2)
        session.append(exchange("three"))
    with sessions.open(session.id) as again:
        assert words(again.messages) == words(again.transcript) == ["one", "one!", "three", "three!"]
    assert info(session, sessions).messages == 4
    assert '"two!"' in Path(session.path).read_text()


def test_going_back_before_a_compaction_brings_the_messages_back(work: Path) -> None:
    """And going back to after it keeps the summary."""
    sessions = Sessions(str(work))
    with sessions.create() as session:
        session.append([*exchange("one"), *exchange("two")])
        session.replace(exchange("summary"))
        session.append([*exchange("three"), *exchange("four")])
        session.rewind(6)
        assert words(session.messages) == ["summary", "summary!", "three", "three!"]
        assert info(session, sessions).messages == 4
        session.rewind(2)
    with sessions.open(session.id) as again:
        assert words(again.messages) == words(again.transcript) == words(session.messages) == ["one", "one!"]
    assert info(session, sessions).messages == 2


def test_a_session_rewound_to_its_beginning_has_the_next_message_as_its_title(work: Path) -> None:
    sessions = Sessions(str(work))
    with sessions.create() as session:
        session.append(exchange("one"))
        session.rewind(0)
        session.append(exchange("two"))
    assert (info(session, sessions).title, info(session, sessions).messages) == ("two", 2)


def test_side_conversations_after_the_message_are_not_exported(work: Path) -> None:
    with Sessions(str(work)).create() as session:
        for word in ("one", "two"):
            question, answer = exchange(word)
            session.append([question])
            session.add_side(SideTranscript(f"audit-{word}", "m", exchange(f"inner {word}")))
            session.append([answer])
        session.rewind(2)
    exported = export_markdown(session)
    assert "inner one" in exported
    assert "two" not in exported


@pytest.mark.parametrize("position", ["-1", "5", "true", '"1"', "null"])
def test_a_rewind_to_no_message_is_a_damaged_line(work: Path, position: str) -> None:
    """The conversation is all there, and the user gets the number of the line."""
    sessions = Sessions(str(work))
    with sessions.create() as session:
        session.append(exchange("one"))
    with Path(session.path).open("a") as file:
        file.write(f'{{"rewound":{position}}}\n')
    with sessions.open(session.id) as again:
        assert words(again.transcript) == ["one", "one!"]
        assert "Line 4" in again.notes[0]


# -- the conversation -------------------------------------------------------------------------------------------------


def test_the_model_gets_the_conversation_before_the_message(work: Path) -> None:
    """Each message can be gone back to, with an answer to it or not."""
    core = start(work, "One.", "Two.", "Other.")
    say(core, "first", "second")
    assert [message.text for message in core.list_sent()] == ["first", "second"]
    core.rewind(core.list_sent()[1])
    say(core, "another")
    assert prompts(core) == ["first", "another"]
    assert "second" not in requests(core)[-1].text
    assert "One." in requests(core)[-1].text


def test_a_message_sent_during_a_turn_goes_with_it(work: Path) -> None:
    """So do the results of its tools and its files: half of a turn would leave the model with neither."""
    core = start(work, "Hello.", write("f", "1"), "One.")

    async def take_once() -> list[SteeringMessage]:
        core.take_steering = None
        return [SteeringMessage("in Latin")]

    say(core, "first")
    core.take_steering = take_once
    say(core, "second")
    assert prompts(core) == ["first", "second", "in Latin"]
    assert [message.text for message in core.list_sent()] == ["first", "second"]


def test_the_todo_list_goes_back(work: Path) -> None:
    lists = ([{"text": "Look", "state": state}] for state in ("doing", "done"))
    steps = [step for todos in lists for step in (call("update_todos", todos=todos), "Fine.")]
    core = AgentCore(ScriptedModel(*steps), work, policy=Policy("yolo"), sessions=Sessions(str(work)), todo_list=True)
    say(core, "first", "second")
    core.rewind(core.list_sent()[1])
    assert core.conversation.todos == [Todo("Look", "doing")]
    core.rewind(core.list_sent()[0])
    assert core.conversation.todos == []


def test_a_compacted_conversation_lists_every_message(work: Path) -> None:
    """The first of them is answered with the whole conversation before it, not with the summary."""
    core = start(work, *["word " * 3_000] * 6, "SUMMARY", "ok")
    say(core, *[f"say {number}" for number in range(6)])
    asyncio.run(core.compact())
    assert len(core.list_sent()) == 6
    core.rewind(core.list_sent()[1])
    say(core, "go on")
    assert prompts(core) == ["say 0", "go on"]
    assert "SUMMARY" not in requests(core)[-1].text


def test_a_skill_is_typed_again_as_a_command(work: Path) -> None:
    """Neither its text nor what was attached goes back into the prompt."""
    skill = work / "skills/pdf/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\ndescription: Fill in forms.\n---\n\nFill in every field.\n")
    (work / "notes.txt").write_text("notes")
    core = start(work, "Done.")
    text = "/skills:pdf a @notes.txt"
    found = core.find_attachments(text)

    async def run() -> None:
        async for _ in core.process_message(text, found.attachments):
            pass

    asyncio.run(run())
    assert [message.text for message in core.list_sent()] == [text]


def test_a_conversation_without_a_file_cannot_be_rewound(work: Path) -> None:
    core = agent(work, "One.")
    say(core, "first")
    with pytest.raises(SessionError, match="not saved"):
        core.rewind(core.list_sent()[0])


# -- files ------------------------------------------------------------------------------------------------------------


def test_the_files_go_back_with_the_conversation(work: Path) -> None:
    """Several turns at once, and the model needs no note about it. /redo brings them back one by one."""
    core = start(work, write("f", "1"), "One.", write("f", "2"), "Two.", write("g", "3"), "Three.", "Fine.")
    say(core, "first", "second", "third")
    second = core.list_sent()[1]
    assert [change.path for change in core.list_changes(since=second)] == ["f", "g"]
    undone = core.rewind(second, files=True)
    assert [(turn.message, turn.changed) for turn in undone] == [("third", ("g",)), ("second", ("f",))]
    assert (work / "f").read_text() == "1"
    assert not (work / "g").exists()
    say(core, "again")
    assert "took back" not in requests(core)[-1].text
    assert [change.path for change in core.list_changes(whole_session=True)] == ["f"]

    assert core.redo().message == "second"
    assert core.redo().message == "third"
    assert (work / "g").read_text() == "3"


def test_files_that_stay_are_named_to_the_model(work: Path) -> None:
    """In a resumed session, too. /undo still takes them back, and a later rewind to another message does not."""
    core = start(work, write("f", "1"), "One.")
    say(core, "first")
    core.rewind(core.list_sent()[0])
    core.conversation.close()

    later = start(work, write("g", "2"), "Two.", "Three.")
    later.resume()
    say(later, "another", "and on")
    first, *_, last = (str(request.messages[-1]) for request in requests(later))
    assert "not your file changes: f." in first
    assert "file changes" not in last
    assert [change.path for change in later.list_changes(since=later.list_sent()[0])] == ["g"]
    assert later.undo().message == "another"
    assert later.undo().message == "first"
    assert list(work.iterdir()) == []


def test_a_fork_takes_back_only_its_own_turns(work: Path) -> None:
    """The files of the turns before it belong to the original."""
    core = start(work, write("f", "1"), "One.", write("g", "2"), "Two.")
    say(core, "first")
    core.fork()
    say(core, "second")
    core.rewind(core.list_sent()[0], files=True)
    assert os.listdir(work) == ["f"]


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_lists_the_messages_and_goes_back(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal to ask in, the files stay."""
    core = start(work, write("f", "1"), "One.", "Two.")

    def type_line(text: str) -> str:
        asyncio.run(Pipe(core, Settings(), as_json=False).run(text))
        captured = capsys.readouterr()
        return captured.out + captured.err

    assert "Nothing was said" in type_line("/rewind 9")
    type_line("write f")
    type_line("and now?")
    assert "1  write f" in type_line("/rewind")
    assert "1 to 2" in type_line("/rewind 9")
    shown = type_line("/rewind 1")
    assert "2 messages left the conversation. The files stay" in shown
    assert shown.endswith("write f\n")
    assert (work / "f").exists()
    assert prompts(core) == []


def test_escape_twice_offers_the_messages_and_the_files_go_back(tmp_path: Path) -> None:
    """The chosen message is in the prompt again. Escape closes the list without a trace."""
    model = script(tmp_path, "Hello.", tool("write_file", path="f.txt", content="1\n"), "Written.", "Fine.")
    terminal = OnTerminal("--model", model, "--policy", "auto-edit", cwd=tmp_path)
    terminal.see_idle()
    terminal.send("\x1b")
    terminal.see("Press Esc again")
    terminal.send("\x1b")
    terminal.see("Nothing was said yet")
    terminal.send("say hello\r")
    terminal.see("Hello.")
    terminal.see_idle()
    terminal.send("write a file\r")
    terminal.see("Written.")
    terminal.see_idle()

    terminal.send("\x1b")
    terminal.see("Press Esc again")
    terminal.send("\x1b")
    terminal.see("› /rewind")
    terminal.see("say hello\n")
    terminal.send("\x1b")
    terminal.see_idle()
    terminal.send("/rewind\r")
    terminal.see("say hello\n")
    terminal.send("\x1b[B")
    terminal.see("› /rewind 2")
    terminal.send("\r")
    terminal.see("Take these back, too?")
    terminal.send("y")
    terminal.see('Took back "write a file": 1 path.')
    terminal.see("› write a file")
    assert not (tmp_path / "f.txt").exists()
    terminal.send(" instead\r")
    terminal.see("Fine.")
    terminal.see_idle()
    terminal.send("\x04")
    assert terminal.end() == 0
    [saved] = Path.home().rglob("sessions/*/*.jsonl")
    kinds = [next(iter(json.loads(line))) for line in saved.read_text().splitlines()[1:]]
    assert kinds == [*["message"] * 6, "rewound", *["message"] * 2]
