"""The faces that skillshelf brings, by name."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from types import MappingProxyType

from skillshelf.testing.conformance._face import Face

_CLASSES = {
    "skillshelf-chat": "agent:Agent",
    "mcp": "mcp:MCP",
    "mcp-stdio": "mcp:MCPStdio",
    "mcp-http": "mcp:MCPHttp",
    "pydantic-ai": "pydantic_ai:PydanticAI",
    "langchain": "langchain:LangChain",
    "openai-agents": "openai_agents:OpenAIAgents",
    "google-adk": "google_adk:GoogleADK",
    "agent-framework": "agent_framework:AgentFramework",
    "claude-agent": "claude_agent:ClaudeAgent",
}


def _import_later(name: str) -> Callable[[], Face]:
    def make_face() -> Face:
        face: Face = resolve_name(f"skillshelf.testing.conformance.faces.{name}")()
        return face

    return make_face


FACES: Mapping[str, Callable[[], Face]] = MappingProxyType(
    {face: _import_later(name) for face, name in _CLASSES.items()}
)
"""A function for each face that makes it. It raises MissingExtraError if the framework is not installed."""
