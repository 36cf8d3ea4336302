"""Ask the user before a tool runs. An approval is for one call and is not remembered."""

import hashlib
import json
import secrets
from collections import OrderedDict
from typing import Any, NamedTuple

from mcp import MCPError, types
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from skillshelf.errors import PolicyError
from skillshelf.mcp._refresher import RequestContext
from skillshelf.tools import Tool

MAX_SHOWN_CHARACTERS = 2_000
"""Characters of the arguments that a question shows."""
MAX_OPEN_QUESTIONS = 1_000
"""Questions without an answer. The oldest beyond that are forgotten, and asked again."""
_RESPONSE_KEY = "approval"
_EMPTY_FORM: dict[str, Any] = {"type": "object", "properties": {}}
"""A form without fields: accepting it means yes."""


class _Question(NamedTuple):
    """A call that waits for the user's answer, with a digest instead of arguments that may be megabytes long."""

    tool: str
    arguments_digest: bytes


class Approvals:
    """The open questions, each under a random state that only the client which was asked has received."""

    def __init__(self) -> None:
        self._questions: OrderedDict[str, _Question] = OrderedDict()

    async def request(
        self, ctx: RequestContext, tool: Tool, params: types.CallToolRequestParams
    ) -> types.InputRequiredResult | None:
        """Return None once the user has approved the call, or the question that the client must put to them first.

        Raises PolicyError if the user declines or cannot be asked.
        """
        capabilities = ctx.session.client_capabilities
        if capabilities is None or capabilities.elicitation is None:
            raise PolicyError(
                f"Tool {tool.name!r} runs only after the user has approved the call, and this client cannot ask them "
                "(it has no elicitation). Do without it."
            )

        # ASCII only: the model chose these characters, and it must not draw on the user's terminal.
        arguments = json.dumps(params.arguments or {})
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._answer_or_question(tool, arguments, params)
        await self._ask_now(ctx, tool, arguments)
        return None

    async def _ask_now(self, ctx: RequestContext, tool: Tool, arguments: str) -> None:
        """Ask in the middle of the call, as the handshake revisions do. Raises PolicyError."""
        try:
            answer = await ctx.session.elicit_form(_format_question(tool, arguments), _EMPTY_FORM, ctx.request_id)
        except MCPError as error:
            raise PolicyError(f"Tool {tool.name!r} did not run: the user could not be asked ({error}).") from None
        _check_accepted(tool, answer.action)

    def _answer_or_question(
        self, tool: Tool, arguments: str, params: types.CallToolRequestParams
    ) -> types.InputRequiredResult | None:
        """Ask in the result, as later revisions do: the client repeats the call with the user's answer."""
        call = _Question(tool.name, hashlib.sha256(arguments.encode()).digest())
        asked = self._questions.pop(params.request_state or "", None)
        response = (params.input_responses or {}).get(_RESPONSE_KEY)
        if asked == call and isinstance(response, types.ElicitResult):
            _check_accepted(tool, response.action)
            return None

        state = secrets.token_urlsafe()
        self._questions[state] = call
        while len(self._questions) > MAX_OPEN_QUESTIONS:
            self._questions.popitem(last=False)

        form = types.ElicitRequestFormParams(
            message=_format_question(tool, arguments),
            requested_schema=_EMPTY_FORM,
        )
        return types.InputRequiredResult(
            input_requests={_RESPONSE_KEY: types.ElicitRequest(params=form)},
            request_state=state,
        )


def _format_question(tool: Tool, arguments: str) -> str:
    shown = arguments[:MAX_SHOWN_CHARACTERS].replace("\x7f", "\\u007f")
    hidden = len(arguments) - MAX_SHOWN_CHARACTERS
    if hidden > 0:
        shown += f" … and {hidden:,} more characters"
    return f"Run the tool {tool.name!r} with these arguments?\n{shown}"


def _check_accepted(tool: Tool, action: str) -> None:
    if action != "accept":
        raise PolicyError(f"The user did not allow this call of {tool.name!r}. Do not repeat it; ask what to do.")
