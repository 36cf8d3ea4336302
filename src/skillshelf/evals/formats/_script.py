"""The steps of a scripted model, as a case file writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillshelf.errors import EvalError

if TYPE_CHECKING:
    from skillshelf.agent import Call, Fail

_RIGHT = "It is a text, {tool: …, arguments: {…}}, {fail: …, after: …}, or a list of them"


def steps(value: Any) -> Any:
    """One step, or the several things that a model says at once."""
    return [_step(one) for one in value] if isinstance(value, list) else _step(value)


def _step(value: Any) -> str | Call | Fail:
    from skillshelf.agent import Call, Fail  # with the model's libraries, which other cases need not wait for

    match value:
        case str():
            return value
        case {"tool": str(tool), **rest} if rest.keys() <= {"arguments"}:
            arguments = rest.get("arguments") or {}
            if isinstance(arguments, dict):
                return Call(tool, dict(arguments))
        case {"fail": str(message), **rest} if rest.keys() <= {"after"}:
            return Fail(ConnectionError(message), str(rest.get("after") or ""))
    raise EvalError(f"{value!r:.60} is no step of a script", _RIGHT)
