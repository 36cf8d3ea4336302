"""The server: which method of the protocol is answered by what."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from mcp import types
from mcp.server import InitializationOptions, NotificationOptions, Server

from skillshelf import __version__
from skillshelf.mcp._changes import Hub
from skillshelf.mcp._completion import Completions
from skillshelf.mcp._keys import Keys
from skillshelf.mcp._looks import Looks
from skillshelf.mcp._pending import PendingSkills
from skillshelf.mcp._prompts import Prompts
from skillshelf.mcp._resources import FolderParams, Resources
from skillshelf.mcp._skills import EXTENSION, SkillParams, Skills
from skillshelf.mcp._tools import Tools
from skillshelf.mcp._turns import Context
from skillshelf.shelf import Shelf

INSTRUCTIONS = (
    "This server has skills: instructions for particular tasks, with reference files. Before a task, find a skill that "
    "fits with search_skills, load it with load_skill_instructions, and follow it. The resource skill://listing names "
    "all of them."
)

P = TypeVar("P")
R = TypeVar("R")


class SkillsServer(Server[Hub]):
    """A shelf over MCP. One server can serve many transports and clients at once."""

    def __init__(self, shelf: Shelf, pending: PendingSkills | None = None) -> None:
        self.shelf = shelf
        self._pending = pending
        self.looks = looks = Looks(shelf, pending)
        keys = Keys()
        self.tools = Tools(shelf, looks, keys, pending)
        prompts = Prompts(shelf, looks, keys, pending)
        resources = Resources(shelf, looks)
        skills = Skills(shelf, looks)
        super().__init__(
            "skillshelf",
            version=__version__,
            instructions=INSTRUCTIONS,
            lifespan=_lifespan,
            on_list_tools=self.tools.list,
            on_call_tool=self.tools.call,
            on_list_resources=resources.list,
            on_list_resource_templates=resources.templates,
            on_read_resource=resources.read,
            on_list_prompts=prompts.list,
            on_get_prompt=prompts.get,
            on_completion=Completions(shelf).complete,
            on_subscribe_resource=_of_hub(Hub.subscribe),
            on_unsubscribe_resource=_of_hub(Hub.unsubscribe),
            on_subscriptions_listen=_of_hub(Hub.listen),
        )
        # No tool has arguments that a client repeats in headers, and to look for them costs as much as an answer. Set
        # here, because the constructor takes it from 2.3 of the SDK on; earlier versions do not read it.
        self.get_tool_input_schema = lambda name: None
        self.extensions = {EXTENSION: {"directoryRead": True}}
        self.add_request_handler("skills/list", types.PaginatedRequestParams, skills.list)
        self.add_request_handler("skills/get", SkillParams, skills.get)
        self.add_request_handler("resources/directory/read", FolderParams, resources.folder)
        initialized = _of_hub(Hub.initialized)
        self.add_notification_handler("notifications/initialized", types.NotificationParams, initialized)

    @property
    def instructions(self) -> str | None:
        """The text for a client that begins now: the SDK reads it at each handshake."""
        notice = self._pending.notice if self._pending else ""
        return f"{self._instructions} {notice}" if notice else self._instructions

    @instructions.setter
    def instructions(self, text: str | None) -> None:
        self._instructions = text

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """With what the transports of the SDK, which ask without options, could not know."""
        options = notification_options or NotificationOptions(prompts_changed=True, resources_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def get_capabilities(self, *arguments: Any, **options: Any) -> types.ServerCapabilities:
        """The SDK says of a server with subscriptions that its tools change, too; these do not."""
        told = super().get_capabilities(*arguments, **options)
        return told.model_copy(update={"tools": types.ToolsCapability(list_changed=False)})


def make_server(shelf: Shelf, *, pending: PendingSkills | None = None) -> SkillsServer:
    """Make an MCP server of a shelf's skills and of the tools of its code skills.

    `pending` counts skills that are not on the shelf because the user has not approved them; clients are informed.
    """
    return SkillsServer(shelf, pending)


@asynccontextmanager
async def _lifespan(server: Server[Hub]) -> AsyncIterator[Hub]:
    assert isinstance(server, SkillsServer)
    async with Hub(server.shelf, server.looks).running() as hub:
        yield hub


def _of_hub(method: Callable[[Hub, Context, P], Awaitable[R]]) -> Callable[[Context, P], Awaitable[R]]:
    """A method of the hub that the request came to: a transport has its own, and there may be several."""

    async def answer(ctx: Context, params: P) -> R:
        return await method(ctx.lifespan_context, ctx, params)

    return answer
