"""A session remembers the model, its address and the policy, so that the printed command continues it."""

import asyncio
import os
from pathlib import Path

import pytest

pytest.importorskip("prompt_toolkit", reason="needs the extra `chat`")

from chats import OnTerminal, chat, script
from openai_api import OpenAIApi
from skillshelf_agent import AgentCore, Policy, Settings
from skillshelf_agent.sessions import InUse, Sessions
from skillshelf_agent.terminal import Pipe
from skillshelf_agent.testing import ScriptedModel

KEY = "sk-this-is-the-key"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_continue_needs_no_options_and_those_given_win(tmp_path: Path) -> None:
    """The address is saved without the user's secrets in it, and the key is nowhere."""
    api = OpenAIApi(["One.", ("write_file", '{"path": "f", "content": "x"}'), "Two.", "Three."])
    with api.serve() as address:
        secret = address.replace("://", "://me:hidden@")
        assert chat("-p", "hi", "--base-url", secret, "-m", "tiny", "--policy", "auto-edit", cwd=tmp_path).stdout
        again = chat("-p", "write", "--continue", cwd=tmp_path)
        assert again.stdout.split() == ["Two."]
        assert "The policy is auto-edit, as in that session." in again.stderr
        last = chat("-p", "hi", "--resume", "--model", "other", "--policy", "ask", cwd=tmp_path)
        assert "policy" not in last.stderr
    assert (tmp_path / "f").exists()
    assert [request["model"] for request in api.requests] == ["tiny", "tiny", "tiny", "other"]
    [saved] = Path.home().rglob("sessions/*/*.jsonl")
    assert address in saved.read_text()
    assert "hidden" not in saved.read_text()
    assert KEY not in saved.read_text()


def test_a_session_of_an_earlier_version_is_continued_with_the_settings(tmp_path: Path) -> None:
    """Nothing says where its model was, so it is not guessed."""
    core = AgentCore(ScriptedModel("Hello.", name="openai-chat:old"), tmp_path, sessions=Sessions(str(tmp_path)))
    asyncio.run(Pipe(core, Settings(), as_json=False).run("hi"))
    core.conversation.close()
    result = chat("-p", "hi", "-c", "--model", script(tmp_path, "Again."), cwd=tmp_path)
    assert result.stdout == "Again.\n"


def test_resuming_in_a_chat_changes_to_the_model_and_policy_of_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless the command line named them. `/model` then stays at that server."""
    sessions = Sessions(str(tmp_path))
    in_use = InUse(model="openai-chat:tiny", base_url="http://localhost:1/v1", policy="read-only")
    for name in ("first", "second"):
        core = AgentCore(ScriptedModel("Hello."), tmp_path, sessions=sessions)
        asyncio.run(Pipe(core, Settings(), as_json=False).run("hi"))
        assert core.conversation.session
        core.conversation.session.use(in_use)
        core.conversation.session.rename(name)
        core.conversation.close()

    core = AgentCore(ScriptedModel(), tmp_path, sessions=sessions, policy=Policy("ask"))
    pipe = Pipe(core, Settings(), as_json=False)
    asyncio.run(pipe.run("/resume first"))
    assert (core.model.name, core.gate.policy.mode) == ("openai-chat:tiny", "read-only")
    assert "The policy is read-only, as in that session." in capsys.readouterr().out
    asyncio.run(pipe.run("/model larger"))
    assert (core.model.name, core.model.base_url) == ("openai-chat:larger", in_use.base_url)

    pipe.options = {"model": "mine", "policy": "auto-edit"}
    asyncio.run(pipe.run("/resume second"))
    assert (core.model.name, core.gate.policy.mode) == ("openai-chat:mine", "auto-edit")
    core.conversation.close()


def test_the_name_of_a_session_is_shown_where_it_is_chosen_and_left(tmp_path: Path) -> None:
    """The printed command continues it, from the folder that one is in."""
    work = tmp_path / "work"
    work.mkdir()
    terminal = OnTerminal("--model", script(tmp_path, "Hello."), "-C", "work", cwd=tmp_path)
    terminal.see_idle()
    terminal.send("hi\r")
    terminal.see("Hello.")
    terminal.see_idle()
    terminal.send("/rename fix  the login\r")
    terminal.see("now called fix the login")
    terminal.see_idle()
    terminal.send("\x04")
    terminal.expect("To go on with this session (fix the login): skillshelf chat -C ")
    assert terminal.end() == 0
    [saved] = Sessions(str(work)).list()
    assert f"chat -C {os.path.realpath(work)} --resume {saved.id}" in terminal.raw
    listed = chat("--model", script(tmp_path), "-p", "/sessions", cwd=work)
    assert "fix the login · hi" in listed.stdout
