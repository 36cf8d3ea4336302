"""The faces that skillshelf brings, each with its framework's own way to script a model."""

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from skillshelf.testing.conformance._face import Face

_MODULES = {
    "skillshelf-chat": "agent",
    "mcp": "mcp",
    "mcp-stdio": "mcp_stdio",
    "mcp-http": "mcp_http",
    "pydantic-ai": "pydantic_ai",
    "langchain": "langchain",
    "openai-agents": "openai_agents",
    "google-adk": "google_adk",
    "agent-framework": "agent_framework",
    "claude-agent": "claude_agent",
}


def _maker(module: str) -> Callable[[], Face]:
    def make() -> Face:
        face: Face = import_module(f"skillshelf.testing.conformance.faces.{module}").make()
        return face

    return make


FACES: Mapping[str, Callable[[], Face]] = MappingProxyType({name: _maker(at) for name, at in _MODULES.items()})
"""By name, what makes a face. Making one raises MissingExtraError where its framework is not installed."""
