"""Claude Agent SDK: `query(prompt=…, options=skills.options())`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillshelf.adapters._common import call_tool, open_turn
from skillshelf.errors import MissingExtraError, SettingsError, SkillError
from skillshelf.listing import describe_change, merge_listings
from skillshelf.shelf import all_tools, current_turn_of
from skillshelf.skills import Tool
from skillshelf.skills.results import Image, Part, base64_of, parts_of
from skillshelf.text.tokens import DEFAULT_BUDGET

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
    from skillshelf.listing import Listing, ListingForm
    from skillshelf.shelf import Shelf
    from skillshelf.shelf.routing import Route

_SERVER = "skillshelf"
_PREFIX = f"mcp__{_SERVER}__"
_MAX_HOOK_CHARACTERS = 10_000
"""Claude Code cuts a longer text to its first 2 KB. It counts in UTF-16, as JavaScript does."""
_NEW_LISTING = (
    "The available skills changed. This replaces all you have been told about them before. "
    "Instructions you have been shown may have changed: load them again.\n\n"
)


class Skills:
    """A shelf for Claude: the listing in the system prompt, the find-skills tools, and those of its code skills.

    Claude Code makes the model calls in a process of its own, so the listing cannot be made again for each of them. It
    is made by `options()`. A later message comes with a note of what has changed since, and the note is repeated once
    the conversation was cleared or compacted.
    """

    def __init__(self, shelf: Shelf, *, disclosure: ListingForm = "auto", budget: int = DEFAULT_BUDGET) -> None:
        self.shelf = shelf
        self.disclosure = disclosure
        self.budget = budget
        all_tools(shelf)  # raises InvalidSkillError here, where the program can correct it

    def listing(self) -> Listing:
        return self.shelf.listing(self.disclosure, self.budget)

    def options(self, own: ClaudeAgentOptions | None = None) -> ClaudeAgentOptions:
        """Return the host's own options with the shelf in them, for one `query()` or one `ClaudeSDKClient`.

        Each message is a turn of the shelf; inside `with shelf.turn():` all of them join that one. A tool whose
        permission is `ask` runs once the host's `can_use_tool` has allowed that very call. Raises SettingsError.
        """
        own = own or ClaudeAgentOptions()
        if not isinstance(own.mcp_servers, dict):
            raise SettingsError("mcp_servers names a file, to which no server can be added. Write a dict of servers.")

        connection = _Connection(self)
        hooks = dict[Any, Any](own.hooks or {})
        # The SDK passes on SessionStart as well, though its types do not name it.
        for event, hook in (("UserPromptSubmit", connection.on_message), ("SessionStart", connection.on_cleared)):
            hooks[event] = [*hooks.get(event, ()), HookMatcher(hooks=[hook])]

        # Without `alwaysLoad` Claude Code leaves the tools out of the prompt, to be found with a search of its own.
        shelf_tools = all_tools(self.shelf)
        tools = [connection.make_tool(tool) for tool in shelf_tools]
        server: Any = {**create_sdk_mcp_server(_SERVER, tools=tools), "alwaysLoad": True}

        free_tools = [_PREFIX + tool.name for tool in shelf_tools if tool.permission != "ask"]
        allowed_tools = own.allowed_tools
        can_ask = own.can_use_tool is not None and own.permission_mode != "dontAsk"
        if not can_ask:  # if it can, the SDK would warn that these entries are ignored
            allowed_tools = [*allowed_tools, *free_tools]
        can_use_tool = None
        if own.can_use_tool:
            can_use_tool = connection.record_approvals(own.can_use_tool, free_tools)

        return replace(
            own,
            system_prompt=_add_listing(own, connection.sent.text),
            mcp_servers={**own.mcp_servers, _SERVER: server},
            hooks=hooks,
            can_use_tool=can_use_tool,
            allowed_tools=allowed_tools,
        )


class _Connection:
    """A connection to Claude Code: its turn, the listing its model knows, and the calls that the user allowed."""

    def __init__(self, skills: Skills) -> None:
        self.skills = skills
        self.callers_turn = current_turn_of(skills.shelf)
        self.turn = self.callers_turn or skills.shelf.turn()
        self.sent = skills.listing()
        """The listing in the system prompt."""
        self.known = self.sent
        """The same with everything that notes have added."""
        self.route: Route | None = None
        self.loaded: dict[str, None] = {}
        self.allowed: list[tuple[str, dict[str, Any]]] = []

    async def on_message(self, hook_input: Any, *_: Any) -> Any:
        """Begin a turn, in which the user has not allowed anything yet. Note what has changed, and what fits."""
        self.allowed.clear()
        text = hook_input.get("prompt", "")
        if not self.callers_turn:
            self.turn = await open_turn(self.skills.shelf, lambda turn: self._choose(text))
        return self._make_note("UserPromptSubmit", self.known)

    def _choose(self, text: str) -> None:
        """Choose the skills to describe for a message."""
        skills = self.skills
        self.loaded.update(dict.fromkeys(activation.skill for activation in self.turn.activations))
        self.route = skills.shelf.route(
            text, loaded=self.loaded, previous=self.route, disclosure=skills.disclosure, budget=skills.budget
        )

    def _listing(self) -> Listing:
        ranking = self.route.ranking if self.route else ()
        return self.skills.shelf.listing(self.skills.disclosure, self.skills.budget, ranking=ranking)

    async def on_cleared(self, hook_input: Any, *_: Any) -> Any:
        """Repeat the notes, which are gone after `/clear` or a compaction; the system prompt is still there."""
        # A subagent that is compacted has an id here. It has a system prompt and a history of its own.
        if "agent_id" in hook_input:
            return {}
        return self._make_note("SessionStart", self.sent)

    def _make_note(self, event: str, known: Listing) -> Any:
        """Return the hook's answer for a model that knows this listing."""
        now = self._listing()
        note = describe_change(known, now)
        self.known = merge_listings(known, now)
        if not note:
            return {}

        # A budget in tokens does not limit characters exactly, so it shrinks until the note fits.
        budget = _MAX_HOOK_CHARACTERS // 2
        while budget and len(note.encode("utf-16-le", "surrogatepass")) > 2 * _MAX_HOOK_CHARACTERS:
            note = _NEW_LISTING + self.skills.shelf.listing("auto", budget).text
            budget = budget * 3 // 4
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}}

    def record_approvals(self, ask_user: CanUseTool, free_tools: list[str]) -> CanUseTool:
        """Wrap the host's callback: free tools are not asked about, and allowed calls are recorded."""

        async def can_use_tool(name: str, arguments: dict[str, Any], context: Any) -> PermissionResult:
            if name in free_tools:
                return PermissionResultAllow()
            answer = await ask_user(name, arguments, context)
            if isinstance(answer, PermissionResultAllow) and name.startswith(_PREFIX):
                if answer.updated_input is not None:
                    arguments = answer.updated_input
                self.allowed.append((name.removeprefix(_PREFIX), arguments))
            return answer

        return can_use_tool

    def make_tool(self, tool: Tool) -> SdkMcpTool[Any]:
        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            is_approved = (tool.name, arguments) in self.allowed
            if is_approved:
                self.allowed.remove((tool.name, arguments))
            try:
                parts = await call_tool(tool, arguments, self.turn, approved=is_approved, encode=parts_of)
            except SkillError as error:  # the model gets the message and can act on it
                return {"content": [{"type": "text", "text": str(error)}], "is_error": True}
            return {"content": [_encode_part(part) for part in parts]}

        return SdkMcpTool(tool.name, tool.description, tool.parameters, call)


def _encode_part(part: Part) -> dict[str, Any]:
    """Return a part of a result as an MCP block. The SDK drops sound, so its text goes instead."""
    if isinstance(part, Image):
        return {"type": "image", "data": base64_of(part), "mimeType": part.media_type}
    return {"type": "text", "text": str(part)}


def _add_listing(own: ClaudeAgentOptions, listing: str) -> Any:
    """Return the host's system prompt followed by the listing.

    It is sent as it is now (`snapshot: False`), even in a session that began with another one.
    """
    prompt: Any = own.system_prompt
    if isinstance(prompt, dict) and prompt["type"] == "file":
        prompt = Path(own.cwd or ".", prompt["path"]).read_text(encoding="utf-8")
    if not isinstance(prompt, dict):
        prompt = {"type": "custom", "prompt": prompt}

    field = "append" if prompt["type"] == "preset" else "prompt"
    text = "\n\n".join(filter(None, (prompt.get(field), listing)))
    return {"snapshot": False, **prompt, field: text}
