"""Claude Agent SDK: `query(prompt=…, options=skills.options())`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from skillshelf.adapters.common import Disclosure, called, joined, offered, opened
from skillshelf.errors import MissingExtraError, SettingsError, SkillError
from skillshelf.listing.feed import change
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.tools import Tool, text_of

try:
    from claude_agent_sdk import (
        CanUseTool,
        ClaudeAgentOptions,
        HookMatcher,
        McpSdkServerConfig,
        PermissionResult,
        PermissionResultAllow,
        SdkMcpTool,
        ToolPermissionContext,
        create_sdk_mcp_server,
    )
except ImportError:
    raise MissingExtraError("skillshelf.adapters.claude_agent", "claude-agent") from None

if TYPE_CHECKING:
    from skillshelf.listing.choose import Listing
    from skillshelf.shelf import Shelf

_SERVER = "skillshelf"
_PREFIX = f"mcp__{_SERVER}__"


class Skills:
    """A shelf for Claude: the listing in the system prompt, the find-skills tools, and those of its code skills.

    Claude Code makes the model calls in a process of its own, so the listing cannot be made anew for each of them. It
    is made by `options()`, and a message that is sent later comes with a note of what has changed since.
    """

    def __init__(self, shelf: Shelf, *, disclosure: Disclosure = "auto", budget: int = DEFAULT_BUDGET) -> None:
        self.shelf, self.disclosure, self.budget = shelf, disclosure, budget
        self.tools = offered(shelf)

    def listing(self) -> Listing:
        return self.shelf.listing(self.disclosure, self.budget)

    def options(self, own: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """The host's own options with the shelf in them, for one `query()` or one `ClaudeSDKClient`.

        Each message is a turn of the shelf; inside `with shelf.turn():` all of them join that one. A tool whose
        permission is `ask` runs once the host's `can_use_tool` has allowed that very call. Raises SettingsError.
        """
        own = own or ClaudeAgentOptions()
        if not isinstance(own.mcp_servers, dict):
            raise SettingsError("mcp_servers names a file, to which no server can be added. Write a dict of servers.")
        link, hooks = _Link(self), own.hooks or {}
        free = [_PREFIX + tool.name for tool in self.tools if tool.permission != "ask"]
        server = create_sdk_mcp_server(_SERVER, tools=[link.tool(tool) for tool in self.tools])
        # Else Claude Code leaves them out of the prompt, for the model to find with a search of its own.
        server = cast(McpSdkServerConfig, {**server, "alwaysLoad": True})
        prompted = [*hooks.get("UserPromptSubmit", ()), HookMatcher(hooks=[link.prompted])]
        return replace(
            own,
            system_prompt=_prompt(own, link.told.text),
            mcp_servers={**own.mcp_servers, _SERVER: server},
            hooks={**hooks, "UserPromptSubmit": prompted},
            can_use_tool=link.asking(own.can_use_tool, free) if own.can_use_tool else None,
            # With a callback, an entry here would have the SDK warn that the callback is passed over.
            allowed_tools=own.allowed_tools if own.can_use_tool else [*own.allowed_tools, *free],
        )


class _Link:
    """One connection to Claude Code: its turn, what it was told of the shelf, and which calls the person allowed."""

    def __init__(self, skills: Skills) -> None:
        self.skills, self.joined = skills, joined(skills.shelf)
        self.turn = self.joined or skills.shelf.turn()
        self.told = skills.listing()
        self.allowed: list[tuple[str, dict[str, Any]]] = []

    async def prompted(self, *_: Any) -> Any:
        """A message was sent: a turn begins, and Claude is told what has changed."""
        if not self.joined:
            self.turn = await opened(self.skills.shelf)
        told, self.told = self.told, self.skills.listing()
        if told.text == self.told.text:
            return {}
        note = change(told, self.told) or "No skills are available any more."
        return {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": note}}

    def asking(self, person: CanUseTool, free: list[str]) -> CanUseTool:
        async def can_use_tool(
            name: str, arguments: dict[str, Any], context: ToolPermissionContext
        ) -> PermissionResult:
            if name in free:
                return PermissionResultAllow()
            answer = await person(name, arguments, context)
            if isinstance(answer, PermissionResultAllow) and name.startswith(_PREFIX):
                changed = answer.updated_input
                self.allowed.append((name.removeprefix(_PREFIX), arguments if changed is None else changed))
            return answer

        return can_use_tool

    def tool(self, tool: Tool) -> SdkMcpTool[Any]:
        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            approved = (tool.name, arguments) in self.allowed
            if approved:
                self.allowed.remove((tool.name, arguments))
            try:
                text = text_of(await called(tool, arguments, self.turn, approved=approved))
            except SkillError as error:  # said so that the model can act on it
                return {"content": [{"type": "text", "text": str(error)}], "is_error": True}
            return {"content": [{"type": "text", "text": text}]}

        return SdkMcpTool(tool.name, tool.description, tool.parameters, call)


def _prompt(own: ClaudeAgentOptions, listing: str) -> Any:
    """The host's system prompt with the listing after it, to be sent as it is now: not as a session first had it."""
    prompt: Any = own.system_prompt
    if isinstance(prompt, dict) and prompt["type"] == "preset":
        return {"snapshot": False, **prompt, "append": _joined(prompt.get("append"), listing)}
    if isinstance(prompt, dict) and prompt["type"] == "file":
        prompt = Path(own.cwd or ".", prompt["path"]).read_text(encoding="utf-8")
    written = prompt if isinstance(prompt, dict) else {"prompt": prompt}
    return {"type": "custom", "snapshot": False, **written, "prompt": _joined(written["prompt"], listing)}


def _joined(own: str | None, listing: str) -> str:
    return "\n\n".join(filter(None, (own, listing)))
