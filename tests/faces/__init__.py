"""The faces of skillshelf for the conformance scenario: each scripts a model in its framework's own way."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name

from skillshelf.testing.conformance import Face

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
        face: Face = resolve_name(f"faces.{name}")()
        return face

    return make_face


FACES: Mapping[str, Callable[[], Face]] = {face: _import_later(name) for face, name in _CLASSES.items()}
"""A function for each face that imports its framework and makes it."""
