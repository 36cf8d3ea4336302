"""The model's todo list: kept with the session, and shown as far as there is something left to do."""

from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from agent_kit import requests, say
from skillshelf_agent import AgentCore, Policy, Sessions, Todo
from skillshelf_agent.terminal._views import list_open_todos
from skillshelf_agent.testing import ScriptedModel, call

LIST = [
    {"text": "Look", "state": "done"},
    {"text": "Write a test", "state": "pending"},
    {"text": "Fix it", "state": "doing"},
]


def make(root: Path, *script: object, todo_list: bool = True) -> AgentCore:
    model = ScriptedModel(*script)  # type: ignore[arg-type]
    return AgentCore(model, root, policy=Policy("yolo"), sessions=Sessions(str(root)), todo_list=todo_list)


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


def test_a_resumed_session_has_its_list(tmp_path: Path) -> None:
    """So has a copy of it. A new session has none."""
    core = make(tmp_path, call("update_todos", todos=LIST), "Done.")
    say(core, "go")
    todos = [Todo("Look", "done"), Todo("Write a test", "pending"), Todo("Fix it", "doing")]
    assert core.conversation.todos == todos
    core.fork()
    assert core.conversation.todos == todos
    core.new_session()
    assert core.conversation.todos == []

    other = make(tmp_path, "Hello.")
    other.resume()
    assert other.conversation.todos == todos


def test_the_last_list_counts_and_a_call_that_failed_does_not(tmp_path: Path) -> None:
    failing = call("update_todos", todos=[{"text": "x", "state": "unknown"}])
    core = make(tmp_path, call("update_todos", todos=LIST), call("update_todos", todos=[]), failing, "Done.")
    say(core, "go")
    assert core.conversation.todos == []
    core.conversation.close()
    other = make(tmp_path, "Hello.")
    other.resume()
    assert other.conversation.todos == []


def test_a_model_that_lost_its_list_to_a_summary_gets_it_again(tmp_path: Path) -> None:
    core = make(tmp_path, call("update_todos", todos=LIST), "Done.", "Going on.")
    say(core, "go")
    core.conversation.replace([])
    say(core, "and now?")
    assert "- doing: Fix it" in str(requests(core)[-1].messages[-1])


def test_the_list_is_offered_where_a_user_sees_it(tmp_path: Path) -> None:
    for todo_list in (True, False):
        core = make(tmp_path, "Hello.", todo_list=todo_list)
        say(core, "go")
        assert ("update_todos" in requests(core)[0].tools) is todo_list


def test_what_is_left_to_do_is_shown_in_a_few_lines() -> None:
    assert list_open_todos([]) == []
    assert list_open_todos([Todo("a", "done")]) == []
    assert list_open_todos([Todo("a", "pending"), Todo("b", "doing")]) == ["▸ b", "○ a"]
    many = [Todo("a", "done"), *(Todo(name, "pending") for name in "bcdef")]
    assert list_open_todos(many) == ["○ b", "○ c", "○ d", "  2 more · 1 done"]
