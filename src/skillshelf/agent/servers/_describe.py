"""What a server says about its tools, made fit for a prompt: names that cannot collide, and bounded, visible text."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from skillshelf.text import clean_line, find_hidden, truncate

SEPARATOR = "__"
"""Between the server's name and the tool's. No tool of the agent's own has it in its name."""
MAX_TOOLS = 128
_MAX_NAME = 64
_MAX_DESCRIPTION = 1_024
_MAX_SCHEMA = 16 * 1024
_MAX_SCHEMA_TEXT = 400
_MAX_DEPTH = 16
_OTHER_CHARACTERS = re.compile(r"[^A-Za-z0-9_-]")
_ANY_ARGUMENTS: dict[str, Any] = {"type": "object"}


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool of a server, as the model gets it."""

    name: str
    """With the server's name in front."""
    remote_name: str
    """The server's own name for it."""
    description: str
    parameters: dict[str, Any]


@dataclass(frozen=True, slots=True)
class RawTool:
    """A tool in the words of its server, none of which can be trusted."""

    name: str
    description: str
    schema: Mapping[str, Any]


def describe_tools(server: str, tools: Sequence[RawTool]) -> dict[str, ServerTool]:
    """Return the tools for the model by their new names. The first count, up to the limit."""
    described: dict[str, ServerTool] = {}
    for tool in tools:
        name = make_name(server, tool.name)
        if name not in described and len(described) < MAX_TOOLS:
            text = truncate(clean_line(tool.description), _MAX_DESCRIPTION)
            description = f"[From the MCP server {server}] {text}".rstrip()
            described[name] = ServerTool(name, tool.name, description, clean_schema(tool.schema))
    return described


def make_name(server: str, tool: str) -> str:
    """Return a name that providers accept. A name that had to be shortened gets a mark that keeps it apart."""
    plain = _OTHER_CHARACTERS.sub("_", tool) or "tool"
    room = _MAX_NAME - len(server) - len(SEPARATOR)
    if len(plain) > room:
        mark = hashlib.sha256(tool.encode(errors="surrogatepass")).hexdigest()[:8]
        plain = f"{plain[: room - 9]}_{mark}"
    return f"{server}{SEPARATOR}{plain}"


def clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with its texts cut and cleaned. One that is too large, too deep or hides something is dropped."""
    try:
        cleaned = _clean_value(schema, 0)
        is_fit = isinstance(cleaned, dict) and len(json.dumps(cleaned)) <= _MAX_SCHEMA
    except (ValueError, TypeError, RecursionError):
        is_fit = False
    if not is_fit:
        return dict(_ANY_ARGUMENTS)
    return {**cleaned, "type": "object"}


def _clean_value(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, str):
        return truncate(clean_line(value), _MAX_SCHEMA_TEXT)
    if isinstance(value, Mapping):
        cleaned: dict[str, Any] = {}
        for key, item in value.items():
            if not isinstance(key, str) or not key.isprintable() or any(find_hidden(key)):
                raise ValueError("a name that cannot be shown")
            cleaned[key] = _clean_value(item, depth + 1)
        return cleaned
    if isinstance(value, list | tuple):
        return [_clean_value(item, depth + 1) for item in value]
    return value
