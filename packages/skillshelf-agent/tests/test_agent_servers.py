"""MCP servers of the user's settings as tools of the agent, with real servers."""

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ToolReturnPart

from agent_kit import User, of, requests
from chats import chat, script, tool
from skillshelf.errors import SettingsError
from skillshelf_agent import AgentCore, Policy, Rule, RuleBook
from skillshelf_agent.events import Event, Finished, Notice, Text, ToolReturned
from skillshelf_agent.servers import ServerSettings, ToolServers, load_servers
from skillshelf_agent.testing import ScriptedCall, ScriptedModel, call

SERVER = str(Path(__file__).with_name("mcp_tools_server.py"))


def settings(kind: str = "plain", **options: Any) -> ServerSettings:
    return ServerSettings(name="kit", command=sys.executable, args=[SERVER, kind], **options)


def talk(
    folder: Path, server: ServerSettings, *steps: Any, mode: str = "yolo", user: User | None = None, messages: int = 1
) -> tuple[AgentCore, list[Event]]:
    """Send messages to an agent with this server, and return the agent and all events."""
    policy = Policy(mode, rules=RuleBook(str(folder)))  # type: ignore[arg-type]
    core = AgentCore(
        ScriptedModel(*steps), folder, policy=policy, approve=user, servers=ToolServers([server], str(folder))
    )

    async def run() -> list[Event]:
        events: list[Event] = []
        async with core.servers:
            for _ in range(messages):
                async for event in core.process_message("go"):
                    events.append(event)
        return events

    return core, asyncio.run(run())


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def wait_for_end(pid: int) -> None:
    """Wait for a process that is sent a signal it cannot ignore: the kernel takes a moment to carry it out."""
    deadline = time.monotonic() + 30
    while is_running(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_model_calls_a_tool_of_a_server_with_approval(tmp_path: Path) -> None:
    """The question names the server, and the name of the tool begins with it."""
    user = User("yes")
    add = call("kit__add", left=2, right=3)
    _, events = talk(tmp_path, settings(), add, "Five.", mode="ask", user=user)
    (result,) = of(events, ToolReturned)
    assert (result.ok, result.text) == (True, "5")
    assert [(question.tool, question.server) for question in user.questions] == [("kit__add", "kit")]
    assert str(user.questions[0].offered_rule) == "allow kit__add"


@pytest.mark.parametrize(("mode", "ok"), [("read-only", False), ("auto-edit", False), ("yolo", True)])
def test_each_mode_decides_about_tools_of_servers(tmp_path: Path, mode: str, ok: bool) -> None:
    """Without a user to ask, only yolo allows them."""
    core, events = talk(tmp_path, settings(), call("kit__add", left=1, right=1), "ok", mode=mode)
    assert [result.ok for result in of(events, ToolReturned)] == [ok]
    assert ("kit__add" in requests(core)[-1].tools) == (mode != "read-only")


def test_a_rule_can_allow_a_call_by_its_arguments(tmp_path: Path) -> None:
    """Another argument is asked about."""
    book = RuleBook(str(tmp_path))
    book.add(Rule("allow", "kit__add", arguments={"left": 1}))
    steps = [call("kit__add", left=1, right=1), call("kit__add", left=2, right=1), "ok"]
    _, events = talk(tmp_path, settings(), *steps, mode="ask")
    assert [result.refused for result in of(events, ToolReturned)] == [False, True]


def test_a_server_gets_declared_variables_and_runs_outside_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of the user's environment stay there."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("MY_TOKEN", "abc")
    monkeypatch.chdir(tmp_path)
    server = settings(env={"TOKEN": "${MY_TOKEN}"})
    _, events = talk(tmp_path, server, call("kit__environment"), "ok")
    folder, *names = of(events, ToolReturned)[0].text.split()
    assert folder == os.path.expanduser("~")
    assert "TOKEN" in names
    assert not {"ANTHROPIC_API_KEY", "MY_TOKEN"} & set(names)


def test_failures_and_large_results_reach_the_model_in_bounds(tmp_path: Path) -> None:
    """A failed tool is a failed call, and the end of a long result is left out with a word."""
    _, events = talk(tmp_path, settings(), call("kit__fail"), call("kit__large"), "ok")
    failed, large = of(events, ToolReturned)
    assert not failed.ok
    assert "fail" in failed.text
    assert large.ok
    assert len(large.text) < 51_000
    assert "characters were left out" in large.text


def test_many_parts_and_odd_images_reach_the_model_in_bounds(tmp_path: Path) -> None:
    """An image is one by its bytes, whatever the server calls it: providers refuse a conversation with another kind."""
    core, _ = talk(tmp_path, settings(), call("kit__many"), "ok")
    (result,) = [
        part.content
        for message in core.conversation.messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert isinstance(result, list)
    assert len(result) <= 101
    assert "left out: it is too large, damaged or of an unknown kind" in result[0]
    assert result[1].media_type == "image/png"
    assert result[-1] == "[… 19,902 further parts left out]"


def start(servers: ToolServers) -> str:
    """Start servers, end them, and return the notices for the user."""

    async def run() -> list[str]:
        async with servers:
            await servers.wait_until_settled()
            return servers.take_notices()

    return " ".join(asyncio.run(run()))


def test_keys_do_not_appear_in_messages_about_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither if the server prints one, nor if it cannot be sent; the address is shown without a password."""
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-key")
    notices = start(ToolServers([settings("tells", env={"TOKEN": "Bearer ${MY_TOKEN}"})]))
    assert "[TOKEN] was not accepted" in notices
    assert "s3cr3t" not in notices

    monkeypatch.setenv("MY_TOKEN", "s3cr3t\nkey")
    url = "http://me:s3cr3t@localhost:1/mcp?key=s3cr3t"
    remote = ServerSettings(name="kit", url=url, headers={"Authorization": "Bearer ${MY_TOKEN}"})
    notices = start(ToolServers([remote]))
    assert "headers.Authorization has a character that a header cannot have" in notices
    assert "s3cr3t" not in notices
    assert remote.address == "http://localhost:1/mcp"


def test_a_program_of_the_workspace_is_not_taken_for_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even if its virtual environment is active: the agent can write there, and servers are not sandboxed."""
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (tmp_path / "sub").mkdir()
    program = binaries / "kit-server"
    program.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
    server = ServerSettings(name="kit", command="kit-server")
    notices = start(ToolServers([server], str(tmp_path / "sub"), root=str(tmp_path)))
    assert "is not on your PATH, or only in the workspace" in notices
    assert not (tmp_path / "ran").exists()


def test_a_call_that_is_never_answered_ends_with_an_error(tmp_path: Path) -> None:
    """The turn goes on, and the server is ended with the conversation."""
    _, events = talk(tmp_path, settings(call_seconds=0.5), call("kit__hang"), "Too bad.")
    (result,) = of(events, ToolReturned)
    assert not result.ok
    assert "did not answer within 0.5 seconds" in result.text
    assert events[-1] == Finished("Too bad.")


def test_a_server_that_dies_is_reported(tmp_path: Path) -> None:
    """To the model and the user in the same turn; its tools are gone from the next call on."""
    core, events = talk(tmp_path, settings(), call("kit__leave"), "ok")
    (result,) = of(events, ToolReturned)
    assert not result.ok
    assert "ended the connection during the call" in result.text
    assert [event.text for event in of(events, Notice) if "The MCP server kit cannot be used: it ended" in event.text]
    assert core.servers.servers[0].state == "failed"


def prints(line: bytes, times: int = 1) -> ScriptedCall:
    """Return a call that the server answers after it has printed this. `ID` in it is the number of the call."""
    return call("kit__print_first", line=line.hex(), times=times)


DAMAGED = [
    b'{"jsonrpc": "2.0", "id": ID, "result": {tru',
    b'{"result":{"content":[{"type":"text","te',
    b'{"id":ID,"result":{"content',
    b' { "jsonrpc": "2.0", "id',
    b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"\xff"}]}}',
    b'[{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}]',
    b'[ {"jsonrpc":"2.0","id":ID,"res',
    b'{"id":ID,"result":{"content":[]}}',
    b'{"jsonrpc":"2.0","id":ID}',
    b'{"jsonrpc":"2.0","id":ID,"result":[]}',
    b'{"jsonrpc":"2.0","id":[ID],"result":{"content":[]}}',
]


def test_a_damaged_reply_fails_the_call_at_once(tmp_path: Path) -> None:
    """In whichever order its members are; the next call of the server works."""
    steps = [step for left, line in enumerate(DAMAGED) for step in (prints(line), call("kit__add", left=left, right=1))]
    _, events = talk(tmp_path, settings(), *steps, "ok")
    results = of(events, ToolReturned)
    problem = "The MCP server kit sent a damaged reply (not a valid message)"
    accepted = [
        line for line, result in zip(DAMAGED, results[::2], strict=True) if result.ok or problem not in result.text
    ]
    assert accepted == []
    assert [result.text for result in results[1::2]] == [str(left + 1) for left in range(len(DAMAGED))]


def test_what_else_a_server_prints_is_ignored(tmp_path: Path) -> None:
    lines = [b"[INFO] adding", b"{ port: 80 }", b'{"level": "info"}', b"[1, 2]", b"{", b"\xff", b""]
    _, events = talk(tmp_path, settings(), *map(prints, lines), "ok")
    answers = [(result.ok, result.text) for result in of(events, ToolReturned)]
    assert dict(zip(lines, answers, strict=True)) == dict.fromkeys(lines, (True, "printed"))


def test_a_reply_with_too_many_values_fails_the_call_before_it_is_parsed(tmp_path: Path) -> None:
    """300,000 empty parts took 20 seconds and 650 MB. Brackets and commas in a text do not count."""
    many = prints(b'{"type":"text","text":""},', 300_000)
    _, events = talk(tmp_path, settings(), many, call("kit__large", text=r'[{,"\\'), "ok")
    refused, large = of(events, ToolReturned)
    assert "sent a damaged reply (a message with over 100,000 values)" in refused.text
    assert large.ok


def test_a_server_that_sends_an_endless_line_is_ended(tmp_path: Path) -> None:
    """Its calls fail at once."""
    _, events = talk(tmp_path, settings(), prints(b"x" * 1_024, 40_000), "ok")
    assert "sent a damaged reply (a message over 32 MiB)" in of(events, ToolReturned)[0].text
    assert any("cannot be used: it sent a message over 32 MiB" in event.text for event in of(events, Notice))


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (settings("dies"), "a token is missing"),
        (settings("mute", start_seconds=0.5), "did not start within 0.5 seconds"),
        (ServerSettings(name="kit", command="no-such-program-here"), "not on your PATH"),
        (ServerSettings(name="kit", url="http://127.0.0.1:9/mcp"), "cannot be used"),
        (settings(env={"T": "${NOT_SET_ANYWHERE}"}), "NOT_SET_ANYWHERE"),
    ],
)
def test_a_server_that_does_not_start_is_named_and_the_agent_works_without_it(
    tmp_path: Path, server: ServerSettings, reason: str
) -> None:
    """The first message waits for the servers, and the notice comes before its answer."""
    _, events = talk(tmp_path, server, "Hello.")
    assert [event.text for event in of(events, Finished)] == ["Hello."]
    (notice,) = of(events, Notice)
    assert reason in notice.text
    assert events.index(notice) < events.index(of(events, Text)[0])


def test_our_own_server_works_over_standard_streams_and_over_http(tmp_path: Path) -> None:
    """`skillshelf serve` as a server of the agent: one shelf for two."""
    skill = tmp_path / "work" / ".skillshelf" / "skills" / "pdf" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: pdf\ndescription: Fill in PDF forms.\n---\nDo it.\n")
    command = ["-m", "skillshelf", "serve", "-C", str(tmp_path / "work"), "--trust-workspace"]
    stdio = ServerSettings(name="shelf", command=sys.executable, args=command)
    _, events = talk(tmp_path, stdio, call("shelf__list_skills"), "ok")
    assert "Fill in PDF forms" in of(events, ToolReturned)[0].text

    serving = subprocess.Popen(
        [sys.executable, *command, "--http", "--port", "0"], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    try:
        assert serving.stderr is not None
        address = next(match[0] for line in serving.stderr if (match := re.search(r"http://[^\s]+/mcp", line)))
        _, events = talk(tmp_path, ServerSettings(name="web", url=address), call("web__list_skills"), "ok")
        assert "Fill in PDF forms" in of(events, ToolReturned)[0].text
    finally:
        serving.terminate()
        serving.communicate()


def test_no_process_is_left_when_the_conversation_ends(tmp_path: Path) -> None:
    """Not even one that the server has started and left."""
    _, events = talk(tmp_path, settings(), call("kit__spawn"), "ok")
    wait_for_end(int(of(events, ToolReturned)[0].text))


def test_no_process_is_left_when_the_agent_is_killed(tmp_path: Path) -> None:
    """Not even one that does not notice the end of its input."""
    program = f"""\
import asyncio
from skillshelf_agent.servers import ServerSettings, ToolServers

async def main():
    settings = ServerSettings(name="kit", command={sys.executable!r}, args=[{SERVER!r}, "plain"])
    async with ToolServers([settings], {str(tmp_path)!r}) as servers:
        await servers.wait_until_settled()
        print(await servers.call("kit__spawn", {{}}), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout is not None
        pid = int(agent.stdout.readline())
        assert is_running(pid)
        agent.kill()
    wait_for_end(pid)


def test_a_hostile_server_cannot_take_a_name_or_hide_text(tmp_path: Path) -> None:
    """Its run_command is a tool of its own, and descriptions are short and visible."""
    core = AgentCore(ScriptedModel("ok"), tmp_path, servers=ToolServers([settings("hostile")], str(tmp_path)))

    async def list_tools() -> dict[str, Any]:
        async with core.servers:
            await core.servers.wait_until_settled()
            return dict(core.servers.servers[0].tools)

    tools = asyncio.run(list_tools())
    fake = tools["kit__run_command"]
    assert len(fake.description) < 1_200
    assert not set("\x1b\u202e\u200b") & set(fake.description)
    assert all(len(name) <= 64 and name.isascii() and " " not in name for name in tools)
    assert all(name.startswith("kit__") for name in tools)


def test_what_a_server_returns_shows_its_hidden_characters(tmp_path: Path) -> None:
    """A name that is also the agent's own goes to the server, after a question."""
    user = User("yes")
    _, events = talk(tmp_path, settings("hostile"), call("kit__run_command", command="ls"), "ok", mode="ask", user=user)
    assert "\u200b" not in of(events, ToolReturned)[0].text
    assert user.questions[0].sandbox is None


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "skillshelf" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mcp.kit]\n", "either a `command`"),
        ("[mcp.kit]\ncommand = 'a'\nurl = 'http://x'\n", "either a `command`"),
        ("[mcp.kit]\ncommand = './server'\n", "PATH"),
        ("[mcp.Kit_1]\ncommand = 'a'\n", "small letters"),
        ("[mcp.kit]\ncomand = 'a'\n", "'comand' is not a setting of a server. Did you mean 'command'?"),
        ("[mcp.kit]\ncommand = 'a'\nxyz = 1\n", "'xyz' is not a setting of a server. Settings: command, args,"),
        ("[mcp.kit]\nurl = 'file:///etc/passwd'\n", "https"),
        ("mcp = 1\n", "section"),
    ],
)
def test_wrong_settings_are_errors_that_name_the_place(config: Path, text: str, message: str) -> None:
    """Before anything is started."""
    config.write_text(text)
    with pytest.raises(SettingsError, match=re.escape(message)):
        load_servers()


def test_servers_are_chosen_by_name_or_all_that_are_enabled(config: Path) -> None:
    """A wrong name is answered with the closest one."""
    config.write_text("model = 'local'\n[mcp.one]\ncommand = 'a'\n[mcp.two]\ncommand = 'b'\nenabled = false\n")
    assert [server.name for server in load_servers()] == ["one"]
    assert [server.name for server in load_servers(["two"])] == ["two"]
    with pytest.raises(SettingsError, match="Did you mean 'two'"):
        load_servers(["tow"])


def test_the_command_line_uses_the_servers_of_the_settings(config: Path, tmp_path: Path) -> None:
    """A file of the workspace is named as not used, and nothing in it is started."""
    config.write_text(f"[mcp.kit]\ncommand = '{sys.executable}'\nargs = ['{SERVER}', 'plain']\n")
    work = tmp_path / "work"
    work.mkdir()
    (work / ".mcp.json").write_text('{"mcpServers": {"evil": {"command": "touch", "args": ["pwned"]}}}')
    model = script(tmp_path, tool("kit__add", left=20, right=22), "Done.")
    done = chat("-p", "go", "--model", model, "--policy", "yolo", "--json", cwd=work)
    assert '"text": "42"' in done.stdout
    assert ".mcp.json of this workspace is not used" in done.stdout
    assert not list(work.glob("pwned"))

    none = chat("-p", "/mcp", "--model", model, "--mcp", "none", cwd=work)
    assert "No MCP servers" in none.stdout
