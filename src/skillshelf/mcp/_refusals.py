"""Answers to lines that are no messages: whoever sent a request would else wait for ever."""

import json
import re
from contextlib import suppress
from typing import Any

from mcp import types
from mcp.types import INVALID_REQUEST, PARSE_ERROR

# A string, whole or cut off at the end of the line, or what opens and closes a level. It matches wherever it begins, so
# that the time it takes grows with the length only.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[][{}]')
_VALUE = re.compile(r'\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]{1,1000}(?![0-9.eE])|)')


def refusal_of(line: str) -> types.JSONRPCError | None:
    """The answer to a line that is no message, with its id where it has one. None for a notification, and for an
    answer: nobody waits for those."""
    try:
        request = json.loads(line)
    except RecursionError:
        request = _outermost(line)
    except ValueError:
        return _refusal(None, PARSE_ERROR, "This is no JSON")
    if isinstance(request, dict):
        if "result" in request or "error" in request:
            return None
        if isinstance(request.get("method"), str) and "id" not in request:
            return None
        if isinstance(request.get("method"), str) and _is_id(request["id"]):
            return _refusal(request["id"], INVALID_REQUEST, "This is no valid JSON-RPC request")
    return _refusal(None, INVALID_REQUEST, "This is no valid JSON-RPC request")


def _outermost(line: str) -> dict[str, Any]:
    """The texts and whole numbers directly in an object too deep to be read; other values are None."""
    found: dict[str, Any] = {}
    depth = 0 if line.startswith("{") else 1
    for token in _TOKEN.finditer(line):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif depth == 1 and (value := _VALUE.match(line, token.end())):
            with suppress(ValueError):
                found[json.loads(token[0])] = json.loads(value[1] or "null")
    return found


def _is_id(value: Any) -> bool:
    if isinstance(value, str):  # half an emoji cannot be said back
        return value.isascii() or value == value.encode(errors="replace").decode()
    return isinstance(value, int) and not isinstance(value, bool)


def _refusal(request_id: Any, code: int, message: str) -> types.JSONRPCError:
    return types.JSONRPCError(jsonrpc="2.0", id=request_id, error=types.ErrorData(code=code, message=message))
