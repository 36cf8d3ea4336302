"""Choosing a model, messages about one that cannot be used, and explanations of provider errors."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("pydantic_ai", reason="needs the extra `chat`")

from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelHTTPError,
    ModelRequestTimeout,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
)
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models import known_model_names
from pydantic_ai.usage import RequestUsage

from agent_kit import say
from openai_api import Broken, Fault, OpenAIApi, Step
from skillshelf.errors import ModelUnavailableError, SettingsError, SkillNotFoundError
from skillshelf_agent import (
    DEFAULTS,
    AgentCore,
    ChosenModel,
    Settings,
    explain_error,
    list_offered_models,
    resolve,
    usage_of,
)
from skillshelf_agent._explain import error_sentences
from skillshelf_agent._models import SERVER_WINDOW
from skillshelf_agent.terminal import Pipe
from skillshelf_agent.terminal._commands import run_command
from skillshelf_agent.testing import ScriptedModel

SECRET = "sk-proj-0123456789abcdefSECRET"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the keys of whoever runs it."""
    for variable in (*DEFAULTS, "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)


class Provider(BaseHTTPRequestHandler):
    """Stands in for an OpenAI-shaped server; the model's name says how it behaves."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[dict[str, Any]]] = []

    def log_message(self, *args: object) -> None: ...

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.seen.append({"path": self.path, "key": self.headers["authorization"], **body})
        status = body["model"]
        if status.isdecimal():
            self._answer(int(status), {"error": {"message": f"No: {self.headers['authorization']}\x1b[2J"}})
        else:
            self._stream(broken=status == "broken")

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.send_header("x-should-retry", "false")
        self.send_header("retry-after", "7")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, broken: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for text in ("Hel", "lo."):
            delta = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [delta]}
            data = f"data: {json.dumps(chunk)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            if broken:
                self.close_connection = True
                return
        self.wfile.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")


@pytest.fixture
def server() -> Iterator[str]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
    Provider.seen.clear()
    yield f"http://127.0.0.1:{httpd.server_port}/v1"
    httpd.shutdown()
    httpd.server_close()


def ask(chosen: ChosenModel) -> str:
    async def streamed() -> str:
        async with Agent(chosen.model).run_stream("Hello?") as run:
            return "".join([piece async for piece in run.stream_text(delta=True)])

    return asyncio.run(streamed())


def refused(settings: Settings) -> str:
    with pytest.raises(ModelUnavailableError) as caught:
        resolve(settings)
    return str(caught.value)


def failure(server: str, model: str) -> tuple[str, str]:
    with pytest.raises(Exception) as caught:
        ask(resolve(Settings(model=model, base_url=server)))
    return explain_error(caught.value)


def test_a_bare_name_with_a_base_url_is_asked_there_without_a_key(server: str) -> None:
    """A local server needs no key, gets chat completions, and its window is a modest guess."""
    chosen = resolve(Settings(model="llama3.2", base_url=server))
    assert (chosen.name, chosen.window) == ("openai-chat:llama3.2", SERVER_WINDOW)
    assert ask(chosen) == "Hello."
    assert (Provider.seen[0]["path"], Provider.seen[0]["model"]) == ("/v1/chat/completions", "llama3.2")


def test_the_openai_key_is_sent_if_it_is_set(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the users' own servers need a key."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    ask(resolve(Settings(model="llama3.2", base_url=server)))
    assert Provider.seen[0]["key"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("openai:m", "m"),
        ("ollama:llama3.2:3b", "llama3.2:3b"),
        ("llama3.2:3b", "llama3.2:3b"),
        ("mistral:7b", "mistral:7b"),
    ],
)
def test_names_that_servers_give_models_are_left_as_they_are(server: str, written: str, asked: str) -> None:
    """A colon in a model's name does not make its first part a provider."""
    assert resolve(Settings(model=written, base_url=server)).model.model_name == asked


def test_a_model_with_its_own_provider_is_not_asked_at_the_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """A base URL in the settings file does not swallow `--model anthropic:…`, and a note says so."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    chosen = resolve(Settings(model="anthropic:claude-haiku-4-5", base_url="http://localhost:1/v1"))
    assert "anthropic.com" in (chosen.model.base_url or "")
    assert "at its own provider" in chosen.note


def test_a_base_url_without_a_model_says_what_is_missing() -> None:
    """The message says where to find the names of the models."""
    assert "add --model" in refused(Settings(base_url="http://localhost:1/v1"))


def test_the_window_of_a_known_model_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting comes first."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    assert resolve(Settings(model="anthropic:claude-haiku-4-5")).window == 200_000
    assert resolve(Settings(model="anthropic:claude-haiku-4-5", window=5000)).window == 5000


def test_a_model_has_the_efforts_that_it_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that always reasons cannot be told not to."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    assert resolve(Settings(model="openai:gpt-4.1")).efforts == ()
    assert resolve(Settings(model="openai:o3")).efforts == ("low", "medium", "high")
    assert resolve(Settings(model="any", base_url="http://localhost:1/v1")).efforts[:2] == ("off", "minimal")


@pytest.mark.parametrize(("effort", "sent"), [("high", "high"), ("off", "none"), ("default", None)])
def test_the_effort_that_the_user_chooses_is_sent(server: str, tmp_path: Path, effort: str, sent: str | None) -> None:
    core = AgentCore(resolve(Settings(model="m", base_url=server)), str(tmp_path))
    pipe = Pipe(core, Settings(), as_json=False)
    asyncio.run(run_command(pipe, pipe.commands, f"/effort {effort}"))
    say(core, "Hello?")
    assert Provider.seen[0].get("reasoning_effort") == sent


def test_effort_names_the_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model without them gets a sentence."""
    core = AgentCore(resolve(Settings(model="m", base_url="http://localhost:1/v1")), str(tmp_path))
    pipe = Pipe(core, Settings(), as_json=False)
    with pytest.raises(SettingsError, match="Unknown effort 'huge'"):
        asyncio.run(run_command(pipe, pipe.commands, "/effort huge"))
    asyncio.run(run_command(pipe, pipe.commands, "/effort"))
    assert capsys.readouterr().out.startswith("Effort: default.\nChoices: off, minimal, low, ")
    core.model = ChosenModel.from_model(ScriptedModel())
    asyncio.run(run_command(pipe, pipe.commands, "/effort high"))
    assert capsys.readouterr().out.endswith(" has no setting for how much it reasons.\n")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("openrouter:x/y", "OPENROUTER_API_KEY"),
        ("antropic:claude-haiku-4-5", "Did you mean anthropic:claude-haiku-4-5?"),
        ("gpt-5", "Did you mean openai:gpt-5"),
        ("anthropic:", "is not a model"),
        (":", "written provider:model"),
        ("nothing-like-it", "written provider:model"),
        ("test", "is not a model"),
        ("voyageai:x", "no provider 'voyageai'"),
    ],
)
def test_a_model_that_cannot_be_used_says_what_to_do(model: str, words: str) -> None:
    """The message has the variable to set, the closest name, or the form of a name."""
    assert words in refused(Settings(model=model))


def test_a_provider_whose_library_is_missing_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message ends with one line to paste."""
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    monkeypatch.setitem(sys.modules, "groq", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.groq", raising=False)
    assert refused(Settings(model="groq:x")).endswith("Run: pip install 'pydantic-ai-slim[groq]'")


def test_a_key_pasted_as_the_model_is_not_echoed() -> None:
    """Users paste into the wrong place."""
    assert SECRET not in refused(Settings(model=SECRET))


def test_without_a_model_or_a_key_the_message_offers_every_way_to_start() -> None:
    """A new user sees this message first."""
    with pytest.raises(ModelUnavailableError, match=r"ANTHROPIC_API_KEY(?s:.)*--base-url(?s:.)*skillshelf demo"):
        resolve(Settings())


def test_the_only_key_chooses_its_providers_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has set one key wants that provider. A note names the model."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    chosen = resolve(Settings())
    assert chosen.name == DEFAULTS["ANTHROPIC_API_KEY"]
    assert chosen.name in chosen.note
    assert "ANTHROPIC_API_KEY" in chosen.note


def test_two_keys_choose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """We must not guess which account pays."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    message = refused(Settings())
    assert DEFAULTS["ANTHROPIC_API_KEY"] in message
    assert DEFAULTS["OPENAI_API_KEY"] in message


def test_both_names_of_googles_key_are_one_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two variables for one account leave nothing to choose. Only the library is missing."""
    monkeypatch.setenv("GOOGLE_API_KEY", SECRET)
    monkeypatch.setenv("GEMINI_API_KEY", SECRET)
    monkeypatch.setitem(sys.modules, "google.genai", None)
    monkeypatch.delitem(sys.modules, "pydantic_ai.providers.google", raising=False)
    assert "pydantic-ai-slim[google]" in refused(Settings())


def test_every_default_is_a_model_the_library_knows() -> None:
    """This fails if a default was renamed."""
    assert set(DEFAULTS.values()) <= set(known_model_names())


@pytest.mark.parametrize(
    ("status", "name", "words"),
    [
        (401, "model-authentication", "refused the key (HTTP 401)"),
        (403, "model-authentication", "(HTTP 403)"),
        (404, "model-not-found", "does not know the model '404' (HTTP 404)"),
        (429, "model-rate-limit", "rate limit was reached (HTTP 429): try again in 7 seconds"),
        (402, "model-quota-exceeded", "no credit or quota left (HTTP 402)"),
        (400, "model-request-rejected", "refused the request (HTTP 400)"),
        (500, "model-server", "failed (HTTP 500)"),
        (503, "model-unavailable", "not available at the moment (HTTP 503)"),
    ],
)
def test_http_errors_become_a_sentence(
    server: str, monkeypatch: pytest.MonkeyPatch, status: int, name: str, words: str
) -> None:
    """It has the status and the provider's words, and neither the key nor a control character."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    kind, message = failure(server, str(status))
    assert kind == name
    assert words in message
    assert "It says: No: [key]" in message
    assert SECRET not in message
    assert "\x1b" not in message


def test_a_broken_stream_is_explained(server: str) -> None:
    """The explanation names the server."""
    kind, message = failure(server, "broken")
    assert kind == "model-connection"
    assert f"Could not reach {server[7:-3]}, or the connection broke" in message


def test_a_server_that_does_not_run_is_named() -> None:
    """This is the most common problem with a local server."""
    kind, message = failure("http://127.0.0.1:9/v1", "m")
    assert kind == "model-connection"
    assert "Could not reach 127.0.0.1:9" in message


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (
            UsageLimitExceeded("The next request would exceed 50"),
            "The limit for one turn was reached. The next request",
        ),
        (ContentFilterError("x"), "The provider's content filter stopped the answer. x."),
        (UnexpectedModelBehavior("Empty"), "The model answered in a way that cannot be used. Empty."),
        (ModelRequestTimeout("m", 3), "The model 'm' did not answer in time."),
        (TimeoutError(), "It took too long."),
        (ValueError("odd \x1b[31m"), "ValueError: odd <U+001B>[31m"),
        (ExceptionGroup("all", [TimeoutError()]), "It took too long."),
        (SkillNotFoundError("x"), "There is no skill named 'x'."),
        (ModelHTTPError(418, "m"), "The provider answered with an error (HTTP 418)."),
    ],
)
def test_other_errors_become_a_sentence_too(error: Exception, expected: str) -> None:
    """Each is one clear sentence without control characters."""
    assert explain_error(error)[1].startswith(expected)


def test_every_explained_error_has_its_own_sentence() -> None:
    """Each class exists, and comes before its base classes, whose sentence would otherwise be taken."""
    classes = list(error_sentences())
    for number, error in enumerate(classes):
        assert not [earlier for earlier in classes[:number] if issubclass(error, earlier)]


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {SECRET}",
        "Authorization: Bearer SECRET.value",
        "{'api_key': 'SECRETvalue'}",
        "http://user:SECRET@host/v1",
        "AIzaSyD-0123456789SECRET",
        "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6SECRET",
    ],
)
def test_nothing_like_a_key_is_repeated(text: str) -> None:
    """Whatever the provider echoes, its key is hidden."""
    assert "SECRET" not in explain_error(ValueError(text))[1]


def test_a_key_of_any_shape_is_known_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that looks like an ordinary word is still a key."""
    monkeypatch.setenv("ACME_API_KEY", "correcthorse")
    assert explain_error(ValueError("refused correcthorse"))[1] == "ValueError: refused [key]"


def test_the_price_of_a_known_model_is_given_and_of_others_not() -> None:
    """An unknown price is None; a server on this machine costs nothing, whatever it calls its model."""
    usage = RequestUsage(input_tokens=1_000_000, output_tokens=0)

    def cost(model: str | None, provider: str, url: str | None = None) -> float | None:
        parts = [TextPart("x")]
        response = ModelResponse(parts, usage=usage, model_name=model, provider_name=provider, provider_url=url)
        return usage_of(response).cost

    assert cost("claude-haiku-4-5", "anthropic") == pytest.approx(1.0)
    assert cost("no-such-model", "anthropic") is None
    assert cost(None, "anthropic") is None
    assert cost("gpt-4o", "openai", "http://localhost:11434/v1") is None
    assert cost("gpt-4o", "openai", "http://192.168.1.5/v1") is None
    assert cost("gpt-4o", "openai", "https://api.openai.com/v1") == pytest.approx(2.5)


@pytest.mark.parametrize("options", [[], ["--model", "anthropic:claude-sonnet-5-5"]])
def test_a_missing_model_or_key_is_reported_before_anything_heavy_is_imported(
    tmp_path: Path, options: list[str]
) -> None:
    """`skillshelf chat` answers at once: no framework, no provider and no terminal library is needed for that."""
    heavy = ["pydantic_ai", "prompt_toolkit", "openai", "anthropic", "asyncio"]
    code = (
        "import sys; from skillshelf.cli import main; code = main(sys.argv[1:]); "
        f"print(code, sorted(set({heavy}) & set(sys.modules)))"
    )
    keys = ("_API_KEY", "SKILLSHELF_")
    environment = {name: value for name, value in os.environ.items() if not any(key in name for key in keys)}
    done = subprocess.run(
        [sys.executable, "-c", code, "chat", "-p", "hi", *options],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "No model was chosen" in done.stderr or "needs the environment variable ANTHROPIC_API_KEY" in done.stderr
    assert done.stdout == "2 []\n"


# -- what a provider offers -------------------------------------------------------------------------------------------


def list_served(listing: Step) -> list[str]:
    """Return the models that a server on this machine lists."""

    async def ask(url: str) -> list[str]:
        return await list_offered_models(resolve(Settings(base_url=url, model="tiny")))

    with OpenAIApi(listing=listing).serve() as url:
        return asyncio.run(ask(url))


def test_the_models_of_a_server_are_listed() -> None:
    names = list_served(json.dumps({"data": [{"id": "tiny"}, {"id": "qwen3:8b"}, {"id": "org/large"}]}))
    assert names == ["openai-chat:org/large", "openai-chat:qwen3:8b", "openai-chat:tiny"]


@pytest.mark.parametrize(
    ("listing", "problem"),
    [
        (Fault(404), r"openai-chat offers no list of its models \(HTTP 404\)"),
        (
            Fault(401, json.dumps({"error": {"message": f"Wrong key: {SECRET}"}})),
            r"did not list its models \(HTTP 401\)",
        ),
        (Fault(200, json.dumps({"data": []}), {"content-type": "application/json"}), "offers no list of its models"),
        (Fault(200, json.dumps({"data": None}), {"content-type": "application/json"}), "offers no list of its models"),
        (Fault(200, f"<html>{SECRET}</html>"), "openai-chat"),
    ],
)
def test_a_server_without_a_list_says_what_to_type(
    listing: Step, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is never in the sentence, even if the server repeats it."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(ModelUnavailableError, match=problem) as caught:
        list_served(listing)
    assert "/model PROVIDER:MODEL" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_a_list_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillshelf_agent._models._LIST_SECONDS", 0.2)
    with pytest.raises(ModelUnavailableError, match="did not list its models within"):
        list_served(Broken(then="hang"))


def test_the_lists_of_anthropic_and_google_are_read() -> None:
    """Google's has models that do not answer messages, too."""
    pytest.importorskip("google.genai")
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.google import GoogleProvider

    claude = {"id": "claude-x", "type": "model", "display_name": "X", "created_at": "2026-01-01T00:00:00Z"}
    listing = json.dumps(
        {
            "data": [claude],
            "has_more": False,
            "models": [
                {"name": "models/gemini-x", "supportedGenerationMethods": ["generateContent"]},
                {"name": "models/embedding-x", "supportedGenerationMethods": ["embedContent"]},
            ],
        }
    )

    async def ask(url: str) -> list[str]:
        anthropic = AnthropicModel("claude-x", provider=AnthropicProvider(api_key=SECRET, base_url=url))
        google = GoogleModel("gemini-x", provider=GoogleProvider(api_key=SECRET, base_url=url))
        models = [ChosenModel(anthropic, "anthropic:claude-x", 1), ChosenModel(google, "google:gemini-x", 1)]
        return [name for model in models for name in await list_offered_models(model)]

    with OpenAIApi(listing=listing).serve() as url:
        assert asyncio.run(ask(url.removesuffix("/v1"))) == ["anthropic:claude-x", "google:gemini-x"]


def test_a_model_without_a_provider_has_no_list(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="offers no list of its models"):
        asyncio.run(list_offered_models(ChosenModel.from_model(ScriptedModel("Hello."))))
