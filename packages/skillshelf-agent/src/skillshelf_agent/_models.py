"""Choose the model that answers."""

import ipaddress
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args
from urllib.parse import urlsplit

from skillshelf.errors import MissingExtraError, ModelUnavailableError
from skillshelf.settings import Settings, without_secrets
from skillshelf.text import closest_names
from skillshelf_agent._explain import hide_keys, quote_name

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model

    from skillshelf_agent.events import Usage

# pydantic-ai takes seconds to import, so each function imports what it needs of it.

_DEFAULT_WINDOW = 200_000
"""The window, in tokens, that is assumed for a provider's model if it is not known."""
SERVER_WINDOW = 32_768
"""The window, in tokens, that is assumed for a user's own server if it is not known."""
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
"""Each provider's all-round model. It is used if no model was chosen and only that provider's key is set."""
Effort = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = get_args(Effort)
# Prefixes of a model that a user's own server serves.
_SERVER_PREFIXES = ("openai", "openai-chat", "ollama", "vllm", "litellm")


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model that can be asked."""

    model: "Model[Any]"
    name: str
    """`provider:model`."""
    window: int
    """The tokens it can hold."""
    note: str = ""
    """A remark on the choice, for the user."""
    effort: "Effort | Literal['']" = ""
    """How much it reasons. Empty: as much as its provider's default."""
    base_url: str | None = None
    """The address of the user's own server, without a key in it; empty for a provider. None: a program brought it."""

    @property
    def efforts(self) -> "tuple[Effort, ...]":
        """The efforts to choose from; empty if the model has no such setting, as far as that is known."""
        profile: Mapping[str, Any] = self.model.profile
        if not profile.get("supports_thinking") and not profile.get("thinking_always_enabled"):
            return ()
        efforts = list(EFFORTS)
        if profile.get("thinking_always_enabled"):
            efforts.remove("off")
        accepted = profile.get("openai_reasoning_efforts")
        if accepted is not None:
            efforts = [effort for effort in efforts if ("none" if effort == "off" else effort) in accepted]
        return tuple(efforts)

    @classmethod
    def from_model(cls, model: "Model[Any]") -> "ChosenModel":
        """Use a model of pydantic-ai that a program brings."""
        return cls(model, model.model_name, _find_window(Settings(), model))


@dataclass(frozen=True, slots=True)
class ModelPreview:
    """The model that the settings mean, as far as it can be known without the library of its provider."""

    name: str
    """`provider:model`, or a server's own name. Empty: none is chosen, and none is obvious."""
    key_variables: tuple[str, ...] = ()
    """The environment variables of which one must hold its key. Empty if it needs none, or if that is not known."""
    is_default: bool = False
    """True if no setting names it: it is the all-round model of the only provider whose key is set."""
    alternatives: tuple[str, ...] = ()
    """The models to choose from if the keys of several providers are set."""

    @property
    def has_key(self) -> bool:
        return not self.key_variables or any(os.environ.get(variable) for variable in self.key_variables)


def preview_model(settings: Settings) -> ModelPreview:
    """Return the model that `resolve` would choose, without importing anything."""
    if not settings.model and not settings.base_url:
        models = _find_models_with_key()
        if len(models) == 1:
            [(model, variable)] = models.items()
            return ModelPreview(model, (variable,), is_default=True)
        return ModelPreview("", alternatives=tuple(models))
    if settings.base_url:
        return ModelPreview(settings.model)  # most such servers need no key
    provider = settings.model.partition(":")[0]
    variables = [variable for variable, model in DEFAULTS.items() if model.startswith(f"{provider}:")]
    return ModelPreview(settings.model, tuple(variables))


def require_model(settings: Settings) -> None:
    """Check at once, without importing anything, that a model is chosen and its provider's key is set.

    Raises ModelUnavailableError.
    """
    if not settings.model and not settings.base_url:
        _find_default()
    preview = preview_model(settings)
    is_complete = bool(settings.model.partition(":")[2])
    is_elsewhere = bool(os.environ.get("OPENAI_BASE_URL"))  # most servers of the user's own need no key
    if is_complete and not preview.has_key and not is_elsewhere:
        choice = " or ".join(preview.key_variables)
        raise ModelUnavailableError(
            f"{quote_name(settings.model)} needs the environment variable {choice}, which is not set."
        )


def resolve(settings: Settings) -> ChosenModel:
    """Return the model that the settings mean. Nothing is asked or started.

    Raises ModelUnavailableError or MissingExtraError.
    """
    require_model(settings)
    try:
        import pydantic_ai  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("skillshelf chat", "chat") from error

    if settings.model.startswith("script:"):
        return _make_scripted(settings)
    if settings.base_url and not _has_own_provider(settings.model):
        return _make_served(settings)

    name = settings.model
    note = ""
    if not name:
        name, note = _find_default()
    if settings.base_url:
        note = f"The base URL is for OpenAI-compatible servers; {name} is asked at its own provider."
    model = _make_from_name(name)
    return ChosenModel(model, name, _find_window(settings, model), note, base_url="")


_CLAUDE_FAMILIES = ("haiku", "sonnet", "opus")
"""Names that Claude Code's skills use instead of a model's: the newest model of the family."""


def find_sibling(current: ChosenModel, wanted: str) -> ChosenModel:
    """Return the model that a skill asks for, at the provider and address of the one in use.

    Raises ModelUnavailableError if it is not known there: a skill cannot choose whom the user pays.
    """
    provider, colon, _ = current.name.partition(":")
    wanted_provider, wanted_colon, name = wanted.rpartition(":")
    if not colon or (wanted_colon and wanted_provider != provider):
        raise ModelUnavailableError(f"{quote_name(wanted)} is not a model of the provider in use")

    if name in _CLAUDE_FAMILIES:
        name = _find_newest_claude(name, provider) or name
    full_name = f"{provider}:{name}"
    if full_name == current.name:
        return current
    from pydantic_ai.models import known_model_names

    if full_name not in known_model_names():
        raise ModelUnavailableError(f"{quote_name(wanted)} is not a known model of {provider}")
    model = _make_from_name(full_name)
    if model.base_url != current.model.base_url:  # a server of the user's own
        raise ModelUnavailableError(f"{quote_name(wanted)} is not served where the model in use is")
    return ChosenModel(model, full_name, _find_window(Settings(), model))


def _find_newest_claude(family: str, provider: str) -> str | None:
    """Return the newest model of a family that the provider is known to have, if there is one."""
    from pydantic_ai.models import known_model_names

    pattern = re.compile(rf"{re.escape(provider)}:(claude-{family}-(\d{{1,2}})(?:-(\d{{1,2}}))?)")
    versions: dict[tuple[int, int], str] = {}
    for known in known_model_names():
        match = pattern.fullmatch(known)
        if match:
            versions[int(match[2]), int(match[3] or 0)] = match[1]
    return versions[max(versions)] if versions else None


_LIST_SECONDS = 10.0
_NO_LIST = (404, 405, 501)
"""Answers of a server that does not know the request for its models."""


async def list_offered_models(current: ChosenModel) -> list[str]:
    """Return the models that the provider of the one in use offers, as `provider:model`.

    Raises ModelUnavailableError if there is no list, or none that arrives in time.
    """
    import asyncio  # which a model that cannot be used has no need of

    provider, _, _ = current.name.partition(":")
    try:
        async with asyncio.timeout(_LIST_SECONDS):
            names = await _fetch_names(current.model)
    except TimeoutError:
        problem = f"{provider} did not list its models within {_LIST_SECONDS:.0f} seconds"
    except Exception as error:  # each provider's library has errors of its own
        problem = hide_keys(_explain_no_list(provider, error))
    else:
        problem = f"{provider} offers no list of its models"
        if names:
            return [f"{provider}:{name}" for name in sorted(names)]
    raise ModelUnavailableError(f"{problem}. Give the name of one: /model PROVIDER:MODEL")


async def _fetch_names(model: "Model[Any]") -> set[str]:
    """Ask the provider for the names of its models. Return none if its library cannot ask."""
    client: Any = getattr(model, "client", None)
    google = getattr(client, "aio", None)
    if google is not None:
        found = [each async for each in await google.models.list()]
        able = [each for each in found if "generateContent" in (each.supported_actions or ["generateContent"])]
        return {str(each.name).removeprefix("models/") for each in able if each.name}
    if not hasattr(client, "models") or not hasattr(client, "with_options"):
        return set()
    return {str(each.id) async for each in client.with_options(max_retries=0).models.list()}


def _explain_no_list(provider: str, error: Exception) -> str:
    status = getattr(error, "status_code", None) or getattr(error, "code", None)
    if status in _NO_LIST:
        return f"{provider} offers no list of its models (HTTP {status})"
    if isinstance(status, int):
        return f"{provider} did not list its models (HTTP {status})"
    return f"{provider} could not be asked for its models: {str(error).rstrip('.')}"


def _make_scripted(settings: Settings) -> ChosenModel:
    """Return a model that plays the steps of a file, for demonstrations and tests."""
    from skillshelf_agent.testing import ScriptedModel, read_script

    model = ScriptedModel(*read_script(settings.model.removeprefix("script:")))
    return ChosenModel(model, "scripted", _find_window(settings, model))


def _make_served(settings: Settings) -> ChosenModel:
    """Return a model behind the base URL. The key is OPENAI_API_KEY if it is set; most such servers need none."""
    try:
        from pydantic_ai.profiles.openai import OpenAIModelProfile
        from pydantic_ai.providers.openai import OpenAIProvider

        from skillshelf_agent._served import ServedModel
    except ImportError as error:
        raise MissingExtraError("--base-url", "chat") from error

    prefix, colon, rest = settings.model.partition(":")
    name = rest if colon and prefix in _SERVER_PREFIXES else settings.model
    if not name:
        raise ModelUnavailableError(
            "There is a base URL but no model: add --model with the name the server gives it (its /models lists them)."
        )

    # Without the features that OpenAI alone understands. Whether the server knows efforts shows when the user sets one.
    profile = OpenAIModelProfile(
        supports_thinking=True,
        openai_supports_strict_tool_definition=False,
        openai_chat_supports_allowed_tools=False,
        openai_chat_supports_max_completion_tokens=False,
        openai_chat_supports_multiple_system_messages=False,
    )

    key = os.environ.get("OPENAI_API_KEY") or "no-key-needed"
    model = ServedModel(name, provider=OpenAIProvider(settings.base_url, key), profile=profile)
    window = _find_window(settings, model, SERVER_WINDOW)
    return ChosenModel(model, f"openai-chat:{name}", window, base_url=without_secrets(settings.base_url))


def _make_from_name(name: str) -> "Model[Any]":
    from pydantic_ai.models import infer_model

    provider, _, model = name.partition(":")
    if not provider or not model:
        raise ModelUnavailableError(f"{quote_name(name)} is not a model. {_suggest(name)}")
    if provider not in _list_providers():
        raise ModelUnavailableError(
            f"{quote_name(name)}: there is no provider {quote_name(provider)}. {_suggest(name)}"
        )

    try:
        return _watch_ends(infer_model(name))
    except ImportError as error:
        message = f"The library for {provider} is not installed. Run: {_find_install_command(provider, error)}"
        raise ModelUnavailableError(message) from error
    except Exception as error:  # each of forty providers has its own way to say what it lacks
        raise ModelUnavailableError(_describe_missing(name, str(error))) from error


def _watch_ends(model: "Model[Any]") -> "Model[Any]":
    """Return a model that notices an answer without an end, if it speaks Chat Completions."""
    if "pydantic_ai.models.openai" not in sys.modules:  # so it is of another kind, and needs no library of OpenAI's
        return model
    from pydantic_ai.models.openai import OpenAIChatModel

    from skillshelf_agent._served import watch_ends

    return watch_ends(model) if isinstance(model, OpenAIChatModel) else model


def _find_install_command(provider: str, error: ImportError) -> str:
    """Return the command from pydantic-ai's message, with quotes for a shell that expands brackets."""
    match = re.search(r"pip install [\"']?([\w\[\],-]+)", str(error))
    package = match[1] if match else f"pydantic-ai-slim[{provider}]"
    return f"pip install '{package}'"


def _describe_missing(name: str, message: str) -> str:
    """Say what a provider needs before it can be used: nearly always an environment variable."""
    reason = message.split(" or pass it via")[0].split(" To try Pydantic AI")[0]
    variables = re.findall(r"`([A-Z][A-Z0-9]*_[A-Z0-9_]+)`", reason)
    if variables and reason.startswith("Set the"):
        choice = " or ".join(dict.fromkeys(variables))
        return f"{quote_name(name)} needs the environment variable {choice}, which is not set."
    return hide_keys(f"{quote_name(name)} cannot be used: {reason}")


def _find_default() -> tuple[str, str]:
    """Return the all-round model of the only provider whose key is set, and a note about the choice."""
    models = _find_models_with_key()
    if len(models) == 1:
        [(model, variable)] = models.items()
        return model, f"No model was chosen: using {model}, because {variable} is set. --model chooses another."
    if models:
        options = "\n".join(f"  --model {model}" for model in models)
        raise ModelUnavailableError(
            f"No model was chosen, and the keys of several providers are set. Choose one:\n{options}"
        )
    raise ModelUnavailableError(
        "No model was chosen. Any of these works:\n"
        "  a provider     export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GOOGLE_API_KEY, …)\n"
        "                 and, if you want a model other than its all-round one, --model provider:model\n"
        "  your own server, such as Ollama\n"
        "                 --base-url http://localhost:11434/v1 --model qwen3\n"
        "To watch a recorded chat without any of them: skillshelf demo"
    )


def _find_models_with_key() -> dict[str, str]:
    """Return the all-round model of each provider whose key is set, and the variable that holds the key."""
    return {model: variable for variable, model in DEFAULTS.items() if os.environ.get(variable)}


def _has_own_provider(name: str) -> bool:
    """Return True if a name means a model at a provider of its own, whatever the base URL."""
    from pydantic_ai.models import known_model_names

    provider, colon, _ = name.partition(":")
    if not colon or provider in _SERVER_PREFIXES:
        return False
    if name in known_model_names():
        return True
    # Ollama has a model family of this name: mistral:7b is one, mistral:mistral-large-latest is the provider's.
    return provider != "mistral" and provider in _list_providers()


def _list_providers() -> frozenset[str]:
    """Return the providers that pydantic-ai has chat models of."""
    from pydantic_ai.models import OpenAIChatCompatibleProvider, OpenAIResponsesCompatibleProvider, known_model_names

    providers = {"openai-responses", "azure-responses"}
    providers.update(name.partition(":")[0] for name in known_model_names() if ":" in name)
    for alias in (OpenAIChatCompatibleProvider, OpenAIResponsesCompatibleProvider):
        providers.update(alias.__value__.__args__)
    return frozenset(providers)


def _suggest(name: str) -> str:
    """Suggest the closest names that pydantic-ai knows, or say what a name looks like."""
    provider, _, model = name.partition(":")
    if model:
        providers = closest_names(provider, _list_providers(), min_similarity=0.7)
        if providers:
            return f"Did you mean {' or '.join(f'{close}:{model}' for close in providers)}?"

    full_names = _names_without_provider()
    models = closest_names(model or name.rstrip(":"), full_names, min_similarity=0.75)
    if models:
        return f"Did you mean {' or '.join(full_names[close] for close in models)}?"
    return "A model is written provider:model, such as anthropic:claude-sonnet-5-5; a server needs --base-url."


def _names_without_provider() -> dict[str, str]:
    """Map the bare name of each known model to its full name. If several providers have it, its maker comes first."""
    from pydantic_ai.models import known_model_names

    makers = {name.partition(":")[0] for name in DEFAULTS.values()}
    full_names: dict[str, str] = {}
    for name in sorted(known_model_names(), key=lambda name: name.partition(":")[0] not in makers):
        full_names.setdefault(name.partition(":")[2] or name, name)
    full_names.pop("test", None)  # calls every tool with made-up arguments
    return full_names


def _find_window(settings: Settings, model: "Model[Any]", otherwise: int = 0) -> int:
    return settings.window or model.context_window or otherwise or _DEFAULT_WINDOW


def usage_of(response: "ModelResponse") -> "Usage":
    """Return the tokens and the price of a model's response."""
    from skillshelf_agent.events import Usage

    usage = response.usage
    return Usage(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens, _find_price(response))


def _find_price(response: "ModelResponse") -> float | None:
    """Return the price in US dollars, or None if it is not known."""
    if not response.model_name or _is_on_own_network(response.provider_url):
        return None
    try:
        return float(response.cost().total_price)
    except Exception:  # no such model in the table, a response without usage, …: never worth a failed turn
        return None


def _is_on_own_network(url: str | None) -> bool:
    """Return True for an address on the user's own machine or network, where a model costs nothing per token."""
    host = urlsplit(url or "").hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".localhost"))
