"""The faces that skillshelf brings, by name."""

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


def _import_later(module: str) -> Callable[[], Face]:
    def make_face() -> Face:
        face: Face = import_module(f"skillshelf.testing.conformance.faces.{module}").make()
        return face

    return make_face


FACES: Mapping[str, Callable[[], Face]] = MappingProxyType(
    {name: _import_later(module) for name, module in _MODULES.items()}
)
"""A function for each face that makes it. It raises MissingExtraError if the framework is not installed."""
