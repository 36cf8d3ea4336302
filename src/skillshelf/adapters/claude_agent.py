"""Claude Agent SDK: `query(prompt=…, options=skills.options())`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import Disclosure, call_tool, opened
from skillshelf.discovery import all_tools
from skillshelf.errors import MissingExtraError, SettingsError, SkillError
from skillshelf.listing import change
from skillshelf.results import Image, Part, base64_of, parts_of
from skillshelf.tokens import DEFAULT_BUDGET
from skillshelf.tools import Tool
from skillshelf.turn import current_turn_of

try:
    from claude_agent_sdk import (
        CanUseTool,
        ClaudeAgentOptions,
        HookMatcher,
        PermissionResult,
        PermissionResultAllow,
        SdkMcpTool,
        create_sdk_mcp_server,
    )
except ImportError:
    raise MissingExtraError("skillshelf.adapters.claude_agent", "claude-agent") from None

if TYPE_CHECKING:
    from skillshelf.listing import Listing
    from skillshelf.shelf import Shelf

_SERVER = "skillshelf"
_PREFIX = f"mcp__{_SERVER}__"
# Of a hook's longer text Claude Code shows the model the first 2 KB only. It counts in UTF-16, as JavaScript does.
_LONGEST = 10_000
_ANEW = (
    "The available skills changed. This takes the place of all that you were told of them before. "
    "Instructions that you were shown may have changed: load them again.\n\n"
)


class Skills:
    """A shelf for Claude: the listing in the system prompt, the find-skills tools, and those of its code skills.

    Claude Code makes the model calls in a process of its own, so the listing cannot be made anew for each of them. It
    is made by `options()`, and a message that is sent later comes with a note of what has changed since, told again
    once the conversation was cleared or compacted.
    """

    def __init__(self, shelf: Shelf, *, disclosure: Disclosure = "auto", budget: int = DEFAULT_BUDGET) -> None:
        self.shelf, self.disclosure, self.budget = shelf, disclosure, budget
        self.tools = all_tools(shelf)

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
        link, hooks = _Link(self), dict[Any, Any](own.hooks or {})
        # The SDK passes on SessionStart too, though its types do not name it.
        for event, said in (("UserPromptSubmit", link.prompted), ("SessionStart", link.cleared)):
            hooks[event] = [*hooks.get(event, ()), HookMatcher(hooks=[said])]
        free = [_PREFIX + tool.name for tool in self.tools if tool.permission != "ask"]
        tools = [link.tool(tool) for tool in self.tools]
        # Else Claude Code leaves them out of the prompt, for the model to find with a search of its own.
        server: Any = {**create_sdk_mcp_server(_SERVER, tools=tools), "alwaysLoad": True}
        asks = own.can_use_tool is not None and own.permission_mode != "dontAsk"
        return replace(
            own,
            system_prompt=_prompt(own, link.sent.text),
            mcp_servers={**own.mcp_servers, _SERVER: server},
            hooks=hooks,
            can_use_tool=link.asking(own.can_use_tool, free) if own.can_use_tool else None,
            # With a callback that is asked, an entry here would have the SDK warn that it is passed over.
            allowed_tools=own.allowed_tools if asks else [*own.allowed_tools, *free],
        )


class _Link:
    """One connection to Claude Code: its turn, what it was told of the shelf, and which calls the person allowed."""

    def __init__(self, skills: Skills) -> None:
        self.skills, self.joined = skills, current_turn_of(skills.shelf)
        self.turn = self.joined or skills.shelf.turn()
        self.sent = self.told = skills.listing()
        self.allowed: list[tuple[str, dict[str, Any]]] = []

    async def prompted(self, *_: Any) -> Any:
        """A message was sent: a turn begins, in which the person has not allowed anything yet."""
        self.allowed.clear()
        if not self.joined:
            self.turn = await opened(self.skills.shelf, self.skills.listing)
        return self.news("UserPromptSubmit", self.told)

    async def cleared(self, began: Any, *_: Any) -> Any:
        """After `/clear` or a compaction the notes are gone, and the system prompt is still the one that was sent."""
        # A subagent that is compacted has an id here. It has a system prompt and a history of its own.
        return {} if "agent_id" in began else self.news("SessionStart", self.sent)

    def news(self, event: str, known: Listing) -> Any:
        """What the hook tells a model that knows this listing."""
        self.told = self.skills.listing()
        if known.text == self.told.text:
            return {}
        note, budget = change(known, self.told), _LONGEST // 2
        # No number of tokens is a number of characters: less and less of each skill is told, until it fits.
        while budget and len(note.encode("utf-16-le", "surrogatepass")) > 2 * _LONGEST:
            note = _ANEW + self.skills.shelf.listing("auto", budget).text
            budget = budget * 3 // 4
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}}

    def asking(self, person: CanUseTool, free: list[str]) -> CanUseTool:
        async def can_use_tool(name: str, arguments: dict[str, Any], context: Any) -> PermissionResult:
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
                parts = await call_tool(tool, arguments, self.turn, approved=approved, encode=parts_of)
            except SkillError as error:  # said so that the model can act on it
                return {"content": [{"type": "text", "text": str(error)}], "is_error": True}
            return {"content": [_block(part) for part in parts]}

        return SdkMcpTool(tool.name, tool.description, tool.parameters, call)


def _block(part: Part) -> dict[str, Any]:
    """Return a part of a result as an MCP block. The SDK drops sound, so its text goes instead."""
    if isinstance(part, Image):
        return {"type": "image", "data": base64_of(part), "mimeType": part.media_type}
    return {"type": "text", "text": str(part)}


def _prompt(own: ClaudeAgentOptions, listing: str) -> Any:
    """The host's system prompt with the listing after it, to be sent as it is now: not as a session first had it."""
    prompt: Any = own.system_prompt
    if isinstance(prompt, dict) and prompt["type"] == "file":
        prompt = Path(own.cwd or ".", prompt["path"]).read_text(encoding="utf-8")
    form = prompt if isinstance(prompt, dict) else {"type": "custom", "prompt": prompt}
    field = "append" if form["type"] == "preset" else "prompt"
    return {"snapshot": False, **form, field: "\n\n".join(filter(None, (form.get(field), listing)))}
