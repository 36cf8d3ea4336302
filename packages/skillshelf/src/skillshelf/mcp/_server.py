"""The server: which handler answers which method of the protocol."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

from mcp import types
from mcp.server import InitializationOptions, NotificationOptions, Server

from skillshelf import __version__
from skillshelf.listing import ListingForm
from skillshelf.mcp._limits import MAX_AGE, RESOURCES_PER_PAGE, NoticeLimits
from skillshelf.mcp._notices import Notifier
from skillshelf.mcp._prompts import Completions, Prompts, SkillKeys
from skillshelf.mcp._refresher import PendingSkills, RequestContext, ShelfRefresher
from skillshelf.mcp._resources import FolderParams, Resources
from skillshelf.mcp._skills_extension import EXTENSION, SkillParams, SkillsExtension
from skillshelf.mcp._tools import Tools
from skillshelf.shelf import Shelf
from skillshelf.text.tokens import DEFAULT_BUDGET

INSTRUCTIONS = (
    "This server has skills: instructions for particular tasks, with reference files. Before a task, find a skill that "
    "fits with search_skills, load it with load_skill_instructions, and follow it. The resource skill://listing names "
    "all of them."
)

Params = TypeVar("Params")
Result = TypeVar("Result")


class SkillsServer(Server[Notifier]):
    """A shelf over MCP. One server can serve many transports and clients at once."""

    def __init__(
        self,
        shelf: Shelf,
        pending: PendingSkills | None = None,
        *,
        disclosure: ListingForm = "auto",
        budget: int = DEFAULT_BUDGET,
        notices: NoticeLimits | None = None,
        page_size: int = RESOURCES_PER_PAGE,
        max_age: float = MAX_AGE,
    ) -> None:
        """Make a server.

        `disclosure` and `budget` are those of the resource `skill://listing`, as in `Shelf.listing`. `max_age`: seconds
        by which a load may lag behind the disk.
        """
        self.shelf = shelf
        self._pending = pending
        self._notice_limits = notices or NoticeLimits()
        self._refresher = ShelfRefresher(shelf, pending)
        self._make_listing = partial(shelf.listing, disclosure, budget)
        self._notifiers: set[Notifier] = set()
        """One for each transport that is being served."""

        keys = SkillKeys()
        self._tools = Tools(shelf, self._refresher, keys, pending, max_age)
        prompts = Prompts(shelf, self._refresher, keys, pending)
        resources = Resources(shelf, self._refresher, self._make_listing, page_size)
        skills = SkillsExtension(shelf, self._refresher)
        super().__init__(
            "skillshelf",
            version=__version__,
            instructions=INSTRUCTIONS,
            lifespan=_run_notifier,
            on_list_tools=self._tools.list,
            on_call_tool=self._tools.call,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read,
            on_list_prompts=prompts.list,
            on_get_prompt=prompts.get,
            on_completion=Completions(shelf).complete,
            on_subscribe_resource=_pass_to_notifier(Notifier.subscribe),
            on_unsubscribe_resource=_pass_to_notifier(Notifier.unsubscribe),
            on_subscriptions_listen=_pass_to_notifier(Notifier.listen),
        )
        # No tool has arguments that a client repeats in headers, and looking for them costs as much as an answer. Set
        # here because the constructor accepts it only from SDK 2.3 on; earlier versions do not read it.
        self.get_tool_input_schema = lambda name: None

        self.extensions = {EXTENSION: {"directoryRead": True}}
        self.add_request_handler("skills/list", types.PaginatedRequestParams, skills.list)
        self.add_request_handler("skills/get", SkillParams, skills.get)
        self.add_request_handler("resources/directory/read", FolderParams, resources.read_folder)
        self.add_notification_handler(
            "notifications/initialized", types.NotificationParams, _pass_to_notifier(Notifier.serve_client)
        )

    @property
    def needs_approval(self) -> bool:
        """True if the user must be asked before some of the tools run."""
        return self._tools.needs_approval

    @asynccontextmanager
    async def run_notifier(self) -> AsyncIterator[Notifier]:
        """Notify the clients of one transport of changes as long as the context is open."""
        async with Notifier(self.shelf, self._refresher, self._make_listing, self._notice_limits).run() as notifier:
            self._notifiers.add(notifier)
            try:
                yield notifier
            finally:
                self._notifiers.discard(notifier)

    def close_streams(self) -> None:
        """End the streams of changes that clients are listening to, each with its final answer."""
        for notifier in self._notifiers:
            notifier.close_streams()

    @property
    def instructions(self) -> str | None:
        """The text for a client that connects now: the SDK reads it at each handshake."""
        notice = self._pending.notice if self._pending else ""
        if notice:
            return f"{self._instructions} {notice}"
        return self._instructions

    @instructions.setter
    def instructions(self, text: str | None) -> None:
        self._instructions = text

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Declare that prompts and resources change: the SDK's transports call this without options."""
        options = notification_options or NotificationOptions(prompts_changed=True, resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def get_capabilities(self, *args: Any, **keywords: Any) -> types.ServerCapabilities:
        """Declare that tools do not change, which the SDK assumes of a server with subscriptions."""
        capabilities = super().get_capabilities(*args, **keywords)
        return capabilities.model_copy(update={"tools": types.ToolsCapability(list_changed=False)})


def make_server(
    shelf: Shelf,
    *,
    pending: PendingSkills | None = None,
    disclosure: ListingForm = "auto",
    budget: int = DEFAULT_BUDGET,
) -> SkillsServer:
    """Make an MCP server of a shelf's skills and of the tools of its code skills.

    `pending` counts skills that are not on the shelf because the user has not approved them; clients are informed.
    `disclosure` and `budget` say how much the resource `skill://listing` shows, as in `Shelf.listing`.
    """
    return SkillsServer(shelf, pending, disclosure=disclosure, budget=budget)


@asynccontextmanager
async def _run_notifier(server: Server[Notifier]) -> AsyncIterator[Notifier]:
    assert isinstance(server, SkillsServer)
    async with server.run_notifier() as notifier:
        yield notifier


def _pass_to_notifier(
    method: Callable[[Notifier, RequestContext, Params], Awaitable[Result]],
) -> Callable[[RequestContext, Params], Awaitable[Result]]:
    """Return a handler that calls this method of the notifier whose transport the request came through."""

    async def handle(ctx: RequestContext, params: Params) -> Result:
        return await method(ctx.lifespan_context, ctx, params)

    return handle
