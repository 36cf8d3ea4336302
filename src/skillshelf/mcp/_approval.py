"""Asking the person before a tool runs. A yes is for the one call it was asked for, and is kept nowhere."""

import hashlib
import json
import secrets
from collections import OrderedDict
from typing import Any

from mcp import MCPError, types
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from skillshelf.errors import PolicyError
from skillshelf.mcp._turns import Context
from skillshelf.skill import Tool

_KEY = "approval"
_SHOWN = 2_000
# Questions without an answer yet; of more, the oldest are forgotten and asked again.
_MOST = 1_000
# No fields: to accept is to say yes.
_FORM: dict[str, Any] = {"type": "object", "properties": {}}


class Approvals:
    """Questions that are open. Each is known by a number that only the client who was asked has been given."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[str, bytes]] = OrderedDict()
        """The tool, and the digest of its arguments: of a thousand texts of a megabyte there may be no room."""

    async def ask(
        self, ctx: Context, tool: Tool, params: types.CallToolRequestParams
    ) -> types.InputRequiredResult | None:
        """The question for the client to put to the person; None once they agreed. Raises PolicyError for a no."""
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            raise PolicyError(
                f"Tool {tool.name!r} runs only after the user has approved the call, and this client cannot ask them "
                "(it has no elicitation). Do without it."
            )
        shown = json.dumps(params.arguments or {})
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            try:
                answer = await ctx.session.elicit_form(_question(tool, shown), _FORM, ctx.request_id)
            except MCPError as error:
                raise PolicyError(f"Tool {tool.name!r} did not run: the person could not be asked ({error}).") from None
            _check(tool, answer.action)
            return None
        # These revisions answer with the question, and the client makes the call again with the person's answer.
        asked = self._open.pop(params.request_state or "", None)
        reply = (params.input_responses or {}).get(_KEY)
        if asked == (tool.name, _digest(shown)) and isinstance(reply, types.ElicitResult):
            _check(tool, reply.action)
            return None
        return self._question(tool, shown)

    def _question(self, tool: Tool, shown: str) -> types.InputRequiredResult:
        state = secrets.token_urlsafe()
        self._open[state] = tool.name, _digest(shown)
        while len(self._open) > _MOST:
            self._open.popitem(last=False)
        form = types.ElicitRequestFormParams(message=_question(tool, shown), requested_schema=_FORM)
        return types.InputRequiredResult(input_requests={_KEY: types.ElicitRequest(params=form)}, request_state=state)


def _digest(shown: str) -> bytes:
    return hashlib.sha256(shown.encode()).digest()


def _question(tool: Tool, shown: str) -> str:
    """In ASCII, which `json.dumps` has made of the arguments: a model cannot draw on the person's terminal."""
    more = len(shown) - _SHOWN
    rest = f" … and {more:,} more characters" if more > 0 else ""
    return f"Run the tool {tool.name!r} with these arguments?\n{shown[:_SHOWN]}{rest}".replace("\x7f", "\\u007f")


def _check(tool: Tool, action: str) -> None:
    """Raises PolicyError for whatever is no yes."""
    if action != "accept":
        raise PolicyError(f"The person did not allow this call of {tool.name!r}. Do not repeat it; ask what to do.")
