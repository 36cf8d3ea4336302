"""Test `skillshelf serve --http` over real sockets: access control, limits and many clients at once."""

import asyncio
import contextlib
import gc
import json
import os
import re
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

import prepared

pytest.importorskip("mcp", reason="the MCP server needs skillshelf[mcp]")

import httpx2
import uvicorn
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.session import ServerSession

from mcp_kit import invoke
from skillshelf import BaseSkill, Shelf, tool
from skillshelf.errors import SettingsError
from skillshelf.mcp import http_app, listen, make_server, serve_http
from skillshelf.mcp._http import parse_origin
from skillshelf.mcp._notices import WatchedResources
from skillshelf.shelf import Turn
from skillshelf.sources import DirectorySource, ObjectSource

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
TOKEN = "correct horse battery staple"


class RunningServer:
    """A server process, its address and what it reports."""

    def __init__(self, process: prepared.Process, url: str, errors: TextIO) -> None:
        self.process = process
        self.url = url
        self.errors = errors
        self.port = int(url.split(":")[2].split("/")[0])

    def post(self, body: Any = INITIALIZE, **headers: str) -> httpx2.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return httpx2.post(self.url, content=content, headers={**HEADERS, **named}, timeout=30)

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


@contextlib.contextmanager
def run_server(folder: Path, *options: str, trusting: bool = True, **variables: str) -> Iterator[RunningServer]:
    words = ["serve", "--http", "--port", "0", "-C", str(folder), *options]
    words += ["--trust-workspace"] if trusting else []
    from_process, errors_end = os.pipe()
    with open(os.devnull, "r+b") as null, open(from_process) as errors:
        streams = (null.fileno(), null.fileno(), errors_end)
        process = prepared.Process(words, cwd=Path.cwd(), env={**os.environ, **variables}, streams=streams)
        os.close(errors_end)
        try:
            line = errors.readline()
            if "waiting for your review" in line:
                line = errors.readline()
            [url] = re.findall(r"http://\S+", line) or pytest.fail(line + errors.read())
            yield RunningServer(process, url, errors)
        finally:
            process.terminate()
            process.wait(10)


@pytest.fixture
def server(tmp_path: Path, write: Callable[..., Path]) -> Iterator[RunningServer]:
    write("pdf", body="Body of pdf.\n", references__forms_md="Fields.")
    with run_server(tmp_path) as running:
        yield running


async def load(client: Client, **arguments: Any) -> str:
    result = await client.call_tool("load_skill_instructions", arguments)
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_client_loads_a_skill(server: RunningServer, mode: str) -> None:
    """Check both the handshake revisions of the protocol and the one without a handshake."""

    async def main() -> None:
        async with Client(server.url, mode=mode) as client:
            assert "Body of pdf." in await load(client, skill_name="pdf")
            assert await load(client, skill_name="pdf", reference="forms.md") == "Fields."

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_skill_invoked_by_one_user_stays_closed_to_other_clients(
    tmp_path: Path, write: Callable[..., Path], mode: str
) -> None:
    path = write("deploy", body="Steps.\n", references__more_md="More steps.")
    path.write_text(path.read_text().replace("---\n\n", "disable-model-invocation: true\n---\n\n", 1))

    async def main(url: str) -> tuple[str, str]:
        async with Client(url, mode=mode) as first_client, Client(url, mode=mode) as other:
            name = await invoke(first_client, "deploy")
            mine = await load(first_client, skill_name=name, reference="more.md")
            return mine, await load(other, skill_name="deploy", reference="more.md")

    with run_server(tmp_path) as server:
        mine, theirs = asyncio.run(main(server.url))
    assert mine == "More steps."
    assert "There is no skill named 'deploy'" in theirs


def test_another_asgi_server_serves_the_app(tmp_path: Path, write: Callable[..., Path]) -> None:
    """The app needs no connection details that only our own server provides."""
    path = write("deploy", body="Steps.\n", references__more_md="More steps.")
    path.write_text(path.read_text().replace("---\n\n", "disable-model-invocation: true\n---\n\n", 1))
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def main() -> str:
        listening = listen("127.0.0.1", 0)
        config = uvicorn.Config(http_app(make_server(shelf)), log_level="critical")
        running = asyncio.create_task(uvicorn.Server(config).serve(sockets=[listening]))
        async with Client(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp") as client:
            answer = await load(client, skill_name=await invoke(client, "deploy"), reference="more.md")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return answer

    assert asyncio.run(main()) == "More steps."


def test_the_health_check_reports_ok(server: RunningServer) -> None:
    """The response contains nothing else."""
    answer = httpx2.get(f"http://127.0.0.1:{server.port}/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_a_foreign_web_page_is_refused(server: RunningServer) -> None:
    """Both its origin and a host name rebound to this machine give it away."""
    assert server.post().status_code == 200
    assert server.post(origin="https://evil.example").status_code == 403
    assert server.post(origin="null").status_code == 403
    assert server.post(host="evil.example").status_code == 421
    assert server.post(host=f"127.0.0.1.evil.example:{server.port}").status_code == 421
    assert server.post(host=f"localhost:{server.port}").status_code == 200


def test_every_name_for_localhost_is_accepted(tmp_path: Path) -> None:
    """Case does not matter. The address that the command announces is accepted, too."""
    with run_server(tmp_path, "--host", "127.0.0.2") as server:
        assert server.url.startswith("http://127.0.0.2:")
        assert server.post().status_code == 200
        for host in ("LOCALHOST", "localhost:1", "127.0.0.1", "127.255.0.3:65535", "[::1]:80"):
            assert server.post(host=host).status_code == 200, host
        for host in ("evil.example", "127.0.0.2.evil.example", "localhost.evil.example", "128.0.0.1", "a127.0.0.1", ""):
            assert server.post(host=host).status_code in (400, 421), host


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
def test_a_same_origin_page_is_accepted(server: RunningServer, host: str) -> None:
    """Its origin has the scheme, the host and the port of the request."""
    own = f"{host}:{server.port}"
    assert server.post(host=own, origin=f"http://{own.lower()}").status_code == 200
    for other in (f"https://{own.lower()}", f"http://{host.lower()}:1", f"http://{host.lower()}", "http://127.0.0.2"):
        assert server.post(host=own, origin=other).status_code == 403


def test_dns_rebinding_is_refused(server: RunningServer) -> None:
    """The origin equals the requested host, but that host is not this machine's name."""
    rebound = f"evil.example:{server.port}"
    assert server.post(host=rebound, origin=f"http://{rebound}").status_code == 421


def test_a_public_address_accepts_no_same_origin_page(tmp_path: Path) -> None:
    """Any host name may resolve to a public address, so equal host and origin prove nothing."""
    with run_server(tmp_path, "--host", "0.0.0.0", SKILLSHELF_TOKEN=TOKEN) as server:
        host = f"rebound.example:{server.port}"
        answer = server.post(host=host, origin=f"http://{host}", authorization=f"Bearer {TOKEN}")
        assert answer.status_code == 403


def test_an_allowed_origin_is_accepted(tmp_path: Path) -> None:
    """The response has the headers that a browser needs, and no other origin is accepted."""
    with run_server(tmp_path, "--allow-origin", "https://good.example") as server:
        answer = server.post(origin="https://good.example")
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://good.example"
        assert server.post(origin="https://good.example.evil.example").status_code == 403
        response = httpx2.options(
            server.url, headers={"origin": "https://good.example", "access-control-request-method": "POST"}
        )
        assert response.status_code == 200


def token_file(folder: Path, content: str = TOKEN, mode: int = 0o600) -> str:
    path = folder / "token"
    path.write_text(content)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize("as_variable", [False, True])
def test_requests_need_the_token_if_one_is_set(tmp_path: Path, as_variable: bool) -> None:
    """The whole token must be in the header, and it never appears in any output."""
    options: tuple[str, ...] = ()
    variables: dict[str, str] = {}
    if as_variable:
        variables = {"SKILLSHELF_TOKEN": TOKEN}
    else:
        options = ("--token-file", token_file(tmp_path))
    with run_server(tmp_path, *options, trusting=True, **variables) as server:
        refused = server.post()
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in refused.text
        for wrong in (f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer"):
            assert server.post(authorization=wrong).status_code == 401
        assert server.post(authorization=f"Bearer {TOKEN}").status_code == 200


def test_a_public_address_needs_a_token() -> None:
    server = make_server(Shelf([]))
    for host in ("0.0.0.0", "192.168.1.2", "::", "example.org"):
        with pytest.raises(SettingsError, match="token"):
            http_app(server, host=host)
    http_app(server, host="0.0.0.0", token=TOKEN)
    http_app(server, host="::1")


def test_a_public_address_without_a_token_is_a_usage_error(run: Callable[..., tuple[int, str, str]]) -> None:
    """The command fails before it listens."""
    code, out, message = run("serve", "--http", "--host", "0.0.0.0", "--trust-workspace")
    assert (code, out) == (2, "")
    assert "SKILLSHELF_TOKEN" in message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--http", "--port", "99999"], "give a number from 0 (any free port) to 65535, not '99999'"),
        (["--http", "--port=-1"], "not '-1'"),
        (["--http", "--port", "http"], "not 'http'"),
        (["--http", "--token-file", "nowhere"], "'nowhere' cannot be read: No such file"),
        (["--http", "--token-file", "."], "'.' cannot be used: it is not a plain file"),
        (["--http", "--allow-origin", "nonsense"], "https://a.b or http://a.b:8080"),
        (["--http", "--allow-origin", "*"], "'*' is not a web origin"),
        (["--http", "--allow-origin", "https://a.b/page"], "is not a web origin"),
        (["--port", "80"], "--port: only with --http"),
        (["--host", "::1", "--token-file", "x", "--allow-origin", "https://a.b"], "--host, --token-file, --allow-orig"),
    ],
)
def test_options_without_effect_are_refused(
    run: Callable[..., tuple[int, str, str]], options: list[str], expected: str
) -> None:
    """The message says which options to use instead."""
    code, out, message = run("serve", "--trust-workspace", *options)
    assert (code, out) == (2, "")
    assert expected in message


@pytest.mark.parametrize(
    ("content", "mode", "expected"),
    [
        (TOKEN, 0o604, "can read it, and only you may"),
        (TOKEN, 0o602, "can write to it, and only you may"),
        (TOKEN, 0o620, "can write to it, and only you may"),
        (" \n", 0o600, "token is blank"),
        ("a\nb", 0o600, "characters that an HTTP header cannot carry"),
        ("tök", 0o600, "characters that an HTTP header cannot carry"),
    ],
)
def test_an_unusable_token_file_is_refused(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, content: str, mode: int, expected: str
) -> None:
    path = token_file(tmp_path, content, mode)
    code, _, complaint = run("serve", "--http", "--trust-workspace", "--token-file", path)
    assert code == 2
    assert expected in complaint
    assert TOKEN not in complaint


def test_a_pipe_as_token_file_does_not_block(run: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "token", 0o600)
    code, _, complaint = run("serve", "--http", "--trust-workspace", "--token-file", str(tmp_path / "token"))
    assert code == 2
    assert "it is not a plain file" in complaint


def test_a_token_file_may_be_a_link_and_belong_to_a_group(tmp_path: Path) -> None:
    """Containers mount secrets this way."""
    (tmp_path / "link").symlink_to(token_file(tmp_path, f"{TOKEN}\n", 0o640))
    with run_server(tmp_path, "--token-file", str(tmp_path / "link")) as server:
        assert server.post().status_code == 401
        assert server.post(authorization=f"Bearer {TOKEN}").status_code == 200


def test_a_blank_token_variable_is_refused(
    run: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user meant to set a token."""
    monkeypatch.setenv("SKILLSHELF_TOKEN", "\n")
    code, _, message = run("serve", "--http", "--trust-workspace")
    assert code == 2
    assert "SKILLSHELF_TOKEN" in message


def test_a_trailing_newline_is_not_part_of_the_token(tmp_path: Path) -> None:
    """`$(cat file)` and secrets files leave one behind."""
    with run_server(tmp_path, SKILLSHELF_TOKEN=f"{TOKEN}\n") as server:
        assert server.post().status_code == 401
        assert server.post(authorization=f"Bearer {TOKEN}").status_code == 200


def test_origins_are_normalised_like_in_browsers() -> None:
    """Browsers write them in lower case, without the scheme's default port."""
    origins = ("HTTPS://Good.Example", "https://a.b:443", "http://a.b:80", "http://a.b:8080", "http://[::1]:3000")
    assert [parse_origin(origin) for origin in origins] == [
        "https://good.example",
        "https://a.b",
        "http://a.b",
        "http://a.b:8080",
        "http://[::1]:3000",
    ]


def test_long_requests_and_deep_json_are_refused(server: RunningServer) -> None:
    """The server refuses them before it has read everything, and keeps serving."""
    long = {**INITIALIZE, "params": {"filler": "x" * 5_000_000}}
    assert server.post(long).status_code == 413
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert server.post(deep).status_code == 400
    assert server.post(deep, mcp_protocol_version="2026-07-28").status_code == 400
    assert server.post().status_code == 200


def test_slow_clients_do_not_delay_others(server: RunningServer) -> None:
    """Forty clients stall in the middle of a request while another one is served."""

    async def main() -> None:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
        for at, connection in enumerate(slow):
            connection.sendall(
                b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{" if at % 2 else b"P"
            )
        async with Client(server.url) as client:
            for _ in range(20):
                slow[0].sendall(b"O")
                assert "Body of pdf." in await load(client, skill_name="pdf")
        for connection in slow:
            connection.close()

    asyncio.run(asyncio.wait_for(main(), 60))


async def run_session(http: httpx2.AsyncClient, url: str) -> None:
    """Run one session of the handshake revision from beginning to end."""

    async def post(method: str, number: int | None = None, **params: Any) -> httpx2.Response:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        body = message if number is None else {**message, "id": number}
        answer = await http.post(url, json=body, headers=headers)
        answer.raise_for_status()
        return answer

    headers = dict(HEADERS)
    begun = await post("initialize", 1, **INITIALIZE["params"])  # type: ignore[arg-type]
    headers["mcp-session-id"] = begun.headers["mcp-session-id"]
    await post("notifications/initialized")
    loaded = await post("tools/call", 2, name="load_skill_instructions", arguments={"skill_name": "pdf"})
    assert "Body of pdf." in loaded.text
    await post("resources/subscribe", 3, uri="skill://pdf/SKILL.md")
    (await http.delete(url, headers=headers)).raise_for_status()


def find_client_state() -> list[object]:
    """Return the objects in memory that belong to a single client."""
    return [each for each in gc.get_objects() if isinstance(each, ServerSession | Turn)]


def test_an_ended_session_leaves_nothing_in_memory(tmp_path: Path, write: Callable[..., Path]) -> None:
    """A thousand leaked sessions would take 20 MB."""
    path = write("pdf", body="Body of pdf.\n")
    shelf = Shelf([DirectorySource(tmp_path, "project", cache=False)])

    async def main() -> list[str]:
        listening = listen("127.0.0.1", 0)
        running = asyncio.create_task(serve_http(http_app(make_server(shelf)), listening))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        async with httpx2.AsyncClient(timeout=30) as http:
            await run_session(http, url)
            gc.collect()
            before = find_client_state()
            await asyncio.gather(*(run_session(http, url) for _ in range(30)))
            for _ in range(600):
                await asyncio.sleep(0.1)
                gc.collect()
                left = [type(state).__name__ for state in find_client_state() if state not in before]
                if not left:
                    break
            path.write_text(path.read_text() + "More.\n")
            [resources] = [each for each in gc.get_objects() if isinstance(each, WatchedResources)]
            left += await resources.find_changed()  # the server no longer watches anything for them
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return left

    assert asyncio.run(main()) == []


TAGGED = 8192


def tag_lines(skill: str, at: int, version: int) -> str:
    """Return 8 KB of text whose every line names its owner and version."""
    line = f"{skill} {at:02} {version:06}\n"
    return line * (TAGGED // len(line))


def write_references(folder: Path, skill: str, references: int, version: int) -> None:
    for at in range(references):
        path = folder / skill / "references" / f"{at:02}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".tmp")
        beside.write_text(tag_lines(skill, at, version))
        beside.rename(path)


@contextlib.asynccontextmanager
async def rewrite_skills(folder: Path, skills: list[str], references: int) -> AsyncIterator[list[int]]:
    """Give one skill a new version every 100 ms, including its SKILL.md."""
    versions = [0]

    async def rewrite() -> None:
        while True:
            await asyncio.sleep(0.1)
            versions[0] += 1
            name = skills[versions[0] % len(skills)]
            write_references(folder, name, references, versions[0])
            text = f"---\nname: {name}\ndescription: Version {versions[0]}.\n---\n\nGo.\n"
            (folder / name / "SKILL.md").write_text(text)

    task = asyncio.create_task(rewrite())
    try:
        yield versions
    finally:
        task.cancel()


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_a_hundred_clients_get_correct_answers_while_skills_reload(tmp_path: Path, mode: str) -> None:
    """Each answer is one whole version of the requested text, and the server holds no more open files than before."""
    skills, references = [f"skill-{at:02}" for at in range(10)], 4
    for name in skills:
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does it.\n---\n\nGo.\n")
        write_references(tmp_path, name, references, 0)
    wrong: list[str] = []

    async def agent(url: str, number: int) -> None:
        name = skills[number % len(skills)]
        async with Client(url, mode=mode) as client:
            for at in range(references):
                text = await load(client, skill_name=name, reference=f"references/{at:02}.md")
                version = text[len(name) + 4 : len(name) + 10]
                if not version.isdecimal() or text != tag_lines(name, at, int(version)):
                    wrong.append(f"{name} {at}: {text[:200]!r}")

    async def main(server: RunningServer) -> None:
        async with rewrite_skills(tmp_path, skills, references) as versions:
            await asyncio.gather(*(agent(server.url, number) for number in range(100)))
            assert versions[0] > 5

    with run_server(tmp_path) as server:
        server.post()
        before = server.open_files()
        asyncio.run(main(server))
        assert wrong == []
        for _ in range(600):  # connections are closed in the background
            if server.open_files() <= before + 2:
                break
            time.sleep(0.1)
        assert server.open_files() <= before + 2


def test_a_strange_reference_does_not_delay_other_clients(tmp_path: Path, write: Callable[..., Path]) -> None:
    """One client keeps requesting a FIFO and a file of four gigabytes; another is served as before."""
    write("pdf", body="Body of pdf.\n", references__forms_md="Fields.")
    write("odd", references__a_md="x")
    with open(tmp_path / "odd/references/huge.md", "wb") as huge:
        huge.truncate(4 << 30)
    with run_server(tmp_path) as server:
        (tmp_path / "odd/references/a.md").unlink()
        os.mkfifo(tmp_path / "odd/references/a.md")

        answers = 0

        async def ask_oddly(client: Client) -> None:
            nonlocal answers
            while True:
                for name in ("a.md", "huge.md"):
                    await load(client, skill_name="odd", reference=name)
                    answers += 1

        async def main() -> None:
            async with Client(server.url) as strange, Client(server.url) as plain:
                task = asyncio.create_task(ask_oddly(strange))
                while answers < 40:
                    assert "Fields." in await load(plain, skill_name="pdf", reference="forms.md")
                task.cancel()

        # A read of the FIFO would never end, and forty reads of the other file would be 80 GB.
        asyncio.run(asyncio.wait_for(main(), 60))


class Desk(BaseSkill):
    name = "desk"
    description = "Keeps the desk."
    instructions = "Call tidy."
    category = "raw"

    @tool
    def tidy(self, what: str) -> str:
        """Tidy something up."""
        return f"tidied {what}"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_user_is_asked_over_http(mode: str) -> None:
    """Depending on the revision, the question comes in the middle of a call or between two."""
    shelf = Shelf([ObjectSource([Desk().with_policy({"tidy": "ask"})])])
    questions: list[str] = []

    async def answer_question(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        questions.append(params.message)
        return types.ElicitResult(action="accept", content={})

    async def main() -> Any:
        listening = listen("127.0.0.1", 0)
        running = asyncio.create_task(serve_http(http_app(make_server(shelf)), listening))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        async with Client(url, mode=mode, elicitation_callback=answer_question) as client:
            result = await client.call_tool("tidy", {"what": "cups"})
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return result.content[0]

    assert asyncio.run(main()).text == "tidied cups"
    assert len(questions) == 1


def test_a_client_with_a_token_reads_the_listing(tmp_path: Path, write: Callable[..., Path]) -> None:
    """The SDK's own client sets the header as its documentation shows."""
    write("pdf", description="Fill in forms.")

    async def main(url: str) -> str:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            [part] = (await client.read_resource("skill://listing")).contents
            assert isinstance(part, types.TextResourceContents)
            return part.text

    with run_server(tmp_path, SKILLSHELF_TOKEN=TOKEN) as server:
        assert "Fill in forms." in asyncio.run(main(server.url))
